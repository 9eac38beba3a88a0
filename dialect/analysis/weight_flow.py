"""What comes from weights alone, when that is known, and with which symbols: one rule for all passes.

**Where it comes from.** Weights are the arguments from ``relax.num_input`` on. A value comes *from weights* when a pure op
computes it, or a branch, a loop or a call of pure ops does, which reads weights, constants, and what comes from those, and
nothing else; a *constant* when no weight is behind it. All else is a run-time value: inputs, results of ops that read one, or
have effects, and what ``relax.stop_lift_params`` returns, which is there to end weight math.

**When it is known.** What comes from weights is known *ahead*, when weights are prepared, if

- what it is computed of is known ahead,
- no ``relax.lift = "never"`` is on the op, inside of it or in what it calls,
- it is harmless to compute although the branch or loop around it may not run, and
- weights determine all symbols that it mentions: by their shapes, or by casts of what is known ahead.

Otherwise inference computes it from weights: that is what integers that widen at their use are, or a bias as large as a batch.

**Who asks what.** Passes that give weights another form (packing, narrowing, folding, sinking, layouts) and the prologues of
kernels ask whether a value comes from weights; where they add work, whether it is there once, outside of branches and loops:
inside it would be done again and again. Those that move work to preparation (lifting, and what rewrites products for
its sake) ask whether it is known ahead; whether that is worth the memory is lifting's policy. The lazy passes ask which weights
have to be there for the symbols that an op mentions (:meth:`WeightFlow.definers`).
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from ..bindings import func, ir
from ..call_graph import CallGraph
from ..functions import body_of, full_argument_names, num_input
from ..lift_override import NEVER, override_of
from ..ops import MatchCast
from ..traversal import blocks_of, free_values, free_values_of_all, nested_operations, operations
from .barriers import Barriers
from .purity import Purity
from .symbol_uses import DEFINING_OPS, SymbolUses, bound_symbols, definers

__all__ = ["FlowRules", "Obstacle", "WeightFlow"]

_SCF = "scf."


class Obstacle(Enum):
    """Why the results of an op are not known ahead."""

    RUN_TIME_VALUE = "it reads what is not known ahead"
    NOT_PURE = "it may have effects"
    OVERRIDE = "its attribute says never"
    BARRIER = "it is a barrier, or has one inside"
    SPECULATION = "it may fail where it would not have run"
    RUN_TIME_SYMBOL = "it mentions symbols that weights do not determine"


class FlowRules:
    """The rule as far as it depends on one op alone, for the ops of one module.

    Attributes:
        purity, barriers, uses: what it is made of.
    """

    def __init__(self, graph: CallGraph, uses: SymbolUses | None = None):
        self.purity, self.barriers, self.uses = Purity(graph), Barriers(graph), uses or SymbolUses()

    @staticmethod
    def of(module: ir.Operation) -> FlowRules:
        """The rules for a module whose functions are not erased while they are asked."""
        return FlowRules(CallGraph(module))

    def is_movable(self, op: ir.Operation) -> bool:
        """Whether an op could run ahead."""
        return len(op.results) > 0 and self.purity.is_pure(op) and not self.barriers.contains(op)

    def passes_weights_on(self, op: ir.Operation) -> bool:
        """Whether an op on weights gives what comes from weights."""
        return len(op.results) > 0 and self.purity.is_pure(op) and not self.barriers.stops(op)

    def flow(self, function: func.FuncOp, inputs: int | None = None) -> WeightFlow:
        """The flow in a whole function, which is gone through when the first question is asked: many passes have none.

        Args:
            function: the function; a declaration has no values.
            inputs: how many leading arguments are inputs, by default what ``relax.num_input`` says; without it all are.
        """
        block = body_of(function)
        if block is None:
            return WeightFlow(self, [], [])
        arguments, given = list[ir.Value](block.arguments), num_input(function) if inputs is None else inputs
        split = len(arguments) if given is None else given
        flow = WeightFlow(self, arguments[:split], arguments[split:], lambda: full_argument_names(function)[split:])
        flow.enter_later(function)
        return flow


class WeightFlow:
    """The values of one function, as far as its ops have been entered, in program order.

    Values are keys here: whoever erases one says so (:meth:`forget`, :meth:`replace`), as another may get its address.

    Attributes:
        weights: the arguments that are weights.
        names: what these are called, as of the first time this is asked.
        symbols: those that weights, and casts of what is known ahead, determine.
    """

    def __init__(
        self,
        rules: FlowRules,
        inputs: Sequence[ir.Value],
        weights: Sequence[ir.Value],
        names: Callable[[], list[str]] = list[str],
    ):
        self.rules, self.weights, self._names_of_weights = rules, list(weights), names
        self.symbols = bound_symbols(w.type for w in weights)
        self._input_symbols = bound_symbols(v.type for v in inputs)
        self._bound_before = bound_symbols(v.type for v in (*inputs, *weights))
        self._run_time_symbols = set[str]().union(*(rules.uses.of_type(v.type) for v in inputs))
        self._known, self._derived, self._ahead = set(weights), set(weights), set(weights)
        self._inside = set[ir.Value]()
        self._read: Mapping[ir.Block, list[ir.Value]] = {}
        self._later: func.FuncOp | None = None

    @functools.cached_property
    def names(self) -> list[str]:
        return self._names_of_weights()

    def comes_from_weights(self, value: ir.Value) -> bool:
        """Whether a value is a weight, or is computed from at least one, and constants, alone."""
        self._catch_up()
        return value in self._derived

    def once_from_weights(self, value: ir.Value) -> bool:
        """The same outside of branches and loops, where it is computed once, and all that follows can read it."""
        self._catch_up()
        return value in self._derived and value not in self._inside

    def is_known(self, value: ir.Value) -> bool:
        """The same of weights or constants: whether nothing that comes at run time is behind a value."""
        self._catch_up()
        return value in self._known

    def is_ahead(self, value: ir.Value) -> bool:
        """Whether a value, from weights or constants, is known when weights are prepared."""
        self._catch_up()
        return value in self._ahead

    def all_ahead(self, values: Iterable[ir.Value]) -> bool:
        """Whether all of some values are."""
        self._catch_up()
        return self._ahead.issuperset(values)

    def any_from_weights(self, values: Iterable[ir.Value]) -> bool:
        """Whether some of the values come from weights."""
        self._catch_up()
        return not self._derived.isdisjoint(values)

    def ahead_of(self, values: Iterable[ir.Value]) -> set[ir.Value]:
        """Those of some values that are known ahead."""
        self._catch_up()
        return self._ahead.intersection(values)

    def sources(self, value: ir.Value) -> tuple[str, ...]:
        """Names of the weights behind a value that comes from weights."""
        names = dict(zip(self.weights, self.names, strict=True))
        seen, pending = dict[ir.Value, str](), [value]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen[value] = names.get(value, "")
            if value not in names:
                owner = value.owner
                pending += reversed(free_values(owner.owner.operation if isinstance(owner, ir.Block) else owner.operation))
        return tuple(name for name in seen.values() if name)

    def definers(self) -> dict[str, list[ir.Value]]:
        """The weights that have to be there for a symbol to be determined, for symbols that inputs do not determine."""
        return definers(self.weights, self._input_symbols)

    # Entering

    def enter_later(self, function: func.FuncOp) -> None:
        """Enters the ops that a function has when something is asked."""
        self._later = function

    def _catch_up(self) -> None:
        function, self._later = self._later, None
        if function is not None:
            self.enter_all(function)

    def enter_all(self, function: func.FuncOp) -> None:
        """Enters the ops of a function, those of branches and loops that run on their own as well."""
        first, *others = function.regions[0].blocks
        ops = operations(first)
        self._read = free_values_of_all(function.operation) if others or any(len(op.regions) for op in ops) else {}
        pending = deque((op, False) for op in ops)
        pending.extend((op, True) for block in others for op in operations(block))
        while pending:
            op, nested = pending.popleft()
            inner = self.enter(op, nested)
            pending.extendleft((each, True) for each in reversed(inner))
        self._read = {}  # from here on ops may change

    def enter(self, op: ir.Operation, nested: bool = False) -> list[ir.Operation]:
        """Enters an op, inside of a branch or loop or not; returns the ops inside of it that are to be entered on their own."""
        if nested:
            self._inside.update(op.results)
        # Of most ops, an operand says it: these are asked no more. What is ahead is known.
        if not self._known.issuperset(op.operands):
            return self.stay(op)
        first = next(blocks_of(op), None) if self._read else None
        read = free_values(op) if first is None else self._read[first]
        if self._obstacle(op, nested, read) is None:
            self._add(op, read, self._ahead)
            return []
        if self._known.issuperset(read) and self.rules.passes_weights_on(op):
            self._add(op, read)
        return self.stay(op)

    def obstacle(self, op: ir.Operation, nested: bool) -> Obstacle | None:
        """Why an op's results are not known ahead, None when they are."""
        self._catch_up()
        if not self._ahead.issuperset(op.operands):  # what is inside need not be gone through
            return Obstacle.RUN_TIME_VALUE
        return self._obstacle(op, nested, free_values(op))

    def enter_ahead(self, op: ir.Operation) -> None:
        """Enters an op that has no obstacle."""
        self._add(op, free_values(op), self._ahead)

    def stay(self, op: ir.Operation) -> list[ir.Operation]:
        """Enters an op that runs at run time; returns the ops inside of it that are to be entered on their own."""
        if op.name in DEFINING_OPS:
            self._run_time_symbols |= self.defines(op)
        return [inner for block in blocks_of(op) for inner in operations(block)] if op.name.startswith(_SCF) else []

    def unknown_symbols(self, op: ir.Operation) -> set[str]:
        """The symbols that an op mentions and that neither weights nor casts of what is ahead determine; one may do so."""
        unknown = self.rules.uses.of_op(op) - self.symbols
        if not unknown or op.name != MatchCast.OPERATION_NAME or not unknown.isdisjoint(self._run_time_symbols):
            return set(unknown)
        self.symbols |= bound_symbols([*(w.type for w in self.weights), op.results[0].type])
        return set(unknown - self.symbols)

    def defines(self, op: ir.Operation) -> set[str]:
        """The symbols that a cast defines, which no argument does."""
        return set[str]().union(*(self.rules.uses.of_type(r.type) for r in op.results)) - self._bound_before

    # Changes

    def add_known(self, *values: ir.Value) -> None:
        """Enters new values that a pass has made of weights and constants."""
        self._catch_up()
        self._known.update(values)

    def replace(self, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
        """Forgets values that are about to be erased; what takes their place is like them."""
        self._catch_up()
        for kind in (self._known, self._derived, self._ahead, self._inside):
            if kind.issuperset(old):
                kind.update(new)
        self.forget(old)

    def forget(self, values: Iterable[ir.Value]) -> None:
        """Forgets values that are about to be erased."""
        self._catch_up()
        gone = list(values)
        for kind in (self._known, self._derived, self._ahead, self._inside):
            kind.difference_update(gone)

    def _obstacle(self, op: ir.Operation, nested: bool, read: Sequence[ir.Value]) -> Obstacle | None:
        rules = self.rules
        if not self._ahead.issuperset(read):
            return Obstacle.RUN_TIME_VALUE
        if rules.barriers.contains(op):
            return Obstacle.OVERRIDE if override_of(op.attributes) == NEVER else Obstacle.BARRIER
        if not len(op.results) or not rules.purity.is_pure(op):
            return Obstacle.NOT_PURE
        if nested and not rules.purity.is_speculatable(op):
            return Obstacle.SPECULATION
        return Obstacle.RUN_TIME_SYMBOL if self.unknown_symbols(op) else None

    def _add(self, op: ir.Operation, read: Sequence[ir.Value], *kinds: set[ir.Value]) -> None:
        made = list[ir.Value](op.results)
        if len(op.regions):
            inside = [a for block in blocks_of(op) for a in block.arguments]
            for inner in nested_operations(op):
                inside += [*inner.results, *(a for block in blocks_of(inner) for a in block.arguments)]
            self._inside.update(inside)
            made += inside
        derived = not self._derived.isdisjoint(read)
        for kind in (self._known, *kinds, *([self._derived] if derived else [])):
            kind.update(made)
