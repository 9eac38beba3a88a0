"""A warp's products of f32, each added by a fused multiply-add: what tensor cores would round.

A thread has the sums that it would have of ``mma.sync``: of each 16 rows and 8 columns two neighbours of a row, and two of that
8 rows below. So it reads 16 bytes along k, four steps, of each of its rows and columns. Rows differ from lane to lane as for
``ldmatrix``, and are read without two lanes meeting in a bank.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from .fragments import WarpPlace
from .instructions import STEP_BYTES
from .plan import ProductPlan
from .shared_tile import PIECE, SharedTile
from .warp_code import WarpCode

__all__ = ["FusedProducts"]

# Rows, and columns, after which a thread has the next ones.
_EVERY = 8
_NEIGHBOURS = 2


class FusedProducts:
    """Builds them, for one thread."""

    def __init__(self, code: WarpCode, left: SharedTile, right: SharedTile, plan: ProductPlan, place: WarpPlace):
        self.code, self.em, self.plan, self.left, self.right = code, code.em, plan, left, right
        row = code.add(place.rows, code.bits(place.lane, 2, 3))
        column = code.add(place.columns, code.mul(code.bits(place.lane, 0, 2), _NEIGHBOURS))
        self._row, self._columns = row, [code.add(column, i) for i in range(_NEIGHBOURS)]
        self._pieces = plan.warp_steps * STEP_BYTES // PIECE
        self._share = code.mul(place.share, self._pieces)

    def add(self, stage: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds those of a stage, in order of :func:`.fragments.products`: a loop over pieces, whose body fits the cache."""
        em, plan = self.em, self.plan
        per = em.vector(PIECE // plan.instruction.bytes, sums[0].type)

        def body(number: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            piece = self.code.add(self._share, self.code.narrow(number))
            rows = self._lines(self.left, self._row, plan.warp_rows, stage, piece, per)
            columns = [self._lines(self.right, c, plan.warp_columns, stage, piece, per) for c in self._columns]
            return self._multiplied(rows, columns, carried)

        return em.loop(em.number(0), em.number(self._pieces), 1, body, sums)

    def _lines(
        self, tile: SharedTile, line: ir.Value, count: int, stage: ir.Value, piece: ir.Value, kind: ir.Type
    ) -> list[list[ir.Value]]:
        """A piece of a line, and of each eighth one after it among so many."""
        code = self.code
        first = code.add(stage, tile.address(code, line, code.mul(piece, PIECE)))
        lines = [code.load(kind, code.add(first, i * tile.line_bytes), PIECE) for i in range(0, count, _EVERY)]
        return [[self.em.lane(vector, i) for i in range(PIECE // tile.bytes)] for vector in lines]

    def _multiplied(
        self, rows: Sequence[Sequence[ir.Value]], columns: Sequence[Sequence[Sequence[ir.Value]]], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """One after the other, along k."""
        sums, blocks = list(sums), self.plan.warp_columns // _EVERY
        for step in range(len(rows[0])):
            for at in range(len(sums)):
                block, place = divmod(at, 4)
                (i, j), (half, side) = divmod(block, blocks), divmod(place, _NEIGHBOURS)
                factors = rows[2 * i + half][step], columns[side][j][step]
                sums[at] = self.em.op("math.fma", [*factors, sums[at]], sums[at].type)
        return sums
