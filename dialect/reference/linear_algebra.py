"""Matrix products, summed in f32 (f64 for f64, the result's dtype for integers) and rounded once; packed weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numeric import Array, convert, fresh, is_float, wide
from .registry import reference

__all__ = ["product", "unpacked"]


def product(lhs: Array, rhs: Array, dtype: np.dtype[Any] | None) -> Array:
    """NumPy's matrix product with the accumulation that the ops promise, in ``dtype`` (None: the operands')."""
    dtype = dtype or lhs.dtype
    if is_float(lhs.dtype):
        return convert(np.asarray(np.matmul(wide(lhs), wide(rhs))), dtype)
    return convert(np.asarray(np.matmul(convert(lhs, np.dtype(np.int64)), convert(rhs, np.dtype(np.int64)))), dtype)


@reference
def matmul(lhs: Array, rhs: Array, *, out_dtype: np.dtype[Any] | None) -> Array:
    return product(lhs, rhs, out_dtype)


@reference
def pack_weight(x: Array, *, tile: int) -> Array:
    k, n = x.shape
    panels = -(-n // tile)
    padded = np.zeros((k, panels * tile), x.dtype)
    padded[:, :n] = x
    return fresh(padded.reshape(k, panels, tile).transpose(1, 0, 2))


@reference
def packed_matmul(x: Array, weight: Array, *, n: int, out_dtype: np.dtype[Any] | None) -> Array:
    return product(x, unpacked(weight, n), out_dtype)


def unpacked(weight: Array, n: int) -> Array:
    """The matrix of ``n`` columns that was packed."""
    panels, k, tile = weight.shape
    return weight.transpose(1, 0, 2).reshape(k, panels * tile)[:, :n]
