"""torch ops that sort, or search what is sorted."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean, is_float
from ...dialect.symbolic import Dim, Expr
from ..emit import (
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
    squeeze,
    unsqueeze,
)
from ..ranges import at_least
from ..torch_op import TorchOp, handles
from ..torch_types import common_dtype
from .elementwise import check


def _row(op: TorchOp) -> ir.Value:
    """The operand; a scalar as a row of one."""
    x = op.tensor(0)
    return x if info_of(x).rank else reshape(x, (1,))


def _chosen(op: TorchOp, x: ir.Value, order: ir.Value, axis: int) -> list[ir.Value | None]:
    """What is at these positions, and the positions, in the shape that torch declares."""
    values = emit(ops.GatherElements, x, order, axis=axis)
    return [v if info_of(v).rank == op.info.rank else reshape(v, ()) for v in (values, order)]


@handles("aten.sort", "aten.sort.stable")
def _sort(op: TorchOp) -> list[ir.Value | None]:
    return _sorted(op)


@handles("aten.argsort", "aten.argsort.stable")
def _argsort(op: TorchOp) -> list[ir.Value | None]:
    return _sorted(op)[1:]


def _sorted(op: TorchOp) -> list[ir.Value | None]:
    first, x = (2 if op.key.endswith("sort.stable") else 1), _row(op)
    axis = op.axis(first, info_of(x).rank) if len(op.operands) > first else info_of(x).rank - 1
    return _chosen(op, x, emit(ops.ArgSort, x, axis=axis, descending=bool(op.number(first + 1, False))), axis)


@handles("aten.topk")
def _topk(op: TorchOp) -> list[ir.Value | None]:
    """The first of all that are sorted: which of equals torch takes, it leaves open."""
    x, count = _row(op), op.number(1)
    axis = op.axis(2, info_of(x).rank) if len(op.operands) > 2 else info_of(x).rank - 1
    order = emit(ops.ArgSort, x, axis=axis, descending=bool(op.number(3, True)))
    return _chosen(op, x, slice_axis(order, axis, 0, count), axis)


@handles("aten.kthvalue")
def _kthvalue(op: TorchOp) -> list[ir.Value | None]:
    x, place = _row(op), op.integer(1, "place") - 1
    axis = op.axis(2, info_of(x).rank) if len(op.operands) > 2 else info_of(x).rank - 1
    order = slice_axis(emit(ops.ArgSort, x, axis=axis), axis, place, place + 1)
    return _kept(op, [emit(ops.GatherElements, x, order, axis=axis), order], axis, 3)


def _kept(op: TorchOp, values: list[ir.Value], axis: int, keep: int) -> list[ir.Value | None]:
    return [v if op.number(keep, False) and info_of(op.tensor(0)).rank else squeeze(v, axis) for v in values]


@handles("aten.median.dim")
def _median(op: TorchOp) -> list[ir.Value | None]:
    x = _row(op)
    axis = op.axis(1, info_of(x).rank)
    middle = _middle(x, axis, info_of(x).shape[axis])
    return _kept(op, [emit(ops.GatherElements, x, middle, axis=axis), middle], axis, 2)


@handles("aten.median")
def _median_of_all(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    count = multiply_all(info_of(x).shape)
    flat = reshape(x, (count,))
    return squeeze(emit(ops.GatherElements, flat, _middle(flat, 0, count), axis=0), 0)


def _middle(x: ir.Value, axis: int, size: Dim) -> ir.Value:
    """Where the lower one of two in the middle is; a NaN where there is one, which is sorted behind all numbers.

    Of an open size that turns out to be 0, taking it is refused when the model runs.
    """
    if not size:
        raise RelaxError(f"expected the median of one number or more, got {size}")
    order = emit(ops.ArgSort, x, axis=axis)
    middle = slice_axis(order, axis, (size - 1) // 2, (size - 1) // 2 + 1)
    if not is_float(info_of(x).dtype):
        return middle
    last = slice_axis(order, axis, size - 1, size)
    return emit(ops.Where, emit(ops.IsNan, emit(ops.GatherElements, x, last, axis=axis)), last, middle)


@handles("aten.nanmedian.dim")
def _nanmedian(op: TorchOp) -> list[ir.Value | None]:
    x = _row(op)
    axis = op.axis(1, info_of(x).rank)
    middle = _middle_of_numbers(op, x, axis)
    return _kept(op, [emit(ops.GatherElements, x, middle, axis=axis), middle], axis, 2)


@handles("aten.nanmedian")
def _nanmedian_of_all(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    flat = reshape(x, (multiply_all(info_of(x).shape),))
    return squeeze(emit(ops.GatherElements, flat, _middle_of_numbers(op, flat, 0), axis=0), 0)


def _middle_of_numbers(op: TorchOp, x: ir.Value, axis: int) -> ir.Value:
    """Where the lower one of two in the middle is of what is no NaN, which are sorted behind; the first of NaN alone."""
    size = info_of(x).shape[axis]
    if not at_least(size, 1, op.values.ranges):
        raise RelaxError(f"expected the median of one number or more, got {size}")
    order = emit(ops.ArgSort, x, axis=axis)
    if not is_float(info_of(x).dtype):
        count = full(size or 0, integer(), [1 if a == axis else d for a, d in enumerate(info_of(x).shape)])
    else:
        is_number = emit(ops.LogicalNot, emit(ops.IsNan, x))
        count = emit(ops.Maximum, emit(ops.Sum, cast(is_number, integer()), axis=[axis], keepdims=True), full(1, integer()))
    place = emit(ops.RightShift, emit(ops.Subtract, count, full(1, integer())), full(1, integer()))
    return emit(ops.GatherElements, order, place, axis=axis)


@handles("aten.mode")
def _mode(op: TorchOp) -> list[ir.Value | None]:
    """Of sorted elements the first end of a longest run of equal ones: the smallest of them, and the last place that has it."""
    x = _row(op)
    axis = op.axis(1, info_of(x).rank) if len(op.operands) > 1 else info_of(x).rank - 1
    size = info_of(x).shape[axis]
    if not size:
        raise RelaxError(f"expected the mode of one number or more, got {size}")
    order = emit(ops.ArgSort, x, axis=axis)
    found = emit(ops.GatherElements, x, order, axis=axis)
    here = expand(reshape(sequence(0, size), [size if a == axis else 1 for a in range(info_of(x).rank)]), info_of(x).shape)
    start = emit(ops.Where, _begins(found, axis, size), here, full(0, integer()))
    start = emit(ops.CumMax, start, axis=axis)
    end = emit(ops.ArgMax, emit(ops.Subtract, here, start), axis=axis, keepdims=True)
    return _kept(op, [emit(ops.GatherElements, v, end, axis=axis) for v in (found, order)], axis, 2)


def _begins(x: ir.Value, axis: int, size: int | Expr) -> ir.Value:
    """Where an element is another one than that before it."""
    first = full(True, boolean(), [1 if a == axis else d for a, d in enumerate(info_of(x).shape)])
    others = emit(ops.NotEqual, slice_axis(x, axis, 1, size), slice_axis(x, axis, 0, size - 1))
    return concat([first, others], axis)


@handles(*(f"aten.{name}.{kind}" for name in ("searchsorted", "bucketize") for kind in ("Tensor", "Scalar")))
def _searchsorted(op: TorchOp) -> ir.Value:
    """How many elements of each row come before a value: all are compared."""
    is_search = "searchsorted" in op.key
    row, wanted = (0, 1) if is_search else (1, 0)
    right = bool(op.number(3, False)) or (is_search and op.number(4) == "right")
    dtype = common_dtype([op.operand_dtype(0), op.operand_dtype(1)])
    rows, values = op.value_in(row, dtype), op.value_in(wanted, dtype)
    order = op.optional(5) if is_search else None
    if order is not None:
        rows = emit(ops.GatherElements, rows, cast(order, integer()), axis=info_of(rows).rank - 1)
    rank = info_of(values).rank
    if info_of(rows).rank > 1 and info_of(rows).rank != rank:
        raise RelaxError("expected searchsorted in one row, or in as many as there are rows of values")
    rows = rows if info_of(rows).rank == 1 else unsqueeze(rows, rank - 1)
    reached = emit(ops.Greater if right else ops.GreaterEqual, rows, unsqueeze(values, rank))
    before = cast(emit(ops.LogicalNot, reached), integer())
    return cast(emit(ops.Sum, before, axis=[rank]), op.dtype)


@handles("aten.histc")
def _histc(op: TorchOp) -> ir.Value:
    """Counts by bins of one width. Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/cpu/HistogramKernel.cpp."""
    x, bins = op.tensor(0), op.integer(1, "number of bins", 100)
    flat = reshape(x, (multiply_all(info_of(x).shape),))
    low, high, width = _bounds(op, flat)
    inside = emit(ops.LogicalAnd, emit(ops.GreaterEqual, flat, low), emit(ops.LessEqual, flat, high))
    place = emit(ops.Multiply, emit(ops.Divide, emit(ops.Subtract, flat, low), width), full(bins, op.dtype))
    place = cast(emit(ops.Where, inside, place, full(0, op.dtype)), integer())
    place = emit(ops.Clip, place, min=0, max=bins - 1)
    start = full(0, op.dtype, (bins,))
    return emit(ops.ScatterElements, start, place, cast(inside, op.dtype), axis=0, reduction="add")


def _bounds(op: TorchOp, flat: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The numbers given, and their distance; instead of equal ones those of the data, which are checked to be finite."""
    low, high = float(op.number(2, 0)), float(op.number(3, 0))
    (count,) = info_of(flat).shape
    if low == high and count != 0:
        if not at_least(count, 1, op.values.ranges):
            raise RelaxError(f"expected data to take the bounds of a histogram from, got {count} numbers, which may be none")
        return _bounds_of(flat)
    low, high = (low, high) if low < high else (low - 1, high + 1)
    return full(low, op.dtype), full(high, op.dtype), full(high - low, op.dtype)


def _bounds_of(flat: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    low, high, one = emit(ops.Min, flat, axis=[0]), emit(ops.Max, flat, axis=[0]), full(1, info_of(flat).dtype)
    check(emit(ops.LogicalAnd, emit(ops.IsFinite, low), emit(ops.IsFinite, high)), "expected finite numbers")
    alike = emit(ops.Equal, low, high)
    low = emit(ops.Where, alike, emit(ops.Subtract, low, one), low)
    high = emit(ops.Where, alike, emit(ops.Add, high, one), high)
    return low, high, emit(ops.Subtract, high, low)
