"""A module in, for each function what lifting would prepare; nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import func, ir
from ...function_types import argument_attributes
from ...lift_override import check_overrides, override_of
from ...traversal import blocks_of, free_values, operations
from .costs import Costs
from .lift_transform_params import LiftTransformParams
from .policy import Limits, Policy

__all__ = ["KnownAhead", "KnownValues"]


@dataclass
class KnownValues:
    """What of one function is known before it runs, and what of that lifting thinks worth preparing.

    Attributes:
        flow: what comes from weights, and is known ahead. Lifting leaves to inference what comes from constants alone.
        policy: what lifting, by its default limits, leaves to inference although it could be prepared.
    """

    flow: WeightFlow
    policy: Policy

    def __post_init__(self) -> None:
        self._weights, self._judged = set(self.flow.weights), set[ir.Value]()

    def is_ready(self, value: ir.Value) -> bool:
        """Whether inference takes a value ready made once weights are lifted: a weight, or what is worth lifting."""
        if value not in self._judged:  # what is inside of a branch or loop that is prepared as a whole is not, by itself
            return value in self._weights
        return self.policy.refusal(value.owner.operation, [value]) is None

    def may_be_lifted(self, *operands: ir.Value) -> bool:
        """Whether an op on these values that cannot fail and mentions no new symbols may be lifted."""
        return self.flow.all_ahead(operands) and self.flow.any_from_weights(operands)

    def enter(self, op: ir.Operation) -> ir.Operation:
        """Takes note of a new op, of those that cannot fail and mention no new symbols."""
        if self.flow.all_ahead(free_values(op)):
            self.flow.enter_ahead(op)
            self._judge(op)
        return op

    def judge_all(self, block: ir.Block) -> None:
        """Takes note of the ops of a block, which the flow has entered."""
        pending = operations(block)[::-1]
        while pending:
            op = pending.pop()
            if len(op.results) and self.flow.is_ahead(op.results[0]):
                self._judge(op)
            else:
                pending += [inner for each in blocks_of(op) for inner in operations(each)][::-1]

    def _judge(self, op: ir.Operation) -> None:
        if self.flow.comes_from_weights(op.results[0]):
            self._judged.update(op.results)
            self.policy.add(op)


class KnownAhead:
    """Answers for the functions of one module. Raises RelaxError where a ``relax.lift`` is wrong."""

    def __init__(self, module: ir.Operation):
        check_overrides(module)
        self.rules = FlowRules.of(module)
        default = LiftTransformParams()
        self.limits = Limits.of(default.max_growth, default.growth_slack, default.max_total_growth)

    def of(self, function: func.FuncOp, inputs: int) -> KnownValues:
        """What is known of a function with that many run-time inputs; calls hide what they compute from weights."""
        values = KnownValues(self.rules.flow(function, inputs), Policy(self.limits, Costs()))
        attributes = argument_attributes(function)[inputs:]
        for weight, name, given in zip(values.flow.weights, values.flow.names, attributes, strict=True):
            values.policy.costs.add_weight(weight, name)
            values.policy.add_weight(weight, override_of(given))
        values.judge_all(function.regions[0].blocks[0])
        return values
