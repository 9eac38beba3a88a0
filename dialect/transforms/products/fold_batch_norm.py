"""Folds batch norms into the weights and the bias of the convolution or matrix product next to them.

Before::

    %0 = "relax.conv2d"(%x, %w)
    %1 = "relax.batch_norm"(%0, %gamma, %beta, %mean, %variance) {axis = 1 : i64}

after::

    %scale = gamma / sqrt(variance + epsilon)                   // all but the last two ops are on weights alone,
    %folded = w * scale                                         // so that lifting moves them to preparation
    %shift = beta - mean * scale
    %0 = "relax.conv2d"(%x, %folded)
    %1 = "relax.add"(%0, %shift)

Statistics, scale, shift and weight come from weights or constants, and nothing else reads what is between the two ops. A bias
that is added before the batch norm goes into the shift. A batch norm of which the result goes into a convolution without
padding (beyond the edge of an image are zeros, not shifts) or into a matrix product folds into that one. Every other batch
norm stays as it is.

Rounding changes: scale and shift are computed in f32 (f64 for f64) and rounded once to the dtypes of weight and result, and
sums are taken of scaled instead of unscaled products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...analysis.weight_flow import known_values
from ...bindings import func, ir
from ...functions import functions
from ...ops import BatchNorm
from ...passes.base import Pass
from ...struct_info import TensorInfo
from ...traversal import nested_operations
from .batch_norm_folding import Folding

__all__ = ["FoldBatchNorm"]


@dataclass(frozen=True)
class FoldBatchNorm(Pass):
    """Folds batch norms into the weights and the bias of the convolution or matrix product next to them."""

    name: ClassVar[str] = "relax-fold-batch-norm"

    def run(self, op: ir.Operation) -> None:
        for function in functions(op):
            _fold_in(function)


def _fold_in(function: func.FuncOp) -> None:
    """First into producers, in program order, since one fold makes a bias add of a batch norm, which the next one sees
    through. Then into consumers, backwards for the same reason. Neither enables the other."""
    found = [o.opview.result for o in nested_operations(function.operation) if o.name == BatchNorm.OPERATION_NAME]
    if not found:
        return
    known = known_values(function)
    candidates = [v for v in found if _is_candidate(v.owner, known)]
    folding = Folding(known)
    remaining = [v for v in candidates if not folding.into_producer(v)]
    for value in reversed(remaining):
        folding.into_consumer(value)


def _is_candidate(norm: BatchNorm, known: set[ir.Value]) -> bool:
    """A batch norm of run-time values with known parameters; one on weights alone is lifted as a whole."""
    x, *parameters = norm.operands
    channels = TensorInfo.of(parameters[0]).shape[0]
    return x not in known and all(p in known for p in parameters) and isinstance(channels, int)
