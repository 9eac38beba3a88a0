"""Tiles with elements that are infinite or NaN, whose results are sums of windows: transformed, an infinity is two of
opposite signs, and their sum NaN.

::

    finite[tile, lane] = 0 * (corners of the transformed tile)        // NaN where one of its elements is none
    for panel, where one of finite[:] is not 0 { for tile where it is not {
      for c, y, x { filter = (P filters[c] P^T)[y, x]; for a window of 2x2 { total[window] += elements[y, x, c] * filter } }
      sums[corners] = total } }                                       // A^T sums A is total

Filters are what theirs were transformed of, but for rounding. Convolutions of finite images take as long as without this: of 64
channels of 56 x 56 elements, Cascade Lake, 1.00 of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from .....dialect.bindings import ir
from .....dialect.winograd import PLACES, RESULTS, TAPS, TILE
from ....kernels.emit.memory import Lanes, Point
from ....winograd_loops import EACH, PLACE
from ..contraction.operand_loads import OperandLoads
from ..contraction.tiles import Tiles
from .image_tiles import ImageTile, ImageTiles

__all__ = ["NonfiniteTiles"]


class NonfiniteTiles:
    """Finds such tiles as they are transformed, and sums their windows.

    What is on the stack: a vector for each of ``count`` tiles, a panel of the results of one.
    """

    def __init__(self, image: ImageTiles, loads: OperandLoads, tiles: Tiles, depth: int, count: int):
        em = image.emitter
        self.emitter, self.image, self.loads, self.tiles, self.depth = em, image, loads, tiles, depth
        self._finite = em.scratch(count * tiles.width, em.f32)
        self._totals = em.scratch(RESULTS * RESULTS * tiles.panel, em.f32)

    @property
    def zero(self) -> ir.Value:
        """What is known of no channels."""
        return self.emitter.constant(0.0, self._kind)

    @property
    def _kind(self) -> ir.Type:
        return self.emitter.vector(self.tiles.width, self.emitter.f32)

    def with_channels(self, found: ir.Value, values: Sequence[ir.Value]) -> ir.Value:
        """What is known of a tile with some more of its channels, transformed: each element is in a corner of these."""
        em = self.emitter
        corners = [values[y * TILE + x] for y in (0, TILE - 1) for x in (0, TILE - 1)]
        total = reduce(lambda a, b: em.op("arith.addf", [a, b], self._kind), corners)
        return em.op("vector.fma", [total, self.zero, found], self._kind)

    def keep(self, tile: ir.Value, found: ir.Value) -> None:
        """Keeps what is known of a tile, by its number on the stack."""
        em = self.emitter
        em.effect("vector.store", [found, self._finite, em.mul(tile, em.number(self.tiles.width))])

    def is_one(self, tile: ir.Value) -> ir.Value:
        """Whether a transformed tile is of these."""
        return self._is_nan(self._known(tile))

    def is_any(self, count: ir.Value) -> ir.Value:
        """Whether one of so many transformed tiles is."""
        em = self.emitter
        add = lambda tile, found: [em.op("arith.addf", [found[0], self._known(tile)], self._kind)]  # noqa: E731
        (found,) = em.loop(em.number(0), count, 1, add, [self.zero])
        return self._is_nan(found)

    def _known(self, tile: ir.Value) -> ir.Value:
        at = self.emitter.mul(tile, self.emitter.number(self.tiles.width))
        return self.emitter.op("vector.load", [self._finite, at], self._kind)

    def _is_nan(self, found: ir.Value) -> ir.Value:
        em = self.emitter
        mask = em.op("arith.cmpf", [found, found], em.vector(self.tiles.width, em.i1), {"predicate": em.float_predicate("uno")})
        return em.reduce("or", mask)

    def sum_windows(self, point: Point, column: ir.Value, sums: ir.Value, begin: ir.Value, place: int) -> None:
        """Sums the windows of a tile, at a point, by the panel that begins at a column, and writes sums that give these.

        Loops are short, as this is seldom run and always compiled.

        Args:
            sums: those of the tile begin at ``begin``, of the next place ``place`` elements behind.
        """
        em, width = self.emitter, self.tiles.width
        self._fill(self._totals, em.number(0), RESULTS * RESULTS)
        elements = self.image.tile(point)
        self.image.begin()
        em.each(em.number(0), em.number(self.depth), width, lambda n: self._channels(elements, point, n, column))
        em.each(em.number(0), em.number(PLACES), 1, lambda p: self._fill(sums, em.add(begin, em.mul(p, em.number(place))), 1))
        self._each_result(lambda y, x: self._write(y, x, sums, begin, place))

    def _fill(self, buffer: ir.Value, begin: ir.Value, panels: int) -> None:
        """Zeros for as many results as some panels have."""
        em, end = self.emitter, self.emitter.number(panels * self.tiles.panel)
        store = lambda n: em.effect("vector.store", [self.zero, buffer, em.add(begin, n)])  # noqa: E731
        em.each(em.number(0), end, self.tiles.width, store)

    def _channels(self, elements: ImageTile, point: Point, first: ir.Value, column: ir.Value) -> None:
        """A vector of channels, one after the other."""
        em, width = self.emitter, self.tiles.width
        left = em.sub(em.number(self.depth), first)
        mask = em.lane_mask(width, left) if self.depth % width else None
        self.image.copy(elements, point.at(EACH, first, width).with_lanes(Lanes(EACH, width, mask)))
        count = em.number(width) if mask is None else em.op("arith.minui", [left, em.number(width)], em.index)
        panel = em.number(0), em.number(self.tiles.panel), width
        em.each(em.number(0), count, 1, lambda lane: em.each(*panel, lambda n: self._filters(first, lane, column, n)))

    def _filters(self, first: ir.Value, lane: ir.Value, column: ir.Value, n: ir.Value) -> None:
        """The products of one channel and a vector of filters, a tap of these after the other."""
        em, taps = self.emitter, (self.emitter.number(0), self.emitter.number(TAPS), 1)
        channel, start = em.add(first, lane), em.add(column, n)
        em.each(*taps, lambda y: em.each(*taps, lambda x: self._tap(y, x, self._filter(y, x, channel, start), lane, n)))

    def _filter(self, y: ir.Value, x: ir.Value, channel: ir.Value, column: ir.Value) -> ir.Value:
        """A tap of filters: along an axis it is what was transformed first or last, or the difference of two between."""
        (i, down), (j, across) = self._along(y), self._along(x)
        two = self.emitter.number(TAPS - 1)

        def less(value: ir.Value, factor: ir.Value, other: ir.Value) -> ir.Value:
            return self.emitter.op("vector.fma", [factor, other, value], self._kind)

        line, following = (less(self._transformed(p, j, channel, column), across, self._transformed(p, two, channel, column))
                           for p in (i, two))  # fmt: skip
        return less(line, down, following)

    def _along(self, tap: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Which transformed element begins a tap, and the factor of the third one in it: -1 or 0."""
        em = self.emitter
        half = em.op("arith.shrui", [tap, em.number(1)], em.index)
        numbers = [em.constant(value, em.f32) for value in (-1.0, 0.0)]
        factor = em.op("arith.select", [em.compare("eq", tap, em.number(1)), *numbers], em.f32)
        return em.add(tap, half), em.broadcast(factor, self.tiles.width)

    def _transformed(self, i: ir.Value, j: ir.Value, channel: ir.Value, column: ir.Value) -> ir.Value:
        point = Point().at(PLACE[0], i).at(PLACE[1], j).at(EACH, channel)
        return self.loads.right(point, [(column, None)])[0]

    def _tap(self, y: ir.Value, x: ir.Value, taps: ir.Value, lane: ir.Value, n: ir.Value) -> None:
        """The products of one tap, in the totals of the results."""
        em, width = self.emitter, self.tiles.width

        def add(down: ir.Value, across: ir.Value) -> None:
            element = em.add(em.mul(em.add(y, down), em.number(TILE)), em.add(x, across))
            at = em.add(em.mul(element, em.number(width)), lane)
            factor = em.broadcast(em.op("memref.load", [self.image.elements, at], em.f32), width)
            total = em.add(self._total(down, across), n)
            known = em.op("vector.load", [self._totals, total], self._kind)
            em.effect("vector.store", [em.op("vector.fma", [factor, taps, known], self._kind), self._totals, total])

        self._each_result(add)

    def _each_result(self, body: Callable[[ir.Value, ir.Value], None]) -> None:
        em, two = self.emitter, (self.emitter.number(0), self.emitter.number(RESULTS), 1)
        em.each(*two, lambda y: em.each(*two, lambda x: body(y, x)))

    def _total(self, y: ir.Value, x: ir.Value) -> ir.Value:
        """Where the totals of a result begin."""
        em = self.emitter
        return em.mul(em.add(em.mul(y, em.number(RESULTS)), x), em.number(self.tiles.panel))

    def _write(self, y: ir.Value, x: ir.Value, sums: ir.Value, begin: ir.Value, place: int) -> None:
        """A result alone at the place of a corner: of the last one along an axis, ``A^T`` takes the last sum from 0."""
        em = self.emitter
        corner = em.mul(em.add(em.mul(y, em.number(TILE)), x), em.number((TILE - 1) * place))
        is_less = em.compare("ne", y, x)

        def write(n: ir.Value) -> None:
            total = em.op("vector.load", [self._totals, em.add(self._total(y, x), n)], self._kind)
            signed = em.op("arith.select", [is_less, em.op("arith.negf", [total], self._kind), total], self._kind)
            em.effect("vector.store", [signed, sums, em.add(begin, em.add(corner, n))])

        em.each(em.number(0), em.number(self.tiles.panel), self.tiles.width, write)
