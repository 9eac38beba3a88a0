"""Ranges of files elsewhere, several at once: what is asked for now, and ahead of that as much as a limit allows."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from .remote_file import RemoteFile

__all__ = ["DOWNLOAD_BYTES", "Downloads"]

# Bytes that are read ahead, at most; this is memory of the process.
_AHEAD_BYTES = 64 << 20

# One request's bytes: one of 8 MiB takes 20 times as long as its round trip (100 Mbit/s, 30 ms).
_PIECE = 8 << 20

# Object stores give some 100 MB/s to a connection, and more to several.
_THREADS = 8

#: Memory that downloads take at most, beside the tensors: drivers of fsspec return each request's bytes.
DOWNLOAD_BYTES = _AHEAD_BYTES + _THREADS * _PIECE

_Key = tuple[int, int, int]


class Downloads:
    """The downloads of one checkpoint; thread-safe."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="relaxir-download")
        self._ahead: dict[_Key, Future[bytearray]] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)

    def prefetch(self, file: RemoteFile, begin: int, end: int, what: str) -> None:
        """Starts reading a range that is going to be read, as far as there is room for it."""
        with self._lock:
            for at, count in _pieces(begin, end):
                key = (id(file), at, count)
                if self._bytes + count > _AHEAD_BYTES:
                    return
                if key not in self._ahead:
                    self._bytes += count
                    self._ahead[key] = self._pool.submit(_fetched, file, at, count, what)

    def read(self, file: RemoteFile, begin: int, view: memoryview, what: str) -> None:
        """Fills memory with the bytes from there on. Raises RelaxError as :meth:`RemoteFile.read`."""
        parts = {piece: view[piece[0] - begin :][: piece[1]] for piece in _pieces(begin, begin + len(view))}
        early = {piece: found for piece in parts if (found := self._taken((id(file), *piece))) is not None}
        late = [self._pool.submit(file.read, at, part, what) for (at, count), part in parts.items() if (at, count) not in early]
        try:
            for piece in list(early):
                parts[piece][:] = early[piece].result()
                self._settle(early.pop(piece), piece[1])
            for download in late:
                download.result()
        finally:
            for download in late:
                download.cancel()
            for (_, count), download in early.items():
                self._settle(download, count)

    def release(self, file: RemoteFile, begin: int, end: int) -> None:
        """Lets go of what was read ahead of a range that is not going to be read."""
        for at, count in _pieces(begin, end):
            found = self._taken((id(file), at, count))
            if found is not None:
                self._settle(found, count)

    def _taken(self, key: _Key) -> Future[bytearray] | None:
        with self._lock:
            return self._ahead.pop(key, None)

    def _settle(self, download: Future[bytearray], count: int) -> None:
        """Makes room for others of what was read ahead."""
        download.cancel()
        with self._lock:
            self._bytes -= count


def _pieces(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each request begins, and how many bytes it is for."""
    return ((at, min(_PIECE, end - at)) for at in range(begin, end, _PIECE))


def _fetched(file: RemoteFile, begin: int, count: int, what: str) -> bytearray:
    content = bytearray(count)
    file.read(begin, memoryview(content), what)
    return content
