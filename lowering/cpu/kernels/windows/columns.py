"""Columns of windows as vectors of four bytes in a lane: of each channel four rows, multiplied by a filter's four at once.

Rows of 16 bytes a, b, c, d become four vectors of four channels, whose lanes are a0 b0 c0 d0, a1 b1 c1 d1...: interleaved by
bytes, then by pairs of these. Instructions do that within each 128 bits, so that what is 32 bits wide is exchanged first.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.nest import Operand
from ....target import Dot
from .row_loads import QUAD, Row, RowLoads, Vector
from .shape import Windows

__all__ = ["Columns"]


class Columns(RowLoads):
    """Builds columns of the image and of filters, and sums of their products, for a vector of channels."""

    def __init__(self, windows: Windows, dot: Dot, vector: Vector, emitter: Emitter, memory: Memory):
        super().__init__(windows, emitter.vector(vector.lanes, emitter.integer(8)), vector, emitter, memory)
        self.dot, self.sums = dot, emitter.vector(vector.quarter, emitter.i32)
        unsigned_image, unsigned_filter = windows.unsigned
        # An instruction takes one factor with and one without a sign, or both with one.
        self.flips = unsigned_image == unsigned_filter if dot.unsigned else unsigned_image
        self._image_first = dot.unsigned and not unsigned_filter

    def of_image(self, point: Point, tap: int, rows: Sequence[Row]) -> list[ir.Value]:
        """A column of some rows: for each four of these, vectors of channels."""
        em, windows, count = self.emitter, self.windows, len(rows)
        if self.is_outside(point, tap):
            return [self._signed(self.frame())] * (QUAD * -(-count // QUAD))
        place = point.at(windows.across, em.number(tap))
        loaded = [self._signed(self.row(place.at(windows.down, em.number(i)), row)) for i, row in enumerate(rows)]
        fours = [loaded[i : i + QUAD] for i in range(0, count, QUAD)]
        # What is beyond the window meets a zero: any bytes do.
        return [v for four in fours for v in self._interleaved([*four, *four[-1:] * (QUAD - len(four))])]

    def _signed(self, row: ir.Value) -> ir.Value:
        """Bytes of the image as they are multiplied."""
        em = self.emitter
        return em.op("arith.xori", [row, em.constant(-128, self.kind)], self.kind) if self.flips else row

    def of_filter(self, tap: int, rows: int, above: int) -> list[ir.Value | None]:
        """A column of the filter with so many rows of zeros above it, in so many rows; None where all of four are zeros."""
        em, (height, _) = self.emitter, self.windows.window
        place = Point().at(self.windows.across, em.number(tap))
        zero = em.constant(0, self.kind)
        found = list[ir.Value | None]()
        for first in range(0, rows, QUAD):
            taps = [row - above for row in range(first, first + QUAD)]
            if not any(0 <= t < height for t in taps):
                found += [None] * QUAD
                continue
            at = [place.at(self.windows.down, em.number(t)) if 0 <= t < height else None for t in taps]
            found += self._interleaved([zero if p is None else self.load(self.windows.filter, p) for p in at])
        return found

    def moved(self, numbered: tuple[int, Sequence[ir.Value | None]], rows: int, above: int) -> list[ir.Value | None]:
        """A column of the filter, which is there without rows above it, with some: shifted in its lanes, if these have all."""
        em, (tap, taps) = self.emitter, numbered
        if rows > QUAD:
            return self.of_filter(tap, rows, above)
        by, kind = em.constant(8 * above, self.sums), self.sums
        lanes = [None if v is None else em.op("vector.bitcast", [v], kind) for v in taps]
        return [None if v is None else em.op("vector.bitcast", [em.op("arith.shli", [v, by], kind)], self.kind) for v in lanes]

    def added(
        self, total: Sequence[ir.Value], column: Sequence[ir.Value], taps: Sequence[ir.Value | None]
    ) -> list[ir.Value]:  # fmt: skip
        """Vectors of sums with the products of a column added."""
        sums = list(total)
        for i, (image, tap) in enumerate(zip(column, taps, strict=False)):
            q = i % QUAD
            if tap is None or q >= len(sums):
                continue
            factors = [image, tap] if self._image_first else [tap, image]
            sums[q] = self.emitter.intrinsic(self.dot.name, [sums[q], *factors], self.sums)
        return sums

    def corrections(self, filters: Sequence[Sequence[ir.Value | None]]) -> list[ir.Value] | None:
        """What sums have too much as bytes of the image got or lost a sign; None where they did not."""
        if not self.flips:
            return None
        em = self.emitter
        sign, sums = em.constant(-128, self.kind), [em.constant(0, self.sums)] * self.vector.quarters
        for taps in filters:
            sums = self.added(sums, [sign] * len(taps), taps)
        return sums

    def load(self, operand: Operand, point: Point, shift: ir.Value | None = None) -> ir.Value:
        return self._exchanged(super().load(operand, point, shift))

    def _exchanged(self, row: ir.Value) -> ir.Value:
        """Four bytes as one: those that interleaving puts into the vector q, part by part, are those at ``q * parts``."""
        em, parts = self.emitter, self.vector.lanes // 16
        if parts == 1:
            return row
        words = em.vector(QUAD * parts, em.i32)
        order = [q * parts + part for part in range(parts) for q in range(QUAD)]
        return em.op("vector.bitcast", [self._shuffled(em.op("vector.bitcast", [row], words), None, order)], self.kind)

    def _interleaved(self, rows: Sequence[ir.Value]) -> list[ir.Value]:
        """Four rows as four vectors of channels in turn."""
        em, lanes = self.emitter, self.vector.lanes
        pairs = em.vector(lanes // 2, em.integer(16))
        left, right = ([em.op("vector.bitcast", [v], pairs) for v in self._halves(a, b, 16)] for a, b in (rows[:2], rows[2:]))
        mixed = [v for a, b in zip(left, right, strict=True) for v in self._halves(a, b, 8)]
        return [em.op("vector.bitcast", [v], self.kind) for v in mixed]

    def _halves(self, a: ir.Value, b: ir.Value, part: int) -> list[ir.Value]:
        """Elements of two vectors in turn: of the first half of each part, which has so many, and of the second."""
        count = ir.VectorType(a.type).shape[0]
        halves = [
            [p + half * part // 2 + i for p in range(0, count, part) for i in range(part // 2)] for half in (0, 1)
        ]  # fmt: skip
        return [self._shuffled(a, b, [e for i in half for e in (i, count + i)]) for half in halves]

    def _shuffled(self, a: ir.Value, b: ir.Value | None, order: Sequence[int]) -> ir.Value:
        mask = {"mask": ir.DenseI64ArrayAttr.get(list(order), self.emitter.context)}
        return self.emitter.op("vector.shuffle", [a, a if b is None else b], a.type, mask)
