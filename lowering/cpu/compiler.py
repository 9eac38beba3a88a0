"""The compiler's part of the ``cpu`` backend: object code, by kernels of vectors and loops and LLVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.bindings import ir
from ...dialect.weight_layouts import WeightLayouts
from ..compiler import Compiler, Listener
from ..manifest import TargetSpec
from ..target import Target
from .codegen import assembly, object_code
from .pipeline import lowering_pipeline
from .translate import translate

__all__ = ["CpuCompiler"]


class CpuCompiler(Compiler):
    """Compiles for a CPU.

    Attributes:
        target: its instructions and registers.
    """

    def __init__(self, target: str, here: Mapping[str, Any]):
        self._name = target
        self.target = Target.parse(target, openmp=bool(here.get("openmp")))

    @property
    def key(self) -> str:
        return repr(self.target)

    @property
    def spec(self) -> TargetSpec:
        return TargetSpec(self.target.triple, self.target.cpu, self.target.features, self.target.openmp)

    @property
    def weight_layouts(self) -> WeightLayouts:
        return self.target.weight_layouts

    def pipeline(self, checked: bool) -> str:
        options = f"target={self._name} openmp={str(self.target.openmp).lower()}"
        return f"relax-set-target{{{options}}},{lowering_pipeline(checked)}"

    def code(self, module: ir.Operation, manifest: Mapping[str, Any], listener: Listener | None) -> bytes:
        text = translate(module, manifest)
        if listener is not None:
            listener("ll", text)
            listener("s", assembly(text, self.target))
        return object_code(text, self.target)
