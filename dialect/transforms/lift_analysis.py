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
from ..call_graph import callee_of
from ..ops import MatchCast, StopLiftParams
from ..purity import Purity
from ..struct_info import is_tensor
from ..symbol_uses import SymbolUses, bound_symbols
from ..traversal import blocks_of, free_values, operations
from .inlining import CallInliner, defined_symbols

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

    def __init__(self, inliner: CallInliner, purity: Purity, uses: SymbolUses):
        self.inliner = inliner
        self.purity = purity
        self.uses = uses
        self._reveals: dict[tuple[str, tuple[bool, ...]], bool] = {}

    def plan(self, function: func.FuncOp, inputs: int) -> LiftPlan:
        """Decides what to lift out of a function with that many run-time inputs. Calls that hide weight math are inlined."""
        return _Planner(self, function, inputs).plan()

    def reveals(self, call: ir.Operation, callee: func.FuncOp, liftable: Iterable[bool]) -> bool:
        """Whether the body of the called function holds weight math, given which operands are liftable."""
        key = (callee_of(call), tuple(liftable))
        if key not in self._reveals:
            self._reveals[key] = False
            self._reveals[key] = self._body_reveals(callee, key[1])
        return self._reveals[key]

    def _body_reveals(self, callee: func.FuncOp, liftable: tuple[bool, ...]) -> bool:
        entry = callee.regions[0].blocks[0]
        known = {a for a, yes in zip(entry.arguments, liftable, strict=True) if yes}
        return self._block_reveals(entry, known, set(known))

    def _block_reveals(self, block: ir.Block, known: set[ir.Value], derived: set[ir.Value]) -> bool:
        return any(self._op_reveals(op, known, derived) for op in operations(block) if len(op.results))

    def _op_reveals(self, op: ir.Operation, known: set[ir.Value], derived: set[ir.Value]) -> bool:
        """Whether an op is weight math or holds some. What it computes from constants is entered in ``known``."""
        read = free_values(op)
        if known.issuperset(read) and op.name != StopLiftParams.OPERATION_NAME and self.purity.is_pure(op):
            known.update(op.results)
            return not derived.isdisjoint(read)
        if op.name == "func.call":
            callee = self.inliner.inlinable(op)
            return callee is not None and self.reveals(op, callee, [v in known for v in op.operands])
        return op.name.startswith(_SCF) and any(self._block_reveals(b, known, derived) for b in blocks_of(op))


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
        self._visit(self.block, nested=False)
        self._choose()
        self._keep_symbols()
        return self.result

    def _visit(self, block: ir.Block, nested: bool) -> None:
        pending = deque(operations(block))
        while pending:
            op = pending.popleft()
            if self._lift(op, nested):
                continue
            callee = self._hiding(op)
            if callee is None:
                self._stay(op)
                continue
            self.result.inlined.add(callee_of(op))
            pending.extendleft(reversed(self.lifting.inliner.inline(op, callee, self._taken())))

    def _lift(self, op: ir.Operation, nested: bool) -> bool:
        if not len(op.results) or op.name == StopLiftParams.OPERATION_NAME:
            return False
        read = free_values(op)
        if not self.liftable.issuperset(read) or not self.lifting.purity.is_pure(op):
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
        if callee is None or not self.lifting.reveals(op, callee, [v in self.liftable for v in op.operands]):
            return None
        return callee

    def _stay(self, op: ir.Operation) -> None:
        if op.name == MatchCast.OPERATION_NAME:
            self.cast_symbols |= self._mentioned(op.results) - self.bound_before
            self.runtime_symbols |= self.cast_symbols
        if not op.name.startswith(_SCF):
            self._need(op)
            return
        self.needed.update(self.liftable.intersection(op.operands))
        self.needed_symbols |= self._mentioned(op.results)
        for block in blocks_of(op):
            self.needed_symbols |= self._mentioned(block.arguments)
            self._visit(block, nested=True)

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
