"""The sums of one tile of integers that stand for multiples of scales: exact sums of a group of steps, scaled when complete.

With ``x[k] * xs[g]`` and ``(w[k] - z[g]) * ws[g]``, where g is the group of step k::

    for group { exact = -z * (sum of x); for k of it step 4 { exact += 4 products at once }; total += float(exact) * (xs * ws) }

Where a row has one scale for all groups, it is multiplied with what these add up to. Where rows are in parts, this is done for
each of them, and totals go on.

4 bytes of x are in every lane, 4 bytes of a column are neighbours; of words of four bits, a shift and a mask give them. Where
the target multiplies pairs of i16 instead, 2 bytes are widened; where it has neither, the same is said in plain operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....integer_product import IntegerProduct
from ....kernels.emit.memory import Point
from ....kernels.structure.factor import Factor
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand
from ....kernels.structure.product_checks import check_product
from ....kernels.structure.roles import Roles
from .byte_dots import ByteDots
from .operand_loads import OperandLoads
from .tile_place import Column, TilePlace

__all__ = ["IntegerSums"]


@dataclass(frozen=True)
class _Parts:
    """What of the product is where.

    Attributes:
        x, x_sum, weight: integers of rows, sums of these by groups (None: no zero point), integers of columns.
        x_scale, scale, zero: factors of groups of rows and columns, and what integers of columns are more by (None: known).
        product: what is known of these.
    """

    x: Operand
    x_sum: Operand | None
    weight: Operand
    x_scale: Factor
    scale: Factor
    zero: Factor | None
    product: IntegerProduct

    @property
    def is_word(self) -> bool:
        """Whether integers of columns are four bits of a word."""
        return self.product.layout.word is not None


class IntegerSums:
    """Builds the sums of tiles, all steps of k in each. Raises RelaxError where the mark does not fit the contraction."""

    def __init__(self, loads: OperandLoads, product: IntegerProduct):
        self.contraction, self.loads, self.emitter, self.plan = loads.contraction, loads, loads.emitter, loads.plan
        self.parts = _parts(self.contraction, product)
        layout, self.group_size = product.layout, product.every
        self.rows, self.width = layout.rows, loads.width
        # Steps of k that are read at once, and elements between two of these.
        self.unit, self.stride = layout.step, layout.tile * (layout.rows if layout.has_neighbours else 1)
        unsigned = product.is_unsigned and not self.parts.is_word
        self.dots = ByteDots(self.emitter, self.plan.instruction, self.rows, self.width, False, unsigned)
        k, depth = self.contraction.k, self.contraction.nest.extents[self.contraction.k].static
        #: Whether a row's groups have one scale together.
        self.scales_last = depth != self.group_size and k not in self.parts.x_scale.dims()

    def accumulate(self, place: TilePlace, start: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds all products to ``start``; a single exact sum has copies of accumulators, so that additions overlap."""
        return self._parts(self.contraction.outer, place.rows, place.columns, start)

    def _parts(
        self, dims: Sequence[int], rows: Sequence[Point], columns: Sequence[Column], totals: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The loops over all reductions but k."""
        if not dims:
            return self._groups(rows, columns, totals)
        em, (first, *inner) = self.emitter, dims
        size = self.loads.memory.size(self.contraction.nest.extents[first])

        def part(i: ir.Value, totals: list[ir.Value]) -> list[ir.Value]:
            return self._parts(inner, [row.at(first, i) for row in rows], columns, totals)

        return em.loop(em.number(0), size, 1, part, totals)

    def _groups(self, rows: Sequence[Point], columns: Sequence[Column], totals: Sequence[ir.Value]) -> list[ir.Value]:
        em, depth, size = self.emitter, self.contraction.nest.extents[self.contraction.k].static, self.group_size
        assert depth is not None
        if depth == size:
            return self._group(em.number(0), rows, columns, totals, self.plan.copies(len(totals)))

        def groups(start: Sequence[ir.Value]) -> list[ir.Value]:
            return em.loop(em.number(0), em.number(depth), size, lambda k, sums: self._group(k, rows, columns, sums, 1), start)

        if not self.scales_last:
            return groups(totals)
        found = groups([em.constant(0, total.type) for total in totals])
        scales = [scale for scale in self._row_scales(rows) for _ in columns]
        both = zip(found, scales, totals, strict=True)
        return [em.op("vector.fma", [value, scale, total], total.type) for value, scale, total in both]

    def _row_scales(self, rows: Sequence[Point]) -> list[ir.Value]:
        return [self.emitter.broadcast(self.loads.value(self.parts.x_scale, row), self.width) for row in rows]

    def _group(
        self, first: ir.Value, rows: Sequence[Point], columns: Sequence[Column], totals: Sequence[ir.Value], copies: int
    ) -> list[ir.Value]:
        """Adds the products of the steps that have one scale."""
        here = [row.at(self.contraction.k, first, self.group_size) for row in rows]
        places = [self.loads.column_point(here[0], column) for column in columns]
        sums = self._exact(here, columns, self._starts(here, places), copies)
        return self._scaled(here, places, sums, totals)

    def finished(self, place: TilePlace, start: Sequence[ir.Value], products: Sequence[ir.Value]) -> list[ir.Value]:
        """The scaled sums of all products, which are there, added to ``start``, where all steps have one scale."""
        em = self.emitter
        here = [row.at(self.contraction.k, em.number(0), self.group_size) for row in place.rows]
        places = [self.loads.column_point(here[0], column) for column in place.columns]
        sums = [em.add(a, b) for a, b in zip(self._starts(here, places), products, strict=True)]
        return self._scaled(here, places, sums, start)

    def _starts(self, rows: Sequence[Point], places: Sequence[Point]) -> list[ir.Value]:
        """What exact sums start from."""
        zeros = [self._zero(place) for place in places]
        return [self._begin(row, zero) for row in rows for zero in zeros]

    def _scaled(
        self, here: Sequence[Point], places: Sequence[Point], sums: Sequence[ir.Value], totals: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Exact sums of a group, scaled and added."""
        em = self.emitter
        scales = [em.broadcast(self.loads.value(self.parts.scale, place), self.width) for place in places]
        if self.scales_last:
            both = scales * len(here)
        else:
            both = [em.op("arith.mulf", [x, w], x.type) for x in self._row_scales(here) for w in scales]
        return [
            em.op("vector.fma", [em.op("arith.sitofp", [exact], total.type), scale, total], total.type)
            for exact, scale, total in zip(sums, both, totals, strict=True)
        ]

    def _zero(self, place: Point) -> ir.Value | None:
        """The zero point of a column, None where it is 0; a number that is known, negative."""
        zero, known = self.parts.zero, self.parts.product.zero
        if zero is not None:
            return self.loads.value(zero, place)
        return None if known is None else self.emitter.constant(-known, self.emitter.i32)

    def _begin(self, row: Point, zero: ir.Value | None) -> ir.Value:
        """What an exact sum starts from: all zero points in it taken away."""
        em, x_sum = self.emitter, self.parts.x_sum
        kind = em.vector(self.width, em.i32)
        if zero is None or x_sum is None or x_sum.buffer is None:
            return em.constant(0, kind)
        total = self.loads.memory.load(x_sum.buffer, x_sum.offset, row)
        if self.parts.zero is not None:
            total = em.sub(em.constant(0, em.i32), total)
        return em.mul(em.broadcast(total, self.width), em.broadcast(zero, self.width))

    def _exact(
        self, rows: Sequence[Point], columns: Sequence[Column], starts: Sequence[ir.Value], copies: int
    ) -> list[ir.Value]:
        em, memory, count = self.emitter, self.loads.memory, len(starts)
        left = [memory.index(self.parts.x.offset, row) for row in rows]
        right = [memory.index(self.parts.weight.offset, rows[0].at(self.contraction.n, c, self.width)) for c, _ in columns]
        fetches = self.plan.fetches(len(rows))

        def several(unit: ir.Value, number: int, sums: list[ir.Value]) -> list[ir.Value]:
            xs = [em.add(base, em.mul(unit, em.number(self.unit))) for base in left]
            ws = [em.add(base, em.mul(unit, em.number(self.stride))) for base in right]
            for i in range(number):
                own = slice(i % copies * count, (i % copies + 1) * count)
                sums[own] = self._unit(xs, ws, i, sums[own], fetches)
            return sums

        units = self.group_size // self.unit
        carried = [*starts, *[em.constant(0, starts[0].type)] * (count * (copies - 1))]
        several_at_once = max(self.plan.unroll, copies)
        whole = units // several_at_once * several_at_once if units > self.plan.loop_above else 0
        if whole:
            carried = em.loop(
                em.number(0), em.number(whole), several_at_once, lambda u, sums: several(u, several_at_once, sums), carried
            )
        carried = several(em.number(whole), units - whole, list(carried))
        for c in range(1, copies):
            more = carried[c * count : (c + 1) * count]
            carried[:count] = [em.add(a, b) for a, b in zip(carried[:count], more, strict=True)]
        return carried[:count]

    def _unit(
        self, xs: Sequence[ir.Value], ws: Sequence[ir.Value], number: int, sums: Sequence[ir.Value], fetches: bool
    ) -> list[ir.Value]:
        """What is read at once, ``number`` times that behind the places of rows and columns."""
        em, buffer, x_buffer = self.emitter, self.parts.weight.buffer, self.parts.x.buffer
        assert buffer is not None
        assert x_buffer is not None
        lanes = self.width * (1 if self.parts.is_word else self.rows)
        read = list[ir.Value]()
        for w in ws:
            at = em.add(w, em.number(number * self.stride)) if number else w
            if fetches and self.plan.fetch is not None:
                em.prefetch(buffer.flat, em.add(at, em.number(self.plan.fetch.bytes * 8 // self._bits)))
            read.append(em.op("vector.load", [buffer.flat, at], em.vector(lanes, buffer.stored)))
        result = list(sums)
        for part in range(self.unit // self.rows):
            right = [self._integers(vector, part) for vector in read]
            offset = number * self.unit + part * self.rows
            left = [self.dots.left(x_buffer, em.add(x, em.number(offset)) if offset else x) for x in xs]
            products = [(x, w) for x in left for w in right]
            result = [self.dots.added(total, x, w) for total, (x, w) in zip(result, products, strict=True)]
        return result

    @property
    def _bits(self) -> int:
        return 32 if self.parts.is_word else 8

    def _integers(self, vector: ir.Value, part: int) -> ir.Value:
        """The integers of columns in what was read: bytes, or i16."""
        em, word = self.emitter, self.parts.product.layout.word
        element = ir.IntegerType.get_signless(32 // self.rows, em.context)
        kind = em.vector(self.rows * self.width, element)
        if word is None:
            return self.dots.right(vector)
        if part:
            place = word.places(self.rows)[part * self.rows]
            vector = em.op("arith.shrui", [vector, em.constant(place, vector.type)], vector.type)
        vector = em.op("arith.andi", [vector, em.constant(word.mask(self.rows), vector.type)], vector.type)
        return em.op("vector.bitcast", [vector], kind)


def _parts(contraction: Contraction, product: IntegerProduct) -> _Parts:
    """The product's parts. Raises RelaxError at a contraction that its mark does not fit."""
    roles = Roles(contraction.nest, product)
    check_product(contraction, roles)
    x, weight = roles.operand("x"), roles.operand("weight")
    assert x is not None
    assert weight is not None
    return _Parts(
        x,
        roles.operand("x_sum"),
        weight,
        roles.part("x_scale"),
        roles.part("scale"),
        roles.part("zero") if "zero" in product.roles else None,
        product,
    )
