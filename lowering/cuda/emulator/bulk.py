"""Bulk copies by the asynchronous proxy: loads that complete on mbarriers, stores in groups of threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from .access import Access
from .arrays import RAW, SHIFT, Array, Lanes, at, indices, u1
from .clocks import Clocks
from .core import RANK, Core
from .mbarrier import Mbarriers
from .memory import GLOBAL, ONES, SHARED, is_written

__all__ = ["Bulk"]


class Bulk:
    """Copies of whole rows of bytes, and what tensor copies share with them."""

    def __init__(self, core: Core, clocks: Clocks, access: Access, barriers: Mbarriers):
        self.core, self.clocks, self.access, self.barriers = core, clocks, access, barriers
        self.times: dict[int, int] = {}  # stores of each warp so far
        self.groups: dict[int, list[list[int]]] = {}  # of each thread: times of stores, the open group last
        self.at = -1
        core.finishers.append(self._finish)

    # ------------------------------------------------------------------------------------------------------------ copies
    def load(self, s: Lanes, target: Any, source: Any, size: Any, barrier: Any, mask: Any, space: str, at_: int) -> None:
        """From global memory, or the own block's shared memory, to shared memory."""
        for index, lane in enumerate(indices(s).tolist()):
            number, start = at(size, index), at(source, index)
            to = at(target, index)
            self._steps_of_16(lane, at_, number, start, to)
            if space == "global":
                data = self.fetch(lane, start - GLOBAL + np.arange(0, number, 16), 16, at_)
            else:
                data = self._from_shared(lane, start - SHARED if start >= SHARED else start, number, at_)
            self.deliver(
                lane, to, at(barrier, index), None if mask is None else at(mask, index), np.arange(0, number, 16), data, at_
            )

    def _from_shared(self, lane: int, start: int, number: int, at_: int) -> Array:
        offset = int(self.core.block_of[lane]) * self.core.stride + start + np.arange(0, number, 16)
        self.read_shared(lane, offset, at_)
        return self.core.shared.views[16][offset >> 4]

    def store(self, s: Lanes, target: Any, source: Any, size: Any, at_: int) -> None:
        """From shared to global memory."""
        for index, lane in enumerate(indices(s).tolist()):
            number, start, to = at(size, index), at(source, index), at(target, index)
            self._steps_of_16(lane, at_, number, start, to)
            data = self._from_shared(lane, start - SHARED if start >= SHARED else start, number, at_)
            self.put(lane, to - GLOBAL + np.arange(0, number, 16), data, 16, at_)
            self.started(lane, at_)

    def _steps_of_16(self, lane: int, at_: int, *numbers: int) -> None:
        if any(n % 16 for n in numbers):
            raise self.core.finding("alignment", f"bulk copy of size, from and to {[hex(n) for n in numbers]}", at_, [lane])

    # ------------------------------------------------------------------------------------------------------------ global memory
    def fetch(self, lane: int, offset: Array, unit: int, at_: int) -> Array:
        """Units of global memory. Raises Finding where it is nobody's or was never written."""
        core = self.core
        self._inside(lane, offset, unit, "load", at_)
        shadow = core.memory.shadows[unit][offset >> SHIFT[unit]]
        if len(offset) and not is_written(np.ascontiguousarray(shadow), unit):
            lanes, raised = np.full(len(offset), lane), self.access.report_unwritten
            raised(core.memory, offset, np.ascontiguousarray(shadow), unit, "global", lanes, at_)
        self.access.between_blocks(np.full(len(offset), lane), offset, unit, False, at_)
        return core.memory.views[unit][offset >> SHIFT[unit]]

    def put(self, lane: int, offset: Array, data: Array, unit: int, at_: int) -> None:
        """Writes units of global memory."""
        core = self.core
        self._inside(lane, offset, unit, "store", at_)
        index = offset >> SHIFT[unit]
        core.memory.views[unit][index] = data
        core.memory.shadows[unit][index] = ONES[unit]
        self.access.between_blocks(np.full(len(offset), lane), offset, unit, True, at_)

    def _inside(self, lane: int, offset: Array, unit: int, what: str, at_: int) -> None:
        memory = self.core.memory
        outside = (offset < 0) | (offset > memory.size - unit)
        if not outside.any():
            shadow = np.ascontiguousarray(memory.shadows[unit][offset >> SHIFT[unit]]).view(u1)
            if shadow.all():
                return
            outside = (shadow.reshape(-1, unit) == 0).any(1)
        where = memory.described(int(offset[outside][0]))
        raise self.core.finding("bounds", f"bulk {what} of global memory at {where}", at_, [lane])

    # ------------------------------------------------------------------------------------------------------------ shared memory
    def read_shared(self, lane: int, offset: Array, at_: int) -> None:
        """Chunks of 16 bytes of shared memory are read by a store of a thread."""
        core, row = self.core, lane >> 5
        shadow = np.ascontiguousarray(core.shared.shadows[16][offset >> 4])
        if not is_written(shadow, 16):
            self.access.report_unwritten(core.shared, offset, shadow, 16, "shared", np.full(len(offset), lane), at_)
        if self.clocks.is_on:
            agent = self.clocks.stores + int(self.clocks.own[row]) - 1
            granules, time = self.clocks.granules(offset, 16), self.times.get(row, 0) + 1
            self.clocks.read_async(slice(row, row + 1), np.array([lane]), granules, at_, agent, time)

    def deliver(self, lane: int, to: int, barrier: int, mask: int | None, offset: Array, data: Array, at_: int) -> None:
        """Writes chunks of 16 bytes to shared memory, of each block of the mask, and completes on the mbarrier of each."""
        core, low = self.core, (1 << RANK) - 1
        to, barrier = (a - SHARED if a >= SHARED else a for a in (to, barrier))
        own = int(core.block_of[lane])
        first = own // core.cluster * core.cluster
        blocks = [first + (to >> RANK) - 1 if to >> RANK else own]
        if mask is not None:
            blocks = [first + rank for rank in range(core.cluster) if mask >> rank & 1]
        for block in blocks:
            # Without a mask the barrier is where its address says; with one it is at that place of each block.
            place = (block, barrier & low) if mask is not None else self.barriers.place(lane, barrier)
            found = self.barriers.find(place, at_, lane)
            self.barriers.expect_shown(found, lane, at_)
            self._write(lane, block, (to & low) + offset, data, found, at_)

    def _write(self, lane: int, block: int, offset: Array, data: Array, barrier: Any, at_: int) -> None:
        core = self.core
        whole = block * core.stride + offset
        inside = (offset >= 0) & (offset < core.stride - 15)
        if not inside.all() or not np.ascontiguousarray(core.shared.shadows[16][whole >> 4]).view(u1).all():
            raise core.finding("bounds", f"bulk load to {core.shared_name(int(offset.max()))}", at_, [lane])
        core.shared.views[16][whole >> 4] = data.view(RAW[16])
        core.shared.shadows[16][whole >> 4] = ONES[16]
        if self.clocks.is_on:
            rows = np.full(len(whole), lane >> 5)
            granules = self.clocks.granules(whole, 16)
            self.clocks.write_async(rows, np.array([lane]), granules, at_, barrier.agent, barrier.next_time)
        self.barriers.complete(barrier, 16 * len(whole), at_)

    # ------------------------------------------------------------------------------------------------------------ groups
    def started(self, lane: int, at_: int) -> None:
        """A store has begun: it belongs to the thread's open group."""
        row = lane >> 5
        self.times[row] = self.times.get(row, 0) + 1
        self.groups.setdefault(lane, [[]])[-1].append(self.times[row])
        self.at = at_

    def commit(self, s: Lanes) -> None:
        """Ends a group of each thread."""
        for lane in indices(s).tolist():
            self.groups.setdefault(lane, [[]]).append([])

    def wait(self, s: Lanes, left: int, is_read: bool) -> None:
        """Waits for committed groups but the last ones. That reads are over counts as much as that all is."""
        clocks = self.clocks
        for lane in indices(s).tolist():
            groups, row = self.groups.get(lane, [[]]), lane >> 5
            agent = clocks.stores + int(clocks.own[row]) - 1
            while len(groups) - 1 > left:
                clocks.seen[row, agent] = max(int(clocks.seen[row, agent]), *groups.pop(0), 0)
        clocks.tick(self.core.rows(s))

    def _finish(self) -> None:
        for lane, groups in self.groups.items():
            if groups[-1]:
                raise self.core.finding("async", "the kernel ends with bulk stores that nothing commits", self.at, [lane])
            if any(groups):
                raise self.core.finding("async", "the kernel ends with bulk stores that nothing waits for", self.at, [lane])
