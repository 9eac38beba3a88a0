"""The parent's side of a peer's process: commands with a time limit, errors as one line, and stopped while others run."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["FailureError", "Process"]

#: The checkout that this file is in.
_CHECKOUT = Path(__file__).resolve().parents[3]

#: Variables that set how many threads a peer's libraries use.
_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TVM_NUM_THREADS",
    "RELAXIR_NUM_THREADS",
)


class FailureError(Exception):
    """What a peer's row shows instead of a time.

    Attributes:
        applicable: False where the peer has nothing of its own for the case.
        late: whether it took too long.
    """

    def __init__(self, text: str, applicable: bool = True, late: bool = False):
        super().__init__(text)
        self.applicable = applicable
        self.late = late


class Process:
    """A peer's process; one that crashed or took too long is started again by the next command."""

    def __init__(self, python: str, peer: str, threads: int, folder: Path, checkout: Path = _CHECKOUT):
        paths = [str(checkout / "test" / "benchmark"), str(checkout / "test")]  # of this package, and of ``support``
        self._command = [python, "-m", "comparison.worker", peer, str(threads), str(folder)]
        self._environment = os.environ | dict.fromkeys(_THREADS, str(threads))
        self._environment |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._child: subprocess.Popen[bytes] | None = None

    def ask(self, do: str, seconds: float, **arguments: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer. Raises FailureError."""
        child = self._running()
        os.kill(child.pid, signal.SIGCONT)
        try:
            answer = self._answer(child, json.dumps({"do": do} | arguments), seconds)
        finally:
            if child.poll() is None:
                os.kill(child.pid, signal.SIGSTOP)  # an idle pool that spins would take the next peer's core
        if "not_applicable" in answer:
            raise FailureError(answer["not_applicable"], applicable=False)
        if "failed" in answer:
            raise FailureError(_one_line(answer["failed"]))
        return answer["ok"]

    @property
    def gib(self) -> float:
        """Memory that the process has, without what it only maps."""
        try:
            pages = int(Path(f"/proc/{self._child.pid}/statm").read_text().split()[1]) if self._child else 0
        except OSError:  # gone
            return 0.0
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 30)

    def close(self) -> None:
        """Ends the process."""
        if self._child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)  # and the compilers that it started
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # of a command that nobody read
                    pipe.close()
        self._child = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is not None:
            self.close()
        if self._child is None:
            self._log.seek(0)
            self._log.truncate()
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=self._environment,
                start_new_session=True,  # an interrupt is the parent's to handle
            )
        return self._child

    def _answer(self, child: subprocess.Popen[bytes], command: str, seconds: float) -> dict[str, Any]:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(command.encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            raise FailureError(self._crash(child)) from None
        end, text = time.monotonic() + seconds, b""
        while not text.endswith(b"\n"):
            if not select.select([child.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                self.close()
                raise FailureError(f"no result within {seconds:.0f} s", late=True)
            part = os.read(child.stdout.fileno(), 1 << 16)
            if not part:
                raise FailureError(self._crash(child))
            text += part
        return json.loads(text)

    def _crash(self, child: subprocess.Popen[bytes]) -> str:
        code = child.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self.close()
        return _one_line(f"process ended by {how}: {lines[-1] if lines else ''}")


def _one_line(text: str) -> str:
    """The first 200 characters, line breaks as spaces."""
    return " ".join(text.split())[:200]
