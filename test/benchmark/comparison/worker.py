"""One peer in a process of its own: reads commands as JSON lines, answers each with one.

Only the answers go to standard output; what libraries print goes to standard error, which the parent keeps for error lines.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .cases import CASES
from .peers import PEERS, Loaded, NotApplicableError

#: Seconds of calls in one turn, and how many calls at most: enough for a median, short enough to alternate.
_TURN, _MOST = 0.1, 50


class Worker:
    """Holds the case that is loaded, if any."""

    def __init__(self, peer: str, threads: int, folder: Path):
        self._peer, self._threads, self._folder = PEERS[peer], threads, folder
        self._loaded: Loaded | None = None
        self._seconds = 0.0

    def hello(self) -> dict[str, Any]:
        """Whether the peer is installed."""
        missing = self._peer.missing()
        return {"missing": missing} if missing else {"version": self._peer.version()}

    def reference(self, case: str, formats: list[str]) -> dict[str, Any]:
        """Writes what peers share."""
        from . import reference

        return reference.write(CASES[case], self._folder / case, formats)

    def load(self, case: str) -> dict[str, Any]:
        """Builds a case, runs it once, and compares with torch."""
        self.drop()
        start = time.perf_counter()
        loaded = self._peer.load(CASES[case], self._folder / case, self._threads)
        built = time.perf_counter() - start
        error = _difference(loaded.arrays(loaded.call()), self._folder / case / "expected.npz")
        if not error <= CASES[case].tolerance:
            raise ValueError(f"expected a difference from torch of at most {CASES[case].tolerance:g}, got {error:.2g}")
        gc.collect()
        start = time.perf_counter()
        loaded.call()
        self._seconds = time.perf_counter() - start
        self._loaded = loaded
        return {"error": error, "load_s": built, "note": loaded.note}

    def turn(self) -> dict[str, Any]:
        """Seconds of some calls, one after the other; short ones after a call that warms the caches."""
        assert self._loaded is not None
        call = self._loaded.call
        count = max(1, min(_MOST, int(_TURN / max(self._seconds, 1e-7))))
        if count > 1:
            call()
        times = []
        for _ in range(count):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return {"times": times}

    def drop(self) -> dict[str, Any]:
        """Frees the case."""
        self._loaded = None
        gc.collect()
        return {}


def _difference(found: list[np.ndarray], path: Path) -> float:
    """The largest difference over all outputs, relative to each one's largest element; NaN where shapes differ."""
    with np.load(path) as file:
        expected = [file[name] for name in file.files]
    if not found or any(f.shape != e.shape for f, e in zip(found, expected, strict=False)):
        shapes = [list(f.shape) for f in found], [list(e.shape) for e in expected]
        raise ValueError(f"expected outputs of shapes {shapes[1]}, got {shapes[0]}")
    pairs = zip(found, expected, strict=False)  # llama.cpp gives logits alone, not what it adds to its cache
    return max(float(np.abs(np.asarray(f, np.float32) - e).max() / max(float(np.abs(e).max()), 1e-9)) for f, e in pairs)


def _answer(worker: Worker, command: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": getattr(worker, command.pop("do"))(**command)}
    except NotApplicableError as error:
        return {"not_applicable": str(error)}
    except (Exception, SystemExit) as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def _private_output() -> TextIO:
    """Standard output for answers only; file descriptor 1 becomes standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def _end_with_parent() -> None:
    """Linux kills this process when its parent dies; stopped, it would never see the end of its input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("peer")
    parser.add_argument("threads", type=int)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    _end_with_parent()
    answers = _private_output()
    worker = Worker(options.peer, options.threads, options.folder)
    for line in sys.stdin:
        print(json.dumps(_answer(worker, json.loads(line))), file=answers, flush=True)
    os._exit(0)  # some peers' pools hang when the interpreter tears them down


if __name__ == "__main__":
    main()
