"""A copy of a buffer that nobody reads any more becomes the buffer itself.

One-shot bufferization copies where a tensor is written that shares its memory with what nobody may write to, as the result of a
branch that hands on either an argument or what was computed. What is copied then may be written in parts only.

Before::

    %a = memref.alloc(%n) : memref<?xf64>
    memref.copy %x, %part_of_a
    %b = memref.alloc(%n) : memref<?xf64>
    memref.copy %a, %b                     // the last use of %a
    memref.copy %y, %part_of_b

after::

    %a = memref.alloc(%n) : memref<?xf64>
    memref.copy %x, %part_of_a
    memref.copy %y, %part_of_a
"""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.traversal import nested_operations

__all__ = ["drop_last_copies"]

_VIEWS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.subview", "memref.transpose")


def drop_last_copies(module: ir.Operation) -> None:
    """Drops copies between buffers of a block, in place."""
    for op in list(nested_operations(module)):
        if op.name == "memref.copy" and _is_last_use(op):
            source, target = (value.owner.operation for value in op.operands)
            op.erase()
            target.results[0].replace_all_uses_with(source.results[0])
            target.erase()


def _is_last_use(copy: ir.Operation) -> bool:
    """Whether a copy is between equal buffers of its block: one is used in front of it only, the other one behind it."""
    buffers = [value.owner.operation for value in copy.operands if _is_allocated(value)]
    if len(buffers) < 2 or any(buffer.block != copy.block for buffer in buffers):
        return False
    source, target = buffers
    if source == target or source.results[0].type != target.results[0].type or list(source.operands) != list(target.operands):
        return False
    users = _users(source.results[0], copy)
    later = [use.owner.operation for use in target.results[0].uses]
    return (
        users is not None
        and all(u == copy or u.is_before_in_block(copy) for u in users)
        and not any(u != copy and _around(u, copy).is_before_in_block(copy) for u in later)
    )


def _is_allocated(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Operation | ir.OpView) and value.owner.name == "memref.alloc"


def _users(buffer: ir.Value, copy: ir.Operation) -> list[ir.Operation] | None:
    """What uses a buffer or a view of it, as operations of the copy's block; None where it may get another name."""
    found, pending = list[ir.Operation](), [buffer]
    while pending:
        for use in pending.pop().uses:
            op = use.owner.operation
            if op.name in _VIEWS:
                pending.append(op.results[0])
            elif any(isinstance(r.type, ir.MemRefType) for r in op.results) or _is_end(op):
                return None
            found.append(_around(op, copy))
    return found


def _is_end(op: ir.Operation) -> bool:
    """Whether an operation ends a block, and so hands its operands on."""
    return op == op.block.operations[len(op.block.operations) - 1].operation


def _around(op: ir.Operation, other: ir.Operation) -> ir.Operation:
    """What an operation is inside of, in the block of another one."""
    while op.block != other.block:
        assert op.parent is not None
        op = op.parent.operation
    return op
