"""Reductions and scans along axes; floats narrower than f32 accumulate in f32, integers wrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .numeric import Array, convert, highest, lowest, wide
from .registry import reference

__all__ = ["mean_values", "variance_values"]

_Axes = tuple[int, ...] | None


def _reduce(function: Callable[..., Any], x: Array, axis: list[int] | None, keepdims: bool) -> Array:
    values = function(wide(x), axis=None if axis is None else tuple(axis), keepdims=keepdims)
    return convert(np.asarray(values), x.dtype)


def mean_values(values: Array, axis: _Axes, keepdims: bool) -> Array:
    """The mean of f32 or f64 values; NaN of none."""
    total = np.sum(values, axis=axis, keepdims=keepdims)
    return total / values.dtype.type(values.size / total.size if total.size else 1)


def variance_values(values: Array, axis: _Axes, keepdims: bool) -> Array:
    """The mean squared distance from the mean of f32 or f64 values."""
    return mean_values(np.square(values - mean_values(values, axis, True)), axis, keepdims)


@reference
def sum(x: Array, *, axis: list[int] | None, keepdims: bool) -> Array:
    values = wide(x)
    return _reduce(lambda v, **k: np.sum(v, dtype=values.dtype, **k), x, axis, keepdims)


@reference
def prod(x: Array, *, axis: list[int] | None, keepdims: bool) -> Array:
    values = wide(x)
    return _reduce(lambda v, **k: np.prod(v, dtype=values.dtype, **k), x, axis, keepdims)


@reference
def max(x: Array, *, axis: list[int] | None, keepdims: bool) -> Array:
    return _reduce(lambda v, **k: np.max(v, initial=lowest(x.dtype), **k), x, axis, keepdims)


@reference
def min(x: Array, *, axis: list[int] | None, keepdims: bool) -> Array:
    return _reduce(lambda v, **k: np.min(v, initial=highest(x.dtype), **k), x, axis, keepdims)


@reference
def mean(x: Array, *, axis: list[int] | None, keepdims: bool) -> Array:
    return _reduce(mean_values, x, axis, keepdims)


@reference
def variance(x: Array, *, axis: list[int] | None, keepdims: bool) -> Array:
    return _reduce(variance_values, x, axis, keepdims)


@reference
def cumsum(x: Array, *, axis: int, exclusive: bool) -> Array:
    return _scan(np.add, x, axis, exclusive, 0)


@reference
def cumprod(x: Array, *, axis: int, exclusive: bool) -> Array:
    return _scan(np.multiply, x, axis, exclusive, 1)


@reference
def cummax(x: Array, *, axis: int, exclusive: bool) -> Array:
    return _scan(np.maximum, x, axis, exclusive, lowest(x.dtype))


@reference
def cummin(x: Array, *, axis: int, exclusive: bool) -> Array:
    return _scan(np.minimum, x, axis, exclusive, highest(x.dtype))


def _scan(function: np.ufunc, x: Array, axis: int, exclusive: bool, initial: float) -> Array:
    values = wide(x)
    total = function.accumulate(values, axis=axis, dtype=values.dtype)
    if not exclusive:
        return convert(total, x.dtype)
    shifted = np.full_like(total, initial)
    moved, source = np.moveaxis(shifted, axis, 0), np.moveaxis(total, axis, 0)
    moved[1:] = source[:-1]
    return convert(shifted, x.dtype)
