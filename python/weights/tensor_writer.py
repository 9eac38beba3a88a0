"""One tensor's bytes, piece by piece, into their place in a file, and their checksum."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass

import numpy as np

from ..dialect.errors import RelaxError
from .arrays import Array, ArraySpec
from .checksums import PAGE, Checksum, crc32, start
from .direct_file import DirectFile
from .files import os_errors

__all__ = ["TensorPlace", "TensorWriter"]


@dataclass(frozen=True)
class TensorPlace:
    """Where a tensor goes: its name and spec, the offset in the file, and whether a checksum is wanted."""

    name: str
    spec: ArraySpec
    offset: int
    has_checksum: bool


class TensorWriter:
    """Takes the bytes of one tensor in order, from one thread at a time."""

    def __init__(
        self, place: TensorPlace, direct: DirectFile, path: str, finish: Callable[[Checksum | None], None]
    ):  # fmt: skip
        """Writes to ``direct``, which errors call by ``path``; ``finish`` gets the checksum behind the last byte."""
        self._place, self._direct, self._path, self._finish = place, direct, path, finish
        self._done = 0
        self._first = self._last = b""
        self._whole = start(place.name, place.spec)

    def put(self, array: Array) -> None:
        """Writes the next bytes of the tensor, those of an array; one that is not contiguous is copied first.

        Raises:
            RelaxError: the tensor has not so many bytes left, or writing fails.
        """
        content = _bytes_of(self._place.name, array)
        left = self._place.spec.nbytes - self._done
        if len(content) > left:
            raise RelaxError(f"'{self._path}': tensor {self._place.name!r}: expected {left} bytes more, got {len(content)}")
        with os_errors("write", self._path):
            self._write(content)
        self._done += len(content)
        if self._done == self._place.spec.nbytes:
            self._finish(self._checksum() if self._place.has_checksum else None)

    def _write(self, content: memoryview) -> None:
        offset, started = self._place.offset + self._done, list[Future[None]]()
        try:
            for piece in self._direct.pieces(content):
                written = self._direct.start(piece, offset)
                started += [written] if written is not None else []
                if self._place.has_checksum:  # while the piece is written
                    self._whole = crc32(piece, self._whole)
                offset += len(piece)
        finally:
            wait(started)
        for written in started:
            written.result()
        if len(self._first) < PAGE:
            self._first += content[: PAGE - len(self._first)]
        self._last = (self._last + content[-PAGE:])[-PAGE:]

    def _checksum(self) -> Checksum:
        """As :meth:`Checksum.of` has it."""
        began = start(self._place.name, self._place.spec)
        return Checksum(crc32(self._last, crc32(self._first, began)), self._whole)


def _bytes_of(name: str, array: Array) -> memoryview:
    try:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    except MemoryError:
        raise RelaxError(f"tensor {name!r}: expected memory for {ArraySpec.of(array)}, got none") from None
