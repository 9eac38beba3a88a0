"""A function in, out of it the values that come from weights and constants alone: what lifting can move to preparation."""

from __future__ import annotations

from ..bindings import func, ir
from ..functions import body_of, num_input
from ..op import Op
from ..ops import StopLiftParams
from ..traversal import nested_operations

__all__ = ["is_weight_math", "weight_values"]


def weight_values(function: func.FuncOp) -> set[ir.Value]:
    """The weights of a function, its constants, and what pure relax ops compute from those; nested regions included."""
    block, inputs = body_of(function), num_input(function)
    known: set[ir.Value] = set()
    if block is None:
        return known
    if inputs is not None:
        known.update(list(block.arguments)[inputs:])
    for op in nested_operations(function.operation):
        if is_weight_math(op, known):
            known.update(op.results)
    return known


def is_weight_math(op: ir.Operation, known: set[ir.Value]) -> bool:
    """Whether an op is a constant, or computes on weights and constants alone and may be lifted."""
    if op.name == "arith.constant":
        return True
    return isinstance(op.opview, Op) and op.name != StopLiftParams.OPERATION_NAME and all(v in known for v in op.operands)
