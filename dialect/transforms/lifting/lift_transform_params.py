"""Moves what depends on weights alone out of inference, into a function that prepares weights once.

Before::

    func.func @main(%x {relax.name = "x"}, %w {relax.name = "q.weight"}, %b {relax.name = "q.bias"})
        attributes {relax.num_input = 1 : i64} {
      %t = "relax.permute_dims"(%w)
      %y = "relax.matmul"(%x, %t)
      %z = "relax.add"(%y, %b)
      return %z
    }

after::

    func.func @main_transform_params(%w {relax.name = "q.weight"}, %b {relax.name = "q.bias"})
        -> ({relax.name = "q.bias"}, {relax.name = "q.weight.permute_dims"})
        attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
      %t = "relax.permute_dims"(%w)
      return %b, %t
    }
    func.func @main(%x {relax.name = "x"}, %b {relax.name = "q.bias"}, %t {relax.name = "q.weight.permute_dims"})
        attributes {relax.num_input = 1 : i64} {
      %y = "relax.matmul"(%x, %t)
      %z = "relax.add"(%y, %b)
      return %z
    }

Inference then takes its inputs, the raw weights it still reads, and the lifted values in program order; its transform
function returns the weights in that order. Weights that nothing needs vanish from both. What comes from constants alone is
computed on both sides. Calls of private functions are inlined where that brings weight math to light. A function lifted
before gets its transform function extended. See :mod:`.planner` for what can be lifted, :mod:`.policy` for what is
worth it, and :mod:`...reports.lifting` for what the pass tells. What they decide a pattern carries out: an op of the plan gives
way to an argument. That its copy computes the argument elsewhere, and that signatures follow, are moves between functions and
no patterns: :mod:`.transform_function`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...analysis.entries import (
    check_not_called,
    entries_with_weights,
    erase_unreferenced,
    prepared_for_others,
    separate_called,
    transforms_by_target,
    unused_name,
)
from ...analysis.symbol_uses import SymbolUses, bound_symbols
from ...bindings import func, ir
from ...call_graph import CallGraph
from ...errors import RelaxError
from ...function_types import argument_attributes, set_argument_attributes, tensor_name, with_name
from ...functions import body_of, full_argument_names, name_of, num_input, transform_targets, update_type
from ...lift_override import LIFT, check_overrides, override_of
from ...op import DefiningOp
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...reports import report
from ...traversal import free_values, operations
from ...tuples import BUNDLED
from ...weights import argument_leaf_names
from .account import Account
from .costs import Costs
from .plan import LiftPlan, Refusal
from .planner import Lifting, LiftPlanner
from .policy import Limits, Policy
from .transform_function import TransformFunction, prepared_values

__all__ = ["LiftTransformParams"]


#: Transposes, casts to narrower types and slices grow by nothing, packing by what fills the last panel: with 32 columns in one,
#: at most 1.24x from 129 columns on, and narrower weights are within the slack. The next thing up is f16 to f32, 2x.
MAX_GROWTH = 1.25
#: Biases, norms, scales and small tables; IREE's hoisting has the same 1 MiB. 1,000 of them are 1 GiB, which the total limits.
GROWTH_SLACK = 1 << 20
#: Room for one transformed copy of each weight beside the raw one.
MAX_TOTAL_GROWTH = 2.0


@dataclass(frozen=True)
class LiftTransformParams(Pass):
    """Moves computations on weights alone into a transform function.

    Attributes:
        shared: one transform function, ``@transform_params``, for all functions that have none yet. Weights of one name are
            one weight; what several functions compute alike is prepared once.
        functions: names of the functions to lift from; all public ones with ``relax.num_input`` by default.
        max_growth: how many times larger than what it comes from a lifted value may be; 0 is no limit.
        growth_slack: bytes of growth that are always allowed, to each value and to all together; 0 is none.
        max_total_growth: how many times larger than raw weights all prepared weights may be; 0 is no limit.

    Sizes that are not known are not limited; two symbolic ones are compared when their ratio is a number.
    ``relax.lift = "always"`` or ``"never"``, on an op or on a weight, overrides the limits.
    """

    name: ClassVar[str] = "relax-lift-transform-params"
    shared: bool = False
    functions: tuple[str, ...] = ()
    max_growth: float = MAX_GROWTH
    growth_slack: int = GROWTH_SLACK
    max_total_growth: float = MAX_TOTAL_GROWTH

    def run(self, op: ir.Operation) -> None:
        limits = Limits.of(self.max_growth, self.growth_slack, self.max_total_growth)
        while self._lift(op, limits):
            pass

    def _lift(self, op: ir.Operation, limits: Limits) -> bool:
        """Lifts; returns whether there may be room for more, as refused values were weighed against others that are gone now.

        Each time that it is true something has left inference, so that it is false in the end.
        """
        entries = [_Entry(*found) for found in entries_with_weights(op, self.functions)]
        transforms = transforms_by_target(op)
        check_overrides(op)
        separate_called(op, [e.function for e in entries if name_of(e.function) not in transforms])
        lifting = Lifting(CallGraph(op), SymbolUses())
        inlined: set[str] = set()
        is_open = False
        for group in self._groups(entries, transforms):
            lift = _Lift(op, group, transforms.get(name_of(group[0].function)), lifting)
            lift.plan(limits)
            lift.run(self.shared)
            inlined |= lift.inlined
            is_open |= lift.policy.weighed_up and any(p.lifted for p in lift.plans)
        erase_unreferenced(op, inlined)
        return is_open

    def _groups(self, entries: Sequence[_Entry], transforms: Mapping[str, func.FuncOp]) -> list[list[_Entry]]:
        """The functions that have, or get, one transform function."""
        groups: dict[str, list[_Entry]] = {}
        for entry in entries:
            name = name_of(entry.function)
            alone = "shared" if self.shared else f"for @{name}"
            key = f"of @{name_of(transforms[name])}" if name in transforms else alone
            groups.setdefault(key, []).append(entry)
        return list(groups.values())


class _Entry:
    """A function to lift from."""

    def __init__(self, function: func.FuncOp, inputs: int):
        self.function, self.inputs = function, inputs
        self.names = full_argument_names(function)[inputs:]
        self.leaves = argument_leaf_names(function)[inputs:]
        given = zip(self.names, argument_attributes(function)[inputs:], strict=True)
        self.bundles = {n: ir.DictAttr.get({BUNDLED: a[BUNDLED]}) for n, a in given if BUNDLED in a}


class _Lift:
    """Lifting from the functions of one group into their transform function.

    Attributes:
        inlined: names of functions of which calls were inlined.
        others: what a shared transform function returns for functions that are not lifted from now.
    """

    def __init__(self, module: ir.Operation, entries: list[_Entry], transform: func.FuncOp | None, lifting: Lifting):
        self.module, self.entries, self.old, self.lifting = module, entries, transform, lifting
        self.inlined: set[str] = set()
        own = [e.function for e in entries]
        self.others = set[str]() if transform is None else prepared_for_others(module, transform, own)
        self.plans: list[LiftPlan] = []
        self.accounts: list[Account] = []

    def plan(self, limits: Limits) -> None:
        """Decides; once more after calls were inlined, or what is too large as a whole opened, as the next run would."""
        policy = Policy(limits, Costs())
        while True:
            policy = self._policy(limits, policy.opened)
            planners = [LiftPlanner(self.lifting, policy, e.function, e.inputs, report.is_collecting()) for e in self.entries]
            self.inlined.update(*(p.inlined for p in planners))
            self.plans = [p.plan() for p in planners]
            while policy.limit_total(self.plans):
                self.plans = [p.plan() for p in planners]
            if any(p.inlined for p in planners):
                policy.opened.clear()  # what was too large as a whole is judged anew: what reads it may be another op now
            elif not policy.open(self.plans):
                break
        self.policy = policy
        if report.is_collecting():
            of_all = zip(self.entries, planners, self.plans, strict=True)
            self.accounts = [Account.of(e.names, policy.costs, planner, plan) for e, planner, plan in of_all]

    def run(self, shared: bool) -> None:
        if self.old is not None and not any(p.lifted or p.kept_weights != p.weights for p in self.plans):
            self._tell(self.old, [[] for _ in self.plans])
            return
        transform = self._open(shared)
        for entry in self.entries:
            given = [tensor_name(a) for a in argument_attributes(entry.function)[: entry.inputs]]
            transform.reserve(n for n in given if n is not None)
        outputs = {name: value for name, value in transform.prepared.items() if name in self.others}
        names: list[list[str]] = []
        for entry, plan in zip(self.entries, self.plans, strict=True):
            prepared, lifted = _rewrite(entry, plan, transform, self.policy)
            outputs |= prepared
            names.append(lifted)
        bundles = {n: a for e in self.entries for n, a in e.bundles.items()}
        transform.finish(outputs, bundles, self._targets(), self.lifting.rules.purity)
        self._tell(transform.function, names)

    def _policy(self, limits: Limits, opened: dict[ir.Value, Refusal]) -> Policy:
        """A policy that knows the transform function and the weights."""
        costs, known = Costs(), dict[str, ir.Value]()
        if self.old is not None:
            known = _enter_transform(self.old, costs)
        fixed = [value for name, value in known.items() if name in self.others]
        policy = Policy(limits, costs, fixed, opened)
        for entry in self.entries:
            weights = list(entry.function.regions[0].blocks[0].arguments)[entry.inputs :]
            attributes = argument_attributes(entry.function)[entry.inputs :]
            for name, weight, given in zip(entry.names, weights, attributes, strict=True):
                policy.add_weight(weight, override_of(given))
                if name in known:
                    costs.alias(weight, known[name])
                else:
                    costs.add_weight(weight, name)
        return policy

    def _tell(self, transform: func.FuncOp, lifted: list[list[str]]) -> None:
        for entry, account, names in zip(self.entries, self.accounts, lifted, strict=False):
            report.add(account.section(name_of(entry.function), name_of(transform), names))

    def _open(self, shared: bool) -> TransformFunction:
        first = self.entries[0].function
        if self.old is None:
            name = "transform_params" if shared else f"{name_of(first)}_transform_params"
            return TransformFunction.create(first, unused_name(self.module, name), self._weights(), self._weight_attributes())
        check_not_called(self.module, [self.old, *(e.function for e in self.entries)])
        returned = prepared_values(self.old) if body_of(self.old) is not None else {}
        wanted = [[n] if n in returned else own for e in self.entries for n, own in zip(e.names, e.leaves, strict=True)]
        return TransformFunction.reopen(self.old, list(dict.fromkeys(n for own in wanted for n in own)))

    def _weights(self) -> dict[str, ir.Value]:
        """All weights of the group by name. Raises RelaxError when two of one name differ in type, or are tuples of others."""
        found: dict[str, ir.Value] = {}
        leaves: dict[str, list[str]] = {}
        for entry, plan in zip(self.entries, self.plans, strict=True):
            for name, weight, own in zip(entry.names, plan.weights, entry.leaves, strict=True):
                other = found.setdefault(name, weight)
                if leaves.setdefault(name, own) != own:
                    texts = " and ".join(", ".join(names) for names in (leaves[name], own))
                    message = f"'func.func' op expected one tuple for the shared weights '{name}', got those of {texts}"
                    raise RelaxError(message, entry.function.location)
                if other.type != weight.type:
                    types = f"'{other.type}' and '{weight.type}'"
                    message = f"'func.func' op expected one type for the shared weight '{name}', got {types}"
                    raise RelaxError(message, entry.function.location)
        return found

    def _weight_attributes(self) -> list[ir.DictAttr]:
        found: dict[str, ir.DictAttr] = {}
        for entry in self.entries:
            given = argument_attributes(entry.function)[entry.inputs :]
            found = dict(zip(entry.names, given, strict=True)) | found
        return [with_name(found[name], name) for name in self._weights()]

    def _targets(self) -> list[str]:
        own = [name_of(e.function) for e in self.entries]
        return list(dict.fromkeys([*(transform_targets(self.old) if self.old is not None else []), *own]))


def _enter_transform(function: func.FuncOp, costs: Costs) -> dict[str, ir.Value]:
    """Enters a transform function; returns the prepared weights by name."""
    block = body_of(function)
    if block is None or len(function.regions[0].blocks) != 1:
        return {}
    inputs = num_input(function) or 0
    for weight, name in zip(list(block.arguments)[inputs:], full_argument_names(function)[inputs:], strict=True):
        costs.add_weight(weight, name)
    for op in operations(block):
        if len(op.results):
            costs.add(op)
    return prepared_values(function)


def _rewrite(
    entry: _Entry, plan: LiftPlan, transform: TransformFunction, policy: Policy
) -> tuple[dict[str, ir.Value], list[str]]:
    """Makes inference take prepared weights.

    Returns:
        The prepared weights by name, as values of the transform function, and the name of each lifted value.
    """
    names = dict(zip(plan.weights, entry.names, strict=True))
    mapping = {w: transform.weight(n, w.type, own) for (w, n), own in zip(names.items(), entry.leaves, strict=True)}
    transform.add(_live(plan), mapping)
    outputs = {names[w]: mapping[w] for w in plan.kept_weights}
    arguments: dict[str, ir.Value] = {names[w]: w for w in plan.kept_weights}
    block = entry.function.regions[0].blocks[0]
    lifted = [transform.output_name(mapping[value]) for value in plan.lifted]
    added: list[ir.DictAttr] = []
    for value, name in zip(plan.lifted, lifted, strict=True):
        if name not in arguments:
            arguments[name] = block.add_argument(value.type, ir.Location.name(name, childLoc=value.location))
            outputs[name] = mapping[value]
            said = policy.override(value)
            added.append(ir.DictAttr.get({} if said is None else {LIFT: ir.StringAttr.get(said)}))
    prepared = {value: arguments[name] for value, name in zip(plan.lifted, lifted, strict=True)}
    walk(entry.function, _Moves(plan, prepared).patterns())
    _update_arguments(entry, plan, list(outputs), added)
    return outputs, lifted


class _Moves:
    """What leaves inference: what the plan lifts, which is an argument now, and what only that was computed from."""

    def __init__(self, plan: LiftPlan, arguments: Mapping[ir.Value, ir.Value]):
        self._kinds = dict.fromkeys(op.name for op in plan.ops)
        self._movable = {result for op in plan.ops for result in op.results}
        self._casts, self._arguments = plan.casts, arguments

    def patterns(self) -> Patterns:
        return [(name, self._read_prepared) for name in self._kinds]

    def _read_prepared(self, op: ir.OpView, rewriter: Rewriter) -> bool:
        """Arguments take the place of lifted results; a cast that defines symbols for inference stays for that."""
        if not len(op.results) or op.results[0] not in self._movable:
            return False
        for result in op.results:
            if result in self._arguments:
                result.replace_all_uses_with(self._arguments[result])
        if self._casts.isdisjoint(op.results):
            rewriter.discard(op)
        return True


def _update_arguments(entry: _Entry, plan: LiftPlan, names: list[str], added: list[ir.DictAttr]) -> None:
    """Drops the weights that inference reads no more; those it reads now have these names, and new ones these attributes."""
    kept = set(plan.kept_weights)
    is_kept = [True] * entry.inputs + [w in kept for w in plan.weights]
    attributes = [a for a, keep in zip(argument_attributes(entry.function), is_kept, strict=True) if keep]
    block = entry.function.regions[0].blocks[0]
    for position in reversed([i for i, keep in enumerate(is_kept) if not keep]):
        block.erase_argument(position)
    update_type(entry.function)
    attributes += added
    weights = [with_name(a, n) for a, n in zip(attributes[entry.inputs :], names, strict=True)]
    set_argument_attributes(entry.function, [*attributes[: entry.inputs], *weights])


def _live(plan: LiftPlan) -> list[ir.Operation]:
    """The ops that lifted values come from, in program order, and those that define symbols that these mention."""
    uses, bound = SymbolUses(), bound_symbols(w.type for w in plan.weights)
    wanted, mentioned, live = set(plan.lifted), set[str](), list[ir.Operation]()
    for op in reversed(plan.ops):
        symbols = uses.of_op(op) - bound
        defines = isinstance(op.opview, DefiningOp) and not mentioned.isdisjoint(symbols)
        if defines or any(r in wanted for r in op.results):
            wanted.update(free_values(op))
            mentioned |= symbols
            live.append(op)
    return live[::-1]
