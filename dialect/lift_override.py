"""``relax.lift``, by which users say of an op or a weight that what is computed from it is always, or never, lifted."""

from __future__ import annotations

from .bindings import func, ir
from .errors import RelaxError
from .function_types import argument_attributes
from .functions import body_of, functions, num_input
from .traversal import nested_operations

__all__ = ["ALWAYS", "LIFT", "NEVER", "check_overrides", "is_never", "override_of"]

#: The attribute of ops and weights that overrides the limits.
LIFT = "relax.lift"
ALWAYS, NEVER = "always", "never"


def override_of(attributes: ir.OpAttributeMap | ir.DictAttr) -> str | None:
    """What ``relax.lift`` says, None without it; None, too, where it is no text, which :func:`check_overrides` refuses."""
    if LIFT not in attributes:
        return None
    said = attributes[LIFT]
    return said.value if isinstance(said, ir.StringAttr) else None


def is_never(op: ir.Operation) -> bool:
    """Whether ``relax.lift`` of an op says never. Raises RelaxError where it is neither of its values."""
    if LIFT not in op.attributes:
        return False
    _check(op.attributes[LIFT], f"'{op.name}' op", op.location)
    return override_of(op.attributes) == NEVER


def check_overrides(module: ir.Operation) -> None:
    """Raises RelaxError where a ``relax.lift`` is neither of its values, or is on what is no weight."""
    for function in functions(module):
        _check_arguments(function)
        for op in nested_operations(function.operation):
            if LIFT in op.attributes:
                _check(op.attributes[LIFT], f"'{op.name}' op", op.location)


def _check_arguments(function: func.FuncOp) -> None:
    inputs = num_input(function)
    for position, attributes in enumerate(argument_attributes(function)):
        if LIFT not in attributes:
            continue
        _check(attributes[LIFT], "'func.func' op", function.location)
        if body_of(function) is None or inputs is None or position < inputs:
            raise RelaxError(f"'func.func' op expected {LIFT} on a weight, got it on argument {position}", function.location)


def _check(attribute: ir.Attribute, what: str, location: ir.Location) -> None:
    if not isinstance(attribute, ir.StringAttr) or attribute.value not in (ALWAYS, NEVER):
        raise RelaxError(f'{what} expected "{ALWAYS}" or "{NEVER}" for {LIFT}, got {attribute}', location)
