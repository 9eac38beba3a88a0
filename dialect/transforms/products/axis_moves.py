"""Where dimensions go through ops that only move, drop or insert them: permute_dims, squeeze and expand_dims."""

from __future__ import annotations

from ...bindings import ir
from ...inference import normalize_axes, normalize_axis
from ...ops import ExpandDims, PermuteDims, Squeeze
from ...struct_info import TensorInfo

__all__ = ["axis_after", "axis_before", "is_axis_move"]


def is_axis_move(op: ir.OpView | ir.Block) -> bool:
    """Whether an op keeps all elements in their order but for that of the dimensions, and makes no dimension of several."""
    return isinstance(op, PermuteDims | Squeeze | ExpandDims)


def axis_before(op: ir.OpView, axis: int) -> int | None:
    """The operand's dimension that is a dimension of the result; None for an inserted one."""
    return _sources(op)[axis]


def axis_after(op: ir.OpView, axis: int) -> int | None:
    """The result's dimension that is a dimension of the operand; None for a dropped one."""
    sources = _sources(op)
    return sources.index(axis) if axis in sources else None


def _sources(op: ir.OpView) -> list[int | None]:
    """For each dimension of the result the operand's."""
    shape = TensorInfo.of(op.operands[0]).shape
    if isinstance(op, PermuteDims):
        return [normalize_axis(a, len(shape)) for a in op.axes or range(len(shape))[::-1]]
    if isinstance(op, Squeeze):
        dropped = [i for i, d in enumerate(shape) if d == 1] if op.axis is None else normalize_axes(op.axis, len(shape))
        return [i for i in range(len(shape)) if i not in dropped]
    assert isinstance(op, ExpandDims)
    rank = TensorInfo.of(op.results[0]).rank
    inserted, kept = normalize_axes(op.axis, rank), iter(range(len(shape)))
    return [None if i in inserted else next(kept) for i in range(rank)]
