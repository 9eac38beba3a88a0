"""Makes one product of rows in groups, for targets whose kernels multiply each row with one matrix.

Before::

    %y = "relax.grouped_matmul"(%x, %w, %ends) : (tensor<?x64xf32>, tensor<64x128xf32>, tensor<4xi64>) -> tensor<?x32xf32>

after::

    %p = "relax.where"(%mine, %x1, %zero) : (tensor<?x4x1xi1>, tensor<?x1x64xf32>, tensor<f32>) -> tensor<?x4x64xf32>
    %r = "relax.reshape"(%p) : (tensor<?x4x64xf32>) -> tensor<?x256xf32>
    %y = "relax.matmul"(%r, %m) : (tensor<?x256xf32>, tensor<256x32xf32>) -> tensor<?x32xf32>

These are four groups of 32 columns. Each row of ``%r`` is zero but in the place of its group, and ``%m`` has the matrices one
below the other. So a weight stays one matrix, which is packed as any other, and is read once; it takes as many operations as if
each row went to all groups. Where the number of rows is not known, not even as a symbol, the op stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import ir
from ...functions import functions
from ...op import attrs_of
from ...ops import (
    Arange,
    Concat,
    ExpandDims,
    Full,
    GreaterEqual,
    GroupedMatMul,
    Less,
    LogicalAnd,
    MatMul,
    PermuteDims,
    Reshape,
    StridedSlice,
    Where,
)
from ...passes.base import Pass
from ...passes.rewriting import Rewriter, walk
from ...struct_info import TensorInfo
from ...symbolic import Dim
from ..emit import cast
from ..packing.block_movement import reshaped

__all__ = ["ExpandGroupedMatmul", "group_members"]


@dataclass(frozen=True)
class ExpandGroupedMatmul(Pass):
    """Rewrites grouped products, wherever they are."""

    name: ClassVar[str] = "relax-expand-grouped-matmul"

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            walk(function, [(GroupedMatMul, _multiply_at_once)])


def _multiply_at_once(op: GroupedMatMul, rewriter: Rewriter) -> bool:
    info, (groups,) = TensorInfo.of(op.lhs), TensorInfo.of(op.ends).shape
    rows, k = info.shape
    if rows is None or not isinstance(k, int) or not isinstance(groups, int):
        return False
    with rewriter.before(op):
        first = ExpandDims.create(op.lhs, axis=[1]).result
        zero = Full.create(value=0, result_types=[info.with_(shape=[]).type]).result
        mine = ExpandDims.create(group_members(op.ends, rows, groups), axis=[2]).result
        placed = Where.create(mine, first, zero).result
        attrs = {key: value for key, value in attrs_of(op).items() if key in op.attributes}
        made = MatMul.create(
            reshaped(placed, [rows, groups * k]), _one_below_the_other(op.rhs, groups), result_types=[op.result.type], **attrs
        )
    return rewriter.replace(op, made)


def group_members(ends: ir.Value, rows: Dim, groups: int) -> ir.Value:
    """Whether a row is of a group, ``[rows, groups]``, by the groups' ends."""
    i64 = ir.IntegerType.get_signless(64)
    ends = cast(ends, i64)
    info = TensorInfo.of(ends)
    begins = Full.create(value=0, result_types=[info.with_(shape=[1]).type]).result
    if groups > 1:
        rest = StridedSlice.create(ends, axes=[0], begin=[0], end=[groups - 1], strides=[1]).result
        begins = Concat.create(begins, rest, axis=0).result
    type_ = info.with_(shape=[rows]).type
    number = Arange.create(start=[0], end=[rows], step=[1], result_types=[type_]).result
    number = ExpandDims.create(number, axis=[1]).result
    return LogicalAnd.create(GreaterEqual.create(number, begins).result, Less.create(number, ends).result).result


def _one_below_the_other(weight: ir.Value, groups: int) -> ir.Value:
    """Matrices that are side by side, ``[k, groups * n]``, as ``[groups * k, n]``."""
    k, columns = TensorInfo.of(weight).shape
    assert isinstance(k, int)
    assert isinstance(columns, int)
    n, owner = columns // groups, weight.owner
    inner = owner.x.owner if isinstance(owner, PermuteDims) else None
    if isinstance(inner, Reshape) and list(TensorInfo.of(inner.x).shape) == [groups, n, k]:
        parts = PermuteDims.create(inner.x, axes=[0, 2, 1]).result
    else:
        parts = PermuteDims.create(reshaped(weight, [k, groups, n]), axes=[1, 0, 2]).result
    return reshaped(parts, [groups * k, n])
