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
before gets its transform function extended. See :mod:`.lift_analysis` for what can be lifted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..bindings import func, ir
from ..call_graph import CallGraph
from ..errors import RelaxError
from ..functions import name_of, transform_targets, update_type
from ..pass_manager import Pass
from ..signature import argument_attributes, named, set_argument_attributes, tensor_name, weight_names, with_name
from ..symbol_uses import SymbolUses
from ..traversal import erase_unused, free_values
from .entries import (
    check_not_called,
    entries_with_weights,
    erase_unreferenced,
    separate_called,
    transforms_by_target,
    unused_name,
)
from .lift_analysis import Lifting, LiftPlan
from .transform_function import TransformFunction

__all__ = ["LiftTransformParams"]


@dataclass(frozen=True)
class LiftTransformParams(Pass):
    """Moves computations on weights alone into a transform function.

    Attributes:
        shared: one transform function, ``@transform_params``, for all functions that have none yet. Weights of one name are
            one weight; what several functions compute alike is prepared once.
        functions: names of the functions to lift from; all public ones with ``relax.num_input`` by default.
    """

    name: ClassVar[str] = "relax-lift-transform-params"
    shared: bool = False
    functions: tuple[str, ...] = ()

    def run(self, op: ir.Operation) -> None:
        entries = [_Entry(*found) for found in entries_with_weights(op, self.functions)]
        transforms = transforms_by_target(op)
        separate_called(op, [e.function for e in entries if name_of(e.function) not in transforms])
        lifting = Lifting(CallGraph(op), SymbolUses())
        for group in self._groups(entries, transforms):
            _Lift(op, group, transforms.get(name_of(group[0].function)), lifting).run(self.shared)
        erase_unreferenced(op, {name for e in entries for name in e.inlined})

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
    """A function to lift from, and what planning found."""

    def __init__(self, function: func.FuncOp, inputs: int):
        self.function, self.inputs = function, inputs
        self.inlined: set[str] = set()
        self.names = weight_names(function, inputs)

    def plan(self, lifting: Lifting) -> LiftPlan:
        plan = lifting.plan(self.function, self.inputs)
        self.inlined = plan.inlined
        return plan


class _Lift:
    """Lifting from the functions of one group into their transform function."""

    def __init__(self, module: ir.Operation, entries: list[_Entry], transform: func.FuncOp | None, lifting: Lifting):
        self.module, self.entries, self.old, self.purity = module, entries, transform, lifting.purity
        self.plans = [entry.plan(lifting) for entry in entries]

    def run(self, shared: bool) -> None:
        if self.old is not None and not any(p.lifted or p.kept_weights != p.weights for p in self.plans):
            return
        transform = self._open(shared)
        for entry in self.entries:
            given = [tensor_name(a) for a in argument_attributes(entry.function)[: entry.inputs]]
            transform.reserve(n for n in given if n is not None)
        outputs: dict[str, ir.Value] = self._others(transform)
        for entry, plan in zip(self.entries, self.plans, strict=True):
            outputs |= _rewrite(entry, plan, transform)
        transform.finish(outputs, self._targets(), self.purity)

    def _open(self, shared: bool) -> TransformFunction:
        first = self.entries[0].function
        if self.old is None:
            name = "transform_params" if shared else f"{name_of(first)}_transform_params"
            return TransformFunction.create(first, unused_name(self.module, name), self._weights(), self._weight_attributes())
        check_not_called(self.module, [self.old, *(e.function for e in self.entries)])
        return TransformFunction.reopen(self.old, list(dict.fromkeys(n for e in self.entries for n in e.names)))

    def _weights(self) -> dict[str, ir.Value]:
        """All weights of the group by name. Raises RelaxError when two of one name differ in type."""
        found: dict[str, ir.Value] = {}
        for entry, plan in zip(self.entries, self.plans, strict=True):
            for name, weight in zip(entry.names, plan.weights, strict=True):
                other = found.setdefault(name, weight)
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

    def _others(self, transform: TransformFunction) -> dict[str, ir.Value]:
        """What a shared transform function returns for functions that are not lifted from now."""
        own = {name_of(e.function) for e in self.entries}
        if self.old is None or own.issuperset(transform_targets(self.old)):
            return {}
        return dict(transform.prepared)


def _rewrite(entry: _Entry, plan: LiftPlan, transform: TransformFunction) -> dict[str, ir.Value]:
    """Makes inference take prepared weights; returns them by name as values of the transform function."""
    names = dict(zip(plan.weights, entry.names, strict=True))
    mapping = {w: transform.prepared[n] for w, n in names.items()}
    transform.add(_live(plan), mapping)
    outputs = {names[w]: mapping[w] for w in plan.kept_weights}
    arguments: dict[str, ir.Value] = {names[w]: w for w in plan.kept_weights}
    block = entry.function.regions[0].blocks[0]
    for value in plan.lifted:
        name = transform.output_name(mapping[value])
        if name not in arguments:
            arguments[name] = block.add_argument(value.type, ir.Location.name(name, childLoc=value.location))
            outputs[name] = mapping[value]
        value.replace_all_uses_with(arguments[name])
    erase_unused(plan.ops)
    _update_arguments(entry, plan, list(outputs))
    return outputs


def _update_arguments(entry: _Entry, plan: LiftPlan, names: list[str]) -> None:
    """Drops the weights that inference reads no more; those it reads now have these names."""
    kept = set(plan.kept_weights)
    is_kept = [True] * entry.inputs + [w in kept for w in plan.weights]
    attributes = [a for a, keep in zip(argument_attributes(entry.function), is_kept, strict=True) if keep]
    block = entry.function.regions[0].blocks[0]
    for position in reversed([i for i, keep in enumerate(is_kept) if not keep]):
        block.erase_argument(position)
    update_type(entry.function)
    attributes += [named(None)] * (entry.inputs + len(names) - len(attributes))
    weights = [with_name(a, n) for a, n in zip(attributes[entry.inputs :], names, strict=True)]
    set_argument_attributes(entry.function, [*attributes[: entry.inputs], *weights])


def _live(plan: LiftPlan) -> list[ir.Operation]:
    """The ops that lifted values come from, in program order."""
    wanted, live = set(plan.lifted), []
    for op in reversed(plan.ops):
        if any(r in wanted for r in op.results):
            wanted.update(free_values(op))
            live.append(op)
    return live[::-1]
