"""Where results of a preparation go: memory for a step's outputs, and what takes them when they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..weights.arrays import ALIGNMENT, Array, ArraySpec, aligned_empty
from ..weights.sharded import ShardedWriter
from ..weights.writer import StreamWriter
from .scratch import Scratch

__all__ = ["FileSink", "MemorySink", "Sink", "Taker", "buffer_arrays", "buffer_bytes"]


#: Takes a result, or piece after piece of it, in the order of their bytes.
Taker = Callable[[Array], None]


class Sink(Protocol):
    """Where results go: memory for a step's outputs, ways to keep one, at once or in pieces, or a raw weight as it is."""

    def buffer_bytes(self, specs: Sequence[ArraySpec]) -> int: ...
    def outputs(self, specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]: ...
    def put(self, name: str, array: Array) -> None: ...
    def copy(self, name: str, array: Array) -> None: ...
    def begin(self, name: str, spec: ArraySpec) -> Taker: ...


class FileSink:
    """Results go through a shared buffer to the file: measured faster than computing into its mapped pages."""

    def __init__(self, writer: StreamWriter | ShardedWriter):
        self._writer = writer
        self.put = self.copy = writer.put

    def begin(self, name: str, spec: ArraySpec) -> Taker:
        del spec
        return self._writer.begin(name).put

    def buffer_bytes(self, specs: Sequence[ArraySpec]) -> int:
        return buffer_bytes(specs)

    def outputs(self, specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]:
        return buffer_arrays(specs, buffer)


class MemorySink:
    """Results are kept, each in memory of its own; raw weights that are kept as they are stay where they lie, if ``shares``."""

    def __init__(self, shares: bool = False) -> None:
        self.arrays: dict[str, Array] = {}
        self._shares = shares

    def buffer_bytes(self, specs: Sequence[ArraySpec]) -> int:
        return 0

    def outputs(self, specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]:
        return [aligned_empty(s.dtype, s.shape) for s in specs]

    def put(self, name: str, array: Array) -> None:
        self.arrays[name] = array

    def begin(self, name: str, spec: ArraySpec) -> Taker:
        whole = self.arrays[name] = aligned_empty(spec.dtype, spec.shape)
        there, filled = whole.reshape(-1), 0

        def put(piece: Array) -> None:
            nonlocal filled
            there[filled : filled + piece.size] = piece.reshape(-1)
            filled += piece.size

        return put

    def copy(self, name: str, array: Array) -> None:
        if self._shares and array.flags.c_contiguous and array.flags.aligned:
            self.arrays[name] = array
            return
        self.arrays[name] = aligned_empty(array.dtype, array.shape)
        self.arrays[name][...] = array


def buffer_bytes(specs: Sequence[ArraySpec]) -> int:
    """What these arrays take in one buffer."""
    return _offsets(specs)[-1]


def buffer_arrays(specs: Sequence[ArraySpec], buffer: Scratch) -> list[Array]:
    """Arrays in a buffer, which grows as they need."""
    offsets = _offsets(specs)
    buffer.grow(max(offsets[-1], 1))
    return [buffer.view(offset, s.dtype, s.shape) for offset, s in zip(offsets, specs, strict=False)]


def _offsets(specs: Sequence[ArraySpec]) -> list[int]:
    """Where each array begins in a buffer, and where the last one ends."""
    offsets = [0]
    for spec in specs:
        offsets.append(offsets[-1] + -(-spec.nbytes // ALIGNMENT) * ALIGNMENT)
    return offsets
