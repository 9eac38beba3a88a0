"""The sums of one tile where groups of steps share a part of the right factor: a sum per group, scaled when it is complete.

With ``x[k] * (q[k] * scale[k floordiv 32])``::

    for group { partial = 0; for k of the group { partial += x[k] * float(q[k]) }; total += partial * scale[group] }

so that the scale costs nothing per step. See :mod:`.group_invariant` for what else is taken out of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.memory import Point
from .group_loads import GroupLoads
from .prefetch import Prefetch
from .tile_place import TilePlace

__all__ = ["GroupedSums"]


class GroupedSums:
    """Builds the sums of tiles, all steps of k in each."""

    def __init__(self, groups: GroupLoads):
        self.groups, self.contraction, self.emitter = groups, groups.contraction, groups.emitter
        self.loads, self.plan = groups.loads, groups.loads.plan
        self.prefetch = Prefetch(self.contraction, self.loads.fetched(), self.emitter, self.loads.memory, self.plan)

    def accumulate(self, place: TilePlace, start: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds all products to ``start``."""
        em, depth = self.emitter, self.contraction.nest.extents[self.contraction.k].static
        assert depth is not None
        size = self.groups.invariant.group_size or depth
        if size == depth:
            return self._group(em.number(0), size, place, start)
        return em.loop(em.number(0), em.number(depth), size, lambda k, totals: self._group(k, size, place, totals), start)

    def _group(self, first: ir.Value, size: int, place: TilePlace, totals: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds the products of the steps of k that are one group."""
        em, groups, k_dim = self.emitter, self.groups, self.contraction.k
        rows, columns, count = place.rows, place.columns, len(totals)
        copies, fetches = self.plan.group_copies(count), self.plan.fetches(len(rows))
        parts = groups.invariant_values(rows[0].at(k_dim, first, size), columns)

        def step(point: Point, number: int, sums: list[ir.Value]) -> list[ir.Value]:
            k = em.add(point.variables[k_dim], em.number(number))
            if fetches:
                self.prefetch.ahead(rows[0], columns, k, number)
            right = [groups.step_value(point, number, c, part) for c, part in zip(columns, parts, strict=True)]
            products = [(x, y) for x in groups.left(rows, k) for y in right]
            own = slice(number % copies * count, (number % copies + 1) * count)
            sums[own] = [em.op("vector.fma", [x, y, s], s.type) for (x, y), s in zip(products, sums[own], strict=True)]
            return sums

        zero = em.constant(0, totals[0].type)
        sums = self.loads.steps(first, size, step, rows[0], [zero] * (count * copies))
        for c in range(1, copies):
            more = sums[c * count : (c + 1) * count]
            sums[:count] = [em.op("arith.addf", [a, b], a.type) for a, b in zip(sums[:count], more, strict=True)]
        lefts = groups.left_sums(rows, first, size)
        places = [(left, part) for left in lefts for part in parts]
        return [
            groups.added(total, partial, part, left)
            for total, partial, (left, part) in zip(totals, sums[:count], places, strict=True)
        ]
