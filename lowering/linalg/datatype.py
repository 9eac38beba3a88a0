"""Conversion between dtypes, of numbers and of bits, as a body."""

from __future__ import annotations

from ...dialect.bindings import ir
from .builder import LinalgBuilder, Tensor
from .conversion import convert, load
from .dtypes import storage_dtype
from .registry import Source, lowering
from .scalar import emit

__all__ = ["cast_elements"]


@lowering("relax.astype")
def _lower(b: LinalgBuilder, source: Source) -> ir.Value | Tensor:
    (x,) = source.operands
    return x if x.dtype == source.result.dtype else cast_elements(b, x, source.result.dtype)


@lowering("relax.bitcast")
def _lower_bits(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,), stored = source.operands, storage_dtype(source.result.dtype)
    out, loops = b.empty(b.sizes(x), stored), range(x.rank)
    return b.generic("p" * x.rank, [(x.value, loops)], out, lambda e, _: _bits(e, stored))


def _bits(element: ir.Value, dtype: ir.Type) -> ir.Value:
    return element if element.type == dtype else emit("arith.bitcast", dtype, element)


def cast_elements(b: LinalgBuilder, x: Tensor, dtype: ir.Type) -> ir.Value:
    """The tensor's elements in another dtype."""
    out = b.empty(b.sizes(x), storage_dtype(dtype))
    loops = range(x.rank)
    return b.generic("p" * x.rank, [(x.value, loops)], out, lambda e, _: convert(load(e, x.dtype), x.dtype, dtype))
