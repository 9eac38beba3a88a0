"""The values of a contraction's factors: a scalar of a row, a vector of a column, computed first where many rows read it.

A packed right operand is fetched ahead of the step of k that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from .access import Lanes, Memory, Point
from .body import Body, Environment
from .contraction import Contraction, Factor
from .emitter import Emitter
from .nest import Operand
from .plan import element_bits

__all__ = ["Column", "Factors"]

# A factor of that many operations is computed once per panel, when rows fill more than a tile. 64 rows of 4096 x 4096 on Zen 3,
# in times of f32: int4 with zero points 1.7 when each of 11 tiles computes it and 1.0 so, int8 per channel (2 operations) 1.1
# and 1.0; a cast, which is one operation, takes 0.9.
_LONG_FACTOR = 2
# What is on the stack then, at most: a panel of 16 columns and 4096 rows of f32, half of a level-2 cache.
_STAGED_BYTES = 1 << 18
# How far ahead of a step of k the right operand is fetched, in bytes, and what one fetch brings. On Zen 3 48 rows of 512 x 512
# take 0.96 of the time without, 49 rows of 2048 x 512 take 0.97; products of more rows do not change.
_AHEAD, _LINE = 2048, 64

Column = tuple[ir.Value, ir.Value | None]
"""The first column of a vector of a tile, and the mask of the columns that exist when not all do."""


class Factors:
    """Builds both factors of one contraction, for tiles of ``vectors`` vectors of ``width`` lanes."""

    def __init__(self, contraction: Contraction, emitter: Emitter, memory: Memory, width: int, vectors: int):
        nest = contraction.nest
        self.contraction, self.emitter, self.memory = contraction, emitter, memory
        self.width, self.vectors = width, vectors
        self.element = nest.outputs[0].argument.type
        self.body = Body(emitter, memory, nest.body()[0], nest.dropped)
        self.scratch: ir.Value | None = None
        self.is_staged = False

    def column_point(self, row: Point, column: Column) -> Point:
        """The vector that begins at a column."""
        start, mask = column
        n = self.contraction.n
        return row.at(n, start, self.width).with_lanes(Lanes(n, self.width, mask))

    def left(self, point: Point) -> ir.Value:
        """The left factor in every lane."""
        return self.emitter.broadcast(self._factor(self.contraction.left, point), self.width)

    def right(self, row: Point, columns: Sequence[Column]) -> list[ir.Value]:
        """The right factor of each column."""
        return [self._right(row, column, j) for j, column in enumerate(columns)]

    def fetch(self, row: Point, columns: Sequence[Column], k: ir.Value, copy: int) -> None:
        """Asks for what later steps of k read of a packed right operand: a panel is too short for the processor to guess."""
        em, panel = self.emitter, self.width * self.vectors
        for operand in () if self.is_staged else self.contraction.right.operands:
            if operand.buffer is None or operand.offset.factor(self.contraction.k).static != panel:
                continue
            step = panel * element_bits(operand.buffer.element) // 8
            if copy * step % _LINE:
                continue  # the copy before fetched this line
            point = row.at(self.contraction.k, em.add(k, em.number(_AHEAD // step)))
            lines = max(1, step // _LINE)
            for start, _ in columns[:: max(1, len(columns) // lines)]:
                at = self.memory.index(operand.offset, point.at(self.contraction.n, start, self.width))
                em.prefetch(operand.buffer.flat, at)

    # -- a right factor that takes long ------------------------------------------------------------------------------

    def is_long(self) -> bool:
        """Whether a vector of the right factor takes long, compared to a tile's multiply-adds, and a panel of it is small."""
        depth = self.contraction.nest.extents[self.contraction.k].static
        if depth is None or self.contraction.outer:
            return False
        if depth * self.width * self.vectors * element_bits(self.element) // 8 > _STAGED_BYTES:
            return False
        return sum(op.name != "arith.constant" for op in self.contraction.right.operations) >= _LONG_FACTOR

    def stage(self, point: Point, columns: Sequence[Column]) -> None:
        """Computes a panel of the right factor; :meth:`right` reads that until :meth:`unstage`."""
        em, depth, width = self.emitter, self.contraction.nest.extents[self.contraction.k].static, self.width * self.vectors
        assert depth is not None
        scratch = em.scratch(depth * width, self.element)

        def row(k: ir.Value) -> None:
            for j, column in enumerate(columns):
                value = self._factor(self.contraction.right, self.column_point(point.at(self.contraction.k, k), column))
                em.effect("vector.store", [value, scratch, self._scratch_index(k, j)])

        em.each(em.number(0), em.number(depth), 1, row)
        self.scratch, self.is_staged = scratch, True

    def unstage(self) -> None:
        """Ends what :meth:`stage` began."""
        self.is_staged = False

    def _scratch_index(self, k: ir.Value, vector: int) -> ir.Value:
        em = self.emitter
        start = em.mul(k, em.number(self.width * self.vectors))
        return em.add(start, em.number(vector * self.width)) if vector else start

    # -- elements ----------------------------------------------------------------------------------------------------

    def _right(self, row: Point, column: Column, vector: int) -> ir.Value:
        if not self.is_staged:
            return self._factor(self.contraction.right, self.column_point(row, column))
        assert self.scratch is not None
        kind = self.emitter.vector(self.width, self.element)
        return self.emitter.op(
            "vector.load", [self.scratch, self._scratch_index(row.variables[self.contraction.k], vector)], kind
        )

    def _factor(self, factor: Factor, point: Point) -> ir.Value:
        environment: Environment = {}
        for operand in factor.operands:
            if operand.buffer is None:
                environment[operand.argument] = operand.value
                continue
            unmasked = self._is_padded(operand)
            environment[operand.argument] = self.memory.load(
                operand.buffer, operand.offset, point.without_mask() if unmasked else point
            )
        for operation in factor.operations:
            self.body.evaluate(operation, environment, point)
        value = self.body.value(self.body.item(factor.value, environment), point)
        return self.emitter.broadcast(value, point.width)

    def _is_padded(self, operand: Operand) -> bool:
        """Packed in panels at least as wide as a tile: columns beyond the last exist in memory."""
        tile = self.width * self.vectors
        shape = ir.MemRefType(operand.value.type).shape
        return any(
            floor.inner.dims() == {self.contraction.n} and floor.divisor % tile == 0 and floor.divisor in shape
            for floor in operand.offset.floors()
        )
