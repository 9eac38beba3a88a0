"""Work in a forked process: what it returns, raises, or dies of, and an end to what hangs."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import selectors
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Ending", "ended"]


@dataclass(frozen=True)
class Ending:
    """How work ended.

    Attributes:
        kind: ``returned``, ``raised``, ``died`` (of a signal, or an exit code of its own) or ``hung``.
        value: what it returned.
        text: type and text of what it raised, or the signal's name.
    """

    kind: str
    value: Any = None
    text: str = ""


def ended(work: Callable[[], Any], seconds: float) -> Ending:
    """Runs a function in a child of this process, and waits at most ``seconds``.

    What the child prints is dropped. What it returns has to be picklable.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _run(work, write)
    os.close(write)
    try:
        answer, in_time = _read(read, time.monotonic() + seconds)
    finally:
        os.close(read)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if not in_time:
        return Ending("hung", text=f"more than {seconds:g} s")
    if answer:
        return Ending(*pickle.loads(answer))
    code = os.waitstatus_to_exitcode(status)
    return Ending("died", text=signal.Signals(-code).name if code < 0 else f"exit code {code}")


def _read(pipe: int, end: float) -> tuple[bytes, bool]:
    """All that comes out of a pipe, and whether it was closed in time."""
    parts = list[bytes]()
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while ready.select(max(0.0, end - time.monotonic())):
            part = os.read(pipe, 1 << 16)
            if not part:
                return b"".join(parts), True
            parts.append(part)
    return b"", False


def _run(work: Callable[[], Any], pipe: int) -> None:
    """Does the work, tells how it ended, and ends the process."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        try:
            answer = ("returned", work())
        except Exception as error:
            answer = ("raised", None, f"{type(error).__name__}: {error}")
        data = pickle.dumps(answer)
        while data:
            data = data[os.write(pipe, data) :]
    finally:
        os._exit(0)
