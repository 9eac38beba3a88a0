"""A ``gpu.module`` to LLVM IR text: our expansions, MLIR's passes, and what LLVM 22 needs to make right code of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dialect.bindings import ir, passmanager
from ...dialect.errors import from_mlir_error
from ..kernels.expand.expand_math import expand_math
from ..kernels.expand.instructions import Instructions
from ..llvm_text import check_translatable, llvm_ir
from .descriptors import find_descriptors, keep_descriptors
from .device_math import to_intrinsics
from .device_text import device_text

__all__ = ["device_llvm_ir"]

# What MLIR's pass for a kind of GPU leaves, vectors among it, follows it.
_BEFORE = ("canonicalize", "cse", "expand-strided-metadata", "lower-affine")
_AFTER = ("convert-vector-to-llvm", "convert-to-llvm", "canonicalize", "cse", "reconcile-unrealized-casts")


def device_llvm_ir(
    module: ir.Operation,
    instructions: Instructions,
    passes: Sequence[str],
    dialects: tuple[str, ...],
    to: str,
    change: Callable[[ir.Operation], None] | None = None,
) -> str:
    """The LLVM IR of all kernels of a ``gpu.module``, as llvmlite reads it.

    Args:
        module: a ``gpu.module``; it stays as it is.
        instructions: what the GPU has instructions for.
        passes: MLIR's, which convert the gpu dialect and what belongs to the kind of GPU.
        dialects: what they leave, beside LLVM's: ``"nvvm."``.
        to: what is made of it, for messages.
        change: what the kind of GPU wants otherwise, in place, before these passes.

    Raises:
        RelaxError: an operation cannot be lowered, with its location.
    """
    with module.context, ir.Location.unknown():
        around = ir.Module.create()  # passes look for what is around, even of a module of its own
        device = module.clone(ip=ir.InsertionPoint(around.body)).operation
        descriptors = find_descriptors(device)
        expand_math(device, instructions)
        to_intrinsics(device)
        if change is not None:
            change(device)
        try:
            passmanager.PassManager.parse(f"gpu.module({','.join((*_BEFORE, *passes, *_AFTER))})").run(device)
        except ir.MLIRError as error:
            raise from_mlir_error(error) from None
        keep_descriptors(device, descriptors)
        check_translatable(device, ("llvm.", "gpu.module", *dialects), to)
        return device_text(llvm_ir(device))
