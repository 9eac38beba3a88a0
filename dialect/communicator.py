"""How ranks talk: one interface for the reference semantics and for compiled code, and the ranks of one process as threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import numpy as np

from .errors import RelaxError

__all__ = ["Alone", "Communicator", "ThreadRank", "communicating", "current_communicator", "thread_ranks"]

Array = np.ndarray[Any, Any]
_T = TypeVar("_T")

# For a rank that waits for one that does not come. Ranks compute the same, in about the same time.
_SECONDS = 300.0


class Communicator(Protocol):
    """One rank's connection with the others. All ranks call the same methods in the same order."""

    @property
    def rank(self) -> int:
        """Which this one is, from 0 on."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def all_gather(self, x: Array) -> Array:
        """The arrays of all ranks, ``[size, *x.shape]``; of one shape and dtype. Raises RelaxError where a rank is lost."""
        ...

    def all_reduce(self, x: Array) -> Array:
        """Their sum, in the order of the ranks; of floats narrower than f32 it is in f32, rounded once."""
        ...


class Alone:
    """The only rank."""

    rank, size = 0, 1

    def all_gather(self, x: Array) -> Array:
        return x[None].copy()

    def all_reduce(self, x: Array) -> Array:
        return x.copy()


class _Meeting:
    """Where the threads of one group meet: each leaves a value, and takes those of all."""

    def __init__(self, size: int):
        self.values: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=_SECONDS)

    def exchange(self, rank: int, value: Any) -> list[Any]:
        try:
            self.values[rank] = value
            self.barrier.wait()
            found = list(self.values)
            self.barrier.wait()
        except threading.BrokenBarrierError:
            raise RelaxError(
                f"rank {rank}: expected all of {len(self.values)} ranks to meet, got an error in another"
            ) from None
        return found


class ThreadRank:
    """A rank that is a thread; its methods release Python's lock while they wait."""

    def __init__(self, rank: int, meeting: _Meeting):
        self.rank, self.size, self._meeting = rank, len(meeting.values), meeting

    def all_gather(self, x: Array) -> Array:
        return np.stack(self._meeting.exchange(self.rank, x.copy()))

    def all_reduce(self, x: Array) -> Array:
        return summed(self._meeting.exchange(self.rank, x.copy()))

    def give_up(self) -> None:
        """Ends the waiting of the others: this rank does not come any more."""
        self._meeting.barrier.abort()


def summed(arrays: list[Array]) -> Array:
    """The sum of arrays from the first one on; of floats narrower than f32 it is in f32, rounded once."""
    dtype = arrays[0].dtype
    wide = np.dtype(np.float32) if dtype.itemsize < 4 and dtype.kind not in "iub" else dtype
    total = arrays[0].astype(wide)
    for other in arrays[1:]:
        total += other.astype(wide)
    return total.astype(dtype)


def thread_ranks(size: int, function: Callable[[ThreadRank], _T]) -> list[_T]:
    """Calls a function once per rank, each in a thread of its own, and returns what it gave, in the order of the ranks.

    Raises:
        RelaxError: there is no rank; what a call raised goes on, the first that was no consequence of another's.
    """
    if size < 1:
        raise RelaxError(f"expected 1 rank or more, got {size}")
    meeting, results, errors = _Meeting(size), dict[int, _T](), list[BaseException]()

    def run(rank: int) -> None:
        own = ThreadRank(rank, meeting)
        try:
            with communicating(own):
                results[rank] = function(own)
        except BaseException as error:
            errors.append(error)
            own.give_up()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[rank] for rank in range(size)]


_CURRENT: ContextVar[Communicator | None] = ContextVar("relaxir_communicator", default=None)


@contextmanager
def communicating(communicator: Communicator) -> Generator[None]:
    """While it lasts, this is the communicator of the thread."""
    token = _CURRENT.set(communicator)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_communicator() -> Communicator | None:
    """The communicator of the thread, None where nobody has given it one."""
    return _CURRENT.get()
