"""A preparation killed at any of its system calls and then run again: what comes out is what one run makes.

check(seed)     raises AssertionError when it is not; deterministic but for threads
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relaxir.weights import StreamWriter, write_safetensors
from support.hand_compiled import doubling

__all__ = ["check"]

#: What a writer asks of the system.
CALLS = ("open", "pwrite", "write", "fdatasync", "fsync", "replace", "unlink", "ftruncate", "posix_fallocate", "lseek")


def check(seed: int) -> None:
    """Prepares weights of random sizes, killed up to three times, once more to the end."""
    rng = random.Random(seed)
    count, elements = rng.randint(1, 12), rng.choice([4, 1000, 5000, 40_000])
    with tempfile.TemporaryDirectory() as folder:
        raw, out, whole = (str(Path(folder, n)) for n in ("raw", "out", "whole"))
        write_safetensors(raw, {f"w{i}": np.full(elements, rng.random(), np.float32) for i in range(count)})
        executable, jobs = doubling(count, elements), rng.choice([1, 1, 3])
        _set_flush_bytes(rng.choice([1, 3 * 4 * elements, 1 << 30]))
        executable.prepare(raw, whole)
        for _ in range(rng.randint(1, 3)):
            at, part = rng.randrange(12 + 6 * count), rng.choice([None, 0.0, 0.5, 1.0])
            status = _forked(lambda at=at, part=part: _killed_at(at, part, lambda: executable.prepare(raw, out, jobs)))
            assert status in (0, -signal.SIGKILL), f"seed {seed}: status {status}"
            _set_flush_bytes(rng.choice([1, 3 * 4 * elements, 1 << 30]))
            assert status == 0 or not os.path.exists(out) or _same(out, whole), f"seed {seed}: half a file"
        executable.prepare(raw, out, jobs)
        assert _same(out, whole), f"seed {seed}: another file than an uninterrupted run makes"
        assert sorted(os.listdir(folder)) == ["out", "raw", "whole"], f"seed {seed}: {os.listdir(folder)}"


def _set_flush_bytes(count: int) -> None:
    defaults = StreamWriter.__init__.__kwdefaults__
    assert defaults is not None
    defaults["flush_bytes"] = count


def _killed_at(at: int, part: float | None, work: Callable[[], object]) -> None:
    """Does the work until its system call of that number, which is done in part (None: it is done, then the end comes)."""
    seen = 0

    def wrapped(real: Callable[..., Any], writes: bool) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen <= at:
                return real(*args, **kwargs)
            if writes and part is not None:
                real(args[0], args[1][: int(len(args[1]) * part)], *args[2:])
            elif part is None:
                real(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name), name in ("pwrite", "write")))
    work()


def _same(path: str, other: str) -> bool:
    return Path(path).read_bytes() == Path(other).read_bytes()


def _forked(work: Callable[[], object]) -> int:
    """The exit code of a child that does it, or the negative number of the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
