"""The loops around a contraction's tiles where rows are many: in parts, each by all columns, if a cache holds the right factor.

::

    for unit of about 128 rows and a panel, rows outside {  // what threads share
      for tile { out = epilogue(products over all k) } }

The right factor stays in the last cache, and a part of the left one in level 2, where all rows by one panel after the other
would read the left one once for each panel, from further away. Results are written line by line. And each thread has rows of
its own, mostly, as in the kernels before and after: what it reads is in its own caches. Of a right factor that comes from
memory there is one part: it is read once, and threads share its panels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

from .....dialect.bindings import ir
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Point
from .contraction_plan import PARTS, ContractionPlan
from .microkernel import Microkernel, Sums
from .shape import multiples_of
from .tile_place import Column, Share, Steps, TilePlace
from .tiles import Tiles

__all__ = ["PartLoops"]

_Loop = Callable[[ir.Value, ir.Value, int, Callable[[ir.Value], None]], None]
"""Builds a loop that threads share: its bounds, its step, its body."""

#: Parts are a multiple of so many.
_FOUR = 4


def _product(sizes: Sequence[Size]) -> Size:
    return reduce(mul, sizes, Size.of(1))


@dataclass(frozen=True)
class _Part:
    """A part of what is cut: where it begins and ends, and whether it is the last one, where that matters."""

    first: ir.Value
    end: ir.Value
    is_last: ir.Value | None


class PartLoops:
    """Builds these loops for one contraction.

    What is cut into parts are the rows; those of all places in the shared loop, where tiles go on from one to the next; or the
    first of the dimensions that the left operand has alone.
    """

    def __init__(self, plan: ContractionPlan, tiles: Tiles, microkernel: Microkernel, sums: Sums):
        loads = microkernel.loads
        assert plan.parts is not None
        self.parts, self.joined, self.is_shared = plan.parts, plan.joined, PARTS in plan.threads
        self.tiles, self.microkernel, self.sums = tiles, microkernel, sums
        self.contraction, self.emitter, self.memory = loads.contraction, loads.emitter, loads.memory
        extents, contraction = self.contraction.nest.extents, self.contraction
        self.m, self.columns = contraction.m, extents[contraction.n]
        self.row_sizes = [extents[d] for d in contraction.shared] + ([] if self.m is None else [extents[self.m]])
        self.depth = _product([extents[d] for d in (contraction.k, *contraction.outer)])
        self.factor = self.depth * extents[contraction.n]
        is_cut_in_rows = plan.joined or not contraction.shared
        cut = _product(self.row_sizes if is_cut_in_rows else self.row_sizes[:1])
        #: The tiles behind the whole ones, where rows that are cut have a known number.
        self.low = plan.low_heights(cut.static) if is_cut_in_rows and cut.static is not None and not plan.joined else []
        #: How many rows there are; what is cut, but for these tiles, and in multiples of what.
        self.rows, self.places, self.step = _product(self.row_sizes), cut, tiles.rows if is_cut_in_rows else 1
        if self.low:
            self.places = cut + Size.of(-sum(self.low))

    def build(self, point: Point, shared: _Loop) -> None:
        """The loop over units: all panels of a part, then the next part."""
        em, panels, parts = self.emitter, self._panels(), self._parts()
        if parts == 1:
            self._one_part(point, shared)
            return
        number = em.number(parts) if isinstance(parts, int) else parts
        steps = self._ceil(self.places, self.step)

        def bound(part: ir.Value) -> ir.Value:
            return em.mul(em.op("arith.divui", [em.mul(part, steps), number], em.index), em.number(self.step))

        def unit(i: ir.Value) -> None:
            part = em.op("arith.divui", [i, panels], em.index)
            column = em.mul(em.sub(i, em.mul(part, panels)), em.number(self.tiles.panel))
            first, after = bound(part), em.add(part, em.number(1))
            end = em.op("arith.minui", [bound(after), self.memory.size(self.places)], em.index)
            is_last = em.compare("eq", after, number) if self.low else None
            self._each_width(column, lambda columns: self._rows(point, columns, _Part(first, end, is_last)))

        shared(em.number(0), em.mul(number, panels), 1, unit)

    def _one_part(self, point: Point, shared: _Loop) -> None:
        """All rows by each panel, where it is known that there is one part."""
        em = self.emitter

        def panel(column: ir.Value) -> None:
            self._each_width(column, lambda columns: self._rows(point, columns, None))

        shared(em.number(0), em.mul(self._panels(), em.number(self.tiles.panel)), self.tiles.panel, panel)

    def _parts(self) -> int | ir.Value:
        """How many parts: four, eight and so on, which threads share evenly; one where the right factor is large.

        There are four at least where there are fewer panels for threads to share.
        """
        rows, depth, columns, places = (s.static for s in (self.rows, self.depth, self.columns, self.places))
        if rows is None or depth is None or columns is None or places is None:
            return self._parts_at_run_time()
        four = _FOUR * max(self.parts.rows, self.parts.left // max(1, depth))
        several = (rows + four // 2) // four * _FOUR if depth * columns <= self.parts.right else 1
        least = _FOUR if self.is_shared and columns <= (_FOUR - 1) * self.tiles.panel else 1
        return max(1, min(max(several, least), -(-places // self.step)))

    def _parts_at_run_time(self) -> ir.Value:
        """The same of sizes that are not known."""
        em, parts, one, count = self.emitter, self.parts, self.emitter.number(1), self.emitter.number(_FOUR)
        depth = em.op("arith.maxui", [self.memory.size(self.depth), one], em.index)
        height = em.op("arith.divui", [em.number(parts.left), depth], em.index)
        four = em.mul(em.op("arith.maxui", [height, em.number(parts.rows)], em.index), count)
        more = em.add(self.memory.size(self.rows), em.op("arith.shrui", [four, one], em.index))
        several = em.mul(em.op("arith.divui", [more, four], em.index), count)
        is_small = em.compare("ule", self.memory.size(self.factor), em.number(parts.right))
        several = em.op("arith.select", [is_small, several, one], em.index)
        if self.is_shared:
            has_panels = em.compare("uge", self._panels(), count)
            least = em.op("arith.select", [has_panels, one, count], em.index)
            several = em.op("arith.maxui", [several, least], em.index)
        several = em.op("arith.minui", [several, self._ceil(self.places, self.step)], em.index)
        return em.op("arith.maxui", [several, one], em.index)

    def _ceil(self, size: Size, by: int) -> ir.Value:
        em = self.emitter
        if size.static is not None:
            return em.number(-(-size.static // by))
        return (
            self.memory.size(size) if by == 1 else em.op("arith.ceildivui", [self.memory.size(size), em.number(by)], em.index)
        )

    def _panels(self) -> ir.Value:
        return self._ceil(self.columns, self.tiles.panel)

    def _each_width(self, column: ir.Value, panel: Callable[[Sequence[Column]], None]) -> None:
        """A whole panel, or the one that is cut off."""
        em, tiles, static = self.emitter, self.tiles, self.columns.static
        if (multiples_of(self.contraction).columns if static is None else static) % tiles.panel == 0:
            panel(tiles.columns(column))
            return
        if static is not None and static < tiles.panel:
            panel(tiles.columns(column, static))
            return
        width, left = em.number(tiles.panel), em.sub(self.memory.size(self.columns), column)
        em.only_when(em.compare("uge", left, width), lambda: panel(tiles.columns(column)))
        rest = left if static is None else static % tiles.panel
        em.only_when(em.compare("ult", left, width), lambda: panel(tiles.columns(column, rest)))

    def _rows(self, point: Point, columns: Sequence[Column], part: _Part | None) -> None:
        """The rows of a part, or all, by one panel."""
        em, shared = self.emitter, self.contraction.shared
        first, end = (em.number(0), self.memory.size(self.places)) if part is None else (part.first, part.end)
        if self.joined:
            self._joined(point, columns, first, end)
        elif shared:
            em.each(first, end, 1, lambda i: self._inner(point.at(shared[0], i), columns, list(shared[1:])))
        elif part is None:
            self._all_tiles(point, columns)
        else:
            self._tiles(point, columns, part)

    def _inner(self, point: Point, columns: Sequence[Column], dims: Sequence[int]) -> None:
        """All rows of a place in the first shared loop."""
        em = self.emitter
        if dims:
            size = self.memory.size(self.contraction.nest.extents[dims[0]])
            em.each(em.number(0), size, 1, lambda i: self._inner(point.at(dims[0], i), columns, dims[1:]))
        elif self.m is None:
            self._tile([point], columns, Share(em.number(0), 0))
        else:
            self._all_tiles(point, columns)

    def _all_tiles(self, point: Point, columns: Sequence[Column]) -> None:
        size, zero = self.row_sizes[-1], self.emitter.number(0)
        count = self.memory.size(size) if size.static is None else size.static
        self.tiles.split(zero, count, self.emitter.each, self._tile_of(point, columns))

    def _tiles(self, point: Point, columns: Sequence[Column], part: _Part) -> None:
        """The rows of a part in tiles. Of a known number the last part has the low ones, the same as if there were no parts."""
        em, tile = self.emitter, self._tile_of(point, columns)
        if self.row_sizes[-1].static is None:
            self.tiles.split(part.first, em.sub(part.end, part.first), em.each, tile)
            return
        self.tiles.even(part.first, part.end, em.each, tile)
        if part.is_last is not None:
            em.only_when(part.is_last, lambda: self.tiles.split(part.end, sum(self.low), em.each, tile))

    def _tile_of(self, point: Point, columns: Sequence[Column]) -> Callable[[ir.Value, int, Share], None]:
        m = self.m
        assert m is not None
        return lambda row, height, share: self._tile(self.tiles.points(point, m, row, height), columns, share)

    def _joined(self, point: Point, columns: Sequence[Column], first: ir.Value, end: ir.Value) -> None:
        """Rows of all places in the shared loop in tiles, some of which begin in one and end in another."""
        em, m, (line,) = self.emitter, self.m, self.contraction.shared
        assert m is not None
        width = self.memory.size(self.row_sizes[-1])

        def tile(row: ir.Value, height: int, share: Share) -> None:
            self._tile(self.tiles.joined_points(point, (line, m), row, width, height), columns, share)

        self.tiles.even(first, end, em.each, tile)

    def _tile(self, rows: Sequence[Point], columns: Sequence[Column], share: Share) -> None:
        steps = Steps(self.emitter.number(0), self.contraction.nest.extents[self.contraction.k])
        self.microkernel.tile(self.sums, TilePlace(rows, columns, share, steps))
