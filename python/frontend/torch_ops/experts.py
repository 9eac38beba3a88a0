"""torch ops of mixtures of experts: products of rows with matrices that they choose."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ..emit import cast, emit, info_of, permute, reshape
from ..torch_op import TorchOp, handles


@handles("aten._grouped_mm", "transformers.grouped_mm_fallback")
def _grouped_mm(op: TorchOp) -> ir.Value:
    """Rows in groups, one after the other, times a matrix of each group; rows behind the last group give 0."""
    x, weight, ends = op.tensor(0), op.tensor(1), op.optional(2)
    if ends is None or info_of(x).rank != 2 or info_of(weight).rank != 3:
        raise RelaxError("expected a grouped product of rows with a matrix for each group, by the groups' ends")
    if len(op.operands) > 3 and op.optional(3) is not None:
        raise RelaxError("expected a grouped product without a bias")
    groups, k, n = info_of(weight).shape
    if info_of(x).shape[0] is None or not (isinstance(groups, int) and isinstance(k, int) and isinstance(n, int)):
        raise RelaxError("expected rows whose number is known or symbolic, and matrices of known sizes")
    columns = reshape(permute(cast(weight, info_of(x).dtype), [0, 2, 1]), (groups * n, k))
    return cast(emit(ops.GroupedMatMul, x, permute(columns, [1, 0]), ends), op.dtype)
