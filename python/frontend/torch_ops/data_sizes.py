"""torch ops whose result is as large as data says: places that are not zero, what a mask keeps, slices by elements."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ...dialect.symbolic import Dim, symbol
from ..emit import (
    broadcast,
    cast,
    concat,
    emit,
    expand,
    full,
    info_of,
    integer,
    match,
    multiply_all,
    reshape,
    sequence,
    slice_axis,
    unsqueeze,
)
from ..torch_op import TorchOp, handles

__all__ = ["places_of", "sliced_by_data"]

#: Of a bound that is not given: behind the last place of any dimension.
_END = 2**63 - 1


def sliced_by_data(op: TorchOp, x: ir.Value, axis: int, begin: Dim | ir.Value, end: Dim | ir.Value, stride: int) -> ir.Value:
    """``x[begin:end:stride]`` along an axis, where a bound is an element. Where torch knows the length, rows are looked up."""
    if stride < 1:
        raise RelaxError(f"expected a positive stride, got {stride}")
    length = op.info.shape[axis]
    first = _bound(0 if begin is None else begin)
    if isinstance(length, int):
        places = emit(ops.Add, sequence(0, length * stride, stride), expand(first, (length,)))
        return emit(ops.Take, x, places, axis=axis)
    return emit(ops.DynamicStridedSlice, x, first, _bound(_END if end is None else end), axes=[axis], strides=[stride])


def _bound(value: Dim | ir.Value) -> ir.Value:
    """A bound as the one element of a tensor."""
    if isinstance(value, ir.Value):
        return reshape(cast(value, integer()), (1,))
    assert value is not None
    return full(value, integer(), (1,))


@handles("aten.nonzero")
def _nonzero(op: TorchOp) -> ir.Value:
    """A row of places for each element that is not zero, in the order of memory."""
    x = op.tensor(0)
    if not info_of(x).rank:  # one empty row, or none
        return slice_axis(unsqueeze(places_of(op, reshape(x, (1,)))[0], 1), 1, 0, 0)
    return concat([unsqueeze(p, 1) for p in places_of(op, x)], 1)


@handles("aten.masked_select")
def _masked_select(op: TorchOp) -> ir.Value:
    """The elements of both, broadcast, where the mask holds."""
    x, mask = op.tensor(0), op.tensor(1)
    x, mask = (reshape(v, (multiply_all(info_of(v).shape),)) for v in broadcast([x, mask]))
    return emit(ops.Take, x, places_of(op, mask)[0], axis=0)


def places_of(op: TorchOp, x: ir.Value) -> list[ir.Value]:
    """Where a tensor is not zero: indices for each of its dimensions, ``[u]`` each, with a symbol for how many there are.

    Each element that counts has as its number how many count before it; its place is written there, those of all others
    behind the last one, and what is written of the former is cut off.
    """
    shape = info_of(x).shape
    size = multiply_all(shape)
    if size is None:
        raise RelaxError("expected a tensor whose sizes are known or symbolic")
    counts = reshape(emit(ops.NotEqual, x, full(0, info_of(x).dtype)) if info_of(x).dtype != boolean() else x, (size,))
    numbers = cast(counts, integer())
    before = emit(ops.Subtract, emit(ops.CumSum, numbers, axis=0), numbers)
    to = emit(ops.Where, counts, before, full(size, integer()))
    written = emit(ops.ScatterElements, full(0, integer(), (size + 1,)), to, sequence(0, size), axis=0)
    written = slice_axis(written, 0, 0, size)
    count = reshape(emit(ops.Sum, numbers, axis=[0]), (1,))
    found = emit(ops.DynamicStridedSlice, written, full(0, integer(), (1,)), count, axes=[0])
    flat = match(found, info_of(found).with_(shape=[symbol(op.values.new_symbol())]))
    return _unraveled(flat, shape)


def _unraveled(flat: ir.Value, shape: Sequence[Dim]) -> list[ir.Value]:
    """Indices of each dimension, of places in a tensor of that shape in the order of memory."""
    found: list[ir.Value] = []
    for size in reversed(shape[1:]):
        divisor = full(size if size is not None else 0, integer())
        found.append(emit(ops.Mod, flat, divisor))
        flat = emit(ops.FloorDivide, flat, divisor)
    return [flat, *reversed(found)] if shape else []
