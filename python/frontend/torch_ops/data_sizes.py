"""torch ops whose result is as large as data says: places that are not zero, what a mask keeps, slices by elements."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import Dim
from ..emit import (
    broadcast,
    cast,
    concat,
    emit,
    expand,
    full,
    info_of,
    integer,
    multiply_all,
    reshape,
    sequence,
    slice_axis,
    unsqueeze,
)
from ..places import places_where, unraveled
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
    """Where a tensor is not zero: indices for each of its dimensions, ``[u]`` each, with a symbol for how many there are."""
    return unraveled(places_where(x, op.values.new_symbol()), info_of(x).shape)
