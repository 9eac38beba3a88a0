"""A ``gpu.module`` to an object file for AMD GPUs: the kernels that are no NVIDIA's own, by ROCDL and LLVM's back end.

Nothing here runs such code, and nothing was measured: it says that kernels of the gpu, vector, scf, arith and math dialects
compile for such a GPU. :mod:`.link` makes what ROCm loads of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ..device.llvm_process import LlvmTarget, device_code_of
from ..device.to_llvm import device_llvm_ir

__all__ = ["code_object"]

_TRIPLE = "amdgcn-amd-amdhsa"
_CHIPS = ("gfx90a", "gfx942")
_LIBRARY_CALL = re.compile(r"\bcall .*@(__ocml_\w+)\(")


@dataclass(frozen=True)
class _AmdInstructions:
    """What these GPUs have instructions for, or LLVM good code."""

    has_fma: bool = True
    has_extremes: bool = True
    has_scalef: bool = False
    has_fast_doubles: bool = False
    rounds_to_integers: bool = False
    has_f16: bool = True
    has_bf16: bool = True

    def lanes(self, bits: int = 32) -> int:
        """One: a thread computes with scalars, whatever their width."""
        del bits
        return 1


def code_object(module: ir.Operation, chip: str = "gfx942") -> bytes:
    """A relocatable object of all kernels of a ``gpu.module``, with their descriptors and metadata of version 5.

    Args:
        module: a ``gpu.module`` of operations of the gpu, memref, vector, scf, arith, math and rocdl dialects; it stays as it
            is.
        chip: ``"gfx942"`` (MI300), ``"gfx90a"`` (MI200).

    Raises:
        RelaxError: the chip is none of these; an operation cannot be lowered, one of NVIDIA's for example, with its location;
            a function is needed that only AMD's device library has.
    """
    if chip not in _CHIPS:
        raise RelaxError(f"expected one of {', '.join(_CHIPS)}, got '{chip}'")
    to_rocdl = f"convert-gpu-to-rocdl{{chipset={chip} index-bitwidth=64 use-bare-ptr-memref-call-conv=1 runtime=HIP}}"
    text = device_llvm_ir(module, _AmdInstructions(), ("convert-scf-to-cf", to_rocdl), ("rocdl.",), "code for AMD's GPUs")
    called = _LIBRARY_CALL.search(text)
    if called:
        raise RelaxError(f"expected functions that are expanded, got '{called[1]}' of AMD's device library")
    return device_code_of(text, LlvmTarget(_TRIPLE, chip), image=True)
