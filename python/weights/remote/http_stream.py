"""Files of HTTP servers that send no ranges: each is read from its beginning on, as far as it is needed, into a temporary file.

``python -m http.server`` is such a server. What was read is kept, so that nothing is asked for twice; a stream that breaks off
is begun again, and goes on where it was. The temporary file is where ``TMPDIR`` says, has no name, and goes with this object.
"""

from __future__ import annotations

import os
import tempfile
import threading
from typing import Any, BinaryIO, cast

from .http_file import HttpFile, interruptions, tag_of
from .transport import HEAD_BYTES, AttemptError, Opened, RefusedAccessError

__all__ = ["HttpStream"]

_PIECE = 1 << 20


class HttpStream:
    """A file of an HTTP server, as a stream; see :class:`.transport.Transport`."""

    def __init__(self, file: HttpFile):
        """Takes the file, of which nothing is read yet. Raises RefusedAccessError where no temporary file can be made."""
        self._source = file
        self._lock = threading.Lock()
        self._answer: Any = None
        self._opened: Opened | None = None
        self._size: int | None = None
        self._have = 0
        try:
            kept = tempfile.TemporaryFile(prefix="relaxir-", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise RefusedAccessError(f"no ranges from its server, and no temporary file: {error}") from None
        self._kept = cast("BinaryIO", kept)

    def open(self) -> Opened:
        with self._lock:
            self._begin()
            if self._size is None:  # a server that says not how long the file is
                self._read_to(None)
                self._size = self._have
            self._read_to(min(self._size, HEAD_BYTES))
            head = os.pread(self._kept.fileno(), min(self._size, HEAD_BYTES), 0)
            self._opened = Opened(self._size, tag_of(self._answer), head)
            return self._opened

    def read(self, begin: int, view: memoryview, opened: Opened) -> int:
        with self._lock:
            self._read_to(begin + len(view))
        return os.preadv(self._kept.fileno(), [view], begin)

    def whole(self, limit: int) -> bytes:
        return self._source.whole(limit)

    def check_unchanged(self, opened: Opened) -> None:
        """Nothing to ask: the whole file is of one answer, or of several that agree in size and tag."""

    def _begin(self) -> None:
        """Asks for the file, and leaves what is there already."""
        self._end()
        answer = self._source.all()
        length = answer.headers.get("Content-Length", "")
        size = int(length) if length.isdecimal() else None
        opened = self._opened
        if opened is not None and ((size or opened.size) != opened.size or tag_of(answer) != opened.tag):
            answer.close()
            raise RefusedAccessError("another one: it was replaced while it is read")
        self._answer, self._size = answer, size if opened is None else opened.size
        left = self._have
        while left:
            left -= len(self._piece(min(left, _PIECE)))

    def _read_to(self, end: int | None) -> None:
        """Reads on until so much of the file is here, or all of one whose size is not known."""
        while end is None or self._have < end:
            if self._answer is None:
                self._begin()
            piece = self._piece(_PIECE if self._size is None else min(_PIECE, self._size - self._have), end is None)
            if not piece:
                return
            try:
                self._kept.seek(self._have)
                left = piece
                while left:  # a disk that is nearly full takes a part
                    left = left[self._kept.write(left) :]
            except OSError as error:
                raise RefusedAccessError(f"no ranges from its server, and no room to keep it: {error}") from None
            self._have += len(piece)

    def _piece(self, count: int, may_end: bool = False) -> bytes:
        """Bytes of the stream; none at its end, where that may be."""
        try:
            with interruptions():
                piece: bytes = self._answer.read1(count)
        except AttemptError:
            self._end()
            raise
        if not piece and not may_end:
            self._end()
            raise AttemptError(f"{self._have} of {self._size} bytes")
        return piece

    def _end(self) -> None:
        if self._answer is not None:
            self._answer.close()
        self._answer = None
