"""The profiles' part of the ``cpu`` backend: object code with clocks around kernels, and loops of vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.bindings import ir
from ..arena import watching_arenas
from ..compile import manifest_of
from ..manifest import Manifest
from ..profiling import ClockedCode, ClockProfiling, LimitLoops
from .clocks import with_clocks
from .codegen import object_code
from .compiler import CpuCompiler
from .limit_loops import CHAINS, limit_loops
from .translate import translate
from .wrapper import body_name

__all__ = ["CpuProfiling"]


class CpuProfiling(ClockProfiling):
    """Profiles of code for this processor."""

    def __init__(self, here: Mapping[str, Any], manifest: Mapping[str, Any]):
        del manifest
        self._compiler = CpuCompiler("cpu", here)

    @property
    def compiler(self) -> CpuCompiler:
        return self._compiler

    def clocked(self, module: ir.Operation) -> ClockedCode:
        with watching_arenas() as arenas:
            self.compiler.lower_apart(module)
        manifest = manifest_of(module, self.compiler)
        bodies = {name: body_name(spec) for name, spec in Manifest.of(manifest).entries.items()}
        text, calls = with_clocks(translate(module, manifest), bodies)
        return ClockedCode(object_code(text, self.compiler.target).archive(), manifest, tuple(calls), tuple(arenas))

    def limit_loops(self) -> LimitLoops:
        lanes = self.compiler.target.vector_bits // 32
        code = object_code(limit_loops(lanes), self.compiler.target).archive()
        return LimitLoops(code, "relaxir_multiply", "relaxir_read", lanes, 2 * lanes * CHAINS)
