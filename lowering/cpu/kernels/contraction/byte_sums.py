"""The sums of one tile of bytes: exact, in i32, over several reductions, neighbours of which are multiplied at once.

With a last reduction over 4 neighbours in both factors, as an image and packed filters have it::

    for y { for x and c step 4 { 8 times 4 bytes of a row, in every lane; 2 vectors of 16 times 4 bytes; 16 dot products } }

4 bytes are one lane of an instruction; where the target multiplies pairs of i16 instead, 2 bytes are widened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Point
from .byte_dots import ByteDots
from .operand_loads import OperandLoads
from .shape import byte_shape
from .tile_place import TilePlace

__all__ = ["ByteSums"]


@dataclass(frozen=True)
class _Neighbours:
    """Where bytes of rows and of columns are, and how many elements behind them the next ones."""

    left: list[ir.Value]
    right: list[ir.Value]
    left_step: int
    right_step: int

    def moved(self, emitter: Emitter, count: ir.Value) -> _Neighbours:
        """Those so many steps behind."""
        sides = ((self.left, self.left_step), (self.right, self.right_step))
        left, right = ([emitter.add(v, emitter.mul(count, emitter.number(step))) for v in side] for side, step in sides)
        return _Neighbours(left, right, self.left_step, self.right_step)


class ByteSums:
    """Builds the sums of tiles."""

    def __init__(self, loads: OperandLoads):
        self.contraction, self.emitter, self.plan = loads.contraction, loads.emitter, loads.plan
        self.memory, self.width, shape = loads.memory, loads.width, byte_shape(loads.contraction)
        assert shape is not None
        self.dots = ByteDots(
            self.emitter, self.plan.instruction, shape.rows, self.width, shape.left_unsigned, shape.right_unsigned
        )
        (self.left,), (self.right,) = self.contraction.left.operands, self.contraction.right.operands

    def accumulate(self, place: TilePlace, start: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds the products of all steps; several copies of few accumulators make additions overlap."""
        em, count, copies = self.emitter, len(start), self.plan.copies(len(start))
        zero, k = em.number(0), self.contraction.k
        carried = [*start, *[em.constant(0, start[0].type)] * (count * (copies - 1))]
        rows = [row.at(k, zero) for row in place.rows]
        carried = self._outer(self.contraction.outer, rows, place, carried, count)
        for c in range(1, copies):
            more = carried[c * count : (c + 1) * count]
            carried[:count] = [em.add(a, b) for a, b in zip(carried[:count], more, strict=True)]
        return carried[:count]

    def finished(self, place: TilePlace, start: Sequence[ir.Value], products: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums of all products, which are there, and of what they start from."""
        del place
        return [self.emitter.add(a, b) for a, b in zip(start, products, strict=True)]

    def _outer(
        self, dims: Sequence[int], rows: Sequence[Point], place: TilePlace, carried: Sequence[ir.Value], count: int
    ) -> list[ir.Value]:
        """The loops over all reductions but the last one."""
        if not dims:
            return self._units(self._neighbours(rows, place), 1, carried, count)
        em, (first, *inner) = self.emitter, dims
        if not inner:
            return self._inner(first, rows, place, carried, count)
        size = self.memory.size(self.contraction.nest.extents[first])

        def step(i: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self._outer(inner, [row.at(first, i) for row in rows], place, sums, count)

        return em.loop(em.number(0), size, 1, step, carried)

    def _inner(
        self, dim: int, rows: Sequence[Point], place: TilePlace, carried: Sequence[ir.Value], count: int
    ) -> list[ir.Value]:
        """The loop around the neighbours, several of these in an iteration."""
        em, size = self.emitter, self.contraction.nest.extents[dim].static
        steps = [operand.offset.factor(dim).static for operand in (self.left, self.right)]
        assert size is not None
        first = self._neighbours([row.at(dim, em.number(0)) for row in rows], place, *(step or 0 for step in steps))
        several = max(self.plan.unroll, len(carried) // count)

        def step(unit: ir.Value, sums: Sequence[ir.Value], number: int) -> list[ir.Value]:
            return self._units(first.moved(em, unit), number, sums, count)

        whole = size // several * several
        if whole:
            carried = em.loop(em.number(0), em.number(whole), several, lambda i, sums: step(i, sums, several), carried)
        return step(em.number(whole), carried, size - whole)

    def _neighbours(self, rows: Sequence[Point], place: TilePlace, left_step: int = 0, right_step: int = 0) -> _Neighbours:
        memory, n = self.memory, self.contraction.n
        left = [memory.index(self.left.offset, row) for row in rows]
        right = [memory.index(self.right.offset, rows[0].at(n, column, self.width)) for column, _ in place.columns]
        return _Neighbours(left, right, left_step, right_step)

    def _units(self, first: _Neighbours, number: int, carried: Sequence[ir.Value], count: int) -> list[ir.Value]:
        """Neighbours and so many behind them, each for the next copy of the sums."""
        em, dots, x, w = self.emitter, self.dots, self.left.buffer, self.right.buffer
        assert x is not None
        assert w is not None
        sums, copies, kind = list(carried), len(carried) // count, em.vector(dots.rows * self.width, w.stored)
        fetch = self.plan.fetch if self.plan.fetches(len(first.left)) else None
        for i in range(number):
            at = first.moved(em, em.number(i)) if i else first
            if fetch is not None:
                for place in at.right:
                    em.prefetch(w.flat, em.add(place, em.number(fetch.bytes)))
            right = [dots.right(em.op("vector.load", [w.flat, place], kind)) for place in at.right]
            pairs = [(a, b) for a in [dots.left(x, place) for place in at.left] for b in right]
            own = slice(i % copies * count, (i % copies + 1) * count)
            sums[own] = [dots.added(total, a, b) for total, (a, b) in zip(sums[own], pairs, strict=True)]
        return sums
