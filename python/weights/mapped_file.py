"""A file that is mapped to be read: what it was when it was opened, and advice to the kernel about its pages."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from ..dialect.errors import ContentError, RelaxError
from .files import os_errors

__all__ = ["MappedFile", "read_exactly"]

# What one call of the system fills at most (IOV_MAX of Linux).
_MOST_BUFFERS = 1024


def read_exactly(descriptor: int, begin: int, view: memoryview, path: str, tensor: str) -> None:
    """Fills memory with a file's bytes from there on, those of a tensor.

    Raises:
        RelaxError: they cannot be read, or are not there any more.
    """
    while len(view):
        with os_errors(f"read tensor {tensor!r} of", path):
            count = os.preadv(descriptor, [view], begin)
        if not count:
            text = "expected a file that stays as it is while it is read, got one that was cut off"
            raise RelaxError(f"'{path}': tensor {tensor!r}: {text}")
        view, begin = view[count:], begin + count


class MappedFile:
    """One mapped file, which must stay as it is while it is read.

    Attributes:
        path: its name.
        size: its bytes.
        status: what the system says of it.
        map: its content; empty files cannot be mapped.
    """

    map: mmap.mmap

    def __init__(self, path: str, file: BinaryIO):
        """Takes an open file; :meth:`map_content` maps it."""
        self.path, self.status = path, os.fstat(file.fileno())
        self.size = self.status.st_size

    def map_content(self, file: BinaryIO) -> None:
        """Maps the whole file, and keeps it open to be read."""
        self.map = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_READ)
        self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)

    def read(self, begin: int, view: memoryview, tensor: str) -> None:
        """Fills memory with the bytes from there on, those of a tensor. Raises RelaxError as :func:`read_exactly`."""
        read_exactly(self._descriptor, begin, view, self.path, tensor)

    def read_runs(self, begin: int, runs: Iterable[tuple[int, int]], view: memoryview, tensor: str) -> None:
        """Fills memory with runs of a tensor's bytes, each a place behind ``begin`` and a count, one behind the other.

        Raises:
            RelaxError: as :func:`read_exactly`.
        """
        descriptor, preadv, done = self._descriptor, os.preadv, 0
        with os_errors(f"read tensor {tensor!r} of", self.path):
            for place, count in runs:  # one for each row of a matrix: what is not the call itself would take as long
                part, done = view[done : done + count], done + count
                got = preadv(descriptor, (part,), begin + place)
                if got != count:
                    read_exactly(descriptor, begin + place + got, part[got:], self.path, tensor)

    def read_rows(self, begin: int, stride: int, pieces: Sequence[tuple[memoryview, int]], tensor: str) -> None:
        """Fills pieces of memory from rows that begin ``stride`` bytes apart: of each row so many bytes for each piece.

        Raises:
            RelaxError: as :func:`read_exactly`.
        """
        if len(pieces) > _MOST_BUFFERS:
            first = pieces[:_MOST_BUFFERS]
            self.read_rows(begin, stride, first, tensor)
            return self.read_rows(begin + sum(count for _, count in first), stride, pieces[_MOST_BUFFERS:], tensor)
        descriptor, preadv, whole = self._descriptor, os.preadv, sum(count for _, count in pieces)
        with os_errors(f"read tensor {tensor!r} of", self.path):
            for row in range(len(pieces[0][0]) // pieces[0][1]):
                parts = [memory[row * count : (row + 1) * count] for memory, count in pieces]
                if preadv(descriptor, parts, begin + row * stride) == whole:
                    continue
                at = begin + row * stride
                for part in parts:
                    read_exactly(descriptor, at, part, self.path, tensor)
                    at += len(part)

    def read_ahead(self, begin: int, end: int) -> None:
        """Starts reading these bytes, and none around them as a first touch would, into the page cache."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, begin, end - begin, os.POSIX_FADV_WILLNEED)

    def check_unchanged(self) -> None:
        """Raises RelaxError when the mapped file is not what was opened any more; one that took its place is another matter."""
        try:
            now = os.stat(self.path)
        except OSError:  # gone: what is mapped is still there
            return
        was = self.status
        same_file = (now.st_dev, now.st_ino) == (was.st_dev, was.st_ino)
        if same_file and (now.st_size, now.st_mtime_ns) != (was.st_size, was.st_mtime_ns):
            got = f"{now.st_size} bytes instead of {was.st_size}" if now.st_size != was.st_size else "one that was written to"
            raise ContentError(f"'{self.path}': expected a file that stays as it is while it is read, got {got}")

    def advise(self, option: int, begin: int, end: int) -> None:
        """Tells the kernel about whole pages of a byte range; the range may be empty."""
        if end > begin:
            self.map.madvise(option, begin, end - begin)
