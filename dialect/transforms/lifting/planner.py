"""A function in, what of it is lifted out; decides, and changes nothing but calls that hide weight math.

What can be lifted is what is known ahead (:mod:`...analysis.weight_flow`): ops inside of ``scf`` regions too, or a whole
``scf.if`` or loop.
Of the liftable values that inference reads, :mod:`.policy` says which are worth it; where one is not, inference computes
it, and what it is computed from is judged in its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...analysis.symbol_uses import DEFINING_OPS, SymbolUses, bound_symbols, definers
from ...analysis.weight_flow import FlowRules, Obstacle, WeightFlow
from ...bindings import func, ir
from ...call_graph import CallGraph, callee_of
from ...errors import RelaxError
from ...functions import full_argument_names, name_of
from ...lift_override import LIFT, NEVER
from ...reports.lifting import NotLifted, Reason
from ...struct_info import TensorInfo, is_tensor
from ...traversal import blocks_of, free_values, is_unused, nested_operations, operations
from ..cleanup.inlining import CallInliner, defined_symbols
from .plan import LiftPlan, Refusal
from .policy import Policy

__all__ = ["LiftPlanner", "Lifting"]

_SCF = "scf."

_REASONS = {
    Obstacle.RUN_TIME_VALUE: Reason.RUN_TIME_VALUE,
    Obstacle.NOT_PURE: Reason.NOT_PURE,
    Obstacle.OVERRIDE: Reason.OVERRIDE,
    Obstacle.BARRIER: Reason.BARRIER,
    Obstacle.SPECULATION: Reason.SPECULATION,
    Obstacle.RUN_TIME_SYMBOL: Reason.RUN_TIME_SYMBOL,
}
_DETAILS = {
    Obstacle.NOT_PURE: "may have effects besides its results",
    Obstacle.OVERRIDE: f'{LIFT} = "{NEVER}"',
    Obstacle.SPECULATION: "in a branch or loop that may not run",
}


class Lifting:
    """Decides for the functions of one module; ``rules`` say what can be computed ahead."""

    def __init__(self, graph: CallGraph, uses: SymbolUses):
        self.inliner = CallInliner(graph, uses)
        self.rules = FlowRules(graph, uses)
        self._reveals: dict[tuple[str, tuple[int, ...]], bool] = {}
        self._own_symbols: dict[str, bool] = {}

    def inlinable(self, call: ir.Operation) -> func.FuncOp | None:
        """The function called, when its body can take the call's place whatever symbols the caller knows."""
        callee = self.inliner.inlinable(call)
        return None if callee is None or self._calls_by_own_symbols(callee) else callee

    def _calls_by_own_symbols(self, function: func.FuncOp) -> bool:
        """Whether a call mentions symbols that the function around it defines: inlining may rename them, callees do not."""
        name = name_of(function)
        if name not in self._own_symbols:
            self._own_symbols[name] = bool(self.inliner.symbols_of_calls(function))
        return self._own_symbols[name]

    def reveals(self, call: ir.Operation, callee: func.FuncOp, kinds: Iterable[int]) -> bool:
        """Whether the body of the called function holds weight math, as far as its ops tell: symbols are the caller's to know.

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
            if known.issuperset(read) and self.rules.is_movable(op):
                if not derived.isdisjoint(read):
                    return True
                known.update(op.results)
            elif op.name == "func.call" and not derived.isdisjoint(read) and self.inlinable(op) is not None:
                return True  # or perhaps not: what that call hides is looked at when it is inlined
            elif op.name.startswith(_SCF):
                pending.extendleft(reversed([inner for block in blocks_of(op) for inner in operations(block)]))
        return False


class LiftPlanner:
    """Goes through one function when it is made; then plans, under what the policy says at that time.

    Attributes:
        inlined: names of functions of which calls were inlined.
        not_lifted: ops that read weights and cannot be lifted; kept only where ``notes`` was given.
    """

    def __init__(self, lifting: Lifting, policy: Policy, function: func.FuncOp, inputs: int, notes: bool = False):
        self.lifting, self.policy, self.function, self.notes = lifting, policy, function, notes
        self.inlined: set[str] = set()
        self.not_lifted: list[NotLifted] = []
        self._block: ir.Block = function.regions[0].blocks[0]
        arguments: list[ir.Value] = list(self._block.arguments)
        self._inputs, self._weights = arguments[:inputs], arguments[inputs:]
        self._input_names = dict(zip(self._inputs, full_argument_names(function)[:inputs], strict=True))
        self._ops: list[ir.Operation] = []
        self._flow = WeightFlow(lifting.rules, self._inputs, self._weights)
        self._are_static = all(map(_is_static, self._weights))
        self._bound_before = bound_symbols(a.type for a in arguments)
        self._needs = _Needs()
        self._taken: set[str] | None = None
        self._casts: set[ir.Value] = set()
        self._visit()

    def plan(self) -> LiftPlan:
        """What to lift. Calls that hide weight math are inlined already."""
        needs = self._needs.copy()
        while True:
            plan = LiftPlan(self._weights, self._flow, self._ops)
            self._choose(plan, needs)
            casts = self._defining_casts(needs)
            if not casts:
                break
            self._casts.update(casts)
            self._needs.values.update(casts)
            needs = self._needs.copy()
        plan.casts = set(self._casts)
        self._keep_symbols(plan, needs)
        return plan

    def _defining_casts(self, needs: _Needs) -> list[ir.Value]:
        """Casts that inference has to do as they name dimensions: of weights of a known size, no prepared one does."""
        if not self._are_static:
            return []
        missing = needs.symbols - self._bound_before  # another cast may come too late, or be in a branch
        return [op.results[0] for op in self._ops if op.name in DEFINING_OPS
                and op.results[0] not in needs.values and not missing.isdisjoint(self._flow.defines(op))]  # fmt: skip

    def stays(self, plan: LiftPlan) -> list[NotLifted]:
        """All ops that read weights and are not lifted: those that cannot be, then those that are declined."""
        declined = [_note(op, *refusal, self._sources(op)) for op, refusal in reversed(plan.declined)]
        return self.not_lifted + declined

    def _visit(self) -> None:
        """Goes through all ops, also those in regions that stay, in program order."""
        pending = deque((op, False, False) for op in operations(self._block))
        while pending:
            op, nested, is_swept = pending.popleft()
            if len(op.regions) and not is_swept:
                self._erase_dead(op)
            refusal = self._obstacle(op, nested)
            if refusal is None:
                self._lift(op)
                continue
            callee = self._hiding(op)
            if callee is not None:
                self.inlined.add(callee_of(op))
                self.policy.close(op)
                body = self.lifting.inliner.inline(op, callee, self._taken_symbols())
                pending.extendleft((inner, nested, False) for inner in reversed(body))
                continue
            if self.notes and len(op.results):
                self._note_obstacle(op, refusal)
            inner = self._stay(op)
            pending.extendleft((op, True, True) for op in reversed(inner))

    def _erase_dead(self, op: ir.Operation) -> None:
        """Erases what nothing reads at any depth of a branch or loop: it would count as read by the whole, and be gone then."""
        for inner in reversed(list(nested_operations(op))):
            is_dead = len(inner.results) > 0 and is_unused(inner) and inner.name not in DEFINING_OPS
            if is_dead and self.lifting.rules.purity.is_pure(inner):
                self.policy.close(inner)
                inner.erase()

    def _obstacle(self, op: ir.Operation, nested: bool) -> Refusal | None:
        """Why an op cannot be lifted, None when it can."""
        obstacle = self._flow.obstacle(op, nested)
        return self.policy.why_opened(op) if obstacle is None else (_REASONS[obstacle], self._detail(op, obstacle))

    def _detail(self, op: ir.Operation, obstacle: Obstacle) -> str:
        if obstacle == Obstacle.RUN_TIME_VALUE:
            if not self.notes:
                return ""
            read = op.operands if not self._flow.all_ahead(op.operands) else free_values(op)
            return self._named(next(v for v in read if not self._flow.is_ahead(v)))
        if obstacle == Obstacle.RUN_TIME_SYMBOL:
            return ", ".join(sorted(self._flow.unknown_symbols(op)))
        if obstacle == Obstacle.BARRIER:
            return "relax.stop_lift_params" if not len(op.regions) and op.name != "func.call" else "one is inside"
        return _DETAILS[obstacle]

    def _note_obstacle(self, op: ir.Operation, refusal: Refusal) -> None:
        """Of a branch or loop that is gone through, what is inside is noted on its own."""
        is_open = op.name.startswith(_SCF) and refusal[0] == Reason.RUN_TIME_VALUE
        if self._flow.any_from_weights(op.operands if is_open else free_values(op)):
            self.not_lifted.append(_note(op, *refusal, self._sources(op)))

    def _named(self, value: ir.Value) -> str:
        """What people call a run-time value: the name of an input, else the op it comes from."""
        if value in self._input_names:
            return self._input_names[value]
        owner = value.owner
        return f"an argument of {owner.owner.operation.name}" if isinstance(owner, ir.Block) else owner.operation.name

    def _lift(self, op: ir.Operation) -> None:
        self._flow.enter_ahead(op)
        self._ops.append(op)
        self.policy.add(op)

    def _sources(self, op: ir.Operation) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for v in free_values(op) for name in self.policy.costs.sources(v)))

    def _hiding(self, op: ir.Operation) -> func.FuncOp | None:
        """The callee of a call that stays as a whole, when inlining it brings weight math to light."""
        if op.name != "func.call" or not self._flow.any_from_weights(op.operands):
            return None
        callee = self.lifting.inlinable(op)
        kinds = [self._flow.is_ahead(v) + self._flow.comes_from_weights(v) for v in op.operands]
        return callee if callee is not None and self.lifting.reveals(op, callee, kinds) else None

    def _stay(self, op: ir.Operation) -> list[ir.Operation]:
        """Notes what a run-time op needs; returns the ops inside of it that are to be visited on their own."""
        if op.name in DEFINING_OPS:
            self._needs.cast_symbols |= self._flow.defines(op)
        inner = self._flow.stay(op)
        if not op.name.startswith(_SCF):
            self._need(op, self._needs)
            return []
        self._needs.values.update(self._flow.ahead_of(op.operands))
        self._needs.symbols |= self._mentioned(op.results)
        self._needs.symbols |= self._mentioned(a for block in blocks_of(op) for a in block.arguments)
        return inner

    def _need(self, op: ir.Operation, needs: _Needs) -> None:
        needs.values.update(self._flow.ahead_of(free_values(op)))
        needs.symbols |= self.lifting.rules.uses.of_op(op)

    def _choose(self, plan: LiftPlan, needs: _Needs) -> None:
        """Settles which values inference takes ready made; a value that is no tensor is computed there again."""
        for op in reversed(plan.ops):
            wanted = [r for r in op.results if r in needs.values]
            if not wanted:
                continue
            derived = plan.flow.comes_from_weights(wanted[0])
            refusal = self._refusal(op, wanted) if derived else None
            if derived and refusal is None:
                plan.lifted.extend(reversed(wanted))
                continue
            if refusal is not None:
                plan.declined.append((op, refusal))
            if op.name in DEFINING_OPS:
                needs.cast_symbols |= self._flow.defines(op)
            self._need(op, needs)
        plan.lifted.reverse()
        plan.kept_weights = [w for w in plan.weights if w in needs.values]

    def _refusal(self, op: ir.Operation, wanted: list[ir.Value]) -> Refusal | None:
        other = next((r for r in wanted if not is_tensor(r)), None)
        if other is not None:
            return Reason.NOT_TENSOR, str(other.type)
        unknown = next((r for r in wanted if not _is_static(r)), None) if self._are_static else None
        return self.policy.refusal(op, wanted) if unknown is None else (Reason.UNKNOWN_SHAPE, str(unknown.type))

    def _keep_symbols(self, plan: LiftPlan, needs: _Needs) -> None:
        """Where only a lifted value defined a symbol that inference mentions, some weight that defines it is kept as well."""
        kept = [v.type for v in (*self._inputs, *plan.kept_weights, *plan.lifted)]
        known = bound_symbols(kept)
        missing = needs.symbols - known - needs.cast_symbols
        if not missing:
            return
        missing = _keep_defining(plan.weights, plan.kept_weights, missing, known)
        _keep_defining(
            [r for op in plan.ops for r in op.results if plan.flow.comes_from_weights(r)], plan.lifted, missing, known
        )
        order = {w: i for i, w in enumerate(plan.weights)}
        plan.kept_weights.sort(key=order.__getitem__)

    def _mentioned(self, values: Iterable[ir.Value]) -> set[str]:
        return set().union(*(self.lifting.rules.uses.of_type(v.type) for v in values))

    def _taken_symbols(self) -> set[str]:
        if self._taken is None:
            self._taken = defined_symbols(self.function, self.lifting.rules.uses)
        return self._taken


@dataclass
class _Needs:
    """What inference reads or mentions: values that could be lifted, symbols, and the symbols that its own casts define."""

    values: set[ir.Value] = field(default_factory=set)
    symbols: set[str] = field(default_factory=set)
    cast_symbols: set[str] = field(default_factory=set)

    def copy(self) -> _Needs:
        return _Needs(set(self.values), set(self.symbols), set(self.cast_symbols))


def _is_static(value: ir.Value) -> bool:
    """Whether the type of a tensor says how large it is: of weights of a known size, what a cast hides of it does not count."""
    return is_tensor(value) and all(isinstance(d, int) for d in TensorInfo.of(value).shape)


def _keep_defining(values: list[ir.Value], kept: list[ir.Value], missing: set[str], known: set[str]) -> set[str]:
    """Keeps the first values that define missing symbols, and what that takes besides; returns the symbols still missing."""
    found = definers(values, known)
    needed = {v for symbol in missing & found.keys() for v in found[symbol]}.difference(kept)
    kept.extend(v for v in values if v in needed)
    return missing - found.keys()


def _note(op: ir.Operation, reason: Reason, detail: str, sources: tuple[str, ...]) -> NotLifted:
    return NotLifted(op.name, RelaxError("", op.location).location or "", sources, str(reason), detail)
