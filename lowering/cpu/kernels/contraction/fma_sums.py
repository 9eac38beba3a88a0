"""The sums of one tile by fused multiply-adds, a step of k at a time, over all reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand
from .contraction_plan import ContractionPlan
from .prefetch import Prefetch
from .shape import multiples_of
from .tile_place import Column, TilePlace

__all__ = ["FmaSums", "Loads"]


class Loads(Protocol):
    """A way to load the operands of one contraction: :class:`.operand_loads.OperandLoads` is one."""

    contraction: Contraction
    emitter: Emitter
    memory: Memory
    plan: ContractionPlan

    def left(self, point: Point) -> ir.Value:
        """The left factor in every lane."""
        ...

    def right(self, row: Point, columns: Sequence[Column]) -> list[ir.Value]:
        """The right factor of each column; of those :meth:`in_pairs`, even columns, then odd ones."""
        ...

    def in_pairs(self, columns: Sequence[Column]) -> bool:
        """Whether two vectors of neighbours come out as their even and their odd ones."""
        ...

    def fetched(self) -> Sequence[Operand]:
        """What is read of memory for the right factor, and worth fetching ahead."""
        ...


@dataclass(frozen=True)
class _Copies:
    """A tile, and how many copies of accumulators it has."""

    place: TilePlace
    rows: Sequence[Point]
    count: int


class FmaSums:
    """Builds the sums of tiles whose operands are loaded in one way."""

    def __init__(self, loads: Loads):
        self.loads, self.contraction, self.emitter, self.plan = loads, loads.contraction, loads.emitter, loads.plan
        self.extents, self.memory = loads.contraction.nest.extents, loads.memory
        self.prefetch = Prefetch(self.contraction, loads.fetched(), self.emitter, self.memory, self.plan)

    def accumulate(self, place: TilePlace, start: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds the products of the tile's steps of k; several copies of few accumulators make additions overlap."""
        count, copies = len(start), self.plan.copies(len(start))
        zero, in_pairs = self.emitter.constant(0, start[0].type), self.loads.in_pairs(place.columns)
        start = self.emitter.separated(start) if in_pairs else start
        carried = [*start, *[zero] * (count * (copies - 1))]
        carried = self._outer(self.contraction.outer, _Copies(place, place.rows, copies), carried)
        totals = carried[:count]
        for c in range(1, copies):
            totals = [self._add(a, b) for a, b in zip(totals, carried[c * count : (c + 1) * count], strict=True)]
        return self.emitter.interleaved(totals) if in_pairs else totals

    def _outer(self, dims: Sequence[int], tile: _Copies, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The loops over all reductions but the last one."""
        if not dims:
            return self._inner(tile, carried)
        em, (first, *inner) = self.emitter, dims
        size = self.memory.size(self.extents[first])

        def step(i: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
            return self._outer(inner, replace(tile, rows=[row.at(first, i) for row in tile.rows]), accumulators)

        return em.loop(em.number(0), size, 1, step, carried)

    def _inner(self, tile: _Copies, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The loop over k, several steps at a time; the first copy takes what is left over."""
        em, count, several = self.emitter, len(carried) // tile.count, max(self.plan.unroll, tile.count)
        steps = tile.place.steps
        first, static, size = steps.first, steps.count.static, self.memory.size(steps.count)

        def step(k: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
            self._fetch(tile, k, several)
            result = list(accumulators)
            for i in range(several):
                own = slice(i % tile.count * count, (i % tile.count + 1) * count)
                result[own] = self._multiply_add(tile, em.add(k, em.number(i)) if i else k, result[own])
            return result

        if static is None and multiples_of(self.contraction).steps % several == 0:
            return em.loop(first, em.add(first, size), several, step, carried)
        whole = em.op("arith.andi", [size, em.number(-several)], em.index) if static is None else em.number(static & -several)
        middle = em.add(first, whole)
        carried = em.loop(first, middle, several, step, carried)
        if static is not None and static % several == 0:
            return carried
        left = em.loop(middle, em.add(first, size), 1, lambda k, sums: self._multiply_add(tile, k, sums), carried[:count])
        return [*left, *carried[count:]]

    def _fetch(self, tile: _Copies, k: ir.Value, steps: int) -> None:
        """Asks for what will be read of a packed right operand."""
        place = replace(tile.place, rows=tile.rows)
        if place.share.of:
            self.prefetch.next_panel(place, k, steps)
        elif self.plan.fetches(len(place.rows)):
            for i in range(steps):
                self.prefetch.ahead(place.rows[0], place.columns, self.emitter.add(k, self.emitter.number(i)), i)

    def _multiply_add(self, tile: _Copies, k: ir.Value, accumulators: Sequence[ir.Value]) -> list[ir.Value]:
        """One step of k on the whole tile."""
        k_dim, columns, result = self.contraction.k, tile.place.columns, list[ir.Value]()
        right = self.loads.right(tile.rows[0].at(k_dim, k), columns)
        for i, row in enumerate(tile.rows):
            left = self.loads.left(row.at(k_dim, k))
            for j, vector in enumerate(right):
                result.append(self._fma(left, vector, accumulators[i * len(columns) + j]))
        return result

    def _fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        em = self.emitter
        if _is_float(c):
            return em.op("vector.fma", [a, b, c], c.type)
        return em.add(em.mul(a, b), c)

    def _add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.emitter.op("arith.addf", [a, b], a.type) if _is_float(a) else self.emitter.add(a, b)


def _is_float(value: ir.Value) -> bool:
    return isinstance(ir.VectorType(value.type).element_type, ir.FloatType)
