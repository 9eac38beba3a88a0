"""Removes ops that compute nothing and merges chains of ops that one op can do; greedy, until nothing changes.

Before::

    %0 = "relax.permute_dims"(%x) {axes = array<i64: 1, 0>}
    %1 = "relax.permute_dims"(%0) {axes = array<i64: 1, 0>}
    %2 = "relax.reshape"(%1)
    %3 = "relax.reshape"(%2)
    %4 = "relax.astype"(%3) {dtype = f32}       // %x is f16
    %5 = "relax.astype"(%4) {dtype = bf16}

after::

    %0 = "relax.reshape"(%x)
    %1 = "relax.astype"(%0) {dtype = bf16}

Results are bit for bit the same: no rewrite here changes rounding, and none looks at constants. The rewrites are in
:mod:`.canonical_patterns`. MLIR's driver also folds upstream ops and drops pure ops that nothing uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...bindings import ir
from ...errors import RelaxError
from ...passes.base import Pass
from ...passes.rewriting import budget_for, greedily
from .canonical_patterns import PATTERNS

__all__ = ["Canonicalize"]

# Every rewrite removes an op or shortens a chain, so one sweep needs at most one per op: a chain of 20,000 permutes takes
# 19,999. The driver sweeps up to ten times; rewrites that run in circles exhaust that in 0.4 ms per op of the module.
_REWRITES_PER_OP = 2
_REWRITES_AT_LEAST = 1000


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Removes ops that compute nothing and merges chains of ops that one op can do.

    Attributes:
        max_rewrites: how many rewrites one sweep over the IR may do; when ten sweeps are not enough, the pass gives up with an
            error. 0 is twice the number of ops.
    """

    name: ClassVar[str] = "relax-canonicalize"
    anchor: ClassVar[str] = "any"
    max_rewrites: int = 0

    def run(self, op: ir.Operation) -> None:
        if self.max_rewrites < 0:
            raise RelaxError(f"expected max-rewrites of 0 or more, got {self.max_rewrites}")
        budget = self.max_rewrites or budget_for(op, _REWRITES_PER_OP, _REWRITES_AT_LEAST)
        greedily(op, PATTERNS, budget, "canonicalization")
