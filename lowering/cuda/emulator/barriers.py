"""Barriers of blocks, named ones and all, and of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import Array, Lanes, count, i4, indices, tidy
from .clocks import Clocks
from .core import Core

__all__ = ["Barriers", "Clusters"]


@dataclass
class _Pending:
    """A barrier that some threads have reached."""

    threads: int | None  # that are expected, None: all of the block
    at: int
    arrived: int = 0
    waiting: list[tuple[int, Lanes]] = field(default_factory=list[tuple[int, Lanes]])
    rows: list[int] = field(default_factory=list[int])  # of warps that have only arrived
    reduction: tuple[str, Array] | None = None  # operation, register
    values: list[tuple[Array, Array]] = field(default_factory=list[tuple[Array, Array]])


class Barriers:
    """bar and barrier of blocks."""

    def __init__(self, core: Core, clocks: Clocks):
        self.core, self.clocks = core, clocks
        self.pending: dict[tuple[int, int], _Pending] = {}
        core.on_exit.append(self._look_again)
        core.at_end.append(self._reasons)

    def reach(self, s: Lanes, kind: str, number: Any, threads: Any, after: int, at_: int, aligned: bool) -> int | None:
        """Lanes reach a barrier; gives the next block when they go on at once."""
        if kind == "sync" and threads is None and self._is_whole(s, number):
            self.clocks.join_blocks(s.start // 32, s.stop // 32)
            return after
        self._reach(s, kind, number, threads, after, at_, aligned, None, None)
        return after if kind == "arrive" else None

    def reduce(self, s: Lanes, number: Any, operation: str, value: Any, register: Array, after: int, at_: int) -> None:
        """bar.red: lanes go on with a reduction of all their values."""
        self._reach(s, "sync", number, None, after, at_, True, (operation, register), np.broadcast_to(value, (count(s),)))

    def _is_whole(self, s: Lanes, number: Any) -> bool:
        """Whether whole blocks are here together, and nobody waits: the common case."""
        if self.pending or type(s) is not slice or np.ndim(number):
            return False
        padded = self.core.padded
        return number < 16 and s.start % padded == 0 and s.stop % padded == 0 and not self.core.has_exited

    def _reach(
        self, s: Lanes, kind: str, number: Any, threads: Any, after: int, at_: int, aligned: bool, reduction: Any, values: Any
    ) -> None:
        core, lanes = self.core, indices(s)
        numbers = np.broadcast_to(number, lanes.shape).astype(np.int64)
        if (numbers > 15).any():
            raise core.finding("barrier", f"expected barrier 0 to 15, got {int(numbers.max())}", at_, lanes[numbers > 15])
        keys = core.block_of[lanes] * 16 + numbers
        for key in np.unique(keys).tolist():
            mine = keys == key
            here = lanes[mine]
            wanted = None if threads is None else int(np.broadcast_to(threads, lanes.shape)[mine][0])
            pending = self._pending(divmod(key, 16), wanted, here, at_)
            pending.arrived += len(np.unique(here >> 5)) * 32 if aligned else len(here)
            if reduction is not None:
                pending.reduction = reduction
                pending.values.append((here, values[mine]))
            if kind == "sync":
                pending.waiting.append((after, tidy(here)))
            else:
                pending.rows += np.unique(here >> 5).tolist()
            self._complete(divmod(key, 16))

    def _pending(self, key: tuple[int, int], threads: int | None, lanes: Array, at_: int) -> _Pending:
        pending = self.pending.setdefault(key, _Pending(threads, at_))
        if pending.threads != threads or (threads or 0) % 32:
            message = f"barrier {key[1]} is used with {pending.threads or 'all'} and {threads or 'all'} threads"
            raise self.core.finding("barrier", message, at_, lanes)
        return pending

    def _expected(self, key: tuple[int, int], pending: _Pending) -> int:
        """Threads that are expected: those that have ended count no more, whole warps at a time."""
        if pending.threads is not None:
            return pending.threads
        core = self.core
        alive = core.alive[key[0] * core.padded : (key[0] + 1) * core.padded]
        return int(alive.reshape(-1, 32).any(1).sum()) * 32

    def _complete(self, key: tuple[int, int]) -> None:
        pending = self.pending[key]
        expected = self._expected(key, pending)
        if pending.threads is not None and pending.arrived > expected:
            message = f"barrier {key[1]}: {pending.arrived} threads arrive where {expected} are expected"
            raise self.core.finding("barrier", message, pending.at)
        if pending.arrived < expected:
            return
        del self.pending[key]
        if pending.waiting:
            rows = np.unique(np.concatenate([indices(s) >> 5 for _, s in pending.waiting]))
            self.clocks.join(rows, np.unique(np.concatenate([rows, np.array(pending.rows, rows.dtype)])))
        self._reduce(pending)
        for after, s in pending.waiting:
            self.core.push(after, s)

    def _reduce(self, pending: _Pending) -> None:
        if pending.reduction is None:
            return
        operation, register = pending.reduction
        values = np.concatenate([v for _, v in pending.values])
        result = {"popc": values.sum(), "and": values.all(), "or": values.any()}[operation]
        for lanes, _ in pending.values:
            register[lanes] = result

    def _look_again(self) -> None:
        for key in list(self.pending):
            if key in self.pending:
                self._complete(key)

    def _reasons(self) -> Iterator[tuple[str, str, int]]:
        for key, pending in self.pending.items():
            expected = self._expected(key, pending)
            yield "deadlock", f"{pending.arrived} of {expected} threads are at barrier {key[1]} of block {key[0]}", pending.at


@dataclass
class _Cluster:
    """The barrier of a cluster."""

    arrived: int = 0
    generation: int = 0
    gathered: Array | None = None
    released: Array | None = None
    waiting: list[tuple[int, Lanes, int]] = field(default_factory=list[tuple[int, Lanes, int]])


class Clusters:
    """barrier.cluster: arrivals and waits apart."""

    def __init__(self, core: Core, clocks: Clocks):
        self.core, self.clocks = core, clocks
        self.state: dict[int, _Cluster] = {}
        self.generation = np.zeros(0, i4)  # the one that each lane has arrived at, 0: none that it has not waited for
        core.on_exit.append(self._look_again)
        core.at_end.append(self._reasons)

    def arrive(self, s: Lanes, block: int, after: int, at_: int, is_release: bool) -> int:
        """Lanes arrive, and go on."""
        for number, lanes in self._clusters(s):
            state, rows = self.state.setdefault(number, _Cluster()), np.unique(lanes >> 5)
            if self.generation[lanes].any():
                raise self.core.finding(
                    "barrier", "barrier.cluster.arrive twice without wait", at_, lanes[self.generation[lanes] > 0]
                )
            if is_release:
                clock = self.clocks.snapshot(rows).max(1)
                state.gathered = clock if state.gathered is None else np.maximum(state.gathered, clock)
            self.clocks.tick(rows)
            state.arrived += len(lanes)
            self.generation[lanes] = state.generation + 1
            self._complete(number, state)
        return after

    def wait(self, s: Lanes, block: int, after: int, at_: int, is_acquire: bool) -> None:
        """Lanes wait for what they have arrived at."""
        for number, lanes in self._clusters(s):
            state = self.state.setdefault(number, _Cluster())
            mine = self.generation[lanes]
            if not mine.all():
                raise self.core.finding("barrier", "barrier.cluster.wait without arrive", at_, lanes[mine == 0])
            done = mine <= state.generation
            if done.any():
                self._go(state, tidy(lanes[done]), after)
            if not done.all():
                state.waiting.append((after, tidy(lanes[~done]), at_))

    def _clusters(self, s: Lanes) -> Iterator[tuple[int, Array]]:
        if not len(self.generation):
            self.generation = np.zeros(self.core.lanes, i4)
        lanes = indices(s)
        numbers = self.core.block_of[lanes] // self.core.cluster
        for number in np.unique(numbers).tolist():
            yield number, lanes[numbers == number]

    def _complete(self, number: int, state: _Cluster) -> None:
        size = self.core.cluster * self.core.padded
        alive = self.core.alive[number * size : (number + 1) * size].sum()  # those that have ended are not waited for
        if not state.arrived or state.arrived < alive:
            return
        state.arrived, state.generation = 0, state.generation + 1
        state.released, state.gathered = state.gathered, None
        waiting, state.waiting = state.waiting, []
        for after, s, _ in waiting:
            self._go(state, s, after)

    def _look_again(self) -> None:
        for number, state in self.state.items():
            self._complete(number, state)

    def _go(self, state: _Cluster, s: Lanes, after: int) -> None:
        rows = self.core.rows(s)
        if state.released is not None:
            self.clocks.acquire(rows, state.released)
        self.generation[s] = 0
        self.core.push(after, s)

    def _reasons(self) -> Iterator[tuple[str, str, int]]:
        for number, state in self.state.items():
            for _, s, at_ in state.waiting:
                yield "deadlock", f"{count(s)} threads wait at the barrier of cluster {number}", at_
