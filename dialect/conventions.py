"""What a module must keep beyond what MLIR verifies: names, the split into inputs and weights, tensor encodings, references."""

from __future__ import annotations

from collections.abc import Iterator

from .bindings import func, ir
from .errors import DiagnosticError, RelaxError
from .functions import NAME, TRANSFORM_FOR, argument_names, functions, name_of, num_input, result_names, transform_targets
from .struct_info import check_type

__all__ = ["check_module"]


def check_module(module: ir.Module | ir.Operation) -> None:
    """Checks our conventions on every function (:mod:`relaxir.dialect.functions`).

    Raises:
        DiagnosticError: with every breach found, each at its function.
    """
    found = functions(module)
    names = {name_of(f) for f in found}
    problems = [
        ("error", str(RelaxError("", f.location).location or ""), f"'func.func' op {text}")
        for f in found
        for text in _problems(f, names)
    ]
    if problems:
        raise DiagnosticError(problems)


def _problems(function: func.FuncOp, names: set[str]) -> Iterator[str]:
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for type_ in (*signature.inputs, *signature.results):
        try:
            check_type(type_)
        except RelaxError as error:
            yield str(error)
    yield from _name_problems(function)
    yield from _reference_problems(function, names)


def _name_problems(function: func.FuncOp) -> Iterator[str]:
    try:
        arguments = argument_names(function)
        result_names(function)
    except (TypeError, ValueError):
        yield f"expected a string for every {NAME}"
        return
    try:
        num_input(function)
    except RelaxError as error:
        yield str(error.args[0]).removeprefix("'func.func' op ")
    given = [n for n in arguments if n is not None]
    repeated = next((n for n in given if given.count(n) > 1), None) if len(set(given)) < len(given) else None
    if repeated is not None:
        yield f"expected distinct argument names, got '{repeated}' twice"


def _reference_problems(function: func.FuncOp, names: set[str]) -> Iterator[str]:
    try:
        targets = transform_targets(function)
    except RelaxError as error:
        yield str(error.args[0]).removeprefix("'func.func' op ")
        return
    for target in targets:
        if target not in names:
            yield f"expected a function of the module for {TRANSFORM_FOR}, got @{target}"
