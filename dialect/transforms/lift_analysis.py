"""A function in, what of it depends on weights alone out; decides, and changes nothing but calls that hide weight math.

An op can be lifted when it is pure, reads only weights, constants and other liftable values, and mentions only symbols that
weights determine. Ops inside of ``scf`` regions can be lifted out when computing them needlessly is harmless; a whole
``scf.if`` or loop can when all it reads can. ``relax.stop_lift_params`` ends it: its result is an ordinary run-time value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..bindings import func, ir
from ..call_graph import CallGraph, callee_of
from ..ops import MatchCast
from ..purity import Purity
from ..struct_info import is_tensor
from ..symbol_uses import SymbolUses, bound_symbols
from ..traversal import blocks_of, free_values, operations
from .barriers import Barriers
from .inlining import DEFINING_OPS, CallInliner, defined_symbols

__all__ = ["LiftPlan", "Lifting"]

_SCF = "scf."


@dataclass
class LiftPlan:
    """What lifting does to one function.

    Attributes:
        weights: the arguments after the run-time inputs.
        ops: liftable ops in program order: producers come first.
        derived: weights and values computed from them, as opposed to constants.
        kept_weights: weights that inference still reads as they are, in argument order.
        lifted: computed values that inference reads, in program order; all are tensors.
        inlined: names of functions of which calls were inlined.
    """

    weights: list[ir.Value]
    ops: list[ir.Operation] = field(default_factory=list)
    derived: set[ir.Value] = field(default_factory=set)
    kept_weights: list[ir.Value] = field(default_factory=list)
    lifted: list[ir.Value] = field(default_factory=list)
    inlined: set[str] = field(default_factory=set)


class Lifting:
    """Decides for the functions of one module."""

    def __init__(self, graph: CallGraph, uses: SymbolUses):
        self.inliner = CallInliner(graph, uses)
        self.purity = Purity(graph)
        self.barriers = Barriers(graph)
        self.uses = uses
        self._reveals: dict[tuple[str, tuple[int, ...]], bool] = {}

    def plan(self, function: func.FuncOp, inputs: int) -> LiftPlan:
        """Decides what to lift out of a function with that many run-time inputs. Calls that hide weight math are inlined."""
        return _Planner(self, function, inputs).plan()

    def is_movable(self, op: ir.Operation) -> bool:
        """Whether an op could be lifted, as far as that depends on the op alone."""
        return len(op.results) > 0 and self.purity.is_pure(op) and not self.barriers.contains(op)

    def reveals(self, call: ir.Operation, callee: func.FuncOp, kinds: Iterable[int]) -> bool:
        """Whether the body of the called function holds weight math.

        Args:
            call: the call.
            callee: the function it calls.
            kinds: for each operand 2 when it comes from weights, 1 when from constants, 0 when from run-time values.
        """
        key = (callee_of(call), tuple(kinds))
        if key not in self._reveals:
            arguments = list(zip(callee.regions[0].blocks[0].arguments, key[1], strict=True))
            known = {a for a, kind in arguments if kind}
            self._reveals[key] = self._body_reveals(callee, known, {a for a, kind in arguments if kind == 2})
        return self._reveals[key]

    def _body_reveals(self, callee: func.FuncOp, known: set[ir.Value], derived: set[ir.Value]) -> bool:
        pending = deque(operations(callee.regions[0].blocks[0]))
        while pending:
            op = pending.popleft()
            read = free_values(op)
            if known.issuperset(read) and self.is_movable(op):
                if not derived.isdisjoint(read):
                    return True
                known.update(op.results)
            elif op.name == "func.call" and not derived.isdisjoint(read) and self.inliner.inlinable(op) is not None:
                return True  # or perhaps not: what that call hides is looked at when it is inlined
            elif op.name.startswith(_SCF):
                pending.extendleft(reversed([inner for block in blocks_of(op) for inner in operations(block)]))
        return False


class _Planner:
    """The work on one function."""

    def __init__(self, lifting: Lifting, function: func.FuncOp, inputs: int):
        self.lifting, self.function = lifting, function
        self.block: ir.Block = function.regions[0].blocks[0]
        arguments: list[ir.Value] = list(self.block.arguments)
        self.inputs = arguments[:inputs]
        self.result = LiftPlan(arguments[inputs:], derived=set(arguments[inputs:]))
        self.liftable = set(self.result.weights)
        self.symbols = bound_symbols(w.type for w in self.result.weights)
        self.bound_before = bound_symbols(a.type for a in arguments)
        self.runtime_symbols = self._mentioned(self.inputs)
        self.cast_symbols: set[str] = set()
        self.needed: set[ir.Value] = set()
        self.needed_symbols: set[str] = set()
        self.taken: set[str] | None = None

    def plan(self) -> LiftPlan:
        self._visit()
        self._choose()
        self._keep_symbols()
        return self.result

    def _visit(self) -> None:
        """Goes through all ops, also those in regions that stay, in program order."""
        pending = deque((op, False) for op in operations(self.block))
        while pending:
            op, nested = pending.popleft()
            if self._lift(op, nested):
                continue
            callee = self._hiding(op)
            if callee is not None:
                self.result.inlined.add(callee_of(op))
                body = self.lifting.inliner.inline(op, callee, self._taken())
                pending.extendleft((inner, nested) for inner in reversed(body))
                continue
            inner = self._stay(op)
            pending.extendleft((op, True) for op in reversed(inner))

    def _lift(self, op: ir.Operation, nested: bool) -> bool:
        read = free_values(op)
        if not self.liftable.issuperset(read) or not self.lifting.is_movable(op):
            return False
        if nested and not self.lifting.purity.is_speculatable(op):
            return False
        if not self._knows_symbols(op):
            return False
        self.liftable.update(op.results)
        if not self.result.derived.isdisjoint(read):
            self.result.derived.update(op.results)
        self.result.ops.append(op)
        return True

    def _knows_symbols(self, op: ir.Operation) -> bool:
        unknown = self.lifting.uses.of_op(op) - self.symbols
        if not unknown:
            return True
        if op.name != MatchCast.OPERATION_NAME or not unknown.isdisjoint(self.runtime_symbols):
            return False
        self.symbols |= bound_symbols([*(w.type for w in self.result.weights), op.results[0].type])
        return unknown <= self.symbols

    def _hiding(self, op: ir.Operation) -> func.FuncOp | None:
        """The callee of a call that stays as a whole, when inlining it brings weight math to light."""
        if op.name != "func.call" or self.result.derived.isdisjoint(op.operands):
            return None
        callee = self.lifting.inliner.inlinable(op)
        kinds = [(v in self.liftable) + (v in self.result.derived) for v in op.operands]
        return callee if callee is not None and self.lifting.reveals(op, callee, kinds) else None

    def _stay(self, op: ir.Operation) -> list[ir.Operation]:
        """Notes what a run-time op needs; returns the ops inside of it that are to be visited on their own."""
        if op.name in DEFINING_OPS:
            self.cast_symbols |= self._mentioned(op.results) - self.bound_before
            self.runtime_symbols |= self.cast_symbols
        if not op.name.startswith(_SCF):
            self._need(op)
            return []
        self.needed.update(self.liftable.intersection(op.operands))
        self.needed_symbols |= self._mentioned(op.results)
        self.needed_symbols |= self._mentioned(a for block in blocks_of(op) for a in block.arguments)
        return [inner for block in blocks_of(op) for inner in operations(block)]

    def _need(self, op: ir.Operation) -> None:
        self.needed.update(self.liftable.intersection(free_values(op)))
        self.needed_symbols |= self.lifting.uses.of_op(op)

    def _choose(self) -> None:
        """Settles which values inference takes ready made; a value that is no tensor is computed there again."""
        plan = self.result
        for op in reversed(plan.ops):
            wanted = [r for r in op.results if r in self.needed]
            if not wanted:
                continue
            if wanted[0] in plan.derived and all(is_tensor(r) for r in wanted):
                plan.lifted.extend(reversed(wanted))
            else:
                self._need(op)
        plan.lifted.reverse()
        plan.kept_weights = [w for w in plan.weights if w in self.needed]

    def _keep_symbols(self) -> None:
        """Where only a lifted value defined a symbol that inference mentions, some weight that defines it is kept as well."""
        plan = self.result
        kept = [v.type for v in (*self.inputs, *plan.kept_weights, *plan.lifted)]
        missing = self.needed_symbols - bound_symbols(kept) - self.cast_symbols
        if not missing:
            return
        missing = self._keep_defining(plan.weights, plan.kept_weights, missing)
        self._keep_defining([r for op in plan.ops for r in op.results if r in plan.derived], plan.lifted, missing)
        order = {w: i for i, w in enumerate(plan.weights)}
        plan.kept_weights.sort(key=order.__getitem__)

    def _keep_defining(self, values: Iterable[ir.Value], kept: list[ir.Value], missing: set[str]) -> set[str]:
        """Keeps the first values that define missing symbols; returns the symbols still missing."""
        for value in values:
            defines = bound_symbols([value.type]) & missing
            if defines:
                kept.append(value)
                missing = missing - defines
        return missing

    def _mentioned(self, values: Iterable[ir.Value]) -> set[str]:
        return set().union(*(self.lifting.uses.of_type(v.type) for v in values))

    def _taken(self) -> set[str]:
        if self.taken is None:
            self.taken = defined_symbols(self.function, self.lifting.uses)
        return self.taken
