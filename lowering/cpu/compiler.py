"""The compiler's part of the ``cpu`` backend: object code, by kernels of vectors and loops and LLVM."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ...dialect.bindings import ir
from ...dialect.functions import functions
from ...dialect.weight_layouts import WeightLayouts
from ..compiler import Compiler, Listener
from ..layers.lower_layers import lower_layers
from ..lower import lower
from ..manifest_specs import TargetSpec
from ..marks import KERNEL
from ..target import Target
from .codegen import assembly, object_code, start_processes
from .early_kernels import EarlyKernels, build_early
from .known_kernels import KnownKernels, named_texts
from .pipeline import building_pipeline, lowering_pipeline, outlining_pipeline, planning_pipeline
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
        self._early: EarlyKernels | None = None

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
        return f"{self._target_pass},{lowering_pipeline(checked)}"

    def lower(self, module: ir.Operation, checked: bool) -> None:
        if checked or self.as_one_text:
            lower(module, f"{self._target_pass},{planning_pipeline()}")
        else:
            before, outlining, behind = outlining_pipeline()
            lower(module, f"{self._target_pass},{before}")
            lower_layers(module, outlining)
            lower(module, behind)
        if self._known is not None and not checked:  # checked code numbers the accesses of its module
            self._known.link(module)
        processes = start_processes(sum(KERNEL in f.attributes for f in functions(module)))
        self._early = None if checked or self.as_one_text else build_early(module, self.target, processes)
        lower(module, building_pipeline(checked))

    def lower_apart(self, module: ir.Operation) -> None:
        """As :meth:`lower`, with all kernels built, each for the sizes that the report says."""
        lower(module, f"{self._target_pass},{planning_pipeline(merged=False)},{building_pipeline()}")

    def code(self, module: ir.Operation, manifest: Mapping[str, Any], listener: Listener | None) -> bytes:
        text = translate(module, manifest)
        if listener is not None:
            listener("ll", text)
            listener("s", assembly(text, self.target))
        early, self._early = self._early, None
        queue = None if early is None else early.queue
        made = object_code(text, self.target, self.kernels, named_texts(module), queue)
        if self._known is None:
            return made.archive()
        self._known.keep(module, made.symbols, made.codes, () if early is None else early.kept)
        return made.archive(self._known.codes)

    @property
    def _target_pass(self) -> str:
        return f"relax-set-target{{target={self._name} openmp={str(self.target.openmp).lower()}}}"

    @functools.cached_property
    def _known(self) -> KnownKernels | None:
        return None if self.kernels is None else KnownKernels(self.kernels, self.target)
