"""One program for several ranks, each with a part of the weights: columns, rows, heads, vocabulary.

Before::

    func.func @main(%x: tensor<?x64xf32>, %up: tensor<64x256xf32> {relax.name = "up"}, %down: tensor<256x64xf32> ...) {
      %0 = "relax.matmul"(%x, %up)
      %1 = "relax.silu"(%0)
      %2 = "relax.matmul"(%1, %down)
      return %2

with ``ranks=2`` after::

    module attributes {relax.ranks = 2, relax.shards = {down = array<i64: 0, 256>, up = array<i64: 1, 256>}} {
      func.func @main(%x: tensor<?x64xf32>, %up: tensor<64x128xf32>, %down: tensor<128x64xf32>) {
        %0 = "relax.matmul"(%x, %up)         // columns of this rank
        %1 = "relax.silu"(%0)
        %2 = "relax.matmul"(%1, %down)       // its rows: a term of a sum
        %3 = "relax.all_reduce"(%2)
        return %3

Inputs are whole on all ranks, and results are; state (a cache of keys and values) is cut where what is written to it is.
Weights of which no op needs the whole are cut, the others each rank has whole; the report says which, and why. The rules are
those of Shoeybi et al., Megatron-LM, arXiv:1909.08053, applied op by op (:mod:`.cut_rules`). With one rank nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod
from typing import ClassVar

from ...analysis.weight_flow import FlowRules
from ...bindings import ir
from ...constants import constant_arrays
from ...cut import Cut
from ...errors import RelaxError
from ...functions import argument_names, body_of, functions, is_private, num_input, transform_targets
from ...passes.base import Pass
from ...reports import report
from ...reports.sharding import CutWeight, ShardedWeights, UncutWeight
from ...sharding import ranks_of, set_ranks, set_shards
from ...struct_info import TensorInfo, element_bytes, is_tensor
from .apply_cuts import apply_cuts
from .function_cuts import FunctionCuts
from .weight_cuts import WeightCuts

__all__ = ["ShardWeights"]


@dataclass(frozen=True)
class ShardWeights(Pass):
    """Cuts weights of public functions that say which arguments are weights (``relax.num_input``).

    Attributes:
        ranks: how many processes there are.
        keep: weights by name or pattern (``*.k_proj.*``) of which each rank has the whole.
    """

    name: ClassVar[str] = "relax-shard"
    ranks: int = 1
    keep: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        if self.ranks < 1:
            raise RelaxError(f"expected 1 rank or more, got {self.ranks}")
        self._check_keep(op)
        already = ranks_of(op)
        if already not in (1, self.ranks):
            raise RelaxError(f"expected a module for one rank, got one for {already}", op.location)
        if self.ranks == 1 or already == self.ranks:
            return
        plans, decisions = self._decided(op)
        sections = _told(plans, decisions)
        sums, gathers = (sum(counts) for counts in zip(*(apply_cuts(p) for p in plans), strict=True)) if plans else (0, 0)
        set_ranks(op, self.ranks)
        weights = {name for p in plans for name, _ in p.weights()}
        set_shards(op, {name: cut for name, cut in decisions.cuts.items() if name in weights})
        state = tuple(name for name in decisions.cuts if name not in weights)
        report.add(ShardedWeights(self.ranks, *sections, state, sums, gathers))

    def _check_keep(self, op: ir.Operation) -> None:
        names = [n for f in functions(op) if (k := num_input(f)) is not None for n in argument_names(f)[k:] if n is not None]
        for pattern in self.keep:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise RelaxError(f"expected a weight to keep, got '{pattern}'")

    def _decided(self, op: ir.Operation) -> tuple[list[FunctionCuts], WeightCuts]:
        """The plans on which all functions agree: a decision shows in all of them, so they are made again until none is new."""
        rules = FlowRules.of(op)
        found = [f for f in functions(op) if body_of(f) is not None and not is_private(f) and not transform_targets(f)]
        flows = [(f, rules.flow(f)) for f in found if num_input(f) is not None]
        decisions = WeightCuts(self.ranks, self.keep, whole=dict.fromkeys(constant_arrays(op), "the module knows it"))
        while True:
            decisions.begin()
            plans = [FunctionCuts(function, flow, decisions).plan() for function, flow in flows]
            decisions.end()
            if not decisions.changed:
                return plans, decisions


def _told(plans: list[FunctionCuts], decisions: WeightCuts) -> tuple[tuple[CutWeight, ...], tuple[UncutWeight, ...]]:
    cut: dict[str, CutWeight] = {}
    whole: dict[str, UncutWeight] = {}
    for name, value in (pair for plan in plans for pair in plan.weights() if is_tensor(pair[1])):
        info, found = TensorInfo.of(value), decisions.cuts.get(name)
        nbytes = prod(d for d in info.shape if isinstance(d, int)) * element_bytes(info.dtype)
        if found is not None:
            cut[name] = _cut(name, found, nbytes, decisions.ranks)
        elif info.rank > 1:
            whole[name] = UncutWeight(name, nbytes, decisions.whole.get(name, "no product of parts reads it"))
    return tuple(cut.values()), tuple(whole.values())


def _cut(name: str, cut: Cut, nbytes: int, ranks: int) -> CutWeight:
    return CutWeight(name, cut.axis, len(cut.pieces), nbytes, nbytes // ranks)
