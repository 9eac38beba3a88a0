"""What lifting decides of one function: the planner makes it, the policy judges it, the rewrite carries it out."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...analysis.weight_flow import WeightFlow
from ...bindings import ir
from ...reports.lifting import Reason

__all__ = ["LiftPlan", "Refusal"]

#: Why a value is not lifted, and the particulars.
Refusal = tuple[Reason, str]


@dataclass
class LiftPlan:
    """What lifting does to one function.

    Attributes:
        weights: the arguments after the run-time inputs.
        flow: what of the function comes from weights.
        ops: liftable ops in program order: producers come first.
        kept_weights: weights that inference still reads as they are, in argument order.
        lifted: computed values that inference reads, in program order; all are tensors.
        declined: liftable ops that inference runs, the last first, and why.
        casts: results of those that it runs for the symbols that they define.
    """

    weights: list[ir.Value]
    flow: WeightFlow
    ops: list[ir.Operation] = field(default_factory=list)
    kept_weights: list[ir.Value] = field(default_factory=list)
    lifted: list[ir.Value] = field(default_factory=list)
    declined: list[tuple[ir.Operation, Refusal]] = field(default_factory=list)
    casts: set[ir.Value] = field(default_factory=set)
