"""``embedding_bag``: rows of a table, summed, averaged or the largest of, bag by bag."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ...dialect.op import EffectOp
from ..emit import cast, concat, emit, extreme_flag, full, info_of, integer, reshape, slice_axis, unsqueeze
from ..torch_op import TorchOp, handles
from .creation import sequence

_SUM, _MEAN, _MAX = 0, 1, 2


@handles("aten.embedding_bag", "aten.embedding_bag.padding_idx", "aten._embedding_bag")
def _embedding_bag(op: TorchOp) -> list[ir.Value | None]:
    """Only the first result: the others serve the gradient.

    Which index is in which bag is a mask ``[bags, indices]``, unless all bags are known to be of one length.
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
    else:
        rows, member = unsqueeze(rows, 0), _members(op, indices, offsets, counted)
    return [_reduced(rows, member, mode), None, None, None]


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


def _members(op: TorchOp, indices: ir.Value, offsets: ir.Value, counted: ir.Value | None) -> ir.Value:
    """``[bags, indices]``: from a bag's offset up to that of the next one."""
    total, bags = info_of(indices).shape[0], info_of(offsets).shape[0]
    if total is None or bags is None:
        raise RelaxError("expected indices and offsets whose numbers are known or symbolic")
    if op.number(7, False):
        begins, ends = slice_axis(offsets, 0, 0, bags - 1), slice_axis(offsets, 0, 1, bags)
    else:
        last = full(total, integer(), (1,))
        begins, ends = offsets, last if bags == 1 else concat([slice_axis(offsets, 0, 1, bags), last], 0)
    places = unsqueeze(sequence(0, total, 1, integer()), 0)
    after, before = emit(ops.GreaterEqual, places, unsqueeze(begins, 1)), emit(ops.Less, places, unsqueeze(ends, 1))
    member = emit(ops.LogicalAnd, after, before)
    return member if counted is None else emit(ops.LogicalAnd, member, unsqueeze(counted, 0))


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
