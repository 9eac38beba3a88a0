"""Lowers a convolution by Winograd's filtering to one kernel, its epilogue fused.

::

    for unit of some tiles and a range of filters {                       // what threads share
      for tile { transformed[16, tile, c] = B^T d B }                     // on the stack, of this thread
      for panel of filters {
        for place of 16, for 8 tiles { sums[place, tiles, 32] = products of transformed[place] and filters[place] over c }
        for tile { out[2x2] = epilogue(A^T sums A) } } }

A place's filters of a panel stay in the level-1 cache for all tiles of a unit, which stay in level 2 with their sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul

from .....dialect.bindings import ir
from .....dialect.errors import RelaxError
from .....dialect.winograd import PLACES, RESULTS, TILE
from ....kernels.emit.emitter import Emitter, LoopWork
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Lanes, Memory, Point
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Nest, read_nest
from ....target import Target
from ....winograd_loops import ACROSS, CHANNEL, DOWN, EACH, IMAGES, PLACE
from ..contraction.contraction_plan import PARTS
from ..contraction.epilogue import FetchedEpilogue
from ..contraction.fma_sums import FmaSums
from ..contraction.operand_loads import OperandLoads
from ..contraction.tile_place import Column, NextPanel, Share, Steps, TilePlace
from ..contraction.tiles import Tiles
from ..contraction.tuning import LINE, tuning_of
from .group import WinogradGroup, find_winograd
from .image_tiles import ImageTiles, Loads
from .nonfinite import NonfiniteTiles
from .plan import WinogradPlan, checked_winograd_plan
from .transform import results_of, transformed

__all__ = ["lower_winograd"]

# Parts are a multiple of so many, where there are more: threads share them evenly.
_EVEN = 4
# The loops of the results: images, lines, columns, filters.
_IMAGE, _LINE, _COLUMN, _FILTER = range(4)


def lower_winograd(found: Sequence[ir.Operation], emitter: Emitter, target: Target) -> bool:
    """Replaces operations that are such a convolution by its kernel; False, and nothing changed, where they are none.

    Raises:
        RelaxError: its plan does not fit it, or its marks do not.
    """
    group = find_winograd(found)
    if group is None:
        return False
    if set(group.operations) != set(found):
        raise RelaxError("'linalg.generic' op expected nothing but the convolution that it is marked as", found[0].location)
    with emitter.before(group.results.epilogue or group.results.contraction):
        WinogradKernel(group, emitter, checked_winograd_plan(group, target), tuning_of(target).work).build()
    group.erase()
    return True


@dataclass(frozen=True)
class _Unit:
    """Tiles that are computed together: from ``first`` to ``end`` in whole register tiles, then those up to ``stop``.

    Attributes:
        is_last: whether there are the latter, which only the last unit has; None where no unit has.
        transformed: ``[16, tiles, channels]`` on the stack.
        sums: ``[16, tiles, columns of a panel]`` on the stack.
        nonfinite: finds tiles whose results are no sums of these.
    """

    first: ir.Value
    end: ir.Value
    stop: ir.Value
    is_last: ir.Value | None
    transformed: ir.Value
    sums: ir.Value
    nonfinite: NonfiniteTiles


class _TileLoads(OperandLoads):
    """Loads of products whose left factor is on the stack: of a row, the point says where it begins as its tile across."""

    stack: ir.Value

    def left(self, point: Point) -> ir.Value:
        at = self.emitter.add(point.variables[ACROSS], point.variables[EACH])
        return self.emitter.broadcast(self.emitter.op("memref.load", [self.stack, at], self.element), self.width)


@dataclass(frozen=True)
class _Results:
    """What sums are turned into: their loops, of which the last one is over neighbours."""

    nest: Nest
    n: int = _FILTER


class WinogradKernel:
    """Builds one such kernel, as its plan says."""

    def __init__(self, group: WinogradGroup, emitter: Emitter, plan: WinogradPlan, multiplications_per_work: int):
        self.emitter, self.plan, self.per_work = emitter, plan, multiplications_per_work
        #: Sizes have the numbers of loops, which products and results number each for themselves.
        self.memory, self.written = Memory(emitter), Memory(emitter)
        self.contraction: Contraction = group.contraction(self.memory)
        matched = group.results
        self.results = _Results(read_nest(matched.contraction, self.written))
        epilogue = None if matched.epilogue is None else read_nest(matched.epilogue, self.written)
        self.epilogue = FetchedEpilogue(self.results, epilogue, matched, emitter, self.written)
        self.tiles = Tiles(emitter, plan.products)
        self.image = ImageTiles(self.contraction, group.frame, emitter, self.memory, self.tiles.width)
        extents = self.contraction.nest.extents
        self.counts = [extents.get(d, Size.of(1)) for d in (IMAGES, DOWN, ACROSS)]
        self.total = reduce(mul, self.counts, Size.of(1))
        depth, columns = extents[EACH].static, extents[CHANNEL].static
        assert depth is not None
        assert columns is not None
        self.depth, self.columns, self.panels = depth, columns, -(-columns // self.tiles.panel)
        #: Tiles behind whole register tiles, where it is known how many there are: the last part has them, too.
        self.rest = 0 if self.total.static is None else self.total.static % self.tiles.rows
        self.whole = self.total + Size.of(-self.rest)
        #: Elements between places of what is on the stack: a line more than there are, as in a cache all would be in one set.
        self.place = (plan.tiles + self.rest) * depth + LINE // 4
        self.sums_place = (plan.tiles + self.rest) * self.tiles.panel + LINE // 4

    def build(self) -> None:
        em, ranges = self.emitter, self.plan.ranges
        epilogue = self.epilogue.epilogue
        self.memory.prepare(self.contraction.nest.sizes() | {self.whole})
        self.written.prepare(self.results.nest.sizes() | (epilogue.sizes() if epilogue else set()))
        for operation in epilogue.body()[0] if epilogue else []:
            if operation.name == "memref.load":
                self.written.captured(operation.operands[0])
        self.epilogue.read_scalars()
        parts, steps = self._parts()

        def bound(part: ir.Value) -> ir.Value:
            return em.mul(em.op("arith.divui", [em.mul(part, steps), parts], em.index), em.number(self.tiles.rows))

        def unit(i: ir.Value) -> None:
            part = em.op("arith.divui", [i, em.number(ranges)], em.index) if ranges > 1 else i
            end = em.op("arith.minui", [bound(em.add(part, em.number(1))), self.memory.size(self.whole)], em.index)
            is_last = em.compare("eq", em.add(part, em.number(1)), parts) if self.rest else None
            self._unit(self._made(bound(part), end, is_last), em.sub(i, em.mul(part, em.number(ranges))))

        count = em.mul(parts, em.number(ranges))
        if PARTS in self.plan.products.threads:
            em.shared(em.number(0), count, 1, unit, self._work())
        else:
            em.each(em.number(0), count, 1, unit)

    def _parts(self) -> tuple[ir.Value, ir.Value]:
        """How many parts whole register tiles are cut into, none with more than are transformed at once; how many there are."""
        em, rows, each = self.emitter, self.tiles.rows, self.plan.tiles // self.tiles.rows
        if self.whole.static is not None:
            steps = self.whole.static // rows
            parts = math.ceil(steps / each)
            parts = math.ceil(parts / _EVEN) * _EVEN if parts > _EVEN else parts
            return em.number(max(1, min(parts, steps))), em.number(steps)
        steps = em.op("arith.ceildivui", [self.memory.size(self.whole), em.number(rows)], em.index)
        parts = em.op("arith.ceildivui", [steps, em.number(each)], em.index)
        even = em.mul(em.op("arith.ceildivui", [parts, em.number(_EVEN)], em.index), em.number(_EVEN))
        is_more = em.compare("ugt", parts, em.number(_EVEN))
        return em.op("arith.select", [is_more, em.op("arith.minui", [even, steps], em.index), parts], em.index), steps

    def _work(self) -> LoopWork:
        sizes = [size for size in self.counts if size.static is None]
        amount = math.prod(size.static for size in self.counts if size.static is not None)
        amount *= PLACES * self.depth * self.columns
        return LoopWork(max(1, amount // self.per_work), tuple(map(self.memory.size, sizes)))

    # -- a unit: some tiles by a range of filters ----------------------------------------------------------------------

    def _made(self, first: ir.Value, end: ir.Value, is_last: ir.Value | None) -> _Unit:
        em, stop = self.emitter, end
        if is_last is not None:
            stop = em.op("arith.select", [is_last, em.add(end, em.number(self.rest)), end], em.index)
        tiles, sums = (em.scratch(PLACES * place, em.f32) for place in (self.place, self.sums_place))
        self.image.make_room()
        nonfinite = NonfiniteTiles(self.image, self._loads(), self.tiles, self.depth, self.plan.tiles + self.rest)
        return _Unit(first, end, stop, is_last, tiles, sums, nonfinite)

    def _loads(self) -> _TileLoads:
        return _TileLoads(self.contraction, self.emitter, self.memory, self.plan.products)

    def _unit(self, unit: _Unit, number: ir.Value) -> None:
        em, ranges, panel = self.emitter, self.plan.ranges, self.tiles.panel
        em.each(unit.first, unit.stop, 1, lambda tile: self._transform(tile, unit))
        begin, after = em.number(0), em.number(self.panels * panel)
        if ranges > 1:
            begin, after = (self._range(n) for n in (number, em.add(number, em.number(1))))
        is_any = unit.nonfinite.is_any(em.sub(unit.stop, unit.first))
        em.each(begin, after, panel, lambda n: self._each_width(n, lambda columns: self._panel(columns, unit, is_any)))

    def _range(self, number: ir.Value) -> ir.Value:
        """The first column of a range of filters."""
        em = self.emitter
        panels = em.op("arith.divui", [em.mul(number, em.number(self.panels)), em.number(self.plan.ranges)], em.index)
        return em.mul(panels, em.number(self.tiles.panel))

    def _tile_point(self, tile: ir.Value) -> Point:
        """Which image a tile is of, and where it is there."""
        em, (_, down, across) = self.emitter, map(self.memory.size, self.counts)
        line = em.op("arith.divui", [tile, across], em.index)
        image = em.op("arith.divui", [line, down], em.index)
        point = Point().at(IMAGES, image).at(DOWN, em.sub(line, em.mul(image, down)))
        return point.at(ACROSS, em.sub(tile, em.mul(line, across)))

    def _transform(self, tile: ir.Value, unit: _Unit) -> None:
        """One tile, all channels: whole vectors, then what is left."""
        em, width, point = self.emitter, self.tiles.width, self._tile_point(tile)
        number, nonfinite = em.sub(tile, unit.first), unit.nonfinite
        row = em.mul(number, em.number(self.depth))

        def vector(load: Loads, channel: ir.Value, mask: ir.Value | None, known: ir.Value) -> ir.Value:
            lanes = point.at(EACH, channel, width).with_lanes(Lanes(EACH, width, mask))
            at, values = em.add(row, channel), transformed(em, load(lanes))
            for i, value in enumerate(values):
                place = em.add(at, em.number(i * self.place))
                if mask is None:
                    em.effect("vector.store", [value, unit.transformed, place])
                else:
                    em.effect("vector.maskedstore", [unit.transformed, place, mask, value])
            return nonfinite.with_channels(known, values)

        def channels(load: Loads) -> None:
            whole, known = self.depth // width * width, nonfinite.zero
            if whole:
                bounds = em.number(0), em.number(whole), width
                (known,) = em.loop(*bounds, lambda channel, found: [vector(load, channel, None, found[0])], [known])
            if whole < self.depth:
                known = vector(load, em.number(whole), em.lane_mask(width, em.number(self.depth - whole)), known)
            nonfinite.keep(number, known)

        self.image.each_way(point, channels)

    # -- products and results of a panel -------------------------------------------------------------------------------

    def _each_width(self, column: ir.Value, panel: Callable[[Sequence[Column]], None]) -> None:
        """A whole panel, or the one that is cut off."""
        em, width = self.emitter, self.tiles.panel
        rest = self.columns % width
        if not rest:
            panel(self.tiles.columns(column))
        elif self.columns < width:
            panel(self.tiles.columns(column, rest))
        else:
            is_whole = em.compare("ule", em.add(column, em.number(width)), em.number(self.columns))
            em.only_when(is_whole, lambda: panel(self.tiles.columns(column)))
            em.only_when(em.invert(is_whole), lambda: panel(self.tiles.columns(column, rest)))

    def _panel(self, columns: Sequence[Column], unit: _Unit, is_nonfinite: ir.Value) -> None:
        """The tiles of a unit by one panel: a place of all of them after the other, then their results.

        A place's filters stay in the level-1 cache, where all places of eight tiles at a time would read those of a panel again
        from level 2. Zen 4, one thread: 64 channels of 56 x 56 elements take 1.02 of the time, 8 images of 56 x 56 0.98.

        Register tiles of a place share in fetching what lies behind it, the next place. Cascade Lake, one thread, over the
        time where each fetches its own filters: 512 channels of 8 images of 7 x 7 0.75, 256 of 14 x 14 0.9, 64 of 56 x 56 1.0.
        """
        em, four = self.emitter, self.emitter.number(TILE)
        following = NextPanel(columns[0][0], em.number(self.depth))  # behind a place's last step
        shares = self.plan.products.fetch_shares(self.plan.tiles // self.tiles.rows)

        def place(i: ir.Value, j: ir.Value) -> None:
            def tile(first: ir.Value, height: int, share: Share) -> None:
                self._products(columns, unit, (i, j), (first, height), replace(share, of=shares, following=following))

            if self.total.static is None:
                self.tiles.split(unit.first, em.sub(unit.end, unit.first), em.each, tile)
                return
            self.tiles.even(unit.first, unit.end, em.each, tile)
            if unit.is_last is not None:
                em.only_when(unit.is_last, lambda: tile(unit.end, self.rest, Share(em.number(0), 0)))

        em.each(em.number(0), four, 1, lambda i: em.each(em.number(0), four, 1, lambda j: place(i, j)))
        em.only_when(is_nonfinite, lambda: em.each(unit.first, unit.stop, 1, lambda t: self._sum_windows(columns, unit, t)))
        em.each(unit.first, unit.stop, 1, lambda tile: self._results(columns, unit, tile))

    def _sum_windows(self, columns: Sequence[Column], unit: _Unit, tile: ir.Value) -> None:
        """The sums of a tile that is not finite."""
        em, number = self.emitter, self.emitter.sub(tile, unit.first)

        def sums() -> None:
            begin = em.mul(number, em.number(self.tiles.panel))
            unit.nonfinite.sum_windows(self._tile_point(tile), columns[0][0], unit.sums, begin, self.sums_place)

        em.only_when(unit.nonfinite.is_one(number), sums)

    def _products(
        self, columns: Sequence[Column], unit: _Unit, place: tuple[ir.Value, ir.Value], rows: tuple[ir.Value, int], share: Share
    ) -> None:
        """The sums of one place of some tiles: the first one, and how many."""
        em, (i, j), (first, height), panel = self.emitter, place, rows, self.tiles.panel
        loads = self._loads()
        loads.stack = unit.transformed
        within, number = em.sub(first, unit.first), em.add(em.mul(i, em.number(TILE)), j)
        row = em.opaque(em.add(em.mul(within, em.number(self.depth)), em.mul(number, em.number(self.place))))
        at = Point().at(PLACE[0], i).at(PLACE[1], j)
        points = [at.at(ACROSS, em.add(row, em.number(r * self.depth))) for r in range(height)]
        steps = Steps(em.number(0), self.contraction.nest.extents[EACH])
        zeros = [em.constant(0.0, em.vector(self.tiles.width, em.f32))] * (height * len(columns))
        totals = FmaSums(loads).accumulate(TilePlace(points, columns, share, steps), zeros)
        begin = em.add(em.mul(number, em.number(self.sums_place)), em.mul(within, em.number(panel)))
        for n, total in enumerate(totals):
            line, vector = divmod(n, len(columns))
            offset = em.number(line * panel + vector * self.tiles.width)
            em.effect("vector.store", [total, unit.sums, em.add(begin, offset)])

    def _results(self, columns: Sequence[Column], unit: _Unit, tile: ir.Value) -> None:
        """The results of a tile, a vector of filters at a time."""
        em, kind = self.emitter, self.emitter.vector(self.tiles.width, self.emitter.f32)
        at, begin = self._tile_point(tile), em.mul(em.sub(tile, unit.first), em.number(self.tiles.panel))
        for vector, column in enumerate(columns):
            places = [em.number(p * self.sums_place + vector * self.tiles.width) for p in range(PLACES)]
            found = [em.op("vector.load", [unit.sums, em.add(begin, place)], kind) for place in places]
            for number, result in enumerate(results_of(em, found)):
                self._write(result, divmod(number, RESULTS), at, column)

    def _write(self, result: ir.Value, corner: tuple[int, int], at: Point, column: Column) -> None:
        """One of the four results, where the image has it."""
        em, (start, mask), (y, x) = self.emitter, column, corner
        line = em.add(em.mul(at.variables[DOWN], em.number(RESULTS)), em.number(y))
        place = em.add(em.mul(at.variables[ACROSS], em.number(RESULTS)), em.number(x))
        point = Point().at(_IMAGE, at.variables[IMAGES]).at(_LINE, line).at(_COLUMN, place)
        point = point.at(_FILTER, start, self.tiles.width).with_lanes(Lanes(_FILTER, self.tiles.width, mask))
        asked = [self._is_inside(v, dim) for v, dim, second in ((line, _LINE, y), (place, _COLUMN, x)) if second]
        conditions = [c for c in asked if c is not None]
        if not conditions:
            self.epilogue.store(result, point)
            return
        inside = reduce(lambda a, b: em.op("arith.andi", [a, b], em.i1), conditions)
        em.only_when(inside, lambda: self.epilogue.store(result, point))

    def _is_inside(self, place: ir.Value, dim: int) -> ir.Value | None:
        """Whether the second result of a tile along an axis is one of the image; None where all are."""
        size = self.results.nest.extents.get(dim, Size.of(1))
        if size.static is not None and size.static % RESULTS == 0:
            return None
        return self.emitter.compare("ult", place, self.written.size(size))
