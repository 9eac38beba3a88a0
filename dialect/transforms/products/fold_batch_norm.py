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

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import func, ir
from ...functions import functions
from ...ops import BatchNorm
from ...passes.base import Pass
from ...passes.rewriting import walk
from ...traversal import nested_operations
from .batch_norm_folding import Folding

__all__ = ["FoldBatchNorm"]


@dataclass(frozen=True)
class FoldBatchNorm(Pass):
    """Folds batch norms into the weights and the bias of the convolution or matrix product next to them."""

    name: ClassVar[str] = "relax-fold-batch-norm"
    rounding: ClassVar[float] = 1e-5

    def run(self, op: ir.Operation) -> None:
        rules = FlowRules.of(op)
        for function in functions(op):
            if any(inner.name == BatchNorm.OPERATION_NAME for inner in nested_operations(function.operation)):
                _fold_in(function, rules.flow(function))


def _fold_in(function: func.FuncOp, flow: WeightFlow) -> None:
    """First into producers, in program order, since one fold makes a bias add of a batch norm, which the next one sees
    through. Then into consumers, for the same reason backwards, which no driver goes. Neither enables the other."""
    folding = Folding(flow)
    walk(function, folding.patterns(), flow)
    for value in reversed(folding.remaining):
        folding.into_consumer(value)
