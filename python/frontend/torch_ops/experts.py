"""torch ops of mixtures of experts: products of rows with matrices that they choose."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ..emit import cast, emit, full, info_of, integer, multiply_all, reshape, slice_axis, unsqueeze
from ..torch_op import TorchOp, handles
from .creation import sequence


@handles("aten._grouped_mm", "transformers.grouped_mm_fallback")
def _grouped_mm(op: TorchOp) -> ir.Value:
    """Rows in groups, one after the other, times a matrix of each group; rows behind the last group give 0.

    As one product: each row of ``[rows, groups, k]`` is zero but in the place of its group, and the matrices are one below the
    other, ``[groups * k, n]``. So a weight stays one matrix, which is packed as any other, and is read once; it takes as many
    operations as if each row went to all groups.
    """
    x, weight, ends = op.tensor(0), op.tensor(1), op.optional(2)
    if ends is None or info_of(x).rank != 2 or info_of(weight).rank != 3:
        raise RelaxError("expected a grouped product of rows with a matrix for each group, by the groups' ends")
    if len(op.operands) > 3 and op.optional(3) is not None:
        raise RelaxError("expected a grouped product without a bias")
    (rows, k), (groups, _, n) = info_of(x).shape, info_of(weight).shape
    if rows is None or not isinstance(groups, int):
        raise RelaxError("expected rows and groups whose numbers are known or symbolic")
    ends = cast(ends, integer())
    begins = emit(ops.Concat, full(0, integer(), (1,)), slice_axis(ends, 0, 0, groups - 1), axis=0) if groups > 1 else None
    begins = full(0, integer(), (1,)) if begins is None else begins
    number = unsqueeze(sequence(0, rows, 1, integer()), 1)
    mine = emit(ops.LogicalAnd, emit(ops.GreaterEqual, number, begins), emit(ops.Less, number, ends))
    placed = emit(ops.Where, unsqueeze(mine, 2), unsqueeze(x, 1), full(0, info_of(x).dtype))
    inner = multiply_all([groups, k])
    product = emit(ops.MatMul, reshape(placed, (rows, inner)), reshape(cast(weight, info_of(x).dtype), (inner, n)))
    return cast(product, op.dtype)
