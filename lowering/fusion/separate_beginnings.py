"""Tensors that begin with the same parts have these parts each in memory of its own.

Before::

    %a = tensor.insert_slice %x into %empty[0, 0] [8, 2] [1, 1]      // concatenations that begin equally: one, since CSE
    %b = tensor.insert_slice %y into %a[0, 2] [8, 2] [1, 1]
    %c = tensor.insert_slice %z into %a[0, 2] [8, 2] [1, 1]          // bufferized as a copy of %a, half of which nobody wrote

after::

    %a = tensor.insert_slice %x into %empty[0, 0] [8, 2] [1, 1]
    %b = tensor.insert_slice %y into %a[0, 2] [8, 2] [1, 1]
    %d = tensor.insert_slice %x into %empty[0, 0] [8, 2] [1, 1]
    %c = tensor.insert_slice %z into %d[0, 2] [8, 2] [1, 1]
"""

from __future__ import annotations

from ...dialect.bindings import func, ir
from ...dialect.traversal import nested_operations
from .linalg_queries import is_empty

__all__ = ["separate_beginnings"]


def separate_beginnings(function: func.FuncOp) -> None:
    """Gives each continuation of a tensor that is only begun a beginning of its own; in place. The first one keeps it."""
    begun, continued = set[ir.Value](), set[ir.Value]()
    for op in list(nested_operations(function.operation)):
        for position, value in enumerate(op.operands):
            if value in begun and value in continued:
                op.operands[position] = _another(value, op)
            continued.add(value)
        if op.name == "tensor.insert_slice" and (is_empty(op.operands[1]) or op.operands[1] in begun):
            begun |= {result for result in op.results if all(map(_continues, result.uses))}


def _continues(use: ir.OpOperand) -> bool:
    """Whether a use puts a part into a tensor, or is a kernel that writes to it."""
    op = use.owner.operation
    if op.name == "func.call":
        return use.operand_number >= len(op.operands) - len(op.results)
    return op.name == "tensor.insert_slice" and use.operand_number == 1


def _another(value: ir.Value, user: ir.Operation) -> ir.Value:
    """The same tensor, made in front of what uses it."""
    op = value.owner.operation.clone(ip=ir.InsertionPoint(user))
    made = op.results[0]
    while not is_empty(op.operands[1]):
        before = op.operands[1].owner.operation.clone(ip=ir.InsertionPoint(op))
        op.operands[1] = before.results[0]
        op = before
    return made
