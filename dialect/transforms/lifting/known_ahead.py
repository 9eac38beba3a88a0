"""A module in, for each function what weights and constants alone determine; the rules are lifting's, nothing is changed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ...analysis.symbol_uses import SymbolUses, bound_symbols
from ...bindings import func, ir
from ...call_graph import CallGraph
from ...function_types import argument_attributes
from ...functions import full_argument_names
from ...lift_override import check_overrides, override_of
from ...ops import MatchCast
from ...traversal import blocks_of, free_values, operations
from ..cleanup.inlining import DEFINING_OPS
from .costs import Costs
from .lift_transform_params import LiftTransformParams
from .planner import Lifting
from .policy import Limits, Policy

__all__ = ["KnownAhead", "KnownValues"]


@dataclass
class KnownValues:
    """What of one function is known before it runs.

    Attributes:
        known: weights, constants, and what is computed from them and can be lifted.
        derived: those that come from at least one weight. Lifting leaves to inference what comes from constants alone.
        policy: what lifting, by its default limits, leaves to inference although it is derived.
    """

    known: set[ir.Value]
    derived: set[ir.Value]
    policy: Policy

    def is_ready(self, value: ir.Value) -> bool:
        """Whether inference takes a value ready made once weights are lifted: a weight, or what is worth lifting."""
        if value not in self.derived:
            return False
        owner = value.owner
        return isinstance(owner, ir.Block) or self.policy.refusal(owner.operation, [value]) is None

    def may_be_lifted(self, *operands: ir.Value) -> bool:
        """Whether an op on these values that cannot fail and mentions no new symbols is derived, and so perhaps lifted."""
        return self.known.issuperset(operands) and not self.derived.isdisjoint(operands)

    def enter(self, op: ir.Operation) -> ir.Operation:
        """Takes note of a new op of that kind."""
        read = free_values(op)
        if self.known.issuperset(read):
            self.known.update(op.results)
            if not self.derived.isdisjoint(read):
                self.derived.update(op.results)
                self.policy.add(op)
        return op


class KnownAhead:
    """Answers for the functions of one module. Raises RelaxError where a ``relax.lift`` is wrong."""

    def __init__(self, module: ir.Operation):
        check_overrides(module)
        self.uses = SymbolUses()
        self.lifting = Lifting(CallGraph(module), self.uses)
        default = LiftTransformParams()
        self.limits = Limits.of(default.max_growth, default.growth_slack, default.max_total_growth)

    def of(self, function: func.FuncOp, inputs: int) -> KnownValues:
        """What is known of a function with that many run-time inputs; calls hide what they compute from weights."""
        return _Search(self, function, inputs).run()


class _Search:
    """The work on one function: all ops in program order, also those in regions."""

    def __init__(self, ahead: KnownAhead, function: func.FuncOp, inputs: int):
        self.lifting, self.uses = ahead.lifting, ahead.uses
        self.block: ir.Block = function.regions[0].blocks[0]
        arguments: list[ir.Value] = list(self.block.arguments)
        self.weights = arguments[inputs:]
        self.values = KnownValues(set(self.weights), set(self.weights), Policy(ahead.limits, Costs()))
        attributes = argument_attributes(function)[inputs:]
        for weight, name, given in zip(self.weights, full_argument_names(function)[inputs:], attributes, strict=True):
            self.values.policy.costs.add_weight(weight, name)
            self.values.policy.add_weight(weight, override_of(given))
        self.symbols = bound_symbols(w.type for w in self.weights)
        self.runtime_symbols = set[str]().union(*(self.uses.of_type(a.type) for a in arguments[:inputs]))

    def run(self) -> KnownValues:
        pending = deque((op, False) for op in operations(self.block))
        while pending:
            op, nested = pending.popleft()
            if self._is_known(op, nested):
                self.values.enter(op)
                continue
            if op.name in DEFINING_OPS:
                self.runtime_symbols |= self.uses.of_op(op) - self.symbols
            if op.name.startswith("scf."):
                pending.extendleft(reversed([(inner, True) for block in blocks_of(op) for inner in operations(block)]))
        return self.values

    def _is_known(self, op: ir.Operation, nested: bool) -> bool:
        if not self.values.known.issuperset(free_values(op)) or not self.lifting.is_movable(op):
            return False
        return (not nested or self.lifting.purity.is_speculatable(op)) and self._knows_symbols(op)

    def _knows_symbols(self, op: ir.Operation) -> bool:
        """Whether weights determine the symbols that an op mentions; a cast of a weight may define some."""
        unknown = self.uses.of_op(op) - self.symbols
        if not unknown or op.name != MatchCast.OPERATION_NAME or not unknown.isdisjoint(self.runtime_symbols):
            return not unknown
        self.symbols |= bound_symbols([*(w.type for w in self.weights), op.results[0].type])
        return unknown <= self.symbols
