"""Who has seen what: vector clocks of warps and asynchronous agents, and races in shared memory.

Each warp has a clock. So has each asynchronous agent: the cp.async copies, the wgmma products and the bulk stores of
a warp, and the loads that complete on an mbarrier. Barriers and waits join clocks; an access is in order when the
last conflicting one is in the clock of its warp. A second set of clocks has what ``fence.proxy.async`` has shown to
the asynchronous proxy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array, Lanes, i4
from .core import RESERVED, Core

__all__ = ["BARRIERS", "Clocks"]

#: Barriers of a block that have a clock of their own; further ones share the last one's.
BARRIERS = 40


_LATE = 2**31 - 1  # a barrier that never comes


class Clocks:
    """Clocks of a wave, and the last accesses of each granule of shared memory."""

    def __init__(self, core: Core):
        self.core = core
        warps = core.cluster * core.warps
        is_async = core.kernel.is_async
        self.products, self.stores, self.copies, self.barriers = 1 + warps, 1 + 2 * warps, 1 + 3 * warps, 1 + 4 * warps
        self.readers = 1 + (3 if is_async else 1) * warps
        self.size = 1 + 4 * warps + core.cluster * BARRIERS if is_async else 1 + warps
        row = np.arange(core.blocks * core.warps)
        self.own = 1 + row // core.warps % core.cluster * core.warps + row % core.warps
        self.seen = np.zeros((len(row), self.size), i4)
        self.shown = np.zeros((len(row), self.size), i4) if is_async else self.seen[:, :0]
        self.tables = (self.seen, self.shown) if is_async else (self.seen,)
        self.seen[row, self.own] = 1
        self.is_on = core.options.races and (bool(core.kernel.shared) or core.dynamic > 0)
        if self.is_on:
            granules = core.stride * core.blocks // core.kernel.granule
            self.writer, self.written_at = np.zeros(granules, np.int16), np.zeros(granules, i4)
            self.writer_lane, self.reader_lane = np.full(granules, -1, i4), np.full(granules, -1, i4)
            self.read_at = np.zeros((granules, self.readers), i4)
            # Reads in front of a barrier of the whole block are in order for it. The number of barriers at the last
            # read tells most
            # of them from the others; agents and blocks of clusters do not take part in it.
            self.barrier, self.read_mark, self.met = 1, np.zeros(granules, i4), np.zeros(len(row), i4)

    # ------------------------------------------------------------------------------------------------------------ clocks
    def tick(self, rows: Array) -> None:
        """What these warps do next is later than what others have seen of them."""
        self.seen[rows, self.own[rows]] += 1

    def join(self, rows: Array, sources: Array) -> None:
        """The first have seen what all have; all go on."""
        for clocks in self.tables:
            clocks[rows] = clocks[sources].max(0)
        self.tick(sources)

    def join_blocks(self, first: int, last: int) -> None:
        """All warps of whole blocks, from one warp to another, meet at a barrier."""
        warps = self.core.warps
        for clocks in self.tables:
            table = clocks[first:last].reshape(-1, warps, clocks.shape[1])
            table[:] = table.max(1, keepdims=True)
        self.seen[np.arange(first, last), self.own[first:last]] += 1
        if self.is_on:
            self.barrier += 1
            self.met[first:last] = self.barrier

    def proxy_fence(self, s: Lanes) -> None:
        """fence.proxy.async: what a warp has seen, its asynchronous operations see, too."""
        rows = self.core.rows(s)
        self.shown[rows] = np.maximum(self.shown[rows], self.seen[rows])
        self.tick(rows)

    def snapshot(self, rows: Any) -> Array:
        """What warps have seen and shown, together."""
        return np.stack([self.seen[rows], self._wide(self.shown[rows])])

    def _wide(self, shown: Array) -> Array:
        return shown if shown.shape[-1] else np.zeros((*shown.shape[:-1], self.size), i4)

    def acquire(self, rows: Array, clock: Array) -> None:
        """Warps have seen what a snapshot has."""
        self.seen[rows] = np.maximum(self.seen[rows], clock[0])
        if self.shown.shape[1]:
            self.shown[rows] = np.maximum(self.shown[rows], clock[1])

    # ------------------------------------------------------------------------------------------------------------ accesses
    def granules(self, offset: Array, size: int) -> Array:
        """Granules of accesses, a row for each."""
        granule = self.core.kernel.granule
        number = max(1, size // granule)
        return (offset // granule)[:, None] + np.arange(number) if number > 1 else (offset // granule)[:, None]

    def read(self, rows: Array, lanes: Array, granules: Array, at_: int) -> None:
        """Threads read."""
        self._after_write(rows, lanes, granules, at_, "read")
        own = self.own[rows]
        self.read_at[granules, own[:, None]] = self.seen[rows, own][:, None]
        self.reader_lane[granules], self.read_mark[granules] = lanes[:, None], self.barrier

    def write(self, rows: Array, lanes: Array, granules: Array, at_: int) -> None:
        """Threads write."""
        self._after_write(rows, lanes, granules, at_, "write")
        self._after_read(rows, lanes, granules, at_)
        own = self.own[rows]
        self.writer[granules], self.written_at[granules] = own[:, None], self.seen[rows, own][:, None]
        self.writer_lane[granules] = lanes[:, None]

    def write_async(self, rows: Array, lanes: Array, granules: Array, at_: int, agent: Any, time: Any) -> None:
        """An agent that a warp has started writes, and is done at a time of its own clock."""
        self._after_write(rows, None, granules, at_, "write", lanes)
        self._after_read(rows, None, granules, at_, lanes)
        self.writer[granules], self.written_at[granules], self.writer_lane[granules] = agent, time, -1

    def read_async(self, rows: slice, lanes: Array, granules: Array, at_: int, agent: int, time: int) -> None:
        """An agent of the asynchronous proxy reads for some warps at once. What threads wrote has to be fenced."""
        writer, written = self.writer[granules], self.written_at[granules]
        bad = written > self.seen[rows].min(0)[writer]
        if bad.any():
            self._report("read after write", bad, granules, writer, at_, lanes)
        generic = (writer > 0) & ((writer < self.products) | ((writer >= self.copies) & (writer < self.barriers)))
        hidden = generic & (written > self.shown[rows].min(0)[writer])
        if hidden.any():
            place = self._place(granules[np.nonzero(hidden.any(1))[0][0]][0])
            raise self.core.finding(
                "proxy", f"asynchronous read of {place}, which threads wrote, without fence.proxy.async", at_, lanes
            )
        self.read_at[granules, agent], self.read_mark[granules] = time, _LATE

    def _after_write(self, rows: Array, lanes: Array | None, granules: Array, at_: int, what: str, blamed: Any = None) -> None:
        writer, written = self.writer[granules], self.written_at[granules]
        bad = written > self.seen[rows[:, None], writer]
        if lanes is not None:  # another lane of the same warp, since the warp was last in step
            own = self.own[rows]
            now = self.seen[rows, own]
            bad |= (writer == own[:, None]) & (written == now[:, None]) & (self.writer_lane[granules] != lanes[:, None])
        if bad.any():
            self._report(f"{what} after write", bad, granules, writer, at_, lanes if blamed is None else blamed)

    def _after_read(self, rows: Array, lanes: Array | None, granules: Array, at_: int, blamed: Any = None) -> None:
        recent = (self.read_mark[granules] >= self.met[rows][:, None]).any(1)
        if self.core.cluster == 1 and not recent.all():
            if not recent.any():
                return
            rows, granules = rows[recent], granules[recent]
            lanes = None if lanes is None else lanes[recent]
        read = self.read_at[granules]
        late = read > self.seen[rows][:, None, : self.readers]
        bad: Array = np.logical_or.reduce(late, 2)
        if lanes is not None:
            own = self.own[rows]
            index = np.broadcast_to(own[:, None, None], (*read.shape[:2], 1))
            mine = np.take_along_axis(read, index, 2)[:, :, 0] == self.seen[rows, own][:, None]
            bad |= mine & (self.reader_lane[granules] != lanes[:, None]) & (self.reader_lane[granules] >= 0)
        if bad.any():
            reader = np.where(late.any(2), late.argmax(2), self.own[rows][:, None])
            self._report("write after read", bad, granules, reader, at_, lanes if blamed is None else blamed)

    def _report(self, what: str, bad: Array, granules: Array, agents: Array, at_: int, lanes: Any) -> None:
        row, column = np.argwhere(bad)[0]
        place, other = self._place(granules[row, column]), self._agent(int(agents[row, column]))
        chosen = lanes[bad.any(1)] if len(lanes) == len(bad) else lanes
        raise self.core.finding("race", f"{what} of {place} without an order after {other}", at_, chosen)

    def _place(self, granule: Any) -> str:
        offset = int(granule) * self.core.kernel.granule % self.core.stride
        return self.core.shared_name(offset) if offset >= RESERVED else f"shared memory at {offset}"

    def _agent(self, component: int) -> str:
        warps = self.core.cluster * self.core.warps
        if component >= self.barriers:
            return f"a bulk load that completes on mbarrier {(component - self.barriers) % BARRIERS}"
        kind = ("a thread", "a matrix product", "a bulk store", "a cp.async")[(component - 1) // warps]
        return f"{kind} of warp {(component - 1) % warps % self.core.warps}"
