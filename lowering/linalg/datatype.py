"""Conversion between dtypes, as a body."""

from __future__ import annotations

from ...dialect.bindings import ir
from .builder import LinalgBuilder, Tensor
from .conversion import convert, load
from .dtypes import storage_dtype
from .registry import Source, lowering

__all__ = ["cast_elements"]


@lowering("relax.astype")
def _lower(b: LinalgBuilder, source: Source) -> ir.Value | Tensor:
    (x,) = source.operands
    return x if x.dtype == source.result.dtype else cast_elements(b, x, source.result.dtype)


def cast_elements(b: LinalgBuilder, x: Tensor, dtype: ir.Type) -> ir.Value:
    """The tensor's elements in another dtype."""
    out = b.empty(b.sizes(x), storage_dtype(dtype))
    loops = range(x.rank)
    return b.generic("p" * x.rank, [(x.value, loops)], out, lambda e, _: convert(load(e, x.dtype), x.dtype, dtype))
