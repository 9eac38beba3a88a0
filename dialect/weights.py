"""The weights of functions by name, tuples of weights taken apart: what callers give, and what transform functions return."""

from __future__ import annotations

from collections.abc import Sequence

from .bindings import func, ir
from .function_types import argument_attributes, result_attributes, tensor_name
from .functions import completed, full_argument_names, functions, name_of, num_input, result_names, transform_targets
from .relax import OutputSink, ParamProvider
from .tuples import bundled_attributes, has_tuple, leaf_paths, leaf_types

__all__ = ["argument_leaf_names", "full_result_names", "result_leaf_names", "result_types", "weight_types"]


def argument_leaf_names(function: func.FuncOp) -> list[list[str]]:
    """The name of each argument; of a tuple those of what is in it, as arguments or else with their positions: ``p.0``.

    Raises:
        RelaxError: a tuple says of its elements what cannot be.
    """
    attributes = argument_attributes(function)
    given: list[list[str | None]] = []
    for type_, name, own in zip(_types(function).inputs, full_argument_names(function), attributes, strict=True):
        bundled = bundled_attributes(type_, own) if isinstance(type_, ir.TupleType) else None
        given.append([name + p for p, _ in leaf_paths(type_)] if bundled is None else [tensor_name(a) for a in bundled])
    flat = [name for names in given for name in names]
    full = iter(completed(flat, ["weight"] * len(flat)))
    return [[next(full) for _ in names] for names in given]


def weight_types(function: func.FuncOp) -> dict[str, ir.Type]:
    """The types of the weights by name; those of a tuple by the names of :func:`argument_leaf_names`."""
    names, types, split = argument_leaf_names(function), list(_types(function).inputs), num_input(function)
    start = len(types) if split is None else split
    found: dict[str, ir.Type] = {}
    for own, type_ in zip(names[start:], types[start:], strict=True):
        if not isinstance(type_, ParamProvider | OutputSink):
            found.update(zip(own, leaf_types(type_), strict=True))
    return found


def full_result_names(function: func.FuncOp) -> list[str]:
    """What each result is called: its ``relax.name``, else ``output1``, the number being its position.

    Results of a transform function that are as many tensors as the weights it prepares are these weights, in their order.
    """
    given: Sequence[str | None] = result_names(function)
    if None in given and not has_tuple(_types(function).results):
        weights = _prepared_weights(function)
        if len(weights) == len(given):
            given = [n or w for n, w in zip(given, weights, strict=True)]
    return completed(given, ["output"] * len(given))


def result_types(function: func.FuncOp) -> dict[str, ir.Type]:
    """The types of the results by name; those of a tuple by what it says of them, or its name and their positions."""
    found: dict[str, ir.Type] = {}
    for type_, names in zip(_types(function).results, result_leaf_names(function), strict=True):
        found.update(zip(names, leaf_types(type_), strict=True))
    return found


def result_leaf_names(function: func.FuncOp) -> list[list[str]]:
    """The name of each result; of a tuple what it says of them, or its name and their positions."""
    types, attributes = _types(function).results, result_attributes(function)
    found: list[list[str]] = []
    for type_, name, own in zip(types, full_result_names(function), attributes, strict=True):
        bundled = bundled_attributes(type_, own) if isinstance(type_, ir.TupleType) else None
        names = [name + path for path, _ in leaf_paths(type_)]
        found.append(names if bundled is None else [tensor_name(a) or n for a, n in zip(bundled, names, strict=True)])
    return found


def _prepared_weights(function: func.FuncOp) -> list[str]:
    """The names of the weights that the targets of a transform function take, each once."""
    targets, module = transform_targets(function), function.operation.parent
    known = {name_of(f): f for f in functions(module.operation)} if targets and module is not None else {}
    return list(dict.fromkeys(n for t in targets if t in known for n in weight_types(known[t])))


def _types(function: func.FuncOp) -> ir.FunctionType:
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
