"""The process of a peer, which answers lines with lines, and is started again behind what ended it or took too long."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Sequence

__all__ = ["PeerProcess"]


class PeerProcess:
    """A process that says a line when it is ready, and answers each line with a list of an outcome and why.

    Args:
        command: what starts it.
        start: seconds until it is ready.
        limit: seconds for an answer.
    """

    def __init__(self, command: Sequence[str], start: float, limit: float):
        self._command, self._start, self._limit = list(command), start, limit
        self._child: subprocess.Popen[str] | None = None

    def ask(self, line: str) -> tuple[str, str]:
        """What it answers; ``died`` or ``late`` where it does not."""
        if self._child is None:
            self._child = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            if not self._line(self._start):
                self.close()
                raise SystemExit(f"expected a process that starts, got none of {' '.join(self._command)}")
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        answer = self._line(self._limit)
        if answer:
            return tuple(json.loads(answer))
        code = self._child.poll()
        self.close()
        return ("late", f"no result in {self._limit} s") if code is None else ("died", f"the process ended with {code}")

    def _line(self, seconds: float) -> str:
        """What it says next; nothing where it ended, or says nothing for so long."""
        assert self._child is not None
        assert self._child.stdout is not None
        if not select.select([self._child.stdout], [], [], seconds)[0]:
            return ""
        line = self._child.stdout.readline()
        if not line:
            self._child.wait()
        return line

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None
