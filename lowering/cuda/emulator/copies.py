"""cp.async: copies of threads from global to shared memory, their groups and waits.

A copy writes at once, but what it writes belongs to an agent whose clock only the right wait acquires: a read before
it is a race.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .access import Access
from .arrays import RAW, Array, Lanes, b1, count, i4, indices, subset, u1
from .clocks import Clocks
from .core import Core
from .mbarrier import Mbarriers

__all__ = ["Copies"]


class Copies:
    """The cp.async copies of a wave; groups are counted by warp."""

    def __init__(self, core: Core, clocks: Clocks, access: Access, barriers: Mbarriers):
        self.core, self.clocks, self.access, self.barriers = core, clocks, access, barriers
        rows = core.blocks * core.warps
        self.groups, self.last = np.zeros(rows, i4), np.zeros(rows, i4)  # committed; the last one that has copies
        self.is_open, self.at = np.zeros(rows, b1), -1
        if core.kernel.is_async:
            core.finishers.append(self._finish)

    def copy(self, s: Lanes, target: Any, source: Any, number: int, size: Any, at_: int) -> None:
        """Copies ``number`` bytes of each lane, of which ``size`` come from the source and the others are zero."""
        data = self._data(s, source, number, size, at_)
        memory, offset, space = self.access.locate("shared", s, target, at_)
        index = self.access.check(memory, offset, number, space, "copy", s, at_)
        self.access.put(memory, space, s, offset, index, number, data, at_)
        rows, all_rows = self.core.rows(s), self.core.warp_of[s]
        if self.clocks.is_on:
            agent = (self.clocks.own[all_rows] - 1 + self.clocks.copies)[:, None]
            time = (self.groups[all_rows] + 1)[:, None]
            self.clocks.write_async(all_rows, indices(s), self.clocks.granules(offset, number), at_, agent, time)
        self.is_open[rows], self.last[rows], self.at = True, self.groups[rows] + 1, at_

    def _data(self, s: Lanes, source: Any, number: int, size: Any, at_: int) -> Array:
        sizes = np.broadcast_to(number if size is None else size, (count(s),))
        if (sizes == number).all():
            return self._loaded(s, source, number, at_)
        if (sizes > number).any():
            raise self.core.finding(
                "async", f"cp.async of {int(sizes.max())} bytes into {number}", at_, indices(s)[sizes > number]
            )
        table, source = np.zeros((count(s), number), u1), np.broadcast_to(source, (count(s),))
        for size_ in np.unique(sizes[sizes > 0]).tolist():
            mine = sizes == size_
            lanes = subset(s, mine)
            if size_ == number:
                table[mine] = self._loaded(lanes, source[mine], number, at_).view(u1).reshape(-1, number)
                continue
            for byte in range(size_):
                table[mine, byte] = self.access.load("global", lanes, source[mine] + byte, 1, 1, at_)
        return table.view(RAW[number]).reshape(-1)

    def _loaded(self, s: Lanes, source: Any, number: int, at_: int) -> Array:
        if number < 16:
            return self.access.load("global", s, source, number, 1, at_)
        return np.ascontiguousarray(self.access.load("global", s, source, 8, 2, at_)).view(RAW[16]).reshape(-1)

    def commit(self, s: Lanes, at_: int) -> None:
        """Ends a group."""
        rows = self.core.rows(s)
        self.groups[rows] += 1
        self.is_open[rows] = False

    def wait(self, s: Lanes, left: int) -> None:
        """Waits for all groups but the last ones."""
        rows = self.core.rows(s)
        agent = self.clocks.copies + self.clocks.own[rows] - 1
        self.clocks.seen[rows, agent] = np.maximum(self.clocks.seen[rows, agent], self.groups[rows] - left)
        self.clocks.tick(rows)

    def wait_all(self, s: Lanes, at_: int) -> None:
        """Waits for everything, committed or not."""
        self.commit(s, at_)
        self.wait(s, 0)

    def arrive(self, s: Lanes, address: Any, counts: bool, at_: int) -> None:
        """cp.async.mbarrier.arrive: an arrival when the copies so far are done. Without .noinc it is expected in addition."""
        for index, lane in enumerate(indices(s).tolist()):
            row = lane >> 5
            clock = self.clocks.snapshot(row)
            clock[0, self.clocks.copies + self.clocks.own[row] - 1] = self.groups[row] + 1
            place = self.barriers.place(lane, int(np.broadcast_to(address, (count(s),))[index]))
            self.barriers.join(self.barriers.find(place, at_, lane), clock, int(counts), at_)
        rows = self.core.rows(s)
        self.is_open[rows], self.last[rows] = False, 0  # they are the barrier's now

    def _finish(self) -> None:
        rows = np.arange(len(self.groups))
        done = self.clocks.seen[rows, self.clocks.copies + self.clocks.own - 1]
        if self.is_open.any():
            raise self.core.finding("async", "the kernel ends with cp.async copies that nothing commits", self.at)
        if (done < self.last).any():
            raise self.core.finding("async", "the kernel ends with cp.async copies that nothing waits for", self.at)
