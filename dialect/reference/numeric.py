"""Arithmetic that the families share: narrow dtypes are widened, computed on, and rounded back once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..dtypes import dtype_name

__all__ = ["Array", "convert", "fresh", "highest", "integer_range", "is_float", "lowest", "wide", "wide_dtype"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Four-bit integers have a byte each, and ml_dtypes' arithmetic on them is incomplete.
_FOUR_BITS = {"i4": np.dtype(np.int8), "ui4": np.dtype(np.uint8)}


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is floating point, ml_dtypes' included."""
    return dtype_name(dtype).lstrip("b").startswith("f")


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype an op computes in: f32 for narrower floats, a byte for four-bit integers, else the dtype itself."""
    if is_float(dtype):
        return dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    return _FOUR_BITS.get(dtype_name(dtype), dtype)


def wide(x: Array) -> Array:
    """The array in the dtype that ops compute in; the array itself when that is its own."""
    return x.astype(wide_dtype(x.dtype), copy=False)


def convert(x: Array, dtype: np.dtype[Any]) -> Array:
    """The values in another dtype, as a new C-ordered array: floats round to nearest even once, integers wrap.

    ml_dtypes narrows f64 by way of f32, a second rounding. Here that step rounds to odd, after which rounding to fewer bits
    is exact. Source: Boldo and Melquiond, When double rounding is odd, 2005.
    """
    x = np.asarray(wide(np.asarray(x)), order="C")
    if dtype == np.bool_:
        return x != 0
    if is_float(dtype) and dtype.kind == "V" and x.dtype.itemsize > 2 and x.dtype != np.float32:
        return _round_to_odd(x.astype(np.float64)).astype(dtype)
    return x.astype(wide_dtype(dtype) if not is_float(dtype) else dtype).astype(dtype, order="C")


def _round_to_odd(x: Array) -> Array:
    """f64 to f32 so that an inexact result has its last bit set."""
    nearest = x.astype(np.float32)
    exact = nearest.astype(np.float64)
    bits = nearest.view(np.int32)
    step = np.where(np.abs(exact) > np.abs(x), -1, 1).astype(np.int32)
    fix = (exact != x) & np.isfinite(exact) & (bits & 1 == 0)
    return np.where(fix, bits + step, bits).view(np.float32)


def fresh(x: Array) -> Array:
    """A C-ordered copy."""
    return np.array(x, order="C", copy=True)


def lowest(dtype: np.dtype[Any]) -> Any:
    """What ``max`` of no elements is: -inf, or the least value of an integer dtype."""
    return -np.inf if is_float(dtype) else integer_range(dtype)[0]


def highest(dtype: np.dtype[Any]) -> Any:
    """What ``min`` of no elements is: inf, or the greatest value of an integer dtype."""
    return np.inf if is_float(dtype) else integer_range(dtype)[1]


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype; 0 and 1 for truth values."""
    if dtype == np.bool_:
        return 0, 1
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)
