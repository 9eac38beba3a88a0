"""Arithmetic that the families share: narrow dtypes are widened, computed on, and rounded back once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..dtypes import dtype_name

__all__ = [
    "Array", "convert", "fresh", "highest", "integer_range", "is_float", "lowest", "matmul", "number", "wide", "wide_dtype",
]  # fmt: skip

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

    Floats become integers of 32 bits, or 64, of which fewer are kept; what those cannot hold is the least one.

    ml_dtypes narrows by way of a wider format, a second rounding: f64 by f32, and everything to f8E5M2 by f16. Here that step
    rounds to odd, after which rounding to fewer bits is exact.
    Source: Boldo and Melquiond, When double rounding is odd, 2005.
    """
    x = np.asarray(wide(np.asarray(x)), order="C")
    if dtype == np.bool_:
        return x != 0
    if not is_float(dtype):
        return (_truncated(x, dtype) if is_float(x.dtype) else x.astype(wide_dtype(dtype))).astype(dtype, order="C")
    if dtype_name(dtype) == "f8E5M2":
        return _round_to_odd(x.astype(np.float64), np.float16, np.int16).astype(dtype)
    if dtype.kind == "V" and x.dtype.itemsize > 2 and x.dtype != np.float32:
        return _round_to_odd(x.astype(np.float64), np.float32, np.int32).astype(dtype)
    return x.astype(dtype, order="C")


def number(value: float, dtype: np.dtype[Any]) -> Array:
    """A number of an attribute, as an element of a dtype."""
    wide = np.float64 if isinstance(value, float) else np.int64 if value < 2**63 else np.uint64
    return convert(np.asarray(value, wide), dtype)


def _truncated(x: Array, dtype: np.dtype[Any]) -> Array:
    name, whole = dtype_name(dtype), np.trunc(x.astype(np.float64))
    bits = 64 if name in ("i64", "ui64", "ui32", "ui8") else 32
    half = 2.0 ** (bits - 1)
    result = np.where((whole >= -half) & (whole < half), whole, -half).astype(np.int64)
    if name == "ui64":
        large = (whole >= half) & (whole < 2 * half)
        result = np.where(large, np.where(large, whole, 0).astype(np.uint64), result.astype(np.uint64))
    return result.astype(wide_dtype(dtype))


def _round_to_odd(x: Array, narrow: type[np.floating[Any]], bits_type: type[np.signedinteger[Any]]) -> Array:
    """f64 to f32 or f16 so that an inexact result has its last bit set."""
    nearest = x.astype(narrow)
    exact = nearest.astype(np.float64)
    bits = nearest.view(bits_type)
    step = np.where(np.abs(exact) > np.abs(x), -1, 1).astype(bits_type)
    fix = (exact != x) & np.isfinite(exact) & (bits & 1 == 0)
    return np.where(fix, bits + step, bits).view(narrow)


def fresh(x: Array) -> Array:
    """A C-ordered copy."""
    return np.array(x, order="C", copy=True)


def matmul(lhs: Array, rhs: Array) -> Array:
    """NumPy's matrix product of operands without gaps: before NumPy 2.3 strided ones are summed in another order."""
    return np.asarray(np.matmul(np.ascontiguousarray(lhs), np.ascontiguousarray(rhs)))


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
