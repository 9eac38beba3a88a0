"""The call by which host code gets the address of the device's status word, before it has a driver; and the mark of checks.

::

    %word = call @relax_cuda_status() : () -> !llvm.ptr

The word is 0 until a check of a kernel fails, and then the number of the first one that did, counted from 1.
``launch_kernels`` makes a read of the driver's table of the call.
"""

from __future__ import annotations

from ...dialect.bindings import func, ir
from ...dialect.functions import functions, name_of
from ..kernels.emit.emitter import Emitter

__all__ = ["STATUS", "status_word"]

STATUS = "relax_cuda_status"


def status_word(em: Emitter, module: ir.Operation) -> ir.Value:
    """The address of the status word, a host value; declares the function where it is not."""
    pointer = ir.Type.parse("!llvm.ptr", em.context)
    if STATUS not in {name_of(f) for f in functions(module)}:
        with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), em.location:
            func.FuncOp(STATUS, ([], [pointer]), visibility="private")
    return em.op("func.call", [], pointer, {"callee": ir.FlatSymbolRefAttr.get(STATUS, em.context)})
