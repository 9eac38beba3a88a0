"""A ``gpu.module`` to PTX: MLIR's passes to the LLVM and NVVM dialects, LLVM IR, and LLVM's back end for NVIDIA GPUs.

Functions of f32 are our own expansions, the CPU's, so numbers and bounds of errors are the same on both. What these leave
(f64, ``pow``, remainders, sines of large numbers) is NVIDIA's device library, linked into the code. Conversions of f16 and bf16
are instructions; sums and products are never contracted, unless a template says so with ``math.fma``.
"""

from __future__ import annotations

from ...dialect.bindings import ir, passmanager
from ...dialect.errors import from_mlir_error
from ..kernels.expand.expand_math import expand_math
from ..llvm_text import check_translatable, llvm_ir
from .cuda_target import CudaTarget
from .device_math import to_intrinsics
from .device_text import device_text
from .nvptx import ptx_of

__all__ = ["device_code", "device_llvm_ir"]

# Memory is addressed by 64 bits, and kernels take bare pointers. What MLIR's GPU pass leaves, vectors among it, follows.
_TO_LLVM = (
    "canonicalize", "cse", "expand-strided-metadata", "lower-affine", "convert-nvgpu-to-nvvm", "convert-scf-to-cf",
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=64}",
    "convert-vector-to-llvm", "convert-to-llvm", "canonicalize", "cse", "reconcile-unrealized-casts",
)  # fmt: skip


def device_code(module: ir.Operation, target: CudaTarget) -> str:
    """The PTX of all kernels of a ``gpu.module``; equal ones are compiled once.

    Args:
        module: a ``gpu.module`` of operations of the gpu, memref, vector, scf, arith, math, nvvm and llvm dialects; it stays
            as it is.
        target: the GPU.

    Raises:
        RelaxError: an operation cannot be lowered, with its location; LLVM cannot compile a kernel; the device library is
            needed and not installed.
    """
    return ptx_of(device_llvm_ir(module, target), target.architecture.name, target.ptx_features)


def device_llvm_ir(module: ir.Operation, target: CudaTarget) -> str:
    """The LLVM IR that :func:`device_code` compiles, as llvmlite reads it."""
    with module.context, ir.Location.unknown():
        around = ir.Module.create()  # passes look for what is around, even of a module of its own
        device = module.clone(ip=ir.InsertionPoint(around.body)).operation
        expand_math(device, target)
        to_intrinsics(device)
        try:
            passmanager.PassManager.parse(f"gpu.module({','.join(_TO_LLVM)})").run(device)
        except ir.MLIRError as error:
            raise from_mlir_error(error) from None
        check_translatable(device, ("llvm.", "nvvm.", "gpu.module"), "PTX")
        return device_text(llvm_ir(device))
