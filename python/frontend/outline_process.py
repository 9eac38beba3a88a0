"""A process that lowers torch ops, so that a crash of torch-mlir, or a loop without end in it, is an error here.

It is started when the first op is to be lowered and serves all that follow; torch is not imported there. Starting takes 0.4 s
of CPU time, each op 10 to 100 ms as in this process, and 0.2 ms for the way there and back.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import resource
import selectors
import signal
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import IO, Any

from ..dialect.errors import RelaxError

__all__ = ["TIMEOUT", "Lowering", "serve"]

#: Seconds for one op. The slowest seen took 0.3 s on an idle machine.
TIMEOUT = 120.0

_LENGTH = struct.Struct("<q")

_PROGRAM = "from {package}.outline_process import serve; serve()"


@dataclass
class Lowering:
    """Lowers ops in a process of its own; a new one after that one died.

    Attributes:
        timeout: seconds until an op is given up.
    """

    timeout: float = TIMEOUT
    _process: subprocess.Popen[bytes] | None = None
    _owner: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lowered_text(self, text: str, operator: str) -> str | None:
        """As :func:`.torch_lowering.lowered_text`.

        Raises:
            RelaxError: also when the process crashed or took too long.
        """
        with self._lock:
            kind, answer = self._asked([text, operator, self.timeout])
        if kind == "refused":
            raise RelaxError(answer)
        return answer

    def close(self) -> None:
        """Ends the process, if it is this one's child: a fork of this process leaves it alone."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _asked(self, question: object) -> Any:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _write(process.stdin, json.dumps(question).encode())
            return json.loads(_read(process.stdout.fileno(), time.monotonic() + self.timeout))
        except TimeoutError:
            self.close()
            raise RelaxError(f"torch-mlir took more than {self.timeout:g} s to lower it") from None
        except (EOFError, OSError):
            self.close()
            raise RelaxError("torch-mlir crashed while it lowered it") from None
        except BaseException:  # interrupted: the answer would be taken for that of the next question
            self.close()
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.close()
            self._process, self._owner = _start(), os.getpid()
        return self._process


def _start() -> subprocess.Popen[bytes]:
    """Python with this process's import path, and nothing of its output."""
    program = _PROGRAM.format(package=__package__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise RelaxError(f"cannot start a process to lower it in: {error}") from None


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _read(descriptor: int, deadline: float) -> bytes:
    (length,) = _LENGTH.unpack(_read_exactly(descriptor, _LENGTH.size, deadline))
    return _read_exactly(descriptor, length, deadline)


def _read_exactly(descriptor: int, count: int, deadline: float) -> bytes:
    """Raises TimeoutError, or EOFError when the other end is closed."""
    parts: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while count:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            part = os.read(descriptor, min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
    return b"".join(parts)


def serve() -> None:
    """Answers questions from standard input until it is closed: what the process runs."""
    from .torch_lowering import lowered_text

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what C++ prints must not get among the answers
    while head := sys.stdin.buffer.read(_LENGTH.size):
        text, operator, timeout = json.loads(sys.stdin.buffer.read(*_LENGTH.unpack(head)))
        signal.alarm(int(timeout) + 5)  # ends this process in C++, too, when nobody is left to do it
        try:
            answer = ["lowered", lowered_text(text, operator)]
        except RelaxError as error:
            answer = ["refused", error.args[0]]
        signal.alarm(0)
        _write(answers, json.dumps(answer).encode())


#: The one that imports use.
lowering = Lowering()
atexit.register(lowering.close)
