"""Kernels are compiled once, whichever test, process and run does so first; what makes their LLVM IR runs in each run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from relaxir import compiler
from relaxir.dump import Dump
from relaxir.lowering.compiler import Compiler
from relaxir.lowering.cpu import codegen, llvm_worker
from relaxir.lowering.cpu.codegen import UnitQueue
from relaxir.lowering.cuda import assemble
from relaxir.lowering.device import llvm_process
from relaxir.lowering.device import llvm_worker as device_worker
from relaxir.module import Module
from relaxir.object_cache import CompiledModule, KernelCache, ObjectCache

__all__ = ["forget_kernels", "keep_kernels", "kept"]

_LIMIT = 1 << 30

#: Whether :func:`relaxir.compile` or what is within :func:`kept` compiles; tests of code generators call these themselves.
_IS_KEEPING: ContextVar[bool] = ContextVar("is_keeping", default=False)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """What is compiled within, other than by :func:`relaxir.compile`, is taken from the folder for all runs, and kept there."""
    token = _IS_KEEPING.set(os.environ.get("RELAXIR_CACHE_DIR") == "off")
    try:
        yield
    finally:
        _IS_KEEPING.reset(token)


def keep_kernels(always: Path, run: Path) -> None:
    """From now on compiling without a cache takes kernels from two folders and keeps them there.

    A test that sets ``RELAXIR_CACHE_DIR`` is about what is kept, and does without.

    Args:
        always: has what LLVM and NVIDIA's assembler made of texts, by text, target, and what compiles it.
        run: has kernels as they were planned, which other sources may lower to other code.
    """
    compiled, planned = compiler._compiled, ObjectCache(run, _LIMIT).kernels("tests")

    def keeping(
        module: Module, target: Compiler, pipeline: str, checked: bool, dump: Dump | None = None
    ) -> CompiledModule:  # fmt: skip
        if dump is not None or os.environ.get("RELAXIR_CACHE_DIR") != "off":
            return compiled(module, target, pipeline, checked, dump)
        target.kernels = planned
        with kept():
            return compiled(module, target, pipeline, checked, dump)

    compiler._compiled = keeping
    _keep_units(_by(always, f"llvmlite {version('llvmlite')}", codegen, llvm_worker))
    _keep_device_code(_by(always, f"llvmlite {version('llvmlite')}", llvm_process, device_worker))
    _keep_cubins(_by(always, "", assemble))


def _by(folder: Path, compiler: str, *sources: ModuleType) -> KernelCache:
    """What a compiler makes of texts, as these sources call it."""
    digest = hashlib.sha256(b"".join(Path(str(source.__file__)).read_bytes() for source in sources))
    return ObjectCache(folder, _LIMIT).kernels(f"{compiler} {digest.hexdigest()}")


def _keep_units(found_before: KernelCache) -> None:
    add, compiled = UnitQueue.add, UnitQueue.compiled
    new: WeakKeyDictionary[UnitQueue, dict[str, str]] = WeakKeyDictionary()

    def keeping_add(self: UnitQueue, texts: Mapping[str, str]) -> None:
        if _IS_KEEPING.get():
            target = self._target
            keys = {name: "\n".join([target.triple, target.cpu, target.features, text]) for name, text in texts.items()}
            found = {name: code for name, key in keys.items() if (code := found_before.get(key)) is not None}
            self._found.update(found)
            new.setdefault(self, {}).update((name, key) for name, key in keys.items() if name not in found)
        add(self, texts)

    def keeping_compiled(self: UnitQueue, own: llvm_worker.Units) -> dict[str, bytes]:
        made = compiled(self, own)
        for name, key in new.pop(self, {}).items():
            found_before.put(key, made[name])
        return made

    UnitQueue.add, UnitQueue.compiled = keeping_add, keeping_compiled


def _keep_device_code(found_before: KernelCache) -> None:
    """PTX of LLVM IR; an error is found again each time."""
    answer = llvm_process._answer

    def keeping(request: dict[str, Any]) -> bytes:
        if not _IS_KEEPING.get():
            return answer(request)
        library = hashlib.sha256(Path(request["library"]).read_bytes()).hexdigest() if request["library"] else None
        key = json.dumps(request | {"library": library}, sort_keys=True)
        code = found_before.get(key)
        if code is None:
            found_before.put(key, code := answer(request))
        return code

    llvm_process._answer = keeping


def _keep_cubins(found_before: KernelCache) -> None:
    """Machine code of PTX, with what the assembler says of it."""
    translated = assemble._translated

    def keeping(program: Path, ptx: str, name: str) -> tuple[bytes, str]:
        if not _IS_KEEPING.get():
            return translated(program, ptx, name)
        key = "\n".join((str(assemble.assembler()), name, ptx))
        code = found_before.get(key)
        if code is None:
            image, said = translated(program, ptx, name)
            found_before.put(key, code := b"\0".join((said.encode(), image)))
        said, _, image = code.partition(b"\0")
        return image, said.decode()

    assemble._translated = keeping


def forget_kernels(always: Path) -> None:
    """Makes room where there are too many: those go that no run has used for longest."""
    ObjectCache(always, _LIMIT)._make_room(always)
