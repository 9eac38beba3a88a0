"""What a module must keep beyond what MLIR verifies: names, the split into inputs and weights, tensor encodings, references."""

from __future__ import annotations

from collections.abc import Iterator

from .bindings import func, ir
from .constants import constant_arrays
from .errors import DiagnosticError, RelaxError
from .function_types import argument_attributes
from .functions import (
    KEYWORD,
    NAME,
    STATE,
    argument_names,
    functions,
    initial_state,
    is_private,
    keyword_inputs,
    name_of,
    num_input,
    result_names,
    transform_targets,
)
from .lazy_calls import callback_problems
from .struct_info import check_type, without_encoding
from .transform_rules import transform_problems
from .tuples import BUNDLED
from .weights import argument_leaf_names

__all__ = ["SYMBOL_RANGES", "check_module"]

#: Function attribute: what values the symbolic dimensions of the arguments may take.
SYMBOL_RANGES = "relax.symbol_ranges"


def check_module(module: ir.Module | ir.Operation) -> None:
    """Checks our conventions on the module and every function (:mod:`relaxir.dialect.functions`, :mod:`.constants`).

    Raises:
        DiagnosticError: with every breach found, each at its function.
    """
    found = functions(module)
    with module.context, ir.Location.unknown():
        told = [(f, text) for f in found for text in _problems(f)]
    if all(_has_readable_names(f) for f in found):
        told += transform_problems({name_of(f): f for f in found})
    problems = [("error", str(RelaxError("", f.location).location or ""), f"'func.func' op {text}") for f, text in told]
    problems += _constant_problems(module.operation)
    if problems:
        raise DiagnosticError(problems)


def _constant_problems(module: ir.Operation) -> Iterator[tuple[str, str, str]]:
    try:
        constant_arrays(module)
    except RelaxError as error:
        yield "error", str(error.location or ""), str(error.args[0])


def _problems(function: func.FuncOp) -> Iterator[str]:
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for type_ in (*signature.inputs, *signature.results):
        try:
            check_type(type_)
        except RelaxError as error:
            yield str(error)
    yield from _range_problems(function)
    yield from _reference_problems(function)
    if not _has_readable_names(function):
        yield f"expected a string for every {NAME}"
        return
    yield from _name_problems(function)
    yield from _state_problems(function)
    yield from _keyword_problems(function)
    yield from callback_problems(function)


def _has_readable_names(function: func.FuncOp) -> bool:
    try:
        argument_names(function)
        result_names(function)
    except (TypeError, ValueError):
        return False
    return True


def _name_problems(function: func.FuncOp) -> Iterator[str]:
    results, arguments = result_names(function), argument_names(function)
    try:
        num_input(function)
        bundles = [own for own in argument_leaf_names(function) if len(own) > 1] if _has_bundle(function) else []
    except (TypeError, ValueError):  # of what a tuple holds
        yield f"expected a string for every {NAME}"
        return
    except RelaxError as error:
        yield str(error.args[0]).removeprefix("'func.func' op ")
        return
    # One weight may be in several tuples: those of one name are one.
    for names, what in ((arguments, "argument"), (results, "result"), *((own, "element") for own in bundles)):
        given = [n for n in names if n is not None]
        if "" in given:
            yield f"expected {what} names that are not empty"
        elif len(set(given)) < len(given):
            yield f"expected distinct {what} names, got '{next(n for n in given if given.count(n) > 1)}' twice"


def _has_bundle(function: func.FuncOp) -> bool:
    return any(BUNDLED in attributes for attributes in argument_attributes(function))


def _state_problems(function: func.FuncOp) -> Iterator[str]:
    """Each state is the name of one input and one result of one static type, which is that of its first value, too."""
    try:
        found = initial_state(function)
        inputs = argument_names(function)[: num_input(function)]
        results = result_names(function)
    except RelaxError as error:
        if STATE in function.attributes and STATE in error.args[0]:
            yield error.args[0].removeprefix("'func.func' op ")
        return
    if found and is_private(function):
        yield f"expected {STATE} of public functions only"
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for name, first in found.items():
        if inputs.count(name) != 1 or results.count(name) != 1:
            yield f"expected one input and one result named '{name}' for {STATE}"
            continue
        taken, given = signature.inputs[inputs.index(name)], signature.results[results.index(name)]
        if taken != given or without_encoding(taken) != first.type:
            got = f"{taken}, {given} and {first.type}"
            yield f"expected one type for the argument, the result and the first value of state '{name}', got {got}"


def _keyword_problems(function: func.FuncOp) -> Iterator[str]:
    try:
        keyword_inputs(function)
    except RelaxError as error:
        if KEYWORD in error.args[0]:  # what is wrong with the state is told by itself
            yield error.args[0]


def _range_problems(function: func.FuncOp) -> Iterator[str]:
    if SYMBOL_RANGES not in function.attributes:
        return
    attribute = function.attributes[SYMBOL_RANGES]
    ranges = [item.attr for item in attribute] if isinstance(attribute, ir.DictAttr) else [attribute]
    wrong = next((r for r in ranges if not _is_range(r)), None)
    if wrong is not None:
        yield f"expected {SYMBOL_RANGES} such as {{n = [1, 512], m = [0]}}, got {wrong}"


def _is_range(attribute: ir.Attribute) -> bool:
    """A least value of 0 or more and perhaps a greatest, which is no less; a negative one is none."""
    if not isinstance(attribute, ir.ArrayAttr) or len(attribute) not in (1, 2):
        return False
    values = [a.value for a in attribute if isinstance(a, ir.IntegerAttr)]
    return len(values) == len(attribute) and values[0] >= 0 and (values[-1] < 0 or values[0] <= values[-1])


def _reference_problems(function: func.FuncOp) -> Iterator[str]:
    try:
        transform_targets(function)
    except RelaxError as error:
        yield str(error.args[0]).removeprefix("'func.func' op ")
