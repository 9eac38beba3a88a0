"""Which dimensions of a weight are the channels that a convolution or a matrix product reads and writes."""

from __future__ import annotations

from ...bindings import ir
from ...ops import Conv2D, MatMul, PermuteDims, Repeat, Reshape
from ...struct_info import TensorInfo
from ..emit import insert_axes

__all__ = ["input_axis", "output_axis", "per_input_channel", "weight_axis"]


def weight_axis(op: ir.OpView, axis: int) -> tuple[int, int] | None:
    """An operand and a dimension of it such that scaling along it scales the result along ``axis``; None when there is none."""
    if isinstance(op, Conv2D):
        return (1, op.kernel_layout.index("O")) if axis == output_axis(op) else None
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
    return op.data_layout.index("C") if isinstance(op, Conv2D) else TensorInfo.of(op.results[0]).rank - 1


def input_axis(op: ir.OpView) -> int | None:
    """The dimension of the first operand that is summed over, each channel alike wherever it is; None when there is none.

    Around an image that is padded channels are 0 and not what they are elsewhere.
    """
    if isinstance(op, Conv2D):
        return op.data_layout.index("C") if not any(op.padding) else None
    if isinstance(op, MatMul) and TensorInfo.of(op.rhs).rank == 2:
        return TensorInfo.of(op.lhs).rank - 1
    return None


def per_input_channel(op: Conv2D | MatMul, vector: ir.Value) -> ir.Value:
    """One number per channel that an op reads, in a shape that broadcasts to its weight."""
    if isinstance(op, MatMul):
        return insert_axes(vector, [0], 2)
    layout, groups = op.kernel_layout, op.groups
    if groups == 1:
        return insert_axes(vector, [layout.index("I")], 4)
    sizes = dict(zip(layout, TensorInfo.of(op.weight).shape, strict=True))
    assert isinstance(sizes["O"], int)
    shape = TensorInfo.of(vector).with_(shape=[groups, sizes["I"]])
    table = Reshape.create(vector, result_types=[shape.type]).result
    table = Repeat.create(table, repeats=sizes["O"] // groups, axis=0).result
    if layout.index("I") < layout.index("O"):
        table = PermuteDims.create(table).result
    return insert_axes(table, sorted((layout.index("I"), layout.index("O"))), 4)
