"""A function rewritten as its plan says: types of parts, sums over all ranks, and parts put together."""

from __future__ import annotations

from collections.abc import Sequence

from ...bindings import func, ir
from ...cut import Cut
from ...functions import STATE, initial_state, update_type
from ...op import op_class
from ...ops import AllGather, AllReduce, AsType, Concat, MatMul, PermuteDims, Reshape, StridedSlice
from ...struct_info import TensorInfo
from ...traversal import nested_operations
from .function_cuts import FunctionCuts
from .vocabulary import look_up

__all__ = ["apply_cuts"]


def apply_cuts(plan: FunctionCuts) -> tuple[int, int]:
    """Rewrites the function, in place.

    Returns:
        How many sums there are over all ranks, and how often parts are put together.
    """
    ranks = plan.decisions.ranks
    wholes = {value: value.type for _, value in plan.gathered}
    for value, cut in plan.cuts.items():
        value.set_type(_part(TensorInfo.of(value), cut, ranks).type)
    for op, applied in plan.applied:
        for name, attribute in applied.attributes.items():
            op.attributes[name] = attribute
        if applied.partial:
            _sum(op)
    for op, value in plan.gathered:
        with ir.InsertionPoint(op), op.location:
            whole = _whole(value, plan.cuts[value], wholes[value], ranks)
        _replace_in(op, value, whole)
    for op in plan.lookups:
        with ir.InsertionPoint(op), op.location:
            rows = plan.cuts[op.operands[0]].pieces[0] // ranks
            found = look_up(op.opview, rows, ranks)
        op.results[0].replace_all_uses_with(found)
        op.erase()
    _cut_state(plan.function, plan.decisions.cuts, ranks)
    update_type(plan.function)
    sums = sum(applied.partial for _, applied in plan.applied) + len(plan.lookups)
    return sums, len(plan.gathered)


def _part(info: TensorInfo, cut: Cut, ranks: int) -> TensorInfo:
    return info.with_(shape=[sum(cut.pieces) // ranks if i == cut.axis else d for i, d in enumerate(info.shape)])


def _sum(op: ir.Operation) -> None:
    """The sum over all ranks of what a product gives; the terms of one of narrow floats stay f32 until then."""
    result = op.results[0]
    uses = [(use.owner.operation, use.operand_number) for use in result.uses]
    info = TensorInfo.of(result)
    is_narrow = isinstance(info.dtype, (ir.BF16Type, ir.F16Type))
    if is_narrow and op_class(op) is MatMul:
        wide = ir.F32Type.get(op.context)
        op.attributes["out_dtype"] = ir.TypeAttr.get(wide)
        result.set_type(info.with_(dtype=wide).type)
    with ir.InsertionPoint.after(op), op.location:
        total = AllReduce.create(result).result
        if is_narrow:
            total = AsType.create(total, dtype=info.dtype).result
    for user, position in uses:
        user.operands[position] = total


def _whole(value: ir.Value, cut: Cut, type_: ir.Type, ranks: int) -> ir.Value:
    """The parts of all ranks as one tensor of a type."""
    gathered = AllGather.create(value, ranks=ranks).result
    rank, axis = TensorInfo.of(value).rank, cut.axis
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    beside = PermuteDims.create(gathered, axes=order).result if axis else gathered
    info, start = TensorInfo.of(type_), 0
    pieces: list[ir.Value] = []
    for size in cut.pieces:
        part = _slice(beside, axis + 1, start, start + size // ranks) if len(cut.pieces) > 1 else beside
        shape = [size if i == axis else d for i, d in enumerate(info.shape)]
        pieces.append(Reshape.create(part, result_types=[info.with_(shape=shape).type]).result)
        start += size // ranks
    return _joined(pieces, axis)


def _slice(value: ir.Value, axis: int, begin: int, end: int) -> ir.Value:
    return StridedSlice.create(value, axes=[axis], begin=[begin], end=[end]).result


def _joined(pieces: Sequence[ir.Value], axis: int) -> ir.Value:
    joined, *others = pieces
    for other in others:
        joined = Concat.create(joined, other, axis=axis).result
    return joined


def _replace_in(op: ir.Operation, old: ir.Value, new: ir.Value) -> None:
    """In an op and inside of it."""
    for inner in (op, *nested_operations(op)):
        for position, operand in enumerate(inner.operands):
            if operand == old:
                inner.operands[position] = new


def _cut_state(function: func.FuncOp, cuts: dict[str, Cut], ranks: int) -> None:
    """The first values of state that is cut, which are the same everywhere."""
    state: dict[str, ir.Attribute] = dict(initial_state(function))
    for name, value in initial_state(function).items():
        if name in cuts:
            info = _part(TensorInfo.of(value.type), cuts[name], ranks)
            state[name] = ir.DenseElementsAttr.get_splat(info.type, value.get_splat_value())
    if state:
        function.attributes[STATE] = ir.DictAttr.get(state)
