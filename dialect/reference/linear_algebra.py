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
def pack_weight(x: Array, *, tile: int, group: int = 1) -> Array:
    k, n = x.shape
    panels, groups = -(-n // tile), -(-k // group)
    padded = np.zeros((groups * group, panels * tile), x.dtype)
    padded[:k, :n] = x
    packed = padded.reshape(groups, group, panels, tile).transpose(2, 0, 3, 1)
    return fresh(packed[..., 0] if group == 1 else packed)


@reference
def packed_matmul(x: Array, weight: Array, *, n: int, out_dtype: np.dtype[Any] | None) -> Array:
    return product(x, unpacked(weight, n)[: x.shape[-1]], out_dtype)


def unpacked(weight: Array, n: int) -> Array:
    """The matrix of ``n`` columns that was packed, with the zeros below it that fill the last group of rows."""
    panels, groups, tile, group = weight.shape if weight.ndim == 4 else (*weight.shape, 1)
    rows = weight.reshape(panels, groups, tile, group).transpose(1, 3, 0, 2)
    return rows.reshape(groups * group, panels * tile)[:, :n]
