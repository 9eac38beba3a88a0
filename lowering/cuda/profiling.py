"""The profiles' part of the ``cuda`` backend: which kernel function each kernel is of, and how fast its operations can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.bindings import ir
from ..arena import watching_arenas
from ..profiling import LaunchedCode, LaunchProfiling
from .compiler import CudaCompiler
from .cuda_target import Architecture
from .kernels.attention.template import PlannedAttention
from .kernels.products.template import PlannedProduct
from .plan_choices import collecting_choices

__all__ = ["CudaProfiling"]


class CudaProfiling(LaunchProfiling):
    """Profiles of code for a GPU, whatever this machine has: who calls it needs one."""

    def __init__(self, here: Mapping[str, Any], manifest: Mapping[str, Any]):
        self._compiler = CudaCompiler(manifest["cuda"]["target"], {**here, "cubin": False})

    @property
    def compiler(self) -> CudaCompiler:
        return self._compiler

    def launched(self, module: ir.Operation) -> LaunchedCode:
        with watching_arenas() as arenas, collecting_choices() as choices:
            self.compiler.lower(module, checked=False)
        architecture = self.compiler.target.architecture
        functions = {kernel: name for name, function in choices.built.items() for kernel in function.kernels}
        rates = {name: _rate(function.plan, architecture) for name, function in choices.built.items()}
        return LaunchedCode(functions, rates, architecture.tensor["bf16"], tuple(arenas))


def _rate(plan: Any, architecture: Architecture) -> float:
    """Of tensor cores where they multiply: attention of f32 by three products in tf32, which count as one."""
    if isinstance(plan, PlannedProduct) and not plan.plan.instruction.is_fused:
        return architecture.tensor[plan.plan.instruction.peak]
    if isinstance(plan, PlannedAttention):
        return architecture.tensor["tf32"] / 3 if plan.shape.element == "f32" else architecture.tensor["bf16"]
    return 2 * architecture.f32_lanes
