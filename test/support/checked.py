"""Every executable of a process as a checked one, whatever compiles it: ``RELAXIR_CHECKED=1`` does this to the tests."""

from __future__ import annotations

from relaxir import compiler
from relaxir.dump import Dump
from relaxir.lowering.compiler import Compiler
from relaxir.module import Module
from relaxir.object_cache import CompiledModule

__all__ = ["check_all_code"]


def check_all_code() -> None:
    """From now on ``rx.compile`` behaves as with ``checked=True``."""
    compiled = compiler._compiled

    def checked(module: Module, target: Compiler, pipeline: str, _: bool, dump: Dump | None = None) -> CompiledModule:
        return compiled(module, target, pipeline, True, dump)

    compiler._compiled = checked
