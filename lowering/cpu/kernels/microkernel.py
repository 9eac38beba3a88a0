"""One register tile of a contraction: accumulators for some rows and vectors of columns, summed over all reductions."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from .access import Point
from .contraction import Contraction
from .emitter import Emitter
from .factors import Column, Factors
from .grouped_sums import GroupedSums
from .results import Results

__all__ = ["Microkernel"]

# Accumulators in flight that hide the latency of a fused multiply-add (4 cycles, 2 per cycle).
_IN_FLIGHT = 8


class Microkernel:
    """Builds tiles of one contraction."""

    def __init__(self, contraction: Contraction, factors: Factors, results: Results, emitter: Emitter):
        self.contraction, self.factors, self.results, self.emitter = contraction, factors, results, emitter
        self.extents, self.memory = contraction.nest.extents, factors.memory

    def tile(self, rows: Sequence[Point], columns: Sequence[Column]) -> None:
        """Accumulates in registers, then stores, through the epilogue if there is one."""
        points = [self.factors.column_point(row, column) for row in rows for column in columns]
        start = [self.results.initial(point) for point in points]
        for point, total in zip(points, self._accumulate(rows, columns, start), strict=True):
            self.results.store(total, point)

    def _accumulate(self, rows: Sequence[Point], columns: Sequence[Column], start: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums, with several copies of few accumulators so that additions overlap."""
        count, copies = len(start), max(1, _IN_FLIGHT // len(start))
        if self.factors.has_groups:
            return GroupedSums(self.contraction, self.factors, self.emitter, copies).accumulate(rows, columns, start)
        zero = self.emitter.constant(0, start[0].type)
        carried = self._outer(self.contraction.outer, rows, columns, [*start, *[zero] * (count * (copies - 1))], copies)
        totals = carried[:count]
        for c in range(1, copies):
            totals = [self._add(a, b) for a, b in zip(totals, carried[c * count : (c + 1) * count], strict=True)]
        return totals

    def _outer(
        self, dims: Sequence[int], rows: Sequence[Point], columns: Sequence[Column], carried: Sequence[ir.Value], copies: int
    ) -> list[ir.Value]:
        """The loops over all reductions but the last one."""
        if not dims:
            return self._inner(rows, columns, carried, copies)
        em, (first, *rest) = self.emitter, dims
        size = self.memory.size(self.extents[first])

        def step(i: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
            return self._outer(rest, [row.at(first, i) for row in rows], columns, accumulators, copies)

        return em.loop(em.number(0), size, 1, step, carried)

    def _inner(
        self, rows: Sequence[Point], columns: Sequence[Column], carried: Sequence[ir.Value], copies: int
    ) -> list[ir.Value]:
        """The loop over k; the first copy takes what is left over."""
        em, count = self.emitter, len(carried) // copies
        extent = self.extents[self.contraction.k]
        size = self.memory.size(extent)

        def step(k: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
            result = list[ir.Value]()
            for c in range(len(accumulators) // count):
                at = em.add(k, em.number(c)) if c else k
                self.factors.fetch(rows[0], columns, at, c)
                result += self._multiply_add(rows, columns, at, accumulators[c * count : (c + 1) * count])
            return result

        if copies == 1:
            return em.loop(em.number(0), size, 1, step, carried)
        whole = em.op("arith.andi", [size, em.number(-copies)], em.index)
        carried = em.loop(em.number(0), whole, copies, step, carried)
        if extent.static is not None and extent.static % copies == 0:
            return carried
        return [*em.loop(whole, size, 1, step, carried[:count]), *carried[count:]]

    def _multiply_add(
        self, rows: Sequence[Point], columns: Sequence[Column], k: ir.Value, accumulators: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """One step of k on the whole tile."""
        k_dim, result = self.contraction.k, list[ir.Value]()
        right = self.factors.right(rows[0].at(k_dim, k), columns)
        for i, row in enumerate(rows):
            left = self.factors.left(row.at(k_dim, k))
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
