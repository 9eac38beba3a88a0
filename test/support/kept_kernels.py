"""Kernels are compiled once, whichever test, process and run does so first; what makes their LLVM IR runs in each run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path

from relaxir import compiler
from relaxir.dump import Dump
from relaxir.lowering.compiler import Compiler
from relaxir.lowering.cpu import codegen, llvm_worker
from relaxir.lowering.target import Target
from relaxir.module import Module
from relaxir.object_cache import CompiledModule, ObjectCache

__all__ = ["forget_kernels", "keep_kernels"]

_LIMIT = 1 << 30

#: Whether a module is compiled by :func:`relaxir.compile`; tests of the code generator call it themselves.
_IS_KEEPING: ContextVar[bool] = ContextVar("is_keeping", default=False)


def keep_kernels(always: Path, run: Path) -> None:
    """From now on compiling without a cache takes kernels from two folders and keeps them there.

    A test that sets ``RELAXIR_CACHE_DIR`` is about what is kept, and does without.

    Args:
        always: has what LLVM made of texts, by text, target and LLVM.
        run: has kernels as they were planned, which other sources may lower to other code.
    """
    compiled, kept = compiler._compiled, ObjectCache(run, _LIMIT).kernels("tests")

    def keeping(
        module: Module, target: Compiler, pipeline: str, checked: bool, dump: Dump | None = None
    ) -> CompiledModule:  # fmt: skip
        if dump is not None or os.environ.get("RELAXIR_CACHE_DIR") != "off":
            return compiled(module, target, pipeline, checked, dump)
        target.kernels = kept
        token = _IS_KEEPING.set(True)
        try:
            return compiled(module, target, pipeline, checked, dump)
        finally:
            _IS_KEEPING.reset(token)

    compiler._compiled = keeping
    _keep_units(always)


def _keep_units(folder: Path) -> None:
    sources = b"".join(Path(str(module.__file__)).read_bytes() for module in (codegen, llvm_worker))
    kept = ObjectCache(folder, _LIMIT).kernels(f"llvmlite {version('llvmlite')} {hashlib.sha256(sources).hexdigest()}")
    compiled = codegen._compiled

    def keeping(texts: Sequence[str], own: llvm_worker.Units, target: Target) -> list[bytes]:
        if not _IS_KEEPING.get():
            return compiled(texts, own, target)
        keys = ["\n".join([target.triple, target.cpu, target.features, text]) for text in texts]
        found = {key: code for key in keys if (code := kept.get(key)) is not None}
        missing = [i for i, key in enumerate(keys) if key not in found]
        for i, code in zip(missing, compiled([texts[i] for i in missing], own, target), strict=True):
            kept.put(keys[i], code)
            found[keys[i]] = code
        return [found[key] for key in keys]

    codegen._compiled = keeping


def forget_kernels(always: Path) -> None:
    """Makes room where there are too many: those go that no run has used for longest."""
    ObjectCache(always, _LIMIT)._make_room(always)
