"""How the rows and columns of a contraction are cut into register tiles: whole ones, and what is left over."""

from __future__ import annotations

from collections.abc import Callable

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Point
from .contraction_plan import ContractionPlan
from .tile_place import Column, Share

__all__ = ["Tiles"]

RowLoop = Callable[[ir.Value, ir.Value, int, Callable[[ir.Value], None]], None]
"""A loop from one value to another by a step."""


class Tiles:
    """Tiles as a plan has them.

    Of rows whose number is known at run time, those behind whole tiles are tiles of powers of two, or with ``has_every_height``
    one tile, for which there is code of each height: the right factor is read once.
    """

    def __init__(self, emitter: Emitter, plan: ContractionPlan, has_every_height: bool = False):
        self.emitter, self.plan, self.has_every_height = emitter, plan, has_every_height
        self.rows, self.width, self.vectors = plan.height, plan.tile.lanes, plan.tile.vectors
        #: Columns of a tile.
        self.panel = plan.tile.columns

    def columns(self, n: ir.Value, active: int | ir.Value | None = None) -> list[Column]:
        """The vectors of a panel, of which ``active`` columns exist when that is given."""
        em, found = self.emitter, list[Column]()
        count = -(-active // self.width) if isinstance(active, int) else self.vectors
        rest = em.number(active) if isinstance(active, int) else active
        for j in range(count):
            start = em.add(n, em.number(j * self.width)) if j else n
            left = None if rest is None else em.sub(rest, em.number(j * self.width))
            found.append((start, None if left is None else em.lane_mask(self.width, left)))
        return found

    def split(
        self, first: ir.Value, count: int | ir.Value, loop: RowLoop, tile: Callable[[ir.Value, int, Share], None]
    ) -> None:
        """Builds tiles for ``count`` rows from ``first`` on, each from its first row, its height and its share."""
        if not isinstance(count, int):
            self._dynamic(first, count, loop, tile)
            return
        em, low = self.emitter, self.plan.low_heights(count)
        whole = (count - sum(low)) // self.rows
        shares = self.plan.fetch_shares(whole + len(low))
        if whole == 1:
            tile(first, self.rows, Share(em.number(0), shares))
        elif whole:
            end = em.add(first, em.number(whole * self.rows))
            loop(first, end, self.rows, lambda i: tile(i, self.rows, Share(self._number(i), shares)))
        self._low(em.add(first, em.number(whole * self.rows)), low, whole, shares, tile)

    def _low(
        self, first: ir.Value, heights: list[int], number: int, shares: int, tile: Callable[[ir.Value, int, Share], None]
    ) -> None:
        """The last tiles: one code for two of the same height."""
        em = self.emitter
        if len(heights) == 2 and heights[0] == heights[1]:
            height = heights[0]

            def one(row: ir.Value) -> None:
                place = em.op("arith.divui", [em.sub(row, first), em.number(height)], em.index)
                tile(row, height, Share(em.add(em.number(number), place), shares))

            em.each(first, em.add(first, em.number(2 * height)), height, one)
            return
        for i, height in enumerate(heights):
            tile(em.add(first, em.number(sum(heights[:i]))), height, Share(em.number(number + i), shares))

    def _dynamic(self, first: ir.Value, count: ir.Value, loop: RowLoop, tile: Callable[[ir.Value, int, Share], None]) -> None:
        """Whole tiles in a loop, then those of the rest."""
        em = self.emitter
        rest = em.op("arith.remui", [count, em.number(self.rows)], em.index)
        start = em.add(first, em.sub(count, rest))
        self.even(first, start, loop, tile)
        if self.has_every_height:
            for height in range(1, self.rows):
                is_rest = em.compare("eq", rest, em.number(height))
                em.only_when(is_rest, lambda h=height: tile(start, h, Share(em.number(0), 0)))
            return
        for height in (1 << i for i in reversed(range((self.rows - 1).bit_length()))):
            taken = em.op("arith.andi", [rest, em.number(height)], em.index)
            begin = start
            self.when_positive(taken, lambda h=height, b=begin: tile(b, h, Share(em.number(0), 0)))
            start = em.add(start, taken)

    def even(self, first: ir.Value, end: ir.Value, loop: RowLoop, tile: Callable[[ir.Value, int, Share], None]) -> None:
        """Builds whole tiles alone, for a multiple of their height."""
        shares = self.plan.fetch_shares(None)
        loop(first, end, self.rows, lambda i: tile(i, self.rows, Share(self._number(i), shares)))

    def _number(self, row: ir.Value) -> ir.Value:
        """Numbers of the tiles that begin at multiples of the height: all of 0 to 3, in some order, in any four of them."""
        twos = (self.rows & -self.rows).bit_length() - 1
        return self.emitter.op("arith.shrui", [row, self.emitter.number(twos)], self.emitter.index) if twos else row

    def when_positive(self, value: ir.Value, then: Callable[[], None]) -> None:
        """Builds under a condition."""
        self.emitter.only_when(self.emitter.compare("sgt", value, self.emitter.number(0)), then)

    def points(self, point: Point, m: int, first: ir.Value, height: int) -> list[Point]:
        """The rows of a tile."""
        em = self.emitter
        return [point.at(m, em.add(first, em.number(i)) if i else first) for i in range(height)]

    def joined_points(self, point: Point, dims: tuple[int, int], first: ir.Value, width: ir.Value, height: int) -> list[Point]:
        """The rows of a tile among those of all lines: each is the next one of its line, or the first one of the next line."""
        em, (line, m) = self.emitter, dims
        y = em.op("arith.divui", [first, width], em.index)
        x = em.sub(first, em.mul(y, width))
        found = [point.at(line, y).at(m, x)]
        for _ in range(height - 1):
            y, x = self._next(y, x, width)
            found.append(point.at(line, y).at(m, x))
        return found

    def _next(self, y: ir.Value, x: ir.Value, width: ir.Value) -> tuple[ir.Value, ir.Value]:
        em, one = self.emitter, self.emitter.number(1)
        after = em.add(x, one)
        is_end = em.compare("eq", after, width)
        choose = "arith.select"
        return em.op(choose, [is_end, em.add(y, one), y], em.index), em.op(choose, [is_end, em.number(0), after], em.index)
