"""Kernel templates of other packages (``relaxir.kernels``): asked before ours, and their answers checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ....dialect.bindings import func, ir
from ....dialect.errors import RelaxError
from ....dialect.foreign_code import error_text
from ....dialect.plugins import KERNELS, load, plugins
from ...kernels.structure.as_generic import linalg_operations
from ...target import Target

__all__ = ["Template", "lower_by_packages"]

#: It is asked with a function and what that is lowered for. It puts its own code in the place of all linalg operations of the
#: function and returns True, or changes nothing and returns False, as for a function without any.
Template: TypeAlias = Callable[[func.FuncOp, Target], bool]


def lower_by_packages(function: func.FuncOp, target: Target) -> bool:
    """Whether a template of another package has lowered a function.

    Raises:
        RelaxError: one raises an exception, has left linalg operations, or has changed what it says it has not.
    """
    templates: tuple[Template, ...] = load(KERNELS, "a function", callable)
    if not templates:
        return False
    function.operation.context.load_all_available_dialects()  # they may make ops of any dialect
    return any(_lowers(entry.name, lower, function, target) for entry, lower in zip(plugins(KERNELS), templates, strict=True))


def _lowers(name: str, lower: Template, function: func.FuncOp, target: Target) -> bool:
    before = str(function)
    try:
        answer = lower(function, target)
    except RelaxError:
        raise
    except Exception as error:  # whatever its own code does
        raise _error(name, function, f"that answers True or False, got {error_text(error)}") from error
    if not isinstance(answer, bool):
        raise _error(name, function, f"that answers True or False, got {answer!r}")
    if not answer and str(function) != before:
        raise _error(name, function, "that changes nothing where it answers False, got another function")
    if answer and (left := linalg_operations(function.operation)):
        raise _error(name, function, f"that lowers all operations where it answers True, got '{left[0].name}' still there")
    if answer:
        _verify(name, function)
    return answer


def _verify(name: str, function: func.FuncOp) -> None:
    try:
        function.operation.verify()
    except ir.MLIRError as error:
        told = "; ".join(d.message for d in error.error_diagnostics)
        raise _error(name, function, f"that gives a valid function, got {told}") from None


def _error(name: str, function: func.FuncOp, wanted: str) -> RelaxError:
    return RelaxError(f"expected a kernel template '{name}' {wanted}", function.location)
