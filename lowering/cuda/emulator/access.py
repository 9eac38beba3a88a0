"""Loads, stores and atomics of threads, with what is checked of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arrays import RAW, SHIFT, Array, Dtype, Lanes, count, f2, f4, i4, i8, indices, u1, u2
from .clocks import Clocks
from .core import RANK, Core
from .floats import narrow, widen
from .memory import GLOBAL, LOCAL, ONES, PARAM, SHARED, WRITTEN, Bytes, is_written

__all__ = ["Access", "GlobalOrder"]

_WINDOWS = (("global", GLOBAL), ("param", PARAM), ("local", LOCAL), ("shared", SHARED))


class GlobalOrder:
    """Which block of a launch last wrote and read each granule of global memory: blocks have no order among each other.

    Numbers of blocks go on from launch to launch, so that nothing has to be cleared.
    """

    def __init__(self) -> None:
        self.size, self.first, self.next = 0, 1, 1
        self.tables: dict[int, tuple[Array, Array]] = {}

    def start(self, blocks: int, used: int) -> None:
        """A launch begins, on so many bytes of memory."""
        if self.next + blocks + 1 >= 1 << 31 or used > self.size:
            self.tables.clear()
            self.next, self.size = 1, max(2 * used, self.size)
        self.first, self.next = self.next, self.next + blocks + 1  # one more, for what several have read

    def conflicts(self, blocks: Array, offset: Array, size: int, granule: int, is_write: bool) -> Array:
        """Which accesses are of bytes that another block of this launch has accessed, one of both writing."""
        if granule not in self.tables:
            number = self.size // granule + 64
            self.tables[granule] = (np.zeros(number, i4), np.zeros(number, i4))
        writer, reader = self.tables[granule]
        own = (blocks + self.first).astype(i4)[:, None]
        places = (offset // granule)[:, None] + np.arange(max(1, size // granule))
        last = writer[places]
        bad = (last >= self.first) & (last != own)
        seen = reader[places]
        if is_write:
            bad |= (seen >= self.first) & (seen != own)
            writer[places] = own
            bad |= writer[places] != own  # blocks that write there at once
        else:  # with two readers it is nobody's: whoever writes then is wrong
            several = (seen >= self.first) & (seen != own)
            reader[places] = own
            several |= reader[places] != own  # blocks that read there at once
            if several.any():
                reader[places[several]] = self.next - 1
        return bad.any(1)


class Access:
    """Memory as the threads of a wave see it."""

    def __init__(self, core: Core, clocks: Clocks, order: GlobalOrder):
        self.core, self.clocks, self.order = core, clocks, order
        self.is_ordered = core.options.global_races and not core.kernel.synchronises and product_above_one(core.grid)

    # ------------------------------------------------------------------------------------------------------------ places
    def locate(self, space: str, s: Lanes, address: Any, at_: int) -> tuple[Bytes, Array, str]:
        """The memory of an address, offsets in it for each lane, and the name of its space."""
        core = self.core
        if space == "generic":
            space, address = self._generic(s, address, at_)
        if space in ("global", "const"):
            return core.memory, self._wide(s, address) - GLOBAL, "global"
        if space == "local":
            offset = self._wide(s, address)
            outside = (offset < 0) | (offset >= core.kernel.local_bytes)
            if outside.any():
                message = f"local memory at {int(offset[outside][0])}, a thread has {core.kernel.local_bytes} bytes"
                raise core.finding("bounds", message, at_, indices(s)[outside])
            return core.local, indices(s) * core.kernel.local_bytes + offset, space
        if space in ("shared", "cluster"):
            return core.shared, self._shared(s, self._wide(s, address), at_), "shared"
        raise core.finding("bounds", f"access of {space} memory", at_, indices(s))

    def _wide(self, s: Lanes, address: Any) -> Array:
        address = np.asarray(address, i8)
        return address if address.shape == (count(s),) else np.broadcast_to(address, (count(s),))

    def _generic(self, s: Lanes, address: Any, at_: int) -> tuple[str, Any]:
        low = int(np.min(address))
        for space, begin in _WINDOWS:
            if low >= begin:
                return space, address - (0 if space == "global" else begin)
        raise self.core.finding("bounds", f"address {low:#x} is in no memory", at_, indices(s))

    def _shared(self, s: Lanes, offset: Array, at_: int) -> Array:
        core = self.core
        rank = offset >> RANK
        low = offset
        base = core.shared_base[s]
        if rank.any():
            outside = (rank < 0) | (rank > core.cluster)
            if outside.any():
                raise core.finding("bounds", f"shared memory at {int(offset[outside][0]):#x}", at_, indices(s)[outside])
            low = offset & ((1 << RANK) - 1)
            first = core.block_of[s] // core.cluster * core.cluster
            base = np.where(rank > 0, (first + rank - 1) * core.stride, base)
        outside = (low < 0) | (low >= core.stride)
        if outside.any():
            message = f"shared memory at {int(low[outside][0])}, the block's ends at {core.shared_end}"
            raise core.finding("bounds", message, at_, indices(s)[outside])
        return base + low

    def check(self, memory: Bytes, offset: Array, size: int, space: str, what: str, s: Lanes, at_: int) -> Array:
        """Indices of accesses of a size. Raises Finding for those that are not aligned, or beyond the memory."""
        skew = offset & (size - 1)
        if skew.any():
            lanes = indices(s)[skew != 0]
            where = self.described(memory, int(offset[skew != 0][0]), space)
            raise self.core.finding("alignment", f"{space} {what} of {size} bytes at {where}", at_, lanes)
        bad = (offset < 0) | (offset > memory.size - size)
        if bad.any():
            where = self.described(memory, int(offset[bad][0]), space)
            raise self.core.finding("bounds", f"{space} {what} of {size} bytes at {where}", at_, indices(s)[bad])
        return offset >> SHIFT[size]

    def described(self, memory: Bytes, offset: int, space: str) -> str:
        """An offset as an address and what is there."""
        core = self.core
        if space == "global":
            return core.memory.described(offset)
        if space == "shared":
            return core.shared_name(offset % core.stride)
        return f"byte {offset % max(core.kernel.local_bytes, 1)} of a thread's local memory"

    # ------------------------------------------------------------------------------------------------------------ threads
    def load(self, space: str, s: Lanes, address: Any, width: int, number: int, at_: int, is_ordered: bool = False) -> Array:
        """Bits of one value for each lane, or of ``number`` values in columns."""
        if space == "generic" and int(np.min(address)) < LOCAL * 4 and int(np.min(address)) >= PARAM:
            return self._load_param(s, address - PARAM, width, number, at_)
        memory, offset, space = self.locate(space, s, address, at_)
        size = width * number
        index = self.check(memory, offset, size, space, "load", s, at_)
        value = memory.views[size][index]
        shadow = memory.shadows[size][index]
        if not is_written(shadow, size):
            self.report_unwritten(memory, offset, shadow, size, space, s, at_)
        if memory is self.core.shared and self.clocks.is_on:
            self.clocks.read(self.core.warp_of[s], indices(s), self.clocks.granules(offset, size), at_)
        elif memory is self.core.memory and self.is_ordered and not is_ordered:
            self.between_blocks(s, offset, size, False, at_)
        return value if number == 1 else value.view(RAW[width]).reshape(-1, number)

    def _load_param(self, s: Lanes, offset: Any, width: int, number: int, at_: int) -> Array:
        offset = self._wide(s, offset)
        columns = [self.core.param(offset + width * j, RAW[width], at_) for j in range(number)]
        return columns[0] if number == 1 else np.stack(columns, 1)

    def report_unwritten(self, memory: Bytes, offset: Array, shadow: Array, size: int, space: str, s: Lanes, at_: int) -> None:
        table = np.ascontiguousarray(shadow).view(u1).reshape(len(offset), size)
        outside = (table == 0).any(1)
        if outside.any():
            where = self.described(memory, int(offset[outside][0]), space)
            raise self.core.finding("bounds", f"{space} load of {size} bytes at {where}", at_, indices(s)[outside])
        if self.core.options.initialised:
            bad = (table != WRITTEN).any(1)
            where = self.described(memory, int(offset[bad][0]), space)
            raise self.core.finding(
                "uninitialised", f"{space} load of {size} bytes never written at {where}", at_, indices(s)[bad]
            )

    def store(
        self, space: str, s: Lanes, address: Any, width: int, values: Sequence[Any], at_: int, is_ordered: bool = False
    ) -> None:
        """Writes one value for each lane, or several in a row."""
        memory, offset, space = self.locate(space, s, address, at_)
        size = width * len(values)
        index = self.check(memory, offset, size, space, "store", s, at_)
        if len(values) == 1:
            bits = np.broadcast_to(np.asarray(values[0]), index.shape)
        else:
            table = np.empty((len(index), len(values)), RAW[width])
            for column, value in enumerate(values):
                table[:, column] = value
            bits = table.view(RAW[size]).reshape(-1)
        self.put(memory, space, s, offset, index, size, bits, at_)
        if memory is self.core.shared and self.clocks.is_on:
            self.clocks.write(self.core.warp_of[s], indices(s), self.clocks.granules(offset, size), at_)
        elif memory is self.core.memory and self.is_ordered and not is_ordered:
            self.between_blocks(s, offset, size, True, at_)

    def put(self, memory: Bytes, space: str, s: Lanes, offset: Array, index: Array, size: int, bits: Array, at_: int) -> None:
        """Writes bits. Raises Finding outside of buffers, and for lanes that write different values to one place."""
        shadow = np.ascontiguousarray(memory.shadows[size][index]).view(u1)
        if not shadow.all():
            bad = (shadow.reshape(len(index), size) == 0).any(1)
            where = self.described(memory, int(offset[bad][0]), space)
            raise self.core.finding("bounds", f"{space} store of {size} bytes at {where}", at_, indices(s)[bad])
        memory.views[size][index] = bits
        memory.shadows[size][index] = ONES[size]
        if memory is self.core.local:
            return
        differ = memory.views[size][index].view(u1) != np.ascontiguousarray(bits).view(u1)
        if differ.any():
            lanes = indices(s)[differ.reshape(len(index), size).any(1)]
            raise self.core.finding("race", f"lanes of one {space} store write different values to one place", at_, lanes)

    def between_blocks(self, s: Lanes, offset: Array, size: int, is_write: bool, at_: int) -> None:
        """Raises Finding when another block of the launch accesses the same bytes, and one of both writes."""
        if not self.is_ordered:
            return
        granule = self.core.kernel.global_granule
        bad = self.order.conflicts(self.core.grid_block[s], offset, size, granule, is_write)
        if bad.any():
            where = self.described(self.core.memory, int(offset[bad][0]), "global")
            raise self.core.finding("race", f"two blocks access {where}, one of them writes", at_, indices(s)[bad])

    # ------------------------------------------------------------------------------------------------------------ atomics
    def atomic(
        self, space: str, s: Lanes, address: Any, operation: str, kind: str, view: Dtype, values: Sequence[Any], at_: int
    ) -> Array:
        """Lanes one after the other; gives what was there before."""
        memory, offset, space = self.locate(space, s, address, at_)
        size = np.dtype(view).itemsize
        index = self.check(memory, offset, size, space, "atomic", s, at_)
        shadow = np.ascontiguousarray(memory.shadows[size][index])
        if not is_written(shadow, size):
            self.report_unwritten(memory, offset, shadow, size, space, s, at_)
        data, old = memory.data.view(view), np.empty(len(index), view)
        columns = [np.broadcast_to(v, index.shape) for v in values]
        function = _atomic_function(operation, kind)
        for lane, place in enumerate(index.tolist()):
            old[lane] = data[place]
            data[place] = function(data[place], *(c[lane] for c in columns))
        if memory is self.core.shared and self.clocks.is_on:
            self._order_atomics(s, offset, size)
        return old

    def _order_atomics(self, s: Lanes, offset: Array, size: int) -> None:
        """Atomics are no race with each other: they leave the trace of a write only where there is none."""
        clocks = self.clocks
        granules = clocks.granules(offset, size)
        own = clocks.own[self.core.warp_of[s]]
        clocks.writer[granules] = own[:, None]
        clocks.written_at[granules] = clocks.seen[self.core.warp_of[s], own][:, None]
        clocks.writer_lane[granules] = indices(s)[:, None]


def product_above_one(grid: Sequence[int]) -> bool:
    """Whether there is more than one block."""
    return any(size > 1 for size in grid)


def _atomic_function(operation: str, kind: str) -> Callable[..., Any]:
    if operation == "add" and kind in ("f16x2", "bf16x2", "bf16"):
        return _add_narrow(kind)
    table: dict[str, Callable[..., Any]] = {
        "add": lambda old, x: old + x,
        "min": lambda old, x: x if x < old else old,
        "max": lambda old, x: x if x > old else old,
        "and": lambda old, x: old & x,
        "or": lambda old, x: old | x,
        "xor": lambda old, x: old ^ x,
        "exch": lambda old, x: x,
        "inc": lambda old, x: 0 if old >= x else old + old.dtype.type(1),
        "dec": lambda old, x: x if old == 0 or old > x else old - old.dtype.type(1),
        "cas": lambda old, x, y: y if old == x else old,
    }
    return table[operation]


def _add_narrow(kind: str) -> Callable[[Any, Any], Any]:
    def add(old: Any, x: Any) -> Any:
        if kind == "f16x2":
            return (np.array([old]).view(f2) + np.array([x]).view(f2)).view(old.dtype)[0]
        pair = np.array([old, x], old.dtype).view(u2).reshape(2, -1)
        return narrow((widen(pair[0]) + widen(pair[1])).astype(f4)).view(old.dtype)[0]

    return add
