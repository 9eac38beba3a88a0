"""torch ops that count what data says: values that differ, how often each is there, rows as many times as data says."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ...dialect.symbolic import Dim, Expr
from ..emit import cast, emit, full, info_of, integer, multiply_all, permute, reshape, sequence, slice_axis
from ..ranges import upper_bound
from ..torch_op import TorchOp, handles
from .data_sizes import places_of
from .elementwise import check

#: Columns up to which rows are put in order: each is a sort.
_COLUMNS = 64


@handles("aten._unique2")
def _unique2(op: TorchOp) -> list[ir.Value | None]:
    x = op.tensor(0)
    flat = _ordered(x, (_known(multiply_all(info_of(x).shape)),))
    order = emit(ops.ArgSort, flat, axis=0)
    return _distinct(op, flat, order, info_of(x).shape, 0)


@handles("aten.unique_consecutive")
def _unique_consecutive(op: TorchOp) -> list[ir.Value | None]:
    x = op.tensor(0)
    if op.number(3) is not None:
        rows, axis = _rows(op, x, 3)
        return _distinct(op, rows, None, info_of(rows).shape[:1], axis)
    flat = _ordered(x, (_known(multiply_all(info_of(x).shape)),))
    return _distinct(op, flat, None, info_of(x).shape, 0)


@handles("aten.unique_dim")
def _unique_dim(op: TorchOp) -> list[ir.Value | None]:
    """Rows in the order of dictionaries: by the last column, then by the one before it, which keeps the order of equal ones."""
    rows, axis = _rows(op, op.tensor(0), 1)
    count, columns = info_of(rows).shape[0], multiply_all(info_of(rows).shape[1:])
    if not isinstance(columns, int) or columns > _COLUMNS:
        raise RelaxError(f"expected rows of at most {_COLUMNS} numbers, got {columns}")
    flat = reshape(rows, (count, columns))
    order = sequence(0, count)
    for i in reversed(range(columns)):
        column = emit(ops.Take, reshape(slice_axis(flat, 1, i, i + 1), (count,)), order, axis=0)
        order = emit(ops.Take, order, emit(ops.ArgSort, column, axis=0), axis=0)
    return _distinct(op, rows, order, (count,), axis)


def _rows(op: TorchOp, x: ir.Value, index: int) -> tuple[ir.Value, int]:
    """The tensor with the operand's axis in front, and that axis."""
    rank = info_of(x).rank
    axis = op.axis(index, rank)
    moved = permute(x, [axis, *(a for a in range(rank) if a != axis)])
    return _ordered(moved, [_known(d) for d in info_of(moved).shape]), axis


