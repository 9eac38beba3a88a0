"""One slice of a generator: seeds in, outcomes out, run in a forked process, so that a crash ends a seed and not the run."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from support.address_space import limit_address_space

__all__ = ["Check", "Outcome", "Worker", "outcomes"]

#: Runs one seed; see :mod:`fuzzing.generators`.
Check = Callable[[int], str | None]

#: Bytes that a worker may map beyond what its parent has.
MEMORY = 8 << 30
#: Times as long as a seed may compute it may wait: other processes have the machine, too.
_WAITING = 20
_SIGNALS = (signal.SIGALRM, signal.SIGPROF, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
_HUNG = {"SIGPROF": "out of time", "SIGALRM": "waits forever"}
#: Characters of a dead worker's output that are kept; LLVM and Python say last why they end.
_OUTPUT_KEPT = 4000


@dataclass(frozen=True)
class Outcome:
    """What became of a seed.

    Attributes:
        seed: which; -1 for a worker that died between seeds.
        kind: ``equal``, ``refused``, ``mismatch`` (an exception came out) or ``death``.
        reason: that of a refusal, the type and text of an exception, or the signal.
        detail: a traceback, or what a worker that died had printed.
    """

    seed: int
    kind: str
    reason: str = ""
    detail: str = ""

    @property
    def is_find(self) -> bool:
        return self.kind in ("mismatch", "death")


class Worker:
    """A forked process that runs seeds one after another.

    Attributes:
        pipe: a file descriptor that can be read when there is something to :meth:`receive`.
        ended: whether it has ended, and :meth:`receive` has told all.
    """

    def __init__(self, check: Check, seeds: Iterable[int], seconds: int, slice_seconds: float = 1e9):
        """Starts it. A seed that computes for more than ``seconds`` is a death; no seed begins after ``slice_seconds``."""
        self.ended = False
        self._running = -1
        self._rest = b""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the process has ended)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pipe, write = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            _child(check, seeds, seconds, slice_seconds, write, self._output.fileno())
        os.close(write)

    def receive(self) -> list[Outcome]:
        """What came out of it since the last time; waits when there is nothing yet, and after its end there is nothing."""
        if self.ended:
            return []
        data = os.read(self.pipe, 1 << 16)
        if not data:
            return self._death()
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = list[Outcome]()
        for message in map(json.loads, lines):
            self._running = -1 if "kind" in message else message["seed"]
            found += [Outcome(**message)] if "kind" in message else []
        return found

    def _death(self) -> list[Outcome]:
        self.ended = True
        os.close(self.pipe)
        _, status = os.waitpid(self._pid, 0)
        with self._output:
            self._output.seek(0)
            printed = self._output.read().decode(errors="replace")[-_OUTPUT_KEPT:]
        code = os.waitstatus_to_exitcode(status)
        if not code:
            return []
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return [Outcome(self._running, "death", _HUNG.get(reason, reason), printed)]


def outcomes(check: Check, seeds: Iterable[int], seconds: int) -> Iterator[Outcome]:
    """What becomes of these seeds; after a death it goes on with the next one."""
    left = list(seeds)
    while left:
        worker = Worker(check, left, seconds)
        while not worker.ended:
            for outcome in worker.receive():
                left = left[left.index(outcome.seed) + 1 :] if outcome.seed in left else []
                yield outcome


def _child(check: Check, seeds: Iterable[int], seconds: int, slice_seconds: float, pipe: int, output: int) -> None:
    """Runs the seeds and ends the process."""
    code = 99
    try:
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        faulthandler.enable(sys.stderr)
        limit_address_space(MEMORY)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        end = time.monotonic() + slice_seconds
        for seed in seeds:
            _tell(pipe, {"seed": seed})
            _limit(seconds)
            outcome = _run(check, seed)
            _limit(0)
            _tell(pipe, vars(outcome))
            if time.monotonic() > end:
                break
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _limit(seconds: int) -> None:
    """Ends the process after so much of the processor's time, which a busy machine does not use up, or if it waits forever."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(_WAITING * seconds)


def _tell(pipe: int, message: dict[str, object]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


def _run(check: Check, seed: int) -> Outcome:
    try:
        reason = check(seed)
    except Exception as error:
        lines = f"{type(error).__name__}: {error}".splitlines()
        return Outcome(seed, "mismatch", lines[0][:300], traceback.format_exc())
    return Outcome(seed, "equal") if reason is None else Outcome(seed, "refused", reason)
