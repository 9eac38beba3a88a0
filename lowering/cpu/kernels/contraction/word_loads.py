"""Vectors of bf16 two at a time: of the words of two, a shift and a mask make f32."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.memory import Point
from .operand_loads import OperandLoads
from .tile_place import Column

__all__ = ["WordLoads"]

# The upper half of a word.
_UPPER = -65536


class WordLoads(OperandLoads):
    """Loads of a right operand whose columns exist in memory two vectors at a time; a single one is widened by itself."""

    def in_pairs(self, columns: Sequence[Column]) -> bool:
        return len(columns) % 2 == 0

    def right(self, row: Point, columns: Sequence[Column]) -> list[ir.Value]:
        if not self.in_pairs(columns):
            return super().right(row, columns)
        pairs = [self._pair(self.column_point(row, (column, None))) for column, _ in columns[::2]]
        return [value for pair in pairs for value in pair]

    def _pair(self, point: Point) -> tuple[ir.Value, ir.Value]:
        """The even and the odd ones of the columns from a point on."""
        em, (operand,) = self.emitter, self.contraction.right.operands
        buffer, wide = operand.buffer, em.vector(self.width, self.element)
        assert buffer is not None
        start = self.memory.index(operand.offset, point)
        both = em.op("vector.load", [buffer.flat, start], em.vector(2 * self.width, buffer.stored))
        words = em.op("vector.bitcast", [both], em.vector(self.width, em.i32))
        even = em.op("arith.shli", [words, em.constant(16, words.type)], words.type)
        odd = em.op("arith.andi", [words, em.constant(_UPPER, words.type)], words.type)
        return em.op("arith.bitcast", [even], wide), em.op("arith.bitcast", [odd], wide)
