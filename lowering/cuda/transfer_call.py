"""The calls by which host code copies between its memory and the device's, before it has a driver.

::

    call @relax_cuda_to_host(%target, %source, %bytes) : (!llvm.ptr, !llvm.ptr, i64) -> ()
    call @relax_cuda_to_device(%target, %source, %bytes) : (!llvm.ptr, !llvm.ptr, i64) -> ()

``launch_kernels`` makes the driver's of them. The first one waits: what is behind it may read the host's memory.
"""

from __future__ import annotations

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ...dialect.struct_info import element_bytes
from ..kernels.emit.emitter import Emitter
from .kernels.memory import first_element

__all__ = ["TO_DEVICE", "TO_HOST", "call_transfer"]

TO_HOST, TO_DEVICE = "relax_cuda_to_host", "relax_cuda_to_device"


def call_transfer(em: Emitter, module: ir.Operation, name: str, source: ir.Value, target: ir.Value) -> None:
    """Copies a contiguous buffer to another one of its shape; declares the function where it is not."""
    kind, size = ir.MemRefType(source.type), em.number(element_bytes(ir.MemRefType(source.type).element_type))
    for axis in range(kind.rank):
        size = em.mul(size, em.op("memref.dim", [source, em.number(axis)], em.index))
    total = em.op("arith.index_cast", [size], em.integer(64))
    operands = [first_element(em, target), first_element(em, source), total]
    if name not in {name_of(f) for f in functions(module)}:
        with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), em.location:
            func.FuncOp(name, ([v.type for v in operands], []), visibility="private")
    em.effect("func.call", operands, {"callee": ir.FlatSymbolRefAttr.get(name, em.context)})
