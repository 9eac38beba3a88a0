"""Memory of a preparation's steps: buffers that all steps of a thread share, and results that are written behind them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import NamedTuple

from .scratch import Scratch

__all__ = ["Need", "StepBuffers", "WriteBehind"]

# From here on a tensor is written by another thread: handing it over takes 50 us, in which 100 KB would be written.
_BEHIND_BYTES = 1 << 20


class Need(NamedTuple):
    """Bytes that a step takes.

    Attributes:
        weights: raw weights, or those of a block.
        arena: to work in.
        results: what it makes.
        written: results of the step before, which are written meanwhile.
        helpers: blocks of the threads beside the one that has all this, and what they work in.
    """

    weights: int
    arena: int
    results: int
    written: int = 0
    helpers: int = 0


class StepBuffers:
    """The memory that the steps of one thread share: for raw weights, to work in, two for results, and those of its helpers.

    Attributes:
        used: bytes of each that steps have used; no others take memory.
        helpers: for raw weights and to work in, of each helper.
    """

    def __init__(self, limit: int):
        """Takes the most bytes that all may have together."""
        self.weights, self.arena, self.results, self._others = Scratch(), Scratch(), Scratch(), Scratch()
        self.helpers: list[tuple[Scratch, Scratch]] = []
        self.used = Need(0, 0, 0)
        self._limit = limit

    def can_have(self, need: Need, beside: int) -> bool:
        """Whether a step that needs so much ever fits, with so much beside it."""
        return sum(need) + beside <= self._limit

    def has_room(self, need: Need, beside: int) -> bool:
        """Whether a step that needs so many bytes can begin while everything stays where it is, and so much is beside it."""
        return sum(map(max, self.used, need)) + beside <= self._limit

    def make_room(self, need: Need, beside: int) -> int:
        """Readies for a step that needs so many bytes; what larger steps left goes where all would exceed the limit.

        Returns:
            The bytes that the buffers then take.
        """
        used = list(map(max, self.used, need))
        frees = (self.weights.free, self.arena.free, self.results.free, self._others.free, self.helpers.clear)
        for i, free in enumerate(frees):
            if used[i] > need[i] and sum(used) + beside > self._limit:
                free()
                used[i] = need[i]
        self.used = Need(*used)
        return sum(used)

    def swap(self) -> None:
        """Makes the other buffer that for results, as this one is still written from."""
        self.results, self._others = self._others, self.results
        self.used = self.used._replace(results=self.used.written, written=self.used.results)

    def helpers_of(self, count: int) -> list[tuple[Scratch, Scratch]]:
        """The memory of so many helpers."""
        self.helpers += [(Scratch(), Scratch()) for _ in range(count - len(self.helpers))]
        return self.helpers[:count]


class WriteBehind:
    """A thread that writes the results of one step while the next one reads its weights. Use as a context manager.

    Leaving the ``with`` block waits; it raises what writing raised where nothing else is raised.

    Attributes:
        held: bytes that are being written out of memory of their own, not out of a buffer.
    """

    def __init__(self) -> None:
        self.held = 0
        self._pool: ThreadPoolExecutor | None = None
        self._writing: Future[None] | None = None

    def __enter__(self) -> WriteBehind:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        if kind is None:
            self.wait()

    def put(self, work: Callable[[], None], nbytes: int, held: int = 0) -> None:
        """Does the work, which writes so many bytes, now or behind; what was given before is done first.

        Raises:
            What the work raises, or the one before did.
        """
        self.wait()
        if nbytes < _BEHIND_BYTES:
            return work()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "relaxir-write")
        self.held = held
        self._writing = self._pool.submit(work)

    def wait(self) -> None:
        """Until everything is written. Raises what writing raised."""
        writing, self._writing, self.held = self._writing, None, 0
        if writing is not None:
            writing.result()
