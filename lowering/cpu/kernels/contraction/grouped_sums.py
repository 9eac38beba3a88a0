"""The sums of one tile where groups of steps share a part of the right factor: a sum per group, scaled when it is complete.

With ``x[k] * (q[k] * scale[k floordiv 32])``::

    for group { partial = 0; for k of the group { partial += x[k] * float(q[k]) }; total += partial * scale[group] }

so that the scale costs nothing per step. See :mod:`.group_invariant` for what else is taken out of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ..emit.emitter import Emitter
from ..emit.memory import Point
from .match import Contraction
from .operand_loads import OperandLoads
from .shares import Column

__all__ = ["GroupedSums"]


class GroupedSums:
    """Builds the sums of one tile.

    ``copies`` is how many accumulators each sum has, so that additions overlap; ``fetches``, whether it asks for weights ahead.
    """

    def __init__(self, contraction: Contraction, loads: OperandLoads, emitter: Emitter, copies: int, fetches: bool):
        self.contraction, self.loads, self.emitter = contraction, loads, emitter
        self.copies, self.fetches = copies, fetches

    def accumulate(self, rows: Sequence[Point], columns: Sequence[Column], start: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds all products to ``start``."""
        em, invariant = self.emitter, self.loads.invariant
        depth = self.contraction.nest.extents[self.contraction.k].static
        assert invariant is not None
        assert depth is not None
        group_size = invariant.group_size or depth
        if group_size == depth:
            return self._group(em.number(0), group_size, rows, columns, start)
        first, end = em.number(0), em.number(depth)
        return em.loop(first, end, group_size, lambda k, totals: self._group(k, group_size, rows, columns, totals), start)

    def _group(
        self, first: ir.Value, group_size: int, rows: Sequence[Point], columns: Sequence[Column], totals: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Adds the products of the steps of k that are one group."""
        em, loads, k_dim = self.emitter, self.loads, self.contraction.k
        parts, count = loads.invariant_values(rows[0].at(k_dim, first, group_size), columns), len(totals)

        def step(point: Point, number: int, sums: list[ir.Value]) -> list[ir.Value]:
            k = em.add(point.variables[k_dim], em.number(number))
            if self.fetches:
                loads.fetch(rows[0], columns, k, number)
            right = [loads.step_value(point, number, c, part) for c, part in zip(columns, parts, strict=True)]
            products = [(x, y) for x in self._left(rows, k) for y in right]
            own = slice(number % self.copies * count, (number % self.copies + 1) * count)
            sums[own] = [em.op("vector.fma", [x, y, s], s.type) for (x, y), s in zip(products, sums[own], strict=True)]
            return sums

        zero = em.constant(0, totals[0].type)
        sums = loads.steps(first, group_size, step, rows[0], [zero] * (count * self.copies))
        for c in range(1, self.copies):
            more = sums[c * count : (c + 1) * count]
            sums[:count] = [em.op("arith.addf", [a, b], a.type) for a, b in zip(sums[:count], more, strict=True)]
        lefts = self._left_sums(rows, first, group_size) if loads.takes_zero_out else [None] * len(rows)
        places = [(left, part) for left in lefts for part in parts]
        return [
            loads.scaled(total, partial, part, left)
            for total, partial, (left, part) in zip(totals, sums[:count], places, strict=True)
        ]

    def _left(self, rows: Sequence[Point], k: ir.Value) -> list[ir.Value]:
        """The left factor of each row, in group_size lane."""
        if self.loads.prepared:
            return [self.loads.prepared_left(r, k) for r in range(len(rows))]
        return [self.loads.left(row.at(self.contraction.k, k)) for row in rows]

    def _left_sums(self, rows: Sequence[Point], first: ir.Value, group_size: int) -> list[ir.Value]:
        if self.loads.prepared:
            return [self.loads.prepared_sum(r, first, group_size) for r in range(len(rows))]
        return [self.loads.left_sum(row, first, group_size) for row in rows]
