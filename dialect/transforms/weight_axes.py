"""Which dimensions of a weight are the channels that a convolution or a matrix product reads and writes."""

from __future__ import annotations

from ..bindings import ir
from ..ops import Conv2D, MatMul, Repeat, Reshape
from ..struct_info import TensorInfo
from .weight_math import spread

__all__ = ["input_axis", "output_axis", "per_input_channel", "weight_axis"]


def weight_axis(op: ir.OpView, axis: int) -> tuple[int, int] | None:
    """An operand and a dimension of it such that scaling along it scales the result along ``axis``; None when there is none."""
    if isinstance(op, Conv2D):
        return (1, 0) if axis == 1 else None
    if not isinstance(op, MatMul):
        return None
    left, right, rank = (TensorInfo.of(v).rank for v in (op.lhs, op.rhs, op.results[0]))
    if right > 1 and axis == rank - 1:
        return 1, right - 1
    if left > 1 and axis == rank - (2 if right > 1 else 1):
        return 0, left - 2
    return None


def output_axis(op: Conv2D | MatMul) -> int:
    """The dimension of the result that the second operand's output channels are."""
    return 1 if isinstance(op, Conv2D) else TensorInfo.of(op.results[0]).rank - 1


def input_axis(op: ir.OpView) -> int | None:
    """The dimension of the first operand that is summed over, each channel alike wherever it is; None when there is none.

    Around an image that is padded channels are 0 and not what they are elsewhere.
    """
    if isinstance(op, Conv2D):
        return 1 if not any(op.padding) else None
    if isinstance(op, MatMul) and TensorInfo.of(op.rhs).rank == 2:
        return TensorInfo.of(op.lhs).rank - 1
    return None


def per_input_channel(op: Conv2D | MatMul, vector: ir.Value) -> ir.Value:
    """One number per channel that an op reads, in a shape that broadcasts to its weight."""
    if isinstance(op, MatMul):
        return spread(vector, [0], 2)
    info, weight, groups = TensorInfo.of(vector), TensorInfo.of(op.weight), op.groups
    outputs, inputs = weight.shape[0], weight.shape[1]
    assert isinstance(outputs, int)
    if groups == 1:
        return spread(vector, [1], 4)
    table = Reshape.create(vector, result_types=[info.with_(shape=[groups, inputs]).type]).result
    return spread(Repeat.create(table, repeats=outputs // groups, axis=0).result, [0, 1], 4)
