"""Matrix products, summed in f32 (f64 for f64, the result's dtype for integers) and rounded once; packed weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..packed_layout import PackedLayout
from .numeric import Array, convert, is_float, wide, wide_dtype
from .numeric import matmul as sums
from .packed import packed, unpacked
from .registry import reference

__all__ = ["product"]


def product(lhs: Array, rhs: Array, dtype: np.dtype[Any] | None) -> Array:
    """NumPy's matrix product with the accumulation that the ops promise, in ``dtype`` (None: the operands')."""
    dtype = dtype or lhs.dtype
    if is_float(lhs.dtype):
        return convert(sums(wide(lhs), wide(rhs)), dtype)
    return convert(sums(convert(lhs, np.dtype(np.int64)), convert(rhs, np.dtype(np.int64))), dtype)


@reference
def matmul(lhs: Array, rhs: Array, *, out_dtype: np.dtype[Any] | None) -> Array:
    return product(lhs, rhs, out_dtype)


@reference
def pack_weight(x: Array, *, layout: PackedLayout) -> Array:
    return packed(x, layout)


@reference
def packed_matmul(x: Array, weight: Array, *, layout: PackedLayout, n: int, out_dtype: np.dtype[Any] | None) -> Array:
    return product(x, unpacked(weight, layout, n)[: x.shape[-1]], out_dtype)


@reference
def grouped_matmul(lhs: Array, rhs: Array, ends: Array, *, out_dtype: np.dtype[Any] | None) -> Array:
    columns = rhs.shape[1] // len(ends)
    dtype = lhs.dtype if out_dtype is None else out_dtype
    found = np.zeros((len(lhs), columns), wide_dtype(dtype))  # not every float has a 0
    ends = np.clip(ends, 0, len(lhs))
    for group, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        found[begin:end] += wide(product(lhs[begin:end], rhs[:, group * columns :][:, :columns], out_dtype))
    return convert(found, dtype)


@reference
def packed_grouped_matmul(
    x: Array, weight: Array, ends: Array, *, layout: PackedLayout, n: int, out_dtype: np.dtype[Any] | None
) -> Array:
    return grouped_matmul(x, unpacked(weight, layout, n)[: x.shape[-1]], ends, out_dtype=out_dtype)
