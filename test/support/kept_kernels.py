"""Kernels are compiled once, whichever test, process and run does so first; what makes their LLVM IR runs in each run."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from relaxir import compiler
from relaxir.dump import Dump
from relaxir.lowering.compiler import Compiler
from relaxir.lowering.cpu import codegen, llvm_worker
from relaxir.module import Module
from relaxir.object_cache import CompiledModule, KernelCache, ObjectCache

__all__ = ["forget_kernels", "keep_kernels"]

#: Bytes; a run has 0.1 GiB.
_LIMIT = 1 << 30


@dataclass(frozen=True)
class _Kept:
    """Kernels as LLVM compiled them, by target and LLVM IR, which stay; and as they were planned, which other sources may lower
    to other code: these are of one run.
    """  # fmt: skip

    always: KernelCache
    run: KernelCache

    def get(self, text: str) -> bytes | None:
        return self._of(text).get(text)

    def put(self, text: str, code: bytes) -> None:
        self._of(text).put(text, code)

    def _of(self, text: str) -> KernelCache:
        """A plan is a digest, and what LLVM compiles lines of text."""
        return self.always if "\n" in text else self.run


def keep_kernels(always: Path, run: Path) -> None:
    """From now on compiling without a cache takes kernels from two folders and keeps them there.

    A test that sets ``RELAXIR_CACHE_DIR`` is about what is kept, and does without.
    """
    sources = b"".join(Path(str(module.__file__)).read_bytes() for module in (codegen, llvm_worker))
    llvm = f"llvmlite {version('llvmlite')} {hashlib.sha256(sources).hexdigest()}"
    compiled = compiler._compiled
    kept = _Kept(ObjectCache(always, _LIMIT).kernels(llvm), ObjectCache(run, _LIMIT).kernels("tests"))

    def keeping(
        module: Module, target: Compiler, pipeline: str, checked: bool, dump: Dump | None = None
    ) -> CompiledModule:  # fmt: skip
        if dump is None and os.environ.get("RELAXIR_CACHE_DIR") == "off":
            target.kernels = kept
        return compiled(module, target, pipeline, checked, dump)

    compiler._compiled = keeping


def forget_kernels(always: Path) -> None:
    """Makes room where there are too many: those go that no run has used for longest."""
    ObjectCache(always, _LIMIT)._make_room(always)
