"""Entry functions and their transform functions: which belong together, and what to do about calls of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..bindings import func, ir
from ..call_graph import CallGraph, callee_of, calls_in, referenced_symbols, unreferenced_private_functions
from ..errors import RelaxError
from ..function_types import argument_attributes, set_argument_attributes, without
from ..functions import (
    KEYWORD,
    NUM_INPUT,
    STATE,
    TRANSFORM_FOR,
    body_of,
    full_argument_names,
    functions,
    is_private,
    name_of,
    num_input,
    transform_targets,
)
from ..lift_override import LIFT
from ..transform_rules import may_read_lazily
from ..weights import full_result_names, result_leaf_names, weight_types

__all__ = [
    "check_not_called", "entries_with_weights", "erase_unreferenced", "prepared_for_others", "rewritten_functions",
    "separate_called", "transforms_by_target", "unused_name",
]  # fmt: skip


def entries_with_weights(module: ir.Operation, wanted: Sequence[str] = ()) -> list[tuple[func.FuncOp, int]]:
    """Public functions that take weights, with their number of inputs; transform functions are none.

    Args:
        module: the module.
        wanted: names of those to return; empty is all of them.

    Raises:
        RelaxError: a wanted function does not exist or has no ``relax.num_input``; that attribute, of any function, is bad;
            a function with weights has several blocks.
    """
    known = {name_of(f): f for f in functions(module)}
    for name in wanted:
        if name not in known or NUM_INPUT not in known[name].attributes:
            raise RelaxError(f"expected functions with {NUM_INPUT} for option 'functions', got @{name}")
    found: list[tuple[func.FuncOp, int]] = []
    for name, function in known.items():
        inputs = num_input(function)
        skipped = is_private(function) or transform_targets(function) or (wanted and name not in wanted)
        if inputs is not None and not skipped and _has_weights(function, inputs):
            found.append((function, inputs))
    return found


def rewritten_functions(module: ir.Operation, wanted: Sequence[str] = ()) -> list[tuple[func.FuncOp, int]]:
    """Functions whose bodies are rewritten, with their number of inputs: public ones that prepare no weights, or those named.

    Where ``relax.num_input`` is missing all arguments are inputs.

    Raises:
        RelaxError: a wanted function does not exist or has no body; ``relax.num_input`` of any function is bad; a function
            with weights has several blocks. One that has none, and several blocks, is left out.
    """
    known = {name_of(f): f for f in functions(module)}
    for name in wanted:
        if name not in known or body_of(known[name]) is None:
            raise RelaxError(f"expected functions with a body for option 'functions', got @{name}")
    found: list[tuple[func.FuncOp, int]] = []
    for name, function in known.items():
        given, block = num_input(function), body_of(function)
        chosen = name in wanted if wanted else not is_private(function) and not transform_targets(function)
        if block is None or not chosen:
            continue
        inputs = len(list(block.arguments)) if given is None else given
        if _has_weights(function, inputs) or len(list(function.regions[0].blocks)) == 1:
            found.append((function, inputs))
    return found


def transforms_by_target(module: ir.Operation) -> dict[str, func.FuncOp]:
    """The transform function of each function that has one."""
    return {target: function for function in functions(module) for target in transform_targets(function)}


def prepared_for_others(module: ir.Operation, transform: func.FuncOp, entries: Iterable[func.FuncOp]) -> set[str]:
    """Names of the results of a transform function that functions other than these entries need; of a lazy one, all."""
    table = {name_of(f): f for f in functions(module)}
    own = {name_of(f) for f in entries}
    others = [table[t] for t in transform_targets(transform) if t not in own]
    results = dict(zip(full_result_names(transform), result_leaf_names(transform), strict=True))
    if any(may_read_lazily(f, table) for f in others):
        return set(results)
    taken = {n for f in others for n in (*full_argument_names(f)[num_input(f) or 0 :], *weight_types(f))}
    return {name for name, leaves in results.items() if not taken.isdisjoint((name, *leaves))}


def separate_called(module: ir.Operation, entries: Iterable[func.FuncOp]) -> None:
    """Gives callers of entry functions a private copy to call, because the entry's own signature is about to change.

    The copy has no weights and no state: what it says of them goes.
    """
    graph = CallGraph(module)
    calls = graph.calls()
    for function in entries:
        if name_of(function) not in calls:
            continue
        name = unused_name(module, f"{name_of(function)}_called")
        copy = function.operation.clone(ip=ir.InsertionPoint.after(function)).operation
        copy.attributes["sym_name"] = ir.StringAttr.get(name)
        copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
        for key in (NUM_INPUT, STATE, KEYWORD, TRANSFORM_FOR):
            if key in copy.attributes:
                del copy.attributes[key]
        set_argument_attributes(copy.opview, [without(a, LIFT) for a in argument_attributes(copy.opview)])
        for call in (*calls[name_of(function)], *(c for c in calls_in(copy) if callee_of(c) == name_of(function))):
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(name)


def check_not_called(module: ir.Operation, changing: Iterable[func.FuncOp]) -> None:
    """Raises RelaxError when something calls a function whose signature is about to change."""
    calls = CallGraph(module).calls()
    for function in changing:
        for call in calls.get(name_of(function), ()):
            raise RelaxError(f"'func.call' op expected no call of @{name_of(function)}, whose signature changes", call.location)


def erase_unreferenced(module: ir.Operation, names: set[str]) -> None:
    """Erases those of some private functions that nothing refers to any more, not even another one that stays."""
    dead = {name_of(f): f for f in unreferenced_private_functions(module)} if names else {}
    kept = [name for name in dead if name not in names]
    for name in kept:
        kept += [n for n in sorted(referenced_symbols(dead[name].operation)) if n in dead and n not in kept]
    for name in dead.keys() - set(kept):
        dead[name].operation.erase()


def unused_name(module: ir.Operation, name: str) -> str:
    """The name, or the first of ``name_0``, ``name_1`` ... that no function of the module has."""
    taken = {name_of(f) for f in functions(module)}
    candidate, number = name, 0
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _has_weights(function: func.FuncOp, inputs: int) -> bool:
    block = body_of(function)
    if block is None or len(list(block.arguments)) == inputs:
        return False
    if len(function.regions[0].blocks) > 1:
        raise RelaxError(f"'func.func' op expected one block in a function with weights, got several in @{name_of(function)}",
                         function.location)  # fmt: skip
    return True
