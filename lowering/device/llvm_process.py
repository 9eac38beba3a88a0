"""LLVM IR text to device code, by llvmlite in a process of its own that stays for the next text."""

from __future__ import annotations

import base64
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...dialect.errors import RelaxError
from ..worker_process import WorkerDeathError, WorkerProcesses

__all__ = ["LlvmTarget", "device_code_of"]

_PROCESSES = WorkerProcesses(Path(__file__).with_name("llvm_worker.py"))
_KERNEL = re.compile(r"^define (?:ptx_kernel|amdgpu_kernel) .*?@([\w.$-]+)\(", re.M)
_FATAL = re.compile(r"LLVM ERROR: (.*)")


@dataclass(frozen=True)
class LlvmTarget:
    """What LLVM compiles for: its names of the triple, the architecture (``"sm_90a"``) and features (``"+ptx86"``)."""

    triple: str
    cpu: str
    features: str = ""


@functools.lru_cache(maxsize=256)
def device_code_of(text: str, target: LlvmTarget, library: str | None = None, image: bool = False) -> bytes:
    """Device code of an LLVM IR text; equal texts are compiled once.

    Args:
        text: LLVM IR as llvmlite reads it.
        target: the GPU.
        library: a file of bitcode with functions that the text calls.
        image: whether an object file is wanted, not assembly.

    Raises:
        RelaxError: LLVM cannot compile the text, with the kernel where it says which. Its process may end at what it cannot
            select: that is no more than an error here.
    """
    fields = {"triple": target.triple, "cpu": target.cpu, "features": target.features}
    request = {"text": text, **fields, "library": library, "only": None, "image": image}
    try:
        return _answer(request)
    except WorkerDeathError as error:
        kernel, reason = _culprit(request) or ("device code", _said(error))
        raise RelaxError(f"LLVM cannot compile {kernel} for {target.cpu}: {reason}") from None


def _answer(request: dict[str, Any]) -> bytes:
    answer = _PROCESSES.first(1)[0].answer(request)
    if "error" in answer:
        raise RelaxError(f"LLVM cannot compile device code for {request['cpu']}: {answer['error'].strip()}")
    return base64.b64decode(answer["code"])


def _said(error: WorkerDeathError) -> str:
    fatal = _FATAL.search(str(error))
    return fatal[1] if fatal else str(error)[-500:]


def _culprit(request: dict[str, Any]) -> tuple[str, str] | None:
    """The kernel that LLVM cannot compile, and what it says: each is compiled alone, until the process ends."""
    for name in _KERNEL.findall(request["text"]):
        try:
            _answer(request | {"only": name})
        except WorkerDeathError as error:
            return f"kernel '@{name}'", _said(error)
    return None
