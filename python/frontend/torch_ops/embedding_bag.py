"""``embedding_bag``: rows of a table, summed, averaged or the largest of, bag by bag."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ...dialect.op import EffectOp
from ...dialect.symbolic import Expr
from ..emit import cast, emit, extreme_flag, full, info_of, integer, reshape, slice_axis, unsqueeze, wide
from ..torch_op import TorchOp, handles

_SUM, _MEAN, _MAX = 0, 1, 2


@handles("aten.embedding_bag", "aten.embedding_bag.padding_idx", "aten._embedding_bag")
def _embedding_bag(op: TorchOp) -> list[ir.Value | None]:
    """Only the first result: the others serve the gradient.

    Rows of bags that are known to be of one length are reduced side by side, others are added to their bags one by one.
    """
    weight, indices, offsets = (op.tensor(i) for i in range(3))
    indices, offsets = cast(indices, integer()), cast(offsets, integer())
    mode, scales, padding = op.integer(4, "mode", 0), op.optional(6), op.number(8)
    if info_of(indices).rank != 1:
        raise RelaxError(f"expected indices of one dimension, got {info_of(indices).rank}")
    rows = emit(ops.Take, weight, indices, axis=0, wrap_negative_indices=False)
    if scales is not None:
        rows = emit(ops.Multiply, rows, unsqueeze(cast(scales, op.dtype), 1))
    counted = _counted(op, indices, padding)
    length = None if op.number(7, False) else _equal_length(offsets, indices)
    if length is not None:
        bags = info_of(offsets).shape[0]
        rows = reshape(rows, (bags, length, info_of(rows).shape[1]))
        member = full(True, boolean(), (bags, length)) if counted is None else reshape(counted, (bags, length))
        return [_reduced(rows, member, mode), None, None, None]
    return [_scattered(op, rows, offsets, counted, mode), None, None, None]


def _counted(op: TorchOp, indices: ir.Value, padding: int | None) -> ir.Value | None:
    """Which indices count; None for all. Only the composite operator counts the padding's index from the end."""
    if padding is None or (padding < 0 and op.key != "aten.embedding_bag.padding_idx"):
        return None
    rows = info_of(op.tensor(0)).shape[0]
    if padding < 0:
        if not isinstance(rows, int):
            raise RelaxError("expected a table whose size is known")
        padding += rows
    return emit(ops.NotEqual, indices, full(padding, integer()))


def _equal_length(offsets: ir.Value, indices: ir.Value) -> int | None:
    """The length of all bags, if their offsets are ``0, n, 2 * n, ...``."""
    total, bags = info_of(indices).shape[0], info_of(offsets).shape[0]
    owner = None if isinstance(offsets, ir.BlockArgument) else offsets.owner
    if owner is None or owner.name != "relax.arange" or total is None or bags is None:
        return None
    (start,), (step,) = owner.opview.start, owner.opview.step
    return step if isinstance(step, int) and start == 0 and bags * step == total else None


def _bags_of(op: TorchOp, offsets: ir.Value, total: int | Expr) -> tuple[ir.Value, int | Expr, int | Expr]:
    """The number of the bag that each index is in, how many numbers there are, and how many of them are bags.

    A bag begins at each offset, several at one where they are empty: how many have begun is a sum of that.
    """
    given = info_of(offsets).shape[0]
    if given is None:
        raise RelaxError("expected offsets whose number is known or symbolic")
    ones, marks = full(1, integer(), (given,)), full(0, integer(), (total + 1,))
    attrs = {"axis": 0, "reduction": "add", "wrap_negative_indices": False}
    begun = emit(ops.CumSum, emit(ops.ScatterElements, marks, offsets, ones, **attrs), axis=0)
    numbers = emit(ops.Subtract, slice_axis(begun, 0, 0, total), full(1, integer()))
    return numbers, given, given - 1 if op.number(7, False) else given


def _scattered(op: TorchOp, rows: ir.Value, offsets: ir.Value, counted: ir.Value | None, mode: int) -> ir.Value:
    """``rows`` are ``[indices, width]``; an empty bag gives zeros."""
    dtype, (total, columns) = wide(info_of(rows).dtype), info_of(rows).shape
    if total is None or columns is None:
        raise RelaxError("expected indices whose number is known or symbolic")
    numbers, count, bags = _bags_of(op, offsets, total)
    how, nothing = ("max", float("-inf")) if mode == _MAX else ("add", 0.0)

    def gathered(values: ir.Value, start: float, how: str) -> ir.Value:
        room = full(start, info_of(values).dtype, (count, *info_of(values).shape[1:]))
        attrs = {"axis": 0, "reduction": how, "wrap_negative_indices": False}
        return slice_axis(emit(ops.ScatterElements, room, unsqueeze(numbers, 1), values, **attrs), 0, 0, bags)

    rows = cast(rows, dtype)
    if counted is not None:
        rows = emit(ops.Where, unsqueeze(counted, 1), rows, full(nothing, dtype))
    found = gathered(rows, nothing, how)
    if mode != _SUM:
        members = full(1, dtype, (total, 1)) if counted is None else cast(unsqueeze(counted, 1), dtype)
        held = gathered(members, 0, "add")
        if mode == _MAX:
            found = emit(ops.Where, emit(ops.Greater, held, full(0, dtype)), found, full(0, dtype))
        else:
            found = emit(ops.Divide, found, emit(ops.Maximum, held, full(1, dtype)))
    return cast(found, op.dtype)


def _reduced(rows: ir.Value, member: ir.Value, mode: int) -> ir.Value:
    """``rows`` are ``[bags or 1, indices, width]``; an empty bag gives zeros."""
    dtype = info_of(rows).dtype
    seen = unsqueeze(member, 2)
    if mode == _MAX:
        return _masked(ops.Max, rows, seen, float("-inf"), member)
    total = emit(ops.Sum, emit(ops.Where, seen, rows, full(0, dtype)), axis=[1])
    if mode == _SUM:
        return total
    count = emit(ops.Sum, cast(member, dtype), axis=[1], keepdims=True)
    return emit(ops.Divide, total, emit(ops.Maximum, count, full(1, dtype)))


def _masked(op_class: type[EffectOp], rows: ir.Value, seen: ir.Value, neutral: float, member: ir.Value) -> ir.Value:
    dtype = info_of(rows).dtype
    found = emit(op_class, emit(ops.Where, seen, rows, full(neutral, dtype)), axis=[1])
    return emit(ops.Where, extreme_flag(ops.Max, member, axis=[1], keepdims=True), found, full(0, dtype))
