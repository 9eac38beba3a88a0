"""LLVM IR text to PTX, by llvmlite in a process of its own that stays for the next text."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

from ...dialect.errors import RelaxError
from .toolkit import libdevice

__all__ = ["ptx_of"]

_WORKER = Path(__file__).with_name("nvptx_worker.py")
_LIBRARY_CALL = re.compile(r"\bcall .*@(__nv_\w+)\(")
_KERNEL = re.compile(r"^define ptx_kernel .*?@([\w.$-]+)\(", re.M)
_FATAL = re.compile(r"LLVM ERROR: (.*)")


@functools.lru_cache(maxsize=256)
def ptx_of(text: str, cpu: str, features: str) -> str:
    """PTX of an LLVM IR text for a GPU; equal texts are compiled once.

    Args:
        text: LLVM IR as llvmlite reads it, of kernels with the calling convention ``ptx_kernel``.
        cpu: LLVM's name of the architecture, ``"sm_90a"``.
        features: LLVM's, ``"+ptx86"``.

    Raises:
        RelaxError: LLVM cannot compile the text, with the kernel where it says which; a function is needed that NVIDIA's
            device library has, and that is not installed. LLVM's process may end at what it cannot select: that is no more than
        an error here.
    """
    called = _LIBRARY_CALL.search(text)
    library = libdevice() if called else None
    if called and library is None:
        raise RelaxError(f"expected NVIDIA's device library, which has '{called[1]}' (pip install relaxir[cuda]), got none")
    request = {"text": text, "cpu": cpu, "features": features, "libdevice": None if library is None else str(library)}
    try:
        return _worker().answer(request)
    except _DeathError as error:
        kernel, reason = _culprit(request) or ("", str(error))
        raise RelaxError(f"LLVM cannot compile {kernel or 'a kernel'} for {cpu}: {reason}") from None


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

    def answer(self, request: dict[str, Any]) -> str:
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
        return answer["ptx"]

    def stop(self) -> None:
        """Ends the process: it reads no more."""
        if self._process is not None and self.process_id == os.getpid():
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()

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
        self._process, self._errors = None, None
        fatal = _FATAL.search(said)
        return _DeathError(fatal[1] if fatal else f"its process ended with {code}: {said.strip()[-500:]}")


_current: _Worker | None = None
_lock = threading.Lock()


def _worker() -> _Worker:
    global _current
    with _lock:
        if _current is None or _current.process_id != os.getpid():
            _current = _Worker()
            atexit.register(_current.stop)
        return _current
