"""Products of a tile on tensor cores: queries times keys, and powers times values."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ..products.instructions import STEP_BYTES
from ..products.warp_code import WarpCode
from .plan import STRIP, THIRDS, AttentionPlan
from .shape import PIECE
from .tiles import RowTile

__all__ = ["AttentionFactors"]

#: Registers of a fragment.
Fragment = Sequence[ir.Value]

# Bits of f32 that tf32 has.
_TF32_BITS = -(1 << 13)
_COLUMNS = 8


class AttentionFactors:
    """A warp's products."""

    def __init__(
        self, code: WarpCode, plan: AttentionPlan, tiles: tuple[RowTile, RowTile, RowTile], lane: ir.Value,
        first_row: ir.Value, first_key: ir.Value,
    ):  # fmt: skip
        """``tiles`` are those of queries, keys and values; the warp's part begins at a row and a key."""
        self.code, self.em, self.plan = code, code.em, plan
        self.queries, self.key, self.value = tiles
        self._query_at = self.queries.lane(code, lane, first_row, rows_first=True)
        self._key_at = self.key.lane(code, lane, first_key, rows_first=False)
        self._value_at = self.value.lane(code, lane, first_key, rows_first=True)
        if plan.bytes == 4:
            row = code.add(first_key, code.mul(code.bits(lane, 0, 2), 2))
            own = code.mul(code.bits(lane, 2, 3), plan.bytes)
            self._value_at = code.add(code.add(code.mul(row, self.value.pitch), own), self.value.start)
        self._held: list[list[Fragment]] | None = None

    @property
    def _steps(self) -> int:
        """Instructions along a query."""
        return self.queries.pieces * PIECE // STEP_BYTES + bool(self.queries.padding)

    def hold_queries(self) -> None:
        """Reads the queries once and for all."""
        self._held = [[self._query(strip, step) for strip in range(self.plan.strips)] for step in range(self._steps)]

    def _query(self, strip: int, step: int) -> Fragment:
        if self._held is not None:
            return self._held[step][strip]
        return self.queries.fragments(self.code, self._query_at, strip * STRIP, step * STEP_BYTES // PIECE)

    def scores(self, stage: ir.Value) -> list[list[ir.Value]]:
        """Of each strip, four for each eight keys of the warp."""
        zero = self.em.constant(0.0, self.em.f32)
        sums = [[zero] * (self.plan.warp_keys // 2) for _ in range(self.plan.strips)]
        at = self.code.add(stage, self._key_at)
        for step in range(self._steps):
            rows = [self._query(strip, step) for strip in range(self.plan.strips)]
            columns = list[Fragment]()
            for first in range(0, self.plan.warp_keys, STRIP):
                four = self.key.fragments(self.code, at, first, step * STEP_BYTES // PIECE)
                columns += four[:2], four[2:]
            self._multiply(rows, columns, sums)
        return sums

    def add_values(
        self, stage: ir.Value, powers: Sequence[Sequence[ir.Value]], totals: Sequence[list[ir.Value]]
    ) -> list[list[ir.Value]]:
        """The totals with powers times values."""
        sums, at = [list(t) for t in totals], self.code.add(stage, self._value_at)
        depth = self.plan.instruction.depth
        for first in range(0, self.plan.warp_keys, depth):
            rows = [self._powers(p[first // 2 : (first + depth) // 2]) for p in powers]
            self._multiply(rows, self._values(at, first), sums)
        return sums

    def _powers(self, powers: Sequence[ir.Value]) -> Fragment:
        """Powers of an instruction's keys as its left factor: what a thread has of the one it has of the other.

        Of four bytes the keys change places: a thread's two neighbours are its key and the one four behind it.
        """
        if self.plan.bytes == 4:
            return [powers[0], powers[2], powers[1], powers[3]]
        return [self._narrow(*powers[i : i + 2]) for i in range(0, 8, 2)]

    def _narrow(self, a: ir.Value, b: ir.Value) -> ir.Value:
        em = self.em
        element = ir.Type.parse(self.plan.instruction.element, em.context)
        return em.op("arith.truncf", [self.code.pair(a, b)], em.vector(2, element))

    def _values(self, at: ir.Value, first: int) -> list[Fragment]:
        """Values of an instruction's keys, for each eight columns."""
        code, count = self.code, self.value.elements // _COLUMNS
        if self.plan.bytes == 4:
            start = code.add(at, first * self.value.pitch)
            return [
                [code.load(self.em.f32, code.add(start, j * self.value.pitch + i * _COLUMNS * 4), 4) for j in range(2)]
                for i in range(count)
            ]
        found = list[Fragment]()
        for piece in range(0, count, 2):
            four = self.value.turned(code, at, first, piece)
            found += four[:2], four[2:]
        return found[:count]

    def _multiply(self, rows: Sequence[Fragment], columns: Sequence[Fragment], sums: Sequence[list[ir.Value]]) -> None:
        """Adds products to sums, in place."""
        if self.plan.by == THIRDS:
            self._multiply_thirds(rows, columns, sums)
            return
        for a, own in zip(rows, sums, strict=True):
            for j, b in enumerate(columns):
                own[4 * j : 4 * j + 4] = self._product(a, b, own[4 * j : 4 * j + 4])

    def _multiply_thirds(self, rows: Sequence[Fragment], columns: Sequence[Fragment], sums: Sequence[list[ir.Value]]) -> None:
        """The same of factors that are sums of two tf32, without the product of their smaller parts."""
        left = [self._parts(a) for a in rows]
        for j, column in enumerate(columns):
            b, small_b = self._parts(column)
            for (a, small_a), own in zip(left, sums, strict=True):
                four = own[4 * j : 4 * j + 4]
                for pair in ((small_a, b), (a, small_b), (a, b)):
                    four = self._product(*pair, four)
                own[4 * j : 4 * j + 4] = four

    def _parts(self, fragment: Fragment) -> tuple[Fragment, Fragment]:
        """What tf32 has of f32, and what is left."""
        em, code = self.em, self.code
        words = [v if v.type == em.i32 else em.op("llvm.bitcast", [v], em.i32) for v in fragment]
        great = [em.op("arith.andi", [w, code.number(_TF32_BITS)], em.i32) for w in words]
        numbers = [[em.op("llvm.bitcast", [w], em.f32) for w in part] for part in (words, great)]
        rest = [em.op("arith.subf", [x, y], em.f32) for x, y in zip(*numbers, strict=True)]
        return great, [em.op("llvm.bitcast", [r], em.i32) for r in rest]

    def _product(self, a: Fragment, b: Fragment, sums: Sequence[ir.Value]) -> list[ir.Value]:
        return self.code.multiply(self.plan.instruction, a, b, sums)
