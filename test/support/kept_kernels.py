"""Kernels are compiled once in a run of the tests, whichever test and process compiles them first."""

from __future__ import annotations

import os
from pathlib import Path

from relaxir import compiler
from relaxir.dump import Dump
from relaxir.lowering.compiler import Compiler
from relaxir.module import Module
from relaxir.object_cache import CompiledModule, ObjectCache

__all__ = ["keep_kernels"]

_LIMIT = 1 << 30


def keep_kernels(folder: Path) -> None:
    """From now on compiling without a cache takes kernels from a folder and keeps them there.

    A test that sets ``RELAXIR_CACHE_DIR`` is about what is kept, and does without.
    """
    compiled, kept = compiler._compiled, ObjectCache(folder, _LIMIT).kernels("tests")

    def keeping(
        module: Module, target: Compiler, pipeline: str, checked: bool, dump: Dump | None = None
    ) -> CompiledModule:  # fmt: skip
        if dump is None and os.environ.get("RELAXIR_CACHE_DIR") == "off":
            target.kernels = kept
        return compiled(module, target, pipeline, checked, dump)

    compiler._compiled = keeping
