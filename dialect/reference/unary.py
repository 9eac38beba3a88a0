"""Elementwise functions of one array; floats narrower than f32 compute in f32 and round once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .numeric import Array, convert, wide
from .registry import reference

__all__ = ["apply", "at_least", "erf_values"]


def apply(function: Callable[[Array], Array], x: Array) -> Array:
    """The function in the wide dtype, rounded to the operand's."""
    return convert(function(wide(x)), x.dtype)


def erf_values(x: Array) -> Array:
    """The error function of f32 or f64 values: the C library's, in f64. NumPy has none."""
    values = np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size)
    return values.reshape(x.shape).astype(x.dtype)


def sigmoid_values(x: Array) -> Array:
    """``1 / (1 + exp(-x))`` of f32 or f64 values."""
    return 1 / (1 + np.exp(-x))


def at_least(values: Array, low: Any) -> Array:
    """The values, those below a limit replaced by it; what equals it, as a zero of the other sign, stays, and so does a NaN."""
    return np.where(values < low, low, values).astype(values.dtype)


@reference
def abs(x: Array) -> Array:
    return apply(np.abs, x)


@reference
def negative(x: Array) -> Array:
    return apply(np.negative, x)


@reference
def sign(x: Array) -> Array:
    return apply(_sign, x)


def _sign(values: Array) -> Array:
    signs = np.sign(values)
    return np.nan_to_num(signs, nan=0)


@reference
def square(x: Array) -> Array:
    return apply(np.square, x)


@reference
def clip(x: Array, *, min: float | None, max: float | None) -> Array:
    values = wide(x)
    if min is not None:
        values = at_least(values, np.asarray(min, values.dtype))
    if max is not None:
        limit = np.asarray(max, values.dtype)
        values = np.where(values > limit, limit, values)
    return convert(values, x.dtype)


@reference
def bitwise_not(x: Array) -> Array:
    return apply(np.invert, x)


@reference
def logical_not(x: Array) -> Array:
    return wide(x) == 0


@reference
def ceil(x: Array) -> Array:
    return apply(np.ceil, x)


@reference
def floor(x: Array) -> Array:
    return apply(np.floor, x)


@reference
def round(x: Array) -> Array:
    return apply(np.rint, x)


@reference
def trunc(x: Array) -> Array:
    return apply(np.trunc, x)


@reference
def acos(x: Array) -> Array:
    return apply(np.arccos, x)


@reference
def acosh(x: Array) -> Array:
    return apply(np.arccosh, x)


@reference
def asin(x: Array) -> Array:
    return apply(np.arcsin, x)


@reference
def asinh(x: Array) -> Array:
    return apply(np.arcsinh, x)


@reference
def atan(x: Array) -> Array:
    return apply(np.arctan, x)


@reference
def atanh(x: Array) -> Array:
    return apply(np.arctanh, x)


@reference
def cos(x: Array) -> Array:
    return apply(np.cos, x)


@reference
def cosh(x: Array) -> Array:
    return apply(np.cosh, x)


@reference
def sin(x: Array) -> Array:
    return apply(np.sin, x)


@reference
def sinh(x: Array) -> Array:
    return apply(np.sinh, x)


@reference
def tan(x: Array) -> Array:
    return apply(np.tan, x)


@reference
def erf(x: Array) -> Array:
    return apply(erf_values, x)


@reference
def exp(x: Array) -> Array:
    return apply(np.exp, x)


@reference
def exp2(x: Array) -> Array:
    return apply(np.exp2, x)


@reference
def expm1(x: Array) -> Array:
    return apply(np.expm1, x)


@reference
def log(x: Array) -> Array:
    return apply(np.log, x)


@reference
def log10(x: Array) -> Array:
    return apply(np.log10, x)


@reference
def log1p(x: Array) -> Array:
    return apply(np.log1p, x)


@reference
def log2(x: Array) -> Array:
    return apply(np.log2, x)


@reference
def reciprocal(x: Array) -> Array:
    return apply(np.reciprocal, x)


@reference
def rsqrt(x: Array) -> Array:
    return apply(lambda v: 1 / np.sqrt(v), x)


@reference
def sigmoid(x: Array) -> Array:
    return apply(sigmoid_values, x)


@reference
def sqrt(x: Array) -> Array:
    return apply(np.sqrt, x)


@reference
def tanh(x: Array) -> Array:
    return apply(np.tanh, x)


@reference
def isfinite(x: Array) -> Array:
    return np.isfinite(wide(x))


@reference
def isinf(x: Array) -> Array:
    return np.isinf(wide(x))


@reference
def isnan(x: Array) -> Array:
    return np.isnan(wide(x))
