"""Places in a tensor whose number data decides: where it is not zero, as indices."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import boolean
from ..dialect.symbolic import Dim, symbol
from .emit import cast, emit, full, info_of, integer, match, multiply_all, reshape, sequence, slice_axis

__all__ = ["diagonal_places", "first_of", "places_where", "unraveled"]


def diagonal_places(columns: Dim, offset: int, count: Dim) -> ir.Value:
    """``[count]``: where the elements of a diagonal are in a matrix of so many columns, in the order of memory.

    Raises:
        RelaxError: a size is not known, and no symbol.
    """
    if columns is None or count is None:
        raise RelaxError("expected a diagonal of dimensions whose sizes are known or symbolic")
    step, begin = full(columns + 1, integer()), full(max(offset, 0) + max(-offset, 0) * columns, integer())
    return emit(ops.Add, emit(ops.Multiply, sequence(0, count), step), begin)


def places_where(x: ir.Value, name: str) -> ir.Value:
    """``[u]``: the places of elements that are not zero, in the order of memory; ``name`` is the symbol for how many there are.

    Each element that counts has as its number how many count before it; its place is written there, those of all others
    behind the last one, and what is written of the former is cut off.
    """
    size = multiply_all(info_of(x).shape)
    if size is None:
        raise RelaxError("expected a tensor whose sizes are known or symbolic")
    counts = reshape(emit(ops.NotEqual, x, full(0, info_of(x).dtype)) if info_of(x).dtype != boolean() else x, (size,))
    numbers = cast(counts, integer())
    before = emit(ops.Subtract, emit(ops.CumSum, numbers, axis=0), numbers)
    to = emit(ops.Where, counts, before, full(size, integer()))
    written = emit(ops.ScatterElements, full(0, integer(), (size + 1,)), to, sequence(0, size), axis=0)
    return first_of(slice_axis(written, 0, 0, size), emit(ops.Sum, numbers, axis=[0]), name)


def first_of(x: ir.Value, count: ir.Value, name: str, axis: int = 0) -> ir.Value:
    """The first elements along an axis, as many as a scalar says; ``name`` is the symbol for how many these are."""
    end = reshape(cast(count, integer()), (1,))
    found = emit(ops.DynamicStridedSlice, x, full(0, integer(), (1,)), end, axes=[axis])
    info = info_of(found)
    return match(found, info.with_(shape=[symbol(name) if i == axis else d for i, d in enumerate(info.shape)]))


def unraveled(flat: ir.Value, shape: Sequence[Dim]) -> list[ir.Value]:
    """Indices of each dimension, of places in a tensor of that shape in the order of memory."""
    found: list[ir.Value] = []
    for size in reversed(shape[1:]):
        divisor = full(size if size is not None else 0, integer())
        found.append(emit(ops.Mod, flat, divisor))
        flat = emit(ops.FloorDivide, flat, divisor)
    return [flat, *reversed(found)] if shape else []
