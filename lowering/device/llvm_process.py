"""LLVM IR text to device code, by llvmlite in a process of its own that stays for the next text."""

from __future__ import annotations

import atexit
import base64
import contextlib
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ...dialect.errors import RelaxError

__all__ = ["LlvmTarget", "device_code_of"]

_WORKER = Path(__file__).with_name("llvm_worker.py")
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
        return _worker().answer(request)
    except _DeathError as error:
        kernel, reason = _culprit(request) or ("device code", str(error))
        raise RelaxError(f"LLVM cannot compile {kernel} for {target.cpu}: {reason}") from None


def _culprit(request: dict[str, Any]) -> tuple[str, str] | None:
    """The kernel that LLVM cannot compile, and what it says: each is compiled alone, until the process ends."""
    for name in _KERNEL.findall(request["text"]):
        try:
            _worker().answer(request | {"only": name})
        except _DeathError as error:
            return f"kernel '@{name}'", str(error)
    return None


class _DeathError(Exception):
    """The process ended: what LLVM said last."""


class _Worker:
    """The process, of this process alone: after a fork the child starts its own."""

    def __init__(self) -> None:
        self.process_id = os.getpid()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None

    def answer(self, request: dict[str, Any]) -> bytes:
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            line = ""
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            if not line:
                raise self._death()
        answer = json.loads(line)
        if "error" in answer:
            raise RelaxError(f"LLVM cannot compile device code for {request['cpu']}: {answer['error'].strip()}")
        return base64.b64decode(answer["code"])

    def stop(self) -> None:
        """Ends the process: it reads no more."""
        if self._process is not None and self.process_id == os.getpid():
            self._process.communicate()
            self._close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
            # -P: files beside the program are no modules to it.
            command = [sys.executable, "-P", str(_WORKER)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8"
            )
        return self._process

    def _death(self) -> _DeathError:
        """What LLVM said last; the next request starts another process."""
        assert self._process is not None
        assert self._errors is not None
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read()
        self._close()
        fatal = _FATAL.search(said)
        return _DeathError(fatal[1] if fatal else f"its process ended with {code}: {said.strip()[-500:]}")

    def _close(self) -> None:
        assert self._process is not None
        for file in (self._process.stdin, self._process.stdout, self._errors):
            if file is not None:
                with contextlib.suppress(BrokenPipeError):
                    file.close()
        self._process, self._errors = None, None


_current: _Worker | None = None
_lock = threading.Lock()


def _worker() -> _Worker:
    global _current
    with _lock:
        if _current is None or _current.process_id != os.getpid():
            _current = _Worker()
            atexit.register(_current.stop)
        return _current
