"""Loops that transpose: square tiles are read along the input's rows, turned in registers, written along the result's.

Before::

    linalg.generic out[i, j] = in[j, i]

After::

    for i step 16, for j step 16 { 16 loads of in[j + 0..15, i..i+15]; 64 shuffles; 16 stores of out[i + 0..15, j..j+15] }
"""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Lanes, Point
from ....kernels.emit.scalar_body import Environment
from ....kernels.structure.nest import Operand
from .generic_loops import Loops
from .vector_plan import is_transposed

__all__ = ["TiledLoops"]

# Bodies of more operations are in a loop over the rows of a tile, which are on the stack then: 16 times as much code would be
# slow to compile, and no faster.
_UNROLLED_BODY = 8


class TiledLoops(Loops):
    """The last two loops in square tiles, for operands that are contiguous along the other of the two than the result is.

    Before: 16 gathers of 16 elements each, one per row of the result. After: 16 vector loads and 64 shuffles. What is left of
    either loop runs one row at a time, with gathers.
    """

    def _parallel(self, depth: int, outer: Environment, point: Point) -> None:
        if depth + 2 < len(self.plan.order):
            super()._parallel(depth, outer, point)
            return
        environment: Environment = dict(outer)
        if depth == 0:
            environment |= self._scalars()
        self._stage(depth, environment, point)
        em, width, (tile, vector) = self.emitter, self.plan.width, self.plan.order[depth:]
        rows, columns = (self.memory.size(self.nest.extents[d]) for d in (tile, vector))
        whole_rows, whole_columns = (self._whole(self.nest.extents[d]) for d in (tile, vector))

        def row(i: ir.Value, j: ir.Value, active: ir.Value | None) -> None:
            inner = self._vector_point(point.at(tile, i), vector, j, width, active)
            self._row(depth, environment, inner)

        def rest_of_rows(first: ir.Value) -> None:
            end = em.add(first, em.number(width))
            em.each(whole_columns, columns, width, lambda j: em.each(first, end, 1, lambda i: row(i, j, em.sub(columns, j))))

        def tiles(first: ir.Value) -> None:
            em.each(em.number(0), whole_columns, width, lambda j: self._tile(depth, environment, point, first, j))
            rest_of_rows(first)

        self._each(self.nest.extents[tile], whole_rows, width, tiles)
        em.each(whole_rows, rows, 1, lambda i: em.each(em.number(0), columns, width, lambda j: row(i, j, em.sub(columns, j))))

    def _whole(self, extent: Size) -> ir.Value:
        width, static = self.plan.width, extent.static
        if static is not None:
            return self.emitter.number(static // width * width)
        return self.emitter.op("arith.andi", [self.memory.size(extent), self.emitter.number(-width)], self.emitter.index)

    def _row(self, depth: int, outer: Environment, point: Point) -> None:
        environment: Environment = dict(outer)
        self._stage(depth + 1, environment, point)
        self._stage(depth + 2, environment, point)
        self._finish(depth + 2, [environment], [point])

    def _tile(self, depth: int, outer: Environment, point: Point, i: ir.Value, j: ir.Value) -> None:
        """``width`` rows of the result from row ``i`` on, in the columns from ``j`` on."""
        em, width, (tile, vector) = self.emitter, self.plan.width, self.plan.order[depth:]
        corner = point.at(tile, i, width).at(vector, j, width)
        turned = {
            operand: self._transposed(operand, corner)
            for operand in self.nest.inputs
            if operand.used and is_transposed(operand, vector, tile)
        }

        def row(at: ir.Value, values: Sequence[ir.Value]) -> None:
            inner = self._vector_point(point.at(tile, at), vector, j, width, None)
            rows = {o.argument: self._retyped(o, v) for o, v in zip(turned, values, strict=True)}
            self._row(depth, {**outer, **rows}, inner)

        if len(self.operations) <= _UNROLLED_BODY:
            for r in range(width):
                row(em.add(i, em.number(r)) if r else i, [rows[r] for rows in turned.values()])
            return
        kept = [self._kept(rows) for rows in turned.values()]

        def loaded(r: ir.Value) -> None:
            at, kind = em.mul(r, em.number(width)), [rows[0].type for rows in turned.values()]
            row(em.add(i, r), [em.op("vector.load", [k, at], t) for k, t in zip(kept, kind, strict=True)])

        em.each(em.number(0), em.number(width), 1, loaded)

    def _kept(self, rows: Sequence[ir.Value]) -> ir.Value:
        """The rows on the stack, one after the other."""
        em, width = self.emitter, self.plan.width
        memory = em.scratch(width * width, ir.VectorType(rows[0].type).element_type)
        for r, row in enumerate(rows):
            em.effect("vector.store", [row, memory, em.number(r * width)])
        return memory

    def _transposed(self, operand: Operand, corner: Point) -> list[ir.Value]:
        """The operand's tile as it is stored, one vector per row of the result."""
        em, width, memory = self.emitter, self.plan.width, self.memory
        assert operand.buffer is not None
        assert self.plan.vector is not None
        start, stride = memory.index(operand.offset, corner), memory.size(operand.offset.factor(self.plan.vector))
        whole = Point(lanes=Lanes(self.plan.vector, width, None))
        lines = list[ir.Value]()
        for lane in range(width):
            at = em.add(start, em.mul(stride, em.number(lane))) if lane else start
            lines.append(memory.load_stored(operand.buffer, at, None, whole))
        return em.transpose(lines)

    def _retyped(self, operand: Operand, row: ir.Value) -> ir.Value:
        assert operand.buffer is not None
        return self.memory.retyped(row, operand.buffer.element)
