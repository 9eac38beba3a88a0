"""Marks what an entry that uses both memories does in the host's: it stays the host's code, and its buffers the host's.

Before, where ``%x`` is in the host's memory::

    %b = memref.alloc() : memref<4xf32>
    call @kernel_0(%x, %b)

after::

    %b = memref.alloc() {relax.on_host} : memref<4xf32>
    call @kernel_0(%x, %b) {relax.on_host}
"""

from __future__ import annotations

from ...dialect.bindings import func, ir
from ...dialect.traversal import nested_operations
from ..marks import HOST
from .host_places import HostPlaces

__all__ = ["mark_host_operations"]


def mark_host_operations(function: func.FuncOp, transfers: dict[str, str]) -> None:
    """Marks the operations of an entry on buffers, but for control flow, which may have buffers of both; in place.

    Raises:
        RelaxError: an operation has buffers in both memories.
    """
    _repeat_constants(function)
    places = HostPlaces(function, transfers)
    for op in nested_operations(function.operation):
        if not op.name.startswith("scf.") and places.on_host(op):
            op.attributes[HOST] = ir.UnitAttr.get(function.context)


def _repeat_constants(function: func.FuncOp) -> None:
    """Gives every use of a constant one of its own: it is in the memory that the use wants."""
    for op in [op for op in nested_operations(function.operation) if op.name == "memref.get_global"]:
        for use in list(op.results[0].uses)[1:]:
            user, position = use.owner.operation, use.operand_number
            user.operands[position] = op.clone(ip=ir.InsertionPoint(user)).operation.results[0]
