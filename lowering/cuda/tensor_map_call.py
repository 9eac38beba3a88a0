"""The call by which host code has a tensor map encoded, before it has a driver: ``launch_kernels`` makes the driver's of it.

::

    call @relax_tensor_map(%map, %tensor, %kind, %rank, five sizes, four strides, five sizes of a box)
        : (!llvm.ptr, !llvm.ptr, i64, ...) -> ()
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ..kernels.emit.emitter import Emitter

__all__ = ["DIMENSIONS", "MAP_BYTES", "NUMBERS", "TENSOR_MAP", "call_tensor_map"]

TENSOR_MAP = "relax_tensor_map"
#: The most that a map has, and its bytes: a CUtensorMap, at a multiple of 64.
DIMENSIONS, MAP_BYTES = 5, 128
#: Kind (CUtensorMapDataType), rank; sizes and a box, in elements, innermost first; strides of the others, in bytes.
NUMBERS = 2 + DIMENSIONS + DIMENSIONS - 1 + DIMENSIONS


def call_tensor_map(em: Emitter, place: ir.Value, tensor: ir.Value, numbers: Sequence[ir.Value]) -> None:
    """Has a map encoded at a place of the host's memory, of a tensor of the device's; declares the function where it is not."""
    module = em.block.owner
    while module.name != "builtin.module":
        module = module.operation.parent
    operands = [place, tensor, *numbers]
    if TENSOR_MAP not in {name_of(f) for f in functions(module.operation)}:
        with ir.InsertionPoint.at_block_begin(module.operation.regions[0].blocks[0]), em.location:
            func.FuncOp(TENSOR_MAP, ([v.type for v in operands], []), visibility="private")
    em.effect("func.call", operands, {"callee": ir.FlatSymbolRefAttr.get(TENSOR_MAP, em.context)})
