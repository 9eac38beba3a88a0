"""Instructions in which the lanes of a warp see each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Array, Lanes, b1, i4, indices, u4
from .clocks import Clocks
from .core import Core

__all__ = ["Warp"]

_REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_REGISTERS = 65536  # of 32 bits in a multiprocessor, which one block may have
_MOST = 255  # of a thread


class Warp:
    """Shuffles, votes, matches, reductions, and registers of warps."""

    def __init__(self, core: Core, clocks: Clocks):
        self.core, self.clocks = core, clocks
        self.maximum: dict[int, int] = {}
        self.at = -1
        core.finishers.append(self._finish)

    def shuffle(self, s: Lanes, mode: str, value: Any, b: Any, c: Any, at_: int) -> tuple[Array, Array]:
        """Values of other lanes, and whether there is such a lane in the segment."""
        lanes = indices(s)
        lane = (lanes & 31).astype(i4)
        b, c = np.asarray(b).astype(i4) & 31, np.asarray(c).astype(i4)
        segment, clamp = c >> 8 & 31, c & 31
        least, most = lane & segment, (lane & segment) | (clamp & ~segment)
        sources: dict[str, Callable[[], Any]] = {
            "up": lambda: lane - b,
            "down": lambda: lane + b,
            "bfly": lambda: lane ^ b,
            "idx": lambda: least | (b & ~segment),
        }
        source = sources[mode]()
        is_valid = source >= most if mode == "up" else source <= most
        source = np.where(is_valid, source, lane)
        self.clocks.tick(self.core.rows(s))
        value = np.broadcast_to(value, lanes.shape)
        if type(s) is slice and not (s.start | s.stop) & 31:
            return value[(np.arange(len(lanes)) & ~31) + source], is_valid
        full, there = np.zeros(self.core.lanes, u4), np.zeros(self.core.lanes, b1)
        full[lanes], there[lanes] = value, True
        place = (lanes & ~31) + source
        if not there[place].all():
            raise self.core.finding("divergence", "shfl reads a lane that does not take part", at_, lanes[~there[place]])
        return full[place], is_valid

    def _table(self, s: Lanes, value: Any) -> tuple[Array, Array]:
        """A truth value of each lane of each warp, False for those that do not take part."""
        table = np.zeros((self.core.blocks * self.core.warps, 32), b1)
        lanes = indices(s)
        table[lanes >> 5, lanes & 31] = value
        return table, lanes >> 5

    def vote(self, s: Lanes, kind: str, value: Any) -> Array:
        """ballot, any, all or uni."""
        table, row = self._table(s, value)
        self.clocks.tick(self.core.rows(s))
        if kind == "ballot":
            return (table.astype(u4) << np.arange(32, dtype=u4)).sum(1, dtype=u4)[row]
        some: Array = np.logical_or.reduce(table, 1)
        if kind == "any":
            return some[row]
        others = ~self._table(s, True)[0]
        every: Array = np.logical_and.reduce(table | others, 1)
        return every[row] if kind == "all" else (every | ~some)[row]

    def match(self, s: Lanes, kind: str, value: Any) -> tuple[Array, Array]:
        """Masks of lanes with the same value; for ``all`` zero unless all have it."""
        lanes = indices(s)
        value, row = np.broadcast_to(value, lanes.shape), lanes >> 5
        result = np.zeros(len(lanes), u4)
        for warp in np.unique(row):
            mine = row == warp
            same = value[mine][:, None] == value[mine][None]
            result[mine] = (same.astype(u4) << (lanes[mine] & 31).astype(u4)).sum(1, dtype=u4)
            if kind == "all" and not same.all():
                result[mine] = 0
        self.clocks.tick(self.core.rows(s))
        return result, result != 0

    def reduce(self, s: Lanes, operation: str, value: Any) -> Array:
        """redux."""
        lanes = indices(s)
        value = np.broadcast_to(value, lanes.shape)
        starts = np.nonzero(np.diff(lanes >> 5, prepend=-1))[0]
        sums = _REDUCTIONS[operation].reduceat(value, starts).astype(value.dtype)
        self.clocks.tick(self.core.rows(s))
        return np.repeat(sums, np.diff(starts, append=len(lanes)))

    def elect(self, s: Lanes) -> tuple[Array, Array]:
        """The lowest lane of each warp, and whether one is it."""
        lanes = indices(s)
        first = np.full(self.core.blocks * self.core.warps, self.core.lanes)
        np.minimum.at(first, lanes >> 5, lanes)
        self.clocks.tick(self.core.rows(s))
        return (first[lanes >> 5] & 31).astype(u4), lanes == first[lanes >> 5]

    def set_registers(self, s: Lanes, kind: str, number: int, at_: int) -> None:
        """setmaxnreg: a warp that asks for more than is left waits for ever. Warps that have not asked count with the least."""
        if number % 8 or not 24 <= number <= 256:
            raise self.core.finding(
                "registers", f"expected 24 to 256 registers, a multiple of 8, got {number}", at_, indices(s)
            )
        warps = self.core.warps
        for row in self.core.rows(s).tolist():
            self.maximum[row], self.at = number, at_
            first = row - row % warps
            total = 32 * sum(self.maximum.get(r, 24) for r in range(first, first + warps))
            if total > _REGISTERS:
                raise self.core.finding(
                    "registers", f"{kind} to {number} makes {total} of {_REGISTERS} registers", at_, indices(s)
                )

    def _finish(self) -> None:
        """A block has the registers that it started with: what some warps get more others have given back before.

        The assembler gives threads of a kernel with setmaxnreg as many as all of a block can have.
        """
        warps = self.core.warps
        given = min(_MOST, _REGISTERS // (32 * warps) // 8 * 8)
        for first in sorted({row - row % warps for row in self.maximum}):
            total = 32 * sum(self.maximum.get(row, given) for row in range(first, first + warps))
            if total > 32 * warps * given:
                message = f"warps ask for {total} registers of the block's {32 * warps * given}: some wait for ever"
                raise self.core.finding("registers", message, self.at, [first * 32])
