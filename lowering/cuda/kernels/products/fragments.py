"""A warp's share of a stage, from shared memory to registers: what lane reads which line, by ``ldmatrix``."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from .instructions import STEP_BYTES
from .plan import ProductPlan
from .shared_tile import PIECE, SharedTile
from .warp_code import WarpCode

__all__ = ["Fragments", "WarpPlace", "products"]

# Rows, or columns, of which one ldmatrix gives everything that an instruction takes: one of the left, two of the right.
_ROWS = 16


class WarpPlace:
    """Which part of a tile a warp computes.

    Attributes:
        lane: the thread's number in its warp.
        rows, columns: the first ones of the warp's part.
        share: which share of a stage's steps of k it has.
    """

    def __init__(self, code: WarpCode, plan: ProductPlan, thread: ir.Value):
        warp, self.lane = code.divide(thread, 32)
        warp = code.same_in_warp(warp)
        rest, row = code.divide(warp, plan.warps.rows)
        share, column = code.divide(rest, plan.warps.columns)
        self.rows, self.columns = code.mul(row, plan.warp_rows), code.mul(column, plan.warp_columns)
        self.share = share


class Fragments:
    """Of one factor, for one warp.

    A line of matrices is read at an address that differs from lane to lane, and is computed once: steps of k and rows change
    bits of it, or add a constant to it.
    """

    def __init__(self, code: WarpCode, tile: SharedTile, plan: ProductPlan, place: WarpPlace, *, is_left: bool):
        self.code, self.tile, self.is_left = code, tile, is_left
        self.count = (plan.warp_rows if is_left else plan.warp_columns) // _ROWS
        first = place.rows if is_left else place.columns
        # Of the left factor lanes 8 to 15 have the matrix of the next rows, of the right one that of the next steps of k.
        low, next_ = code.bits(place.lane, 0, 3), (code.bits(place.lane, 3, 1), code.bits(place.lane, 4, 1))
        rows, steps = next_ if is_left else reversed(next_)
        share = code.mul(place.share, plan.warp_steps)
        if tile.along_k:
            line = code.add(code.add(first, low), code.mul(rows, 8))
            own = code.xor(steps, code.mul(share, STEP_BYTES // PIECE))
            self._piece = code.xor(own, tile.twist(code, line))
        else:
            line = code.add(code.add(low, code.mul(steps, 8)), code.mul(share, STEP_BYTES // tile.bytes))
            piece = code.add(code.divide(first, PIECE // tile.bytes)[0], rows)
            self._piece = code.xor(piece, tile.twist(code, line))
        self._line = code.add(code.mul(line, tile.line_bytes), tile.start)

    def at_step(self, stage: ir.Value, step: int) -> list[list[ir.Value]]:
        """Registers for one instruction's steps of k, of each 16 rows, or 8 columns; ``stage`` is where the stage begins."""
        return [registers for i in range(self.count) for registers in self.of(stage, step, i)]

    def of(self, stage: ir.Value, step: int, i: int) -> list[list[ir.Value]]:
        """Those of the i-th 16 rows, or twice 8 columns."""
        code, tile = self.code, self.tile
        if tile.along_k:
            moved, lines = 2 * step, i * _ROWS
        else:
            moved, lines = i * _ROWS * tile.bytes // PIECE, step * STEP_BYTES // tile.bytes
        place = code.mul(code.xor(self._piece, moved), PIECE)
        address = code.add(code.add(code.add(stage, self._line), lines * tile.line_bytes), place)
        four = code.matrices(address, transposed=not tile.along_k)
        return [four] if self.is_left else [four[:2], four[2:]]


def products(
    code: WarpCode, plan: ProductPlan, left: Fragments, right: Fragments, stage: ir.Value, sums: Sequence[ir.Value]
) -> list[ir.Value]:
    """A warp's products of a stage, added to sums: four of each instruction, all columns of 16 rows before the next."""
    if plan.instruction.is_float8:
        return _stage_sums(code, plan, left, right, stage, sums)
    sums = list(sums)
    for step in range(plan.warp_steps):
        rows, columns = left.at_step(stage, step), right.at_step(stage, step)
        for i, a in enumerate(rows):
            for j, b in enumerate(columns):
                at = 4 * (i * len(columns) + j)
                sums[at : at + 4] = code.multiply(plan.instruction, a, b, sums[at : at + 4])
    return sums


def _stage_sums(
    code: WarpCode, plan: ProductPlan, left: Fragments, right: Fragments, stage: ir.Value, sums: Sequence[ir.Value]
) -> list[ir.Value]:
    """The same of instructions whose sums have fewer bits than f32: those of a stage are summed alone, and added in f32."""
    em, sums, steps = code.em, list(sums), range(plan.warp_steps)
    zero = em.constant(0, sums[0].type)
    rows = [left.at_step(stage, step) for step in steps]
    for pair in range(right.count):
        columns = [right.of(stage, step, pair) for step in steps]
        for j in (0, 1):
            for i in range(left.count):
                part = [zero] * 4
                for step in steps:
                    part = code.multiply(plan.instruction, rows[step][i], columns[step][j], part)
                at = 4 * (2 * right.count * i + 2 * pair + j)
                sums[at : at + 4] = [em.op("arith.addf", [s, p], p.type) for s, p in zip(sums[at : at + 4], part, strict=True)]
    return sums
