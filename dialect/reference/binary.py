"""Elementwise functions of two broadcast arrays; floats narrower than f32 compute in f32 and round once, integers wrap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .numeric import Array, convert, integer_range, is_float, wide
from .registry import reference

__all__: list[str] = []

_Function = Callable[[Array, Array], Array]


def _apply(function: _Function, lhs: Array, rhs: Array) -> Array:
    return convert(np.asarray(function(wide(lhs), wide(rhs))), lhs.dtype)


def _compare(function: _Function, lhs: Array, rhs: Array) -> Array:
    return np.array(function(wide(lhs), wide(rhs)), np.bool_)


def _logical(function: _Function, lhs: Array, rhs: Array) -> Array:
    return np.array(function(wide(lhs) != 0, wide(rhs) != 0), np.bool_)


@reference
def add(lhs: Array, rhs: Array) -> Array:
    return _apply(np.add, lhs, rhs)


@reference
def subtract(lhs: Array, rhs: Array) -> Array:
    return _apply(np.subtract, lhs, rhs)


@reference
def multiply(lhs: Array, rhs: Array) -> Array:
    return _apply(np.multiply, lhs, rhs)


@reference
def divide(lhs: Array, rhs: Array) -> Array:
    return _apply(np.divide if is_float(lhs.dtype) else _truncated_quotient, lhs, rhs)


def _truncated_quotient(lhs: Array, rhs: Array) -> Array:
    """The quotient of integers rounded towards zero; 0 where the divisor is 0."""
    quotient = np.floor_divide(lhs, rhs)
    inexact = quotient * rhs != lhs
    below_zero = (lhs < 0) != (rhs < 0)
    return np.where(rhs == 0, 0, quotient + (inexact & below_zero)).astype(lhs.dtype)


@reference
def floor_divide(lhs: Array, rhs: Array) -> Array:
    return _apply(_float_floor_divide if is_float(lhs.dtype) else np.floor_divide, lhs, rhs)


def _float_floor_divide(lhs: Array, rhs: Array) -> Array:
    """torch's: the quotient without the remainder is near a whole number, and is rounded to it."""
    rest = np.fmod(lhs, rhs)
    quotient = (lhs - rest) / rhs
    quotient = np.where(_unlike(rest, rhs), quotient - 1, quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + 1, whole)
    whole = np.where(quotient == 0, np.copysign(0, lhs / rhs), whole)
    return np.where(rhs == 0, lhs / rhs, whole).astype(lhs.dtype)


def _unlike(rest: Array, divisor: Array) -> Array:
    """Whether a remainder is not 0 and has not the divisor's sign."""
    return (rest != 0) & ((rest < 0) != (divisor < 0))


@reference
def fmod(lhs: Array, rhs: Array) -> Array:
    return _apply(np.fmod, lhs, rhs)


@reference
def mod(lhs: Array, rhs: Array) -> Array:
    return _apply(_float_mod if is_float(lhs.dtype) else np.mod, lhs, rhs)


def _float_mod(lhs: Array, rhs: Array) -> Array:
    rest = np.fmod(lhs, rhs)
    return np.where(_unlike(rest, rhs), rest + rhs, rest)


@reference
def power(lhs: Array, rhs: Array) -> Array:
    return _apply(np.power if is_float(lhs.dtype) else _integer_power, lhs, rhs)


def _integer_power(lhs: Array, rhs: Array) -> Array:
    """Wrapping power; a negative exponent truncates ``1 / lhs ** -rhs``, which leaves 1, -1 and otherwise 0."""
    positive = np.power(lhs, np.maximum(rhs, 0))
    parity = np.where(rhs % 2 == 0, 1, -1)
    negative = np.where(lhs == 1, 1, np.where(lhs == -1, parity, 0)) if integer_range(lhs.dtype)[0] < 0 else positive
    return np.where(rhs < 0, negative, positive).astype(lhs.dtype)


@reference
def maximum(lhs: Array, rhs: Array) -> Array:
    return _apply(np.maximum, lhs, rhs)


@reference
def minimum(lhs: Array, rhs: Array) -> Array:
    return _apply(np.minimum, lhs, rhs)


@reference
def bitwise_and(lhs: Array, rhs: Array) -> Array:
    return _apply(np.bitwise_and, lhs, rhs)


@reference
def bitwise_or(lhs: Array, rhs: Array) -> Array:
    return _apply(np.bitwise_or, lhs, rhs)


@reference
def bitwise_xor(lhs: Array, rhs: Array) -> Array:
    return _apply(np.bitwise_xor, lhs, rhs)


@reference
def left_shift(lhs: Array, rhs: Array) -> Array:
    return _apply(np.left_shift, lhs, rhs)


@reference
def right_shift(lhs: Array, rhs: Array) -> Array:
    return _apply(np.right_shift, lhs, rhs)


@reference
def equal(lhs: Array, rhs: Array) -> Array:
    return _compare(np.equal, lhs, rhs)


@reference
def not_equal(lhs: Array, rhs: Array) -> Array:
    return _compare(np.not_equal, lhs, rhs)


@reference
def less(lhs: Array, rhs: Array) -> Array:
    return _compare(np.less, lhs, rhs)


@reference
def less_equal(lhs: Array, rhs: Array) -> Array:
    return _compare(np.less_equal, lhs, rhs)


@reference
def greater(lhs: Array, rhs: Array) -> Array:
    return _compare(np.greater, lhs, rhs)


@reference
def greater_equal(lhs: Array, rhs: Array) -> Array:
    return _compare(np.greater_equal, lhs, rhs)


@reference
def logical_and(lhs: Array, rhs: Array) -> Array:
    return _logical(np.logical_and, lhs, rhs)


@reference
def logical_or(lhs: Array, rhs: Array) -> Array:
    return _logical(np.logical_or, lhs, rhs)


@reference
def logical_xor(lhs: Array, rhs: Array) -> Array:
    return _logical(np.logical_xor, lhs, rhs)
