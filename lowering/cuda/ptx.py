"""A ``gpu.module`` to PTX: MLIR's passes to the LLVM and NVVM dialects, LLVM IR, and LLVM's back end for NVIDIA GPUs.

Functions of f32 are our own expansions, the CPU's, so numbers and bounds of errors are the same on both. What these leave
(f64, ``pow``, remainders, sines of large numbers) is NVIDIA's device library, linked into the code. Conversions of f16 and bf16
are instructions; sums and products are never contracted, unless a template says so with ``math.fma``.
"""

from __future__ import annotations

import re

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ..device.llvm_process import LlvmTarget, device_code_of
from ..device.to_llvm import device_llvm_ir
from .cuda_target import CudaTarget
from .shift_amounts import hide_amounts
from .toolkit import libdevice

__all__ = ["device_code", "llvm_target"]

# Memory is addressed by 64 bits, and kernels take bare pointers.
_PASSES = (
    "convert-nvgpu-to-nvvm",
    "convert-scf-to-cf",
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=64}",
)
_LIBRARY_CALL = re.compile(r"\bcall .*@(__nv_\w+)\(")


def device_code(module: ir.Operation, target: CudaTarget) -> str:
    """The PTX of all kernels of a ``gpu.module``; equal ones are compiled once.

    Args:
        module: a ``gpu.module`` of operations of the gpu, memref, vector, scf, arith, math, nvvm and llvm dialects; it stays
            as it is.
        target: the GPU.

    Raises:
        RelaxError: an operation cannot be lowered, with its location; LLVM cannot compile a kernel; NVIDIA's device library is
            needed and not installed.
    """
    text = device_llvm_ir(module, target, _PASSES, ("nvvm.",), "PTX", hide_amounts)
    called = _LIBRARY_CALL.search(text)
    library = libdevice() if called else None
    if called and library is None:
        raise RelaxError(f"expected NVIDIA's device library, which has '{called[1]}' (pip install relaxir[cuda]), got none")
    return device_code_of(text, llvm_target(target), str(library) if library else None).decode()


def llvm_target(target: CudaTarget) -> LlvmTarget:
    """The GPU as LLVM calls it."""
    return LlvmTarget("nvptx64-nvidia-cuda", target.architecture.name, f"+ptx{target.architecture.ptx}")
