"""What a warp's rows have seen so far: the greatest score, the sum of powers, and the sum of values times these.

A thread has two rows of each 16, and of each eight columns two neighbours in both, as instructions give sums: values 0 and 1
of row ``lane div 4``, 2 and 3 of that 8 rows below, columns from ``2 * (lane mod 4)`` on. Four neighbouring lanes have a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ..products.warp_code import WarpCode

__all__ = ["HALVES", "RowState", "SoftmaxCode"]

#: Rows of 16 that a thread has.
HALVES = 2
#: Powers are computed to this base.
_LOG2_E = math.log2(math.e)
#: The greatest score before there is one: what is not seen is a power of 0 then, whatever was seen before.
LOWEST = -3.4028234663852886e38


@dataclass(frozen=True)
class RowState:
    """Of 16 rows of a warp, what a thread has of them.

    Attributes:
        most: the greatest score, for both rows.
        sums: of powers, of the thread's own columns.
        total: of values times powers, four for each eight columns.
    """

    most: list[ir.Value]
    sums: list[ir.Value]
    total: list[ir.Value]

    @property
    def values(self) -> list[ir.Value]:
        return [*self.most, *self.sums, *self.total]

    @staticmethod
    def of(values: Sequence[ir.Value]) -> RowState:
        return RowState(list(values[:HALVES]), list(values[HALVES : 2 * HALVES]), list(values[2 * HALVES :]))


class SoftmaxCode:
    """Builds online softmax in f32.

    ``scale`` is what is still to be multiplied with scores.
    """

    def __init__(self, code: WarpCode, scale: float):
        self.code, self.em, self.f32 = code, code.em, code.em.f32
        self._factor = self.number(scale * _LOG2_E)

    def number(self, value: float) -> ir.Value:
        return self.em.constant(value, self.f32)

    def op(self, name: str, *operands: ir.Value) -> ir.Value:
        return self.em.op(name, operands, self.f32)

    def start(self, width: int) -> RowState:
        """Of no keys."""
        zero = self.number(0.0)
        return RowState([self.number(LOWEST)] * HALVES, [zero] * HALVES, [zero] * (width // 2))

    def quotient(self, value: ir.Value, total: ir.Value, keys: ir.Value) -> ir.Value:
        """A value divided by a sum of powers. Where there are no keys at all, a row is 0, and not 0 / 0."""
        is_none = self.em.compare("eq", keys, self.em.number(0))
        return self.op("arith.divf", value, self.op("arith.select", is_none, self.number(1.0), total))

    def power(self, score: ir.Value, most: ir.Value) -> ir.Value:
        """``exp((score - most) * scale)``."""
        return self.op("nvvm.ex2", self.op("arith.mulf", self.op("arith.subf", score, most), self._factor))

    def take_in(self, state: RowState, scores: Sequence[ir.Value]) -> tuple[RowState, list[ir.Value]]:
        """The state with some scores, four for each eight columns, but for products with values; and powers of these."""
        most, sums, powers, old = self.weigh(state.most, state.sums, scores)
        return RowState(most, sums, self.scaled(state.total, old)), powers

    def scaled(self, total: Sequence[ir.Value], old: Sequence[ir.Value]) -> list[ir.Value]:
        """Values times powers, of what was seen before, by the greatest score that there is now."""
        return [self.op("arith.mulf", t, old[i % 4 // 2]) for i, t in enumerate(total)]

    def weigh(
        self, before: Sequence[ir.Value], sums_before: Sequence[ir.Value], scores: Sequence[ir.Value]
    ) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value], list[ir.Value]]:
        """The greatest scores and the sums of powers with some scores; powers of these; what others are multiplied by."""
        most, sums, powers, old = list[ir.Value](), list[ir.Value](), list(scores), list[ir.Value]()
        for half in range(HALVES):
            own = [i for i in range(len(scores)) if i % 4 // 2 == half]
            greatest = before[half]
            for i in own:
                greatest = self.op("arith.maxnumf", greatest, scores[i])
            greatest = self._of_row("arith.maxnumf", greatest)
            old.append(self.power(before[half], greatest))
            total = self.op("arith.mulf", sums_before[half], old[half])
            for i in own:
                powers[i] = self.power(scores[i], greatest)
                total = self.op("arith.addf", total, powers[i])
            most.append(greatest)
            sums.append(total)
        return most, sums, powers, old

    def whole_sums(self, state: RowState) -> list[ir.Value]:
        """The sums of powers of rows."""
        return [self._of_row("arith.addf", s) for s in state.sums]

    def _of_row(self, name: str, value: ir.Value) -> ir.Value:
        """The values of the four lanes that have a row combined."""
        for distance in (1, 2):
            value = self.op(name, value, self._other(value, distance))
        return value

    def _other(self, value: ir.Value, distance: int) -> ir.Value:
        code = self.code
        operands = [code.number(-1), value, code.number(distance), code.number(31)]
        kind = ir.Attribute.parse("#nvvm<shfl_kind bfly>", self.em.context)
        return self.em.op("nvvm.shfl.sync", operands, value.type, {"kind": kind})
