"""Device functions as templates read them: what they do with buffers is ``linalg.generic``, with constants of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import func, ir
from ....dialect.traversal import nested_operations, substitute
from ...kernels.structure.as_generic import as_generic, linalg_operations

__all__ = ["prepare_functions"]


def prepare_functions(module: ir.Operation, chosen: Sequence[func.FuncOp]) -> None:
    """Changes functions of a module in place; a second run changes nothing."""
    as_generic(module, chosen)
    for function in chosen:
        _constants_inside(function)


def _constants_inside(function: func.FuncOp) -> None:
    """Gives bodies constants of their own: what is outside of a body is on the host, where no kernel can read it."""
    for op in linalg_operations(function.operation):
        if op.name != "linalg.generic":
            continue
        body = op.regions[0].blocks[0]
        inside = list(nested_operations(op))
        for value in dict.fromkeys(v for o in inside for v in o.operands if _is_constant_outside(v, op)):
            own = value.owner.operation.clone(ip=ir.InsertionPoint.at_block_begin(body)).results[0]
            for user in inside:
                substitute(user, {value: own})


def _is_constant_outside(value: ir.Value, op: ir.Operation) -> bool:
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return False
    around = value.owner.operation.parent
    while around is not None and around.operation != op:
        around = around.operation.parent
    return around is None
