"""Copies between buffers of an entry as calls of kernels, one per pair of types: a decoder's layers share the loops.

Before::

    memref.copy %a, %part : memref<?x64xf32> to memref<?x64xf32, strided<[128, 1]>>

after::

    call @copy_0(%a, %part)
    func.func private @copy_0(%from: memref<?x64xf32>, %to: memref<?x64xf32, strided<[128, 1]>>) {relax.kernel}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ..kernel_function import mark_kernel
from ..lowering_pass import LoweringPass
from ..marks import KERNEL

__all__ = ["ShareCopies", "share_copies"]


@dataclass(frozen=True)
class ShareCopies(LoweringPass):
    """Makes copies between buffers calls of kernels."""

    name: ClassVar[str] = "relax-share-copies"

    def run(self, op: ir.Operation) -> None:
        share_copies(op)


def share_copies(module: ir.Operation) -> None:
    """Rewrites every copy of a buffer of rank 1 or more outside of kernels; in place."""
    copies = [c for f in functions(module) if KERNEL not in f.attributes for c in _copies(f.operation)]
    taken = {name_of(f) for f in functions(module)}
    kernels: dict[tuple[ir.Type, ir.Type], str] = {}
    for copy in copies:
        source, target = copy.operands
        key = (source.type, target.type)
        if key not in kernels:
            kernels[key] = _kernel(module, key, taken)
        with ir.InsertionPoint(copy), copy.location:
            func.CallOp([], ir.FlatSymbolRefAttr.get(kernels[key]), [source, target])
        copy.erase()


def _copies(function: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.copy" and ir.MemRefType(op.operands[0].type).rank:
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _kernel(module: ir.Operation, types: tuple[ir.Type, ir.Type], taken: set[str]) -> str:
    number = next(n for n in range(len(taken) + 1) if f"copy_{n}" not in taken)
    name = f"copy_{number}"
    taken.add(name)
    with ir.InsertionPoint(module.regions[0].blocks[0]), ir.Location.unknown():
        function = func.FuncOp(name, (list(types), []), visibility="private")
        mark_kernel(function)
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            ir.Operation.create("memref.copy", [], list(block.arguments))
            func.ReturnOp([])
    return name
