"""What rows have seen in the end, to memory: the result, or what a second kernel puts together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .....dialect.bindings import ir
from ....kernels.structure.attention import AttentionOperand
from ..products.warp_code import WarpCode
from .places import AttentionPlaces
from .softmax import HALVES, RowState, SoftmaxCode

__all__ = ["AttentionResults", "PartialResults", "WholeResults", "store_pair"]


class AttentionResults(Protocol):
    """Writes the rows of a warp."""

    def write(
        self, places: AttentionPlaces, softmax: SoftmaxCode, state: Sequence[RowState], rows: Sequence[ir.Value], lane: ir.Value
    ) -> None:
        """Builds it.

        Args:
            places: of the block.
            softmax: what made the state.
            state: of each 16 rows.
            rows: of the thread, two of each 16; those behind the last one do not exist.
            lane: the thread's number in its warp.
        """
        ...


class WholeResults:
    """The result: values times powers by the sum of powers."""

    def __init__(self, operand: AttentionOperand):
        self.operand = operand

    def write(
        self, places: AttentionPlaces, softmax: SoftmaxCode, state: Sequence[RowState], rows: Sequence[ir.Value], lane: ir.Value
    ) -> None:
        code = softmax.code
        column = code.mul(code.bits(lane, 0, 2), 2)
        for strip, found in enumerate(state):
            sums = softmax.whole_sums(found)
            for half in range(HALVES):
                row = rows[HALVES * strip + half]

                def store(row: ir.Value = row, total: ir.Value = sums[half], found: RowState = found, half: int = half) -> None:
                    share = softmax.quotient(softmax.number(1.0), total, places.keys)
                    address = places.address(self.operand, places.row(row))
                    values = [softmax.op("arith.mulf", v, share) for i, v in enumerate(found.total) if i % 4 // 2 == half]
                    self._store(code, address, column, values)

                code.em.only_when(code.em.compare("ult", row, places.together), store)

    def _store(self, code: WarpCode, address: ir.Value, column: ir.Value, values: Sequence[ir.Value]) -> None:
        em, element = code.em, self.operand.element
        size = 4 if isinstance(element, ir.F32Type) else 2
        start = em.add(address, code.index(code.mul(column, size)))
        for i in range(0, len(values), 2):
            pair = code.pair(*values[i : i + 2])
            if size == 2:
                pair = em.op("arith.truncf", [pair], em.vector(2, element))
            store_pair(code, pair, em.add(start, em.number(4 * i * size)), 2 * size)


class PartialResults:
    """Of each part of the keys, and each row: values times powers, the greatest score, and the sum of powers, in f32.

    Attributes:
        start: the address of the first one.
        part: the part's number, that of the warp included.
        rows: how many a part has.
    """

    def __init__(self, start: ir.Value, part: ir.Value, rows: ir.Value):
        self.start, self.part, self.rows = start, part, rows

    def write(
        self, places: AttentionPlaces, softmax: SoftmaxCode, state: Sequence[RowState], rows: Sequence[ir.Value], lane: ir.Value
    ) -> None:
        code, em = softmax.code, softmax.em
        (found,) = state
        width, sums = 2 * len(found.total), softmax.whole_sums(found)
        quarter = code.bits(lane, 0, 2)
        column = code.index(code.mul(quarter, 8))
        for half, row in enumerate(rows):

            def store(row: ir.Value = row, half: int = half) -> None:
                number = em.add(em.mul(self.part, self.rows), row)
                start = em.add(self.start, em.mul(number, em.number(4 * (width + 2))))
                own = [v for i, v in enumerate(found.total) if i % 4 // 2 == half]
                for i in range(0, len(own), 2):
                    store_pair(code, code.pair(*own[i : i + 2]), em.add(em.add(start, column), em.number(16 * i)), 8)
                pair = code.pair(found.most[half], sums[half])
                first = em.compare("eq", quarter, code.number(0))
                em.only_when(first, lambda: store_pair(code, pair, em.add(start, em.number(4 * width)), 8))

            em.only_when(em.compare("ult", row, places.together), store)


def store_pair(code: WarpCode, pair: ir.Value, address: ir.Value, size: int) -> None:
    """Writes two neighbours, of ``size`` bytes together, to global memory."""
    i64 = code.em.integer(64)
    access = {"alignment": ir.IntegerAttr.get(i64, size), "ordering": ir.IntegerAttr.get(i64, 0)}
    code.em.effect("llvm.store", [pair, code.global_pointer(address)], access)
