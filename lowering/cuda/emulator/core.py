"""A wave: blocks of a launch whose threads are lanes of arrays; its registers, its scheduler, and what it says of errors.

Lanes diverge into sets at different basic blocks. The lowest basic block runs first, so that lanes meet again behind
branches; lanes that wait for the rest of their warp are parked at their block until more of them come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .arrays import Array, Dtype, Lanes, b1, count, indices, joined, product, subset, tidy, u4, u8
from .codegen import Code
from .findings import Finding
from .memory import GLOBAL, LOCAL, PARAM, SHARED, Bytes, DeviceMemory
from .syntax import Function

__all__ = ["RANK", "RESERVED", "Core", "Kernel", "Options", "Statistics"]

#: Shared addresses of other blocks of the cluster: rank + 1 in the bits from here, 0 is the own block.
RANK = 24
#: System's shared memory in front of the kernel's.
RESERVED = 1024
_POISON = 0x7FF5A5A57FF5A5A5


@dataclass
class Options:
    """What is looked for, and limits.

    Attributes:
        races: order of accesses to shared memory, and fences for the asynchronous proxy.
        global_races: two blocks of a launch that access the same bytes of global memory, one of them writing.
        initialised: reads of memory and registers that were never written.
        steps: instructions of a launch (of sets of lanes) before it counts as endless.
        lanes: threads that run at once.
        shared_bytes: shared memory of all blocks that run at once.
    """

    races: bool = True
    global_races: bool = True
    initialised: bool = True
    steps: int = 20_000_000
    lanes: int = 16384
    shared_bytes: int = 4 << 20


@dataclass
class Statistics:
    """What has been executed: launches, instructions of sets of lanes, instructions of single lanes."""

    launches: int = 0
    instructions: int = 0
    lane_instructions: int = 0


@dataclass
class Kernel:
    """A kernel that can be launched.

    Attributes:
        function: its parsed form, calls inlined.
        code: its generated form.
        shared: where its variables begin and end in shared memory.
        static_end: where dynamic shared memory begins.
        local_bytes: local memory of a thread.
        granule: bytes of shared memory that races are told apart by.
        global_granule: the same for global memory.
        synchronises: whether it orders blocks of a launch through global memory, so that races between them cannot be told.
        is_async: whether it has asynchronous copies, products or mbarriers.
    """

    function: Function
    code: Code
    shared: Mapping[str, tuple[int, int]]
    static_end: int
    local_bytes: int
    granule: int
    global_granule: int
    synchronises: bool
    is_async: bool

    @property
    def name(self) -> str:
        return self.function.name


@lru_cache(64)
def _threads(block: tuple[int, int, int], blocks: int) -> tuple[Array, ...]:
    """Thread number, block number and whether it exists, of each lane; blocks are filled up to whole warps."""
    padded = -(-product(block) // 32) * 32
    lane = np.arange(padded * blocks)
    thread = lane % padded
    x, y, _ = block
    axes = tuple(a.astype(u4) for a in (thread % x, thread // x % y, thread // (x * y)))
    return (lane // padded, thread, thread < product(block), *axes)


class Core:
    """One wave."""

    def __init__(self, kernel: Kernel, memory: DeviceMemory, options: Options, params: Array, symbols: Mapping[str, int]):
        self.kernel, self.memory, self.options, self.params = kernel, memory, options, params
        self.symbols = symbols  # addresses of global variables
        self.steps, self.lane_steps = 0, 0
        self.runnable: dict[int, Lanes] = {}
        self.parked: dict[int, Lanes] = {}
        # What of a set of lanes goes on, when its block has let some wait.
        self.going: Lanes | None = None
        self.has_exited = False
        self.on_exit: list[Callable[[], None]] = []
        self.finishers: list[Callable[[], None]] = []  # what must not be left over when all have ended
        self.at_end: list[Callable[[], Iterator[tuple[str, str, int]]]] = []  # what keeps threads from ending

    def place(self, grid: tuple[int, int, int], block: tuple[int, int, int], blocks: range, dynamic: int, cluster: int) -> None:
        """Gives lanes to blocks of the grid, and memory to both."""
        self.threads, self.blocks, self.cluster = product(block), len(blocks), cluster
        self.padded = -(-self.threads // 32) * 32
        self.warps = self.padded // 32  # of a block
        self.lanes = self.padded * self.blocks
        self.block_of, self.thread_of, self.exists, *self.tid = _threads(block, self.blocks)
        self.warp_of = np.arange(self.lanes) // 32
        self.alive = self.exists.copy()
        self.grid_block = self.block_of + blocks.start
        x, y, _ = grid
        self.ctaid = [a.astype(u4) for a in (self.grid_block % x, self.grid_block // x % y, self.grid_block // (x * y))]
        self.grid, self.block, self.dynamic = grid, block, dynamic
        kernel = self.kernel
        self.shared_end = kernel.static_end + dynamic
        self.stride = -(-(self.shared_end + 256) // 1024) * 1024
        self.shared = Bytes(self.stride * self.blocks)
        shadow = self.shared.shadow.reshape(self.blocks, self.stride)
        for start, end in [*kernel.shared.values(), (kernel.static_end, self.shared_end)]:
            shadow[:, start:end] = 1
        self.shared_base = self.block_of * self.stride
        self.local = Bytes(max(kernel.local_bytes, 16) * self.lanes)
        if kernel.local_bytes:
            self.local.shadow[:] = 1
        self.written = {number: np.zeros(self.lanes, b1) for number in kernel.code.partly}

    # ------------------------------------------------------------------------------------------------------------
    # generated code
    def registers(self, kind: Dtype, number: int) -> Array:
        """Arrays for registers, filled with what is no number and no address."""
        if kind is b1:
            return np.zeros((number, self.lanes), b1)
        return np.full((number, self.lanes), _POISON & ((1 << 8 * np.dtype(kind).itemsize) - 1), kind)

    def __getattr__(self, name: str) -> Any:
        """Special registers with axes that few kernels read."""
        if name not in ("ntid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"):
            raise AttributeError(name)
        cluster = self.kernel.function.limits.get("cluster", [1, 1, 1])
        whole = {"ntid": self.block, "nctaid": self.grid, "cluster_nctaid": cluster}
        if name in whole:
            value = [np.full(self.lanes, v, u4) for v in whole[name]]
        elif name == "nclusterid":
            value = [np.full(self.lanes, g // c, u4) for g, c in zip(self.grid, cluster, strict=True)]
        else:
            operation = np.floor_divide if name == "clusterid" else np.remainder
            value = [operation(a, u4(c)) for a, c in zip(self.ctaid, cluster, strict=True)]
        setattr(self, name, value)
        return value

    def special(self, name: str, s: Lanes) -> Any:
        """Other special registers."""
        lane = (indices(s) & 31).astype(u4)
        one = u4(1)
        values: dict[str, Callable[[], Any]] = {
            "laneid": lambda: lane,
            "warpid": lambda: (self.thread_of[s] // 32).astype(u4),
            "nwarpid": lambda: u4(self.warps),
            "lanemask_eq": lambda: one << lane,
            "lanemask_lt": lambda: (one << lane) - one,
            "lanemask_le": lambda: (u4(2) << lane) - one,
            "lanemask_gt": lambda: ~((u4(2) << lane) - one),
            "lanemask_ge": lambda: ~((one << lane) - one),
            "cluster_ctarank": lambda: (self.grid_block[s] % self.cluster).astype(u4),
            "cluster_nctarank": lambda: u4(self.cluster),
            "is_explicit_cluster": lambda: b1(self.cluster > 1),
            "dynamic_smem_size": lambda: u4(self.dynamic),
            "total_smem_size": lambda: u4(self.shared_end),
            "smid": lambda: (self.grid_block[s] % 132).astype(u4),
            "nsmid": lambda: u4(132),
        }
        clock = u8(self.steps) if name.endswith("64") or name == "globaltimer" else u4(self.steps & 0xFFFFFFFF)
        return values[name]() if name in values else clock

    def param(self, offset: Any, kind: Dtype, at_: int) -> Any:
        """A parameter of the kernel."""
        width = np.dtype(kind).itemsize
        if np.any(np.asarray(offset) < 0) or np.any(np.asarray(offset) + width > len(self.params)):
            raise self.finding("bounds", f"parameter at byte {int(np.max(offset))}, they are {len(self.params)}", at_)
        if np.ndim(offset) == 0:
            return self.params[int(offset) : int(offset) + width].view(kind)[0]
        return self.params[offset[:, None] + np.arange(width)].copy().view(kind)[:, 0]

    def window(self, space: str, kind: Dtype) -> Any:
        """Where a state space begins in the generic one; shared addresses of 32 bits stay what they are."""
        begin = {"shared": SHARED, "local": LOCAL, "param": PARAM}.get(space, 0)
        return kind(begin if np.dtype(kind).itemsize == 8 else 0)

    def is_in(self, address: Any, space: str) -> Any:
        """isspacep."""
        ends = {
            "global": (GLOBAL, 1 << 62),
            "shared": (SHARED, LOCAL),
            "local": (LOCAL, PARAM),
            "param": (PARAM, GLOBAL),
            "const": (0, 0),
        }
        low, high = ends[space]
        return (address >= u8(low)) & (address < u8(high))

    def mapped(self, address: Any, rank: Any, kind: Dtype) -> Any:
        """mapa: the address in another block of the cluster."""
        return (address & ~kind(0xFF << RANK)) | ((rank + u4(1)).astype(kind) << kind(RANK))

    def rank_of_address(self, address: Any, s: Lanes) -> Any:
        """The block of the cluster that a shared address is in."""
        rank = (address.astype(u8) >> u8(RANK)) & u8(0xFF)
        return np.where(rank, rank - u8(1), self.grid_block[s] % self.cluster).astype(u4)

    # ------------------------------------------------------------------------------------------------------------ errors
    def finding(self, kind: str, message: str, at_: int = -1, lanes: Any = None) -> Finding:
        """What is reported of an instruction, by the first of the lanes."""
        if lanes is not None and len(lanes):
            lane = int(lanes[0])
            block = tuple(int(axis[lane]) for axis in self.ctaid)
            thread = tuple(int(axis[lane]) for axis in self.tid)
            more = f" and {len(lanes) - 1} more" if len(lanes) > 1 else ""
            message += f", by block {block} thread {thread}{more}"
        if at_ < 0:
            return Finding(kind, message, self.kernel.name)
        instruction = self.kernel.function.code[at_]
        return Finding(kind, message, self.kernel.name, instruction.line, instruction.text[:100], instruction.place)

    def trap(self, s: Lanes, at_: int) -> None:
        raise self.finding("trap", "the kernel executed trap", at_, indices(s))

    def unwritten(self, name: str, s: Lanes, written: Array, at_: int) -> None:
        """A register that some lanes read without having written it; moves may."""
        instruction = self.kernel.function.code[at_]
        if self.options.initialised and instruction.name not in ("mov", "selp"):
            raise self.finding("uninitialised", f"register {name} is read before it is written", at_, indices(s)[~written])

    # ------------------------------------------------------------------------------------------------------------ scheduler
    def push(self, block: int, s: Lanes) -> None:
        """Lanes go on at a block."""
        if block < 0:
            return self.exit(s)
        if block in self.parked:
            s = joined(s, self.parked.pop(block))
        self.runnable[block] = joined(self.runnable[block], s) if block in self.runnable else s
        return None

    def park(self, block: int, s: Lanes) -> None:
        """Lanes wait at a block until more come there, or others end."""
        self.parked[block] = joined(self.parked[block], s) if block in self.parked else s

    def exit(self, s: Lanes) -> None:
        """Threads end; those that wait for them look again."""
        self.alive[s] = False
        self.has_exited = True
        parked, self.parked = self.parked, {}
        for block, lanes in parked.items():
            self.push(block, lanes)
        for look in self.on_exit:
            look()

    def forget_units(self) -> None:
        """Ends what units were told to be called for: they know the core, and both would keep the device's memory."""
        for called in (self.on_exit, self.at_end, self.finishers):
            called.clear()

    def run(self, make: Callable[..., list[Callable[[Any], Any]]], units: Sequence[Any]) -> None:
        """Runs all lanes to their ends. Raises Finding."""
        blocks, sizes, runnable = make(*units), self.kernel.code.sizes, self.runnable
        runnable[0] = tidy(np.nonzero(self.exists)[0])
        turn = 0
        while runnable:
            turn += 1
            # Now and then the oldest set goes on, so that one that polls does not keep out what it waits for.
            block = min(runnable) if turn % 509 else next(iter(runnable))
            self._advance(blocks, sizes, block, runnable.pop(block))
        self._finish()

    def _advance(self, blocks: Sequence[Callable[[Any], Any]], sizes: Sequence[int], block: int, s: Lanes) -> None:
        """Runs a set of lanes until it sleeps, splits, or others are to be waited for."""
        limit, runnable, parked = self.options.steps, self.runnable, self.parked
        while True:
            self.steps += sizes[block]
            self.lane_steps += sizes[block] * count(s)
            if self.steps > limit:
                raise self.finding("timeout", f"more than {limit} instructions", self.kernel.code.starts[block], indices(s))
            after = blocks[block](s)
            going, self.going = self.going, None
            if after is None:
                return
            s = s if going is None else going
            if type(after) is tuple:
                condition, then, otherwise = after
                if condition.all():
                    after = then
                elif not condition.any():
                    after = otherwise
                else:
                    lanes = indices(s)
                    self.push(then, tidy(lanes[condition]))
                    self.push(otherwise, tidy(lanes[~condition]))
                    return
            if after < 0 or runnable or parked or self.parked:
                return self.push(after, s)
            block = after

    def _finish(self) -> None:
        if not self.alive.any():
            for finish in self.finishers:
                finish()
            return
        reasons = [reason for look in self.at_end for reason in look()]
        kind = "deadlock"
        for block, lanes in self.parked.items():
            kind, at_ = "divergence", self.kernel.code.starts[block]
            line = self.kernel.function.code[at_].line
            reasons.insert(0, (kind, f"{count(lanes)} threads wait at line {line} for the rest of their warps", at_))
        if not reasons:
            raise self.finding(kind, "no thread can go on")
        raise self.finding(kind, "; ".join(text for _, text, _ in reasons[:6]), reasons[0][2])

    # ------------------------------------------------------------------------------------------------------------ warps
    def taken(self, s: Lanes, condition: Any, after: int) -> Lanes | None:
        """The lanes whose guard holds; the others go on behind the instruction."""
        others = subset(s, ~np.asarray(condition))
        if others is not None:
            self.push(after, others)
        chosen = subset(s, condition)
        return chosen if others is None or chosen is None else self.only(chosen)

    def only(self, s: Lanes) -> Lanes:
        """The lanes of the set that runs that go on in its block; the others wait, or are elsewhere."""
        self.going = s
        return s

    def warps_ready(self, s: Lanes, mask: Any, block: int, at_: int) -> Lanes | None:
        """The lanes whose whole warp (its living lanes that the mask names) is here; the others are parked."""
        full = np.ndim(mask) == 0 and mask == 0xFFFFFFFF
        if full and type(s) is slice and not (s.start | s.stop) & 31:
            return s
        lanes = indices(s)
        bit = u4(1) << (lanes & 31).astype(u4)
        here, living = self.warp_masks(lanes), self.warp_masks(np.nonzero(self.alive)[0])
        wanted = np.broadcast_to(np.asarray(mask, u4), lanes.shape)
        stranger = (wanted & bit) == 0
        if stranger.any():
            raise self.finding("divergence", "a lane executes what its mask does not name it for", at_, lanes[stranger])
        complete = (wanted & living[lanes >> 5] & ~here[lanes >> 5]) == 0
        if not complete.all():
            self.park(block, tidy(lanes[~complete]))
        return self.only(tidy(lanes[complete])) if complete.any() else None

    def warp_masks(self, lanes: Array) -> Array:
        """A bit for each of the lanes, by warp."""
        masks = np.zeros(self.blocks * self.warps, u4)
        np.bitwise_or.at(masks, lanes >> 5, u4(1) << (lanes & 31).astype(u4))
        return masks

    def groups_ready(self, s: Lanes, block: int, at_: int) -> Lanes | None:
        """The lanes whose whole warpgroup is here; the others are parked."""
        if self.padded % 128:
            raise self.finding("wgmma", f"a block of {self.threads} threads has no whole warpgroups", at_, indices(s))
        if type(s) is slice and not (s.start % 128 | (s.stop - s.start) & 127):
            return s
        lanes = indices(s)
        complete = np.bincount(lanes // 128, minlength=self.lanes // 128)[lanes // 128] == 128
        if not complete.all():
            self.park(block, tidy(lanes[~complete]))
        return self.only(tidy(lanes[complete])) if complete.any() else None

    def rows(self, s: Lanes) -> Array:
        """Warps of a set of lanes, numbered over the wave."""
        return np.arange(s.start // 32, -(-s.stop // 32)) if type(s) is slice else np.unique(s // 32)

    def shared_name(self, offset: int) -> str:
        """A byte of a block's shared memory, by the variable that it is in."""
        for name, (start, end) in self._shared_names.items():
            if start <= offset < end:
                return f"{name}+{offset - start}"
        return f"shared memory at {offset - RESERVED}"

    @property
    def _shared_names(self) -> Mapping[str, tuple[int, int]]:
        return {**self.kernel.shared, "dynamic shared memory": (self.kernel.static_end, self.shared_end)}
