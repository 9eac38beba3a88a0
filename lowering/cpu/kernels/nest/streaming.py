"""Reductions of long rows into one: the rows are read from first to last, and the result stays in memory meanwhile.

Before::

    linalg.generic (i, j) -> (i, j), (j) {reduction, parallel}: out[j] += in[i, j]

After::

    for j0 step 512 { for i { for j = j0 to j0 + 512 step 32 { out[j..] = out[j..] + in[i, j..] } } }

Down a column, each row is another page and, where rows have 2**k bytes, the same few lines of every cache. Elements are
combined in the same order either way.
"""

from __future__ import annotations

from dataclasses import replace

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from ....kernels.emit.scalar_body import Environment
from ....kernels.structure.nest import Nest
from .generic_loops import Loops
from .nest_plan import NestPlan

__all__ = ["StreamedLoops"]

# Elements of the result that threads take at a time, and that stay in a first-level cache: of f32, 2 KiB.
_BLOCK = 512


class StreamedLoops(Loops):
    """Builds a nest by a plan that is ``streamed``: as an elementwise one, whose results are among what it reads."""

    def __init__(self, nest: Nest, plan: NestPlan, emitter: Emitter, memory: Memory):
        super().__init__(replace(nest, reductions=frozenset()), plan, emitter, memory)
        self.first = len(plan.order) - len(nest.reductions) - 1

    def _parallel(self, depth: int, outer: Environment, point: Point) -> None:
        if depth != self.first:
            super()._parallel(depth, outer, point)
            return
        environment = self._staged(depth, {**outer, **self._scalars()} if depth == 0 else outer, point)
        em, vector = self.emitter, self.plan.order[-1]
        extent = self.nest.extents[vector]
        end = self.memory.size(extent)

        def block(start: ir.Value) -> None:
            last = em.op("arith.minsi", [em.add(start, em.number(_BLOCK)), end], em.index)
            self._rows(depth, environment, point, start, last)

        if extent.static is not None and extent.static <= _BLOCK:
            self._rows(depth, environment, point, em.number(0), end)
        else:
            em.shared(em.number(0), end, _BLOCK, block, self._work())

    def _rows(self, depth: int, outer: Environment, point: Point, start: ir.Value, end: ir.Value) -> None:
        """The loops over what is reduced, one inside of the other, from ``depth`` on."""
        dim = self.plan.order[depth]
        if dim == self.plan.vector:
            self._row(outer, point, start, end)
            return

        def body(i: ir.Value) -> None:
            inner = point.at(dim, i)
            staged = self._staged(depth + 1, outer, inner) if depth + 1 < len(self.plan.order) else outer
            self._rows(depth + 1, staged, inner, start, end)

        self.emitter.each(self.emitter.number(0), self.memory.size(self.nest.extents[dim]), 1, body)

    def _row(self, outer: Environment, point: Point, start: ir.Value, end: ir.Value) -> None:
        """The part of a row from ``start`` to ``end``, by wide vectors, then vectors, then one masked vector."""
        em, depth, begin = self.emitter, len(self.plan.order), start
        dim = self.plan.order[-1]

        def chunk(first: ir.Value, width: int, active: ir.Value | None) -> None:
            self._parallel(depth, outer, self._vector_point(point, dim, first, width, active))

        for width in sorted({self.plan.wide, self.plan.width}, reverse=True):
            length = em.op("arith.andi", [em.sub(end, begin), em.number(-width)], em.index)
            whole = em.add(begin, length)
            em.each(begin, whole, width, lambda i, w=width: chunk(i, w, None))
            begin = whole
        rest = em.sub(end, begin)
        some = em.compare("sgt", rest, em.number(0))
        em.only_when(some, lambda: chunk(begin, self.plan.width, rest))
