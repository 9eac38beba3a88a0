"""mbarriers: arrivals, bytes that are expected, phases, and who waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import Array, Lanes, at, b1, count, i8, indices, tidy, u8
from .clocks import BARRIERS, Clocks
from .core import RANK, Core
from .findings import PtxError
from .memory import ALLOCATED, SHARED

__all__ = ["Mbarrier", "Mbarriers"]

_MOST = (1 << 20) - 1  # arrivals that an mbarrier can count


@dataclass(eq=False)
class Mbarrier:
    """One of them.

    Attributes:
        block: of the wave.
        offset: in the block's shared memory.
        agent: component of clocks of the bulk loads that complete on it.
        time: what that component shows when no phase is over yet: an initialisation anew goes on counting.
        made: who initialised it: component and time of its clock, and the lane.
        expected: arrivals of a phase.
        gathered: clocks of those that have arrived in this phase.
        released: clocks of the last phase that is over.
        seen: the last phase that somebody waited for.
        waiting: blocks, lanes and places that sleep until a phase is over.
        is_shown: whether who initialised it has shown that to the asynchronous proxy and other blocks, by a fence.
    """

    block: int
    offset: int
    agent: int
    time: int
    made: tuple[int, int, int]
    expected: int
    gathered: Array
    released: Array
    pending: int = 0
    bytes: int = 0
    phase: int = 0
    seen: int = 0
    waiting: list[tuple[int, Lanes, int]] = field(default_factory=list[tuple[int, Lanes, int]])
    is_shown: bool = False

    @property
    def next_time(self) -> int:
        """When what completes in this phase is done."""
        return self.time + self.phase + 1


class Mbarriers:
    """The mbarriers of a wave."""

    def __init__(self, core: Core, clocks: Clocks):
        self.core, self.clocks = core, clocks
        self.live: dict[tuple[int, int], Mbarrier] = {}
        self.places: dict[tuple[int, int], int] = {}  # number of each place in its block
        self.times: dict[tuple[int, int], int] = {}
        self.polled = np.zeros(core.lanes if core.kernel.is_async else 0, b1)
        core.at_end.append(self._reasons)

    # ------------------------------------------------------------------------------------------------------------ places
    def place(self, lane: int, address: int) -> tuple[int, int]:
        """Block and offset of an address, in the own block or another one of the cluster."""
        address = address - SHARED if address >= SHARED else address
        rank, offset = address >> RANK, address & ((1 << RANK) - 1)
        block = int(self.core.block_of[lane])
        return (block // self.core.cluster * self.core.cluster + rank - 1 if rank else block), offset

    def find(self, place: tuple[int, int], at_: int, lane: int) -> Mbarrier:
        """The mbarrier at a place. Raises Finding when there is none."""
        barrier = self.live.get(place)
        if barrier is None:
            raise self.core.finding("mbarrier", f"no initialised mbarrier at {self.core.shared_name(place[1])}", at_, [lane])
        return barrier

    def init(self, s: Lanes, address: Any, expected: Any, space: str, at_: int) -> None:
        """mbarrier.init."""
        core = self.core
        for index, lane in enumerate(indices(s).tolist()):
            block, offset = self.place(lane, at(address, index))
            arrivals, start = at(expected, index), block * core.stride + offset
            if offset % 8:
                raise core.finding("alignment", f"mbarrier at {core.shared_name(offset)}", at_, [lane])
            if offset + 8 > core.stride or not core.shared.shadow[start : start + 8].all():
                raise core.finding("bounds", f"mbarrier at {core.shared_name(offset)}", at_, [lane])
            if not 0 < arrivals <= _MOST:
                raise core.finding("mbarrier", f"expected 1 to {_MOST} arrivals, got {arrivals}", at_, [lane])
            self._make((block, offset), arrivals, lane)
            core.shared.shadow[start : start + 8] = ALLOCATED  # its bytes are no data

    def _make(self, place: tuple[int, int], arrivals: int, lane: int) -> None:
        number = self.places.setdefault(place, sum(block == place[0] for block, _ in self.places))
        if number >= BARRIERS:
            raise PtxError(f"expected at most {BARRIERS} mbarriers in a block, got more")
        agent = self.clocks.barriers + place[0] % self.core.cluster * BARRIERS + number
        clock = self.clocks.snapshot(lane >> 5)
        time = self.times.get(place, 0)
        own = int(self.clocks.own[lane >> 5])
        made = (own, int(clock[0, own]), lane)
        self.live[place] = Mbarrier(*place, agent, time, made, arrivals, clock, np.zeros_like(clock), arrivals)

    def invalidate(self, s: Lanes, address: Any, space: str, at_: int) -> None:
        """mbarrier.inval: the memory is memory again."""
        for index, lane in enumerate(indices(s).tolist()):
            barrier = self.find(self.place(lane, at(address, index)), at_, lane)
            del self.live[barrier.block, barrier.offset]
            self.times[barrier.block, barrier.offset] = barrier.time + barrier.phase

    def _use(self, barrier: Mbarrier, lane: int, at_: int) -> None:
        """It has to be initialised before, by the same thread or one whose warp this one has seen since."""
        agent, time, maker = barrier.made
        row = lane >> 5
        is_seen = self.clocks.seen[row, agent] > time or (
            agent != self.clocks.own[row] and self.clocks.seen[row, agent] == time
        )
        if self.core.options.races and maker != lane and not is_seen:
            name = self.core.shared_name(barrier.offset)
            raise self.core.finding("race", f"{name} is used without an order after its initialisation", at_, [lane])

    def show(self, s: Lanes) -> None:
        """fence.mbarrier_init, or fence.proxy.async: what threads have initialised is seen by others than their own block."""
        lanes = set(indices(s).tolist())
        for barrier in self.live.values():
            barrier.is_shown |= barrier.made[2] in lanes

    def expect_shown(self, barrier: Mbarrier, lane: int, at_: int) -> None:
        """Raises Finding where a bulk load completes on an mbarrier whose initialisation no fence has shown."""
        if self.core.options.races and not barrier.is_shown:
            name = self.core.shared_name(barrier.offset)
            text = f"a bulk load completes on {name}, which is initialised without fence.mbarrier_init or fence.proxy.async"
            raise self.core.finding("proxy", text, at_, [lane])

    # ------------------------------------------------------------------------------------------------------------ arrivals
    def arrive(
        self, s: Lanes, address: Any, arrivals: Any, size: Any, space: str, at_: int, drops: bool, releases: bool
    ) -> Array:
        """Arrivals and expected bytes; gives the phase of each lane as its state."""
        lanes = indices(s)
        state = np.zeros(len(lanes), u8)
        for index, lane in enumerate(lanes.tolist()):
            barrier = self.find(self.place(lane, at(address, index)), at_, lane)
            self._use(barrier, lane, at_)
            state[index] = barrier.phase
            number = at(arrivals, index)
            if number and releases:
                barrier.gathered = np.maximum(barrier.gathered, self.clocks.snapshot(lane >> 5))
            barrier.bytes += at(size, index)
            barrier.pending -= number
            barrier.expected -= drops
            self.step(barrier, at_)
        self.clocks.tick(self.core.rows(s))
        return state

    def join(self, barrier: Mbarrier, clock: Array, arrivals: int, at_: int) -> None:
        """An arrival of an agent with a clock of its own."""
        barrier.gathered = np.maximum(barrier.gathered, clock)
        barrier.pending -= arrivals
        self.step(barrier, at_)

    def complete(self, barrier: Mbarrier, size: int, at_: int) -> None:
        """Bytes have come."""
        barrier.bytes -= size
        self.step(barrier, at_)

    def step(self, barrier: Mbarrier, at_: int) -> None:
        """Ends the phase when all have arrived and all bytes are there."""
        name = self.core.shared_name(barrier.offset)
        if barrier.pending < 0:
            raise self.core.finding("mbarrier", f"more arrivals at {name} than its {barrier.expected}", at_)
        if barrier.pending or barrier.bytes:
            return
        barrier.phase += 1
        barrier.pending = barrier.expected
        barrier.gathered[:, barrier.agent] = barrier.time + barrier.phase
        barrier.released = barrier.gathered.copy()
        waiting, barrier.waiting = barrier.waiting, []
        for block, s, _ in waiting:
            self.core.push(block, s)
        if waiting:
            barrier.seen = barrier.phase
        elif barrier.phase - barrier.seen > 1:
            raise self.core.finding("mbarrier", f"{name} completes two phases that nobody waits for", at_)

    def pending(self, state: Any) -> Any:
        """mbarrier.pending_count: our states are phases."""
        raise PtxError("expected no mbarrier.pending_count, whose states the emulator does not have")

    # ------------------------------------------------------------------------------------------------------------ waits
    def test_wait(
        self, s: Lanes, address: Any, value: Any, parity: bool, block: int, space: str, at_: int, acquires: bool
    ) -> Any:
        """Whether phases are over, for lanes of which none sleeps."""
        return self._wait(s, address, value, parity, block, at_, acquires, False)

    def try_wait(
        self, s: Lanes, address: Any, value: Any, parity: bool, block: int, space: str, at_: int, acquires: bool
    ) -> Any:
        """Whether phases are over. The first time it says no, as a processor may; the second time the lanes sleep until yes."""
        return self._wait(s, address, value, parity, block, at_, acquires, True)

    def _wait(
        self, s: Lanes, address: Any, value: Any, parity: bool, block: int, at_: int, acquires: bool, sleeps: bool
    ) -> Any:
        lanes = indices(s)
        done, stays = np.zeros(len(lanes), b1), np.zeros(len(lanes), b1)
        for mine, barrier, wanted in self._groups(lanes, address, value, at_):
            rows = np.unique(lanes[mine] >> 5)
            for row in rows.tolist():
                self._use(barrier, row * 32, at_)
            over = (barrier.phase & 1) != (wanted & 1) if parity else barrier.phase > wanted
            done[mine], stays[mine] = over, True
            if over:
                barrier.seen = barrier.phase
                self.polled[lanes[mine]] = False
                if acquires:
                    self.clocks.acquire(rows, barrier.released)
            elif sleeps:
                stays[mine] = self._sleep(barrier, lanes[mine], block, at_)
        if not stays.any():
            return None, None
        going = tidy(lanes[stays])
        return going if stays.all() else self.core.only(going), done[stays]

    def _groups(self, lanes: Array, address: Any, value: Any, at_: int) -> Iterator[tuple[Any, Mbarrier, int]]:
        """Lanes by what they wait for."""
        address, value = np.asarray(address, i8), np.asarray(value).astype(i8)
        keys = np.stack(np.broadcast_arrays(self.core.block_of[lanes], address, value), 1)
        first = keys[0]
        tables = [first] if (keys == first).all() else list(np.unique(keys, axis=0))
        for key in tables:
            mine = (keys == key).all(1)
            lane = int(lanes[mine.argmax()])
            yield mine, self.find(self.place(lane, int(key[1])), at_, lane), int(key[2])

    def _sleep(self, barrier: Mbarrier, lanes: Array, block: int, at_: int) -> Array:
        """Puts those to sleep that have asked before; gives those that go on with no."""
        before = self.polled[lanes]
        self.polled[lanes] = True
        if before.any():
            barrier.waiting.append((block, tidy(lanes[before]), at_))
        return ~before

    def _reasons(self) -> Iterator[tuple[str, str, int]]:
        for barrier in self.live.values():
            for _, s, at_ in barrier.waiting:
                state = f"phase {barrier.phase}, {barrier.pending} arrivals and {barrier.bytes} bytes missing"
                yield (
                    "deadlock",
                    f"{count(s)} threads of block {barrier.block} wait for {self.core.shared_name(barrier.offset)} ({state})",
                    at_,
                )
