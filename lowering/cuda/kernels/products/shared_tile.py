"""Where a stage's factor is in shared memory: lines of neighbours, whose pieces of 16 bytes change places from line to line.

Eight lines that are read, or written, at once are in different banks: of line i, piece j is at ``j xor i mod 8``, of lines of
64 bytes, two of which fill all banks, at ``j xor i div 2 mod 4``.
"""

from __future__ import annotations

from dataclasses import dataclass

from .....dialect.bindings import ir
from .plan import ProductPlan
from .warp_code import WarpCode

__all__ = ["SharedTile"]

PIECE = 16


@dataclass(frozen=True)
class SharedTile:
    """A factor's part of a stage.

    Attributes:
        start: its first byte in a stage.
        rows: of the result (columns, of the right factor) that it has.
        depth: steps of k.
        bytes: of an element.
        along_k: whether a line is a row; else a line is a step of k.
    """

    start: int
    rows: int
    depth: int
    bytes: int
    along_k: bool

    @staticmethod
    def left(plan: ProductPlan, along_k: bool) -> SharedTile:
        return SharedTile(0, plan.tile.rows, plan.tile.depth, plan.instruction.bytes, along_k)

    @staticmethod
    def right(plan: ProductPlan, along_k: bool) -> SharedTile:
        return SharedTile(plan.left_bytes, plan.tile.columns, plan.tile.depth, plan.instruction.bytes, along_k)

    @property
    def lines(self) -> int:
        return self.rows if self.along_k else self.depth

    @property
    def line_bytes(self) -> int:
        return (self.depth if self.along_k else self.rows) * self.bytes

    def twist(self, code: WarpCode, line: ir.Value) -> ir.Value:
        """What the numbers of a line's pieces are combined with."""
        pieces = self.line_bytes // PIECE
        if pieces >= 8:
            return code.bits(line, 0, 3)
        return code.bits(line, (8 // pieces).bit_length() - 1, pieces.bit_length() - 1)

    def address(self, code: WarpCode, line: ir.Value, byte: ir.Value) -> ir.Value:
        """Where a byte of a line is in a stage."""
        piece, rest = code.divide(byte, PIECE)
        moved = code.mul(code.xor(piece, self.twist(code, line)), PIECE)
        return code.add(code.add(code.mul(line, self.line_bytes), self.start), code.add(moved, rest))
