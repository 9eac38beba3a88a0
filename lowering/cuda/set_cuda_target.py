"""Writes down the GPU that code is for, so that every later step finds it in the module.

With ``target=cuda:sm_80``. Before::

    module {

after::

    module attributes {relax.cuda_target = "cuda:sm_80", relax.weight_layouts = {..., panels = false}} {
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.passes.base import Pass
from ..marks import CUDA_TARGET
from .cuda_target import CudaTarget

__all__ = ["SetCudaTarget", "cuda_target_of"]


@dataclass(frozen=True)
class SetCudaTarget(Pass):
    """Writes the GPU that code is for into the module.

    Attributes:
        target: as for ``relaxir.compile``.
    """

    name: ClassVar[str] = "relax-set-cuda-target"
    target: str = "cuda:sm_80"

    def run(self, op: ir.Operation) -> None:
        target = CudaTarget.parse(self.target)
        op.attributes[CUDA_TARGET] = ir.StringAttr.get(self.target, op.context)
        target.weight_layouts.write(op)


def cuda_target_of(module: ir.Operation) -> CudaTarget:
    """The GPU that a module is for. Raises RelaxError when it says none."""
    if CUDA_TARGET not in module.attributes:
        text = f"expected a module with {CUDA_TARGET}, which relax-set-cuda-target writes, got none"
        raise RelaxError(text, module.location)
    return CudaTarget.parse(ir.StringAttr(module.attributes[CUDA_TARGET]).value)