def _ordered(x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
    """In that shape; truth values as bytes."""
    x = reshape(x, shape)
    return cast(x, integer(8)) if info_of(x).dtype == boolean() else x


def _known(size: Dim) -> int | Expr:
    if size is None:
        raise RelaxError("expected a tensor whose sizes are known or symbolic")
    return size


def _distinct(op: TorchOp, rows: ir.Value, order: ir.Value | None, places: Sequence[Dim], axis: int) -> list[ir.Value | None]:
    """What differs from the one before it, which of these each is, and how often each is there.

    Args:
        op: the operator; its results are of these three.
        rows: numbers, or rows along the first axis.
        order: where each is read from; None as they stand.
        places: shape of the second result.
        axis: where the rows' axis is in the first result.
    """
    size = _known(info_of(rows).shape[0])
    in_order = rows if order is None else emit(ops.Take, rows, order, axis=0)
    begins = _begins(in_order, size)
    number = emit(ops.Subtract, emit(ops.CumSum, cast(begins, integer()), axis=0), full(1, integer()))
    found = places_of(op, begins)[0]
    distinct = cast(emit(ops.Take, in_order, found, axis=0), op.dtype)
    rank = info_of(distinct).rank
    back = number
    if order is not None:
        back = emit(ops.ScatterElements, full(0, integer(), (size,)), order, number, axis=0)
    ones = full(1, integer(), (size,))
    counted = emit(ops.ScatterElements, full(0, integer(), (size,)), number, ones, axis=0, reduction="add")
    counted = emit(ops.Take, counted, emit(ops.Take, number, found, axis=0), axis=0)
    others = [reshape(back, places), counted]
    asked = [info is not None and info.shape != (0,) for info in op.results[1:]]
    moved = permute(distinct, [*range(1, axis + 1), 0, *range(axis + 1, rank)])
    return [moved, *(x if a else full(0, integer(), (0,)) for x, a in zip(others, asked, strict=True))]


def _begins(rows: ir.Value, size: int | Expr) -> ir.Value:
    """Whether each is another than the one before it; the first one is."""
    places = sequence(0, size)
    before = emit(ops.Maximum, emit(ops.Subtract, places, full(1, integer())), full(0, integer()))
    differs = emit(ops.NotEqual, rows, emit(ops.Take, rows, before, axis=0))
    columns = multiply_all(info_of(rows).shape[1:])
    if info_of(rows).rank > 1:
        total = emit(ops.Sum, cast(reshape(differs, (size, columns)), integer()), axis=[1])
        differs = emit(ops.Greater, total, full(0, integer()))
    return emit(ops.LogicalOr, differs, emit(ops.Equal, places, full(0, integer())))


@handles("aten.bincount")
def _bincount(op: TorchOp) -> ir.Value:
    """As many counts as the largest number and ``minlength`` say, of those that there can be at most."""
    x, least = cast(op.tensor(0), integer()), op.integer(2, "smallest number of counts", 0)
    most = _most(op, "counts of numbers", "counts")
    weights = op.optional(1)
    each = full(1, op.dtype, info_of(x).shape) if weights is None else cast(weights, op.dtype)
    counted = emit(ops.ScatterElements, full(0, op.dtype, (most,)), x, each, axis=0, reduction="add")
    above = emit(ops.Concat, emit(ops.Add, x, full(1, integer())), full(least, integer(), (1,)), axis=0)
    check(emit(ops.GreaterEqual, emit(ops.Min, above, axis=[0]), full(min(least, 1), integer())), "expected numbers from 0 on")
    return _first(counted, emit(ops.Max, above, axis=[0]))


@handles("aten.repeat_interleave.Tensor")
def _repeat_interleave(op: TorchOp) -> ir.Value:
    """Each place as often as it says: a place counts how many are over before it."""
    repeats = cast(op.tensor(0), integer())
    count = _known(info_of(repeats).shape[0])
    total = emit(ops.Sum, repeats, axis=[0])
    size = op.number(1)
    most = _most(op, "places that repeat", "places") if size is None else size
    nothing = full(0, integer())
    negative = emit(ops.Sum, cast(emit(ops.Less, repeats, nothing), integer()), axis=[0])
    check(emit(ops.Equal, negative, nothing), "expected repeats from 0 on")
    if size is not None:
        check(emit(ops.Equal, total, full(size, integer())), "expected as many places as output_size says")
    ends, ones = emit(ops.CumSum, repeats, axis=0), full(1, integer(), (count,))
    over = emit(ops.ScatterElements, full(0, integer(), (most + 1,)), ends, ones, axis=0, reduction="add")
    place = cast(slice_axis(emit(ops.CumSum, over, axis=0), 0, 0, most), op.dtype)
    return place if size is not None else _first(place, total)


def _most(op: TorchOp, what: str, name: str) -> int:
    """The most elements of the result that data decides the size of."""
    most = upper_bound(op.info.shape[0], op.values.ranges)
    if most is None:
        raise RelaxError(f"expected an upper limit of {what}: torch._check({name}.shape[0] <= 100) says one")
    return most


def _first(x: ir.Value, count: ir.Value) -> ir.Value:
    """The first elements, as many as a tensor without dimensions says."""
    return emit(ops.DynamicStridedSlice, x, full(0, integer(), (1,)), reshape(count, (1,)), axes=[0])
