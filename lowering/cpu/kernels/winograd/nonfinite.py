"""Tiles with elements that are infinite or NaN, whose results are sums of windows: transformed, an infinity is two of
opposite signs, and their sum NaN.

::

    finite[tile, lane] += 0 * (elements of the tile)          // NaN where one is none
    if finite[tile] is not 0 {                                // for each panel
      for c { filter[3x3] = P filters[c] P^T; for a window of 2x2 { total[window] += elements[window, c] * filter } }
      sums[corners] = total                                   // A^T sums A is total
    }

Filters are what theirs were transformed of, but for rounding; other tiles are not computed again, and this costs them nothing
that can be measured: of 64 x 56 x 56 elements, Cascade Lake, 1.00 of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from .....dialect.bindings import ir
from .....dialect.winograd import OF_RESULT, OF_TAPS, PLACES, RESULTS, TAPS, TILE
from ....kernels.emit.memory import Lanes, Point
from ....winograd_loops import EACH, PLACE
from ..contraction.operand_loads import OperandLoads
from ..contraction.tiles import Tiles
from .image_loads import ImageLoads, Loads
from .transform import both_sides

__all__ = ["NonfiniteTiles"]

#: The places that a result's total alone goes to, and with which sign: first ones for the first result, last ones for the last.
_ENDS = tuple((r * (TILE - 1), OF_RESULT[r][r * (TILE - 1)]) for r in range(RESULTS))


class NonfiniteTiles:
    """Finds such tiles as they are transformed, and sums their windows.

    What is on the stack: a vector for each of ``count`` tiles, the elements of a tile, a panel of its results.
    """

    def __init__(self, image: ImageLoads, loads: OperandLoads, tiles: Tiles, depth: int, count: int):
        em = image.emitter
        self.emitter, self.image, self.loads, self.tiles, self.depth = em, image, loads, tiles, depth
        self._finite = em.scratch(count * tiles.width, em.f32)
        self._elements = em.scratch(PLACES * tiles.width, em.f32)
        self._totals = em.scratch(RESULTS * RESULTS * tiles.panel, em.f32)

    @property
    def _zero(self) -> ir.Value:
        return self.emitter.constant(0.0, self._kind)

    @property
    def _kind(self) -> ir.Type:
        return self.emitter.vector(self.tiles.width, self.emitter.f32)

    def begin(self, tile: ir.Value) -> None:
        """A tile, by its number on the stack, is about to be transformed."""
        em = self.emitter
        em.effect("vector.store", [self._zero, self._finite, em.mul(tile, em.number(self.tiles.width))])

    def note(self, tile: ir.Value, values: Sequence[ir.Value]) -> None:
        """Some channels of it have been: each element is in a corner of what they are."""
        em, at = self.emitter, self.emitter.mul(tile, self.emitter.number(self.tiles.width))
        corners = [values[y * TILE + x] for y in (0, TILE - 1) for x in (0, TILE - 1)]
        total = reduce(lambda a, b: em.op("arith.addf", [a, b], self._kind), corners)
        known = em.op("vector.load", [self._finite, at], self._kind)
        em.effect("vector.store", [em.op("vector.fma", [total, self._zero, known], self._kind), self._finite, at])

    def is_one(self, tile: ir.Value) -> ir.Value:
        """Whether a transformed tile is of these."""
        em, at = self.emitter, self.emitter.mul(tile, self.emitter.number(self.tiles.width))
        found = em.op("vector.load", [self._finite, at], self._kind)
        mask = em.op("arith.cmpf", [found, found], em.vector(self.tiles.width, em.i1), {"predicate": em.float_predicate("uno")})
        return em.reduce("or", mask)

    def sum_windows(self, point: Point, column: ir.Value, sums: ir.Value, places: Sequence[ir.Value]) -> None:
        """Sums the windows of a tile, at a point, by the panel that begins at a column; they are where ``sums`` has places."""
        em, width, panel = self.emitter, self.tiles.width, self.tiles.panel
        whole = em.number(RESULTS * RESULTS * panel)
        em.each(em.number(0), whole, width, lambda i: em.effect("vector.store", [self._zero, self._totals, i]))

        def channels(load: Loads) -> None:
            em.each(em.number(0), em.number(self.depth), width, lambda c: self._channels(load, point, c, column))

        self.image.each_way(point, channels)
        em.each(em.number(0), em.number(panel), width, lambda n: self._place(n, sums, places))

    def _channels(self, load: Loads, point: Point, first: ir.Value, column: ir.Value) -> None:
        """A vector of channels, one after the other."""
        em, width = self.emitter, self.tiles.width
        left = em.sub(em.number(self.depth), first)
        mask = em.lane_mask(width, left) if self.depth % width else None
        loaded = load(point.at(EACH, first, width).with_lanes(Lanes(EACH, width, mask)))
        for i, value in enumerate(loaded):
            em.effect("vector.store", [value, self._elements, em.number(i * width)])
        count = em.number(width) if mask is None else em.op("arith.minui", [left, em.number(width)], em.index)

        def channel(lane: ir.Value) -> None:
            places = [em.add(lane, em.number(i * width)) for i in range(PLACES)]
            elements = [em.broadcast(em.op("memref.load", [self._elements, p], em.f32), width) for p in places]
            each = em.number(0), em.number(self.tiles.panel), width
            em.each(*each, lambda n: self._add(elements, em.add(first, lane), em.add(column, n), n))

        em.each(em.number(0), count, 1, channel)

    def _add(self, elements: Sequence[ir.Value], channel: ir.Value, column: ir.Value, lane: ir.Value) -> None:
        """The products of one channel and a vector of filters."""
        em, panel = self.emitter, self.tiles.panel
        filters = both_sides(em, OF_TAPS, [self._filter(i, j, channel, column) for i in range(TILE) for j in range(TILE)])
        for number in range(RESULTS * RESULTS):
            (y, x), at = divmod(number, RESULTS), em.add(lane, em.number(number * panel))
            total = em.op("vector.load", [self._totals, at], self._kind)
            for tap, value in enumerate(filters):
                line, place = y + tap // TAPS, x + tap % TAPS
                total = em.op("vector.fma", [elements[line * TILE + place], value, total], self._kind)
            em.effect("vector.store", [total, self._totals, at])

    def _filter(self, i: int, j: int, channel: ir.Value, column: ir.Value) -> ir.Value:
        em = self.emitter
        point = Point().at(PLACE[0], em.number(i)).at(PLACE[1], em.number(j)).at(EACH, channel)
        return self.loads.right(point, [(column, None)])[0]

    def _place(self, lane: ir.Value, sums: ir.Value, places: Sequence[ir.Value]) -> None:
        em, found = self.emitter, dict[int, ir.Value]()
        for number in range(RESULTS * RESULTS):
            (y, down), (x, across) = (_ENDS[i] for i in divmod(number, RESULTS))
            at = em.add(lane, em.number(number * self.tiles.panel))
            total = em.op("vector.load", [self._totals, at], self._kind)
            found[y * TILE + x] = total if down * across > 0 else em.op("arith.negf", [total], self._kind)
        for i, place in enumerate(places):
            em.effect("vector.store", [found.get(i, self._zero), sums, em.add(place, lane)])
