"""A program of ours that runs beside this process, takes requests and stays for the next: LLVM, which may end its process."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

__all__ = ["WorkerDeathError", "WorkerProcess", "WorkerProcesses"]


class WorkerDeathError(Exception):
    """The process ended: what it said last."""


class WorkerProcess:
    """One process, which starts with the first request; of this process alone: after a fork the child starts its own.

    A request is a line of JSON, and so is the answer.
    """

    def __init__(self, program: Path) -> None:
        """Args: program: a Python file that imports nothing of ours, so that it starts at once."""
        self.process_id = os.getpid()
        self._program = program
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None

    def start(self) -> None:
        """Starts the process ahead of its first request, beside what goes on here; what fails then fails at that request."""
        with self._lock, contextlib.suppress(OSError):
            self._started()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, one at a time.

        Raises:
            WorkerDeathError: the process ended over it; the next request starts another one.
        """
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
        return json.loads(line)

    def stop(self) -> None:
        """Ends the process: it reads no more."""
        if self._process is not None and self.process_id == os.getpid():
            self._process.communicate()
            self._close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
            # -P: files beside the program are no modules to it.
            command = [sys.executable, "-P", str(self._program)]
            # Without buffers, Python drops what is left of an answer when a signal interrupts its writing.
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                text=True,
                encoding="utf-8",
            )
        return self._process

    def _death(self) -> WorkerDeathError:
        assert self._process is not None
        assert self._errors is not None
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read()
        self._close()
        return WorkerDeathError(said.strip()[-2000:] or f"its process ended with {code}")

    def _close(self) -> None:
        assert self._process is not None
        for file in (self._process.stdin, self._process.stdout, self._errors):
            if file is not None:
                with contextlib.suppress(BrokenPipeError):
                    file.close()
        self._process, self._errors = None, None


class WorkerProcesses:
    """As many processes of one program as are asked for, kept until this process ends."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._kept: list[WorkerProcess] = []

    def first(self, count: int) -> list[WorkerProcess]:
        """So many of them, the same each time."""
        with self._lock:
            if self._kept and self._kept[0].process_id != os.getpid():
                self._kept = []
            while len(self._kept) < count:
                self._kept.append(WorkerProcess(self._program))
                atexit.register(self._kept[-1].stop)
            return self._kept[:count]
