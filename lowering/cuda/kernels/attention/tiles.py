"""Rows of queries, keys or values in shared memory: from global memory by ``cp.async``, and to registers of instructions.

A row begins an odd number of pieces of 16 bytes behind the one before it, so that eight pieces that are read at once are in
different banks. What an instruction reads behind a row's elements is zero, and so are rows that do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .....dialect.bindings import ir
from ..products.warp_code import WarpCode
from .plan import padded, pitch
from .shape import PIECE

__all__ = ["RowCopies", "RowTile"]


@dataclass(frozen=True)
class RowTile:
    """Where some rows are.

    Attributes:
        start: the first byte, in shared memory or in a stage of it.
        rows: how many there are.
        elements: of a row.
        bytes: of an element.
    """

    start: int
    rows: int
    elements: int
    bytes: int

    @property
    def pitch(self) -> int:
        """Bytes from a row to the next."""
        return pitch(self.elements, self.bytes)

    @property
    def pieces(self) -> int:
        """Of a row, without zeros behind it."""
        return self.elements * self.bytes // PIECE

    @property
    def padding(self) -> int:
        """Pieces of zeros behind a row."""
        return padded(self.elements, self.bytes) * self.bytes // PIECE - self.pieces

    def fragments(self, code: WarpCode, at: ir.Value, row: int, piece: int) -> list[ir.Value]:
        """``ldmatrix`` of the rows and pieces from these on; ``at`` is what :meth:`lane` gives, in a stage."""
        return code.matrices(code.add(at, row * self.pitch + piece * PIECE), transposed=False)

    def turned(self, code: WarpCode, at: ir.Value, row: int, piece: int) -> list[ir.Value]:
        """The same, transposed."""
        return code.matrices(code.add(at, row * self.pitch + piece * PIECE), transposed=True)

    def lane(self, code: WarpCode, lane: ir.Value, first: ir.Value, rows_first: bool) -> ir.Value:
        """Where a lane reads in a stage: of four matrices the second is of the next rows, or of the next piece."""
        low, next_, other = code.bits(lane, 0, 3), code.bits(lane, 3, 1), code.bits(lane, 4, 1)
        rows, pieces = (next_, other) if rows_first else (other, next_)
        row = code.add(code.add(low, code.mul(rows, 8)), first)
        return code.add(code.add(code.mul(row, self.pitch), code.mul(pieces, PIECE)), self.start)

    def clear_padding(self, code: WarpCode, thread: ir.Value, threads: int, copies: int = 1, distance: int = 0) -> None:
        """Writes the zeros behind rows, of so many tiles that are this distance apart."""
        em = code.em
        zeros = em.constant(0, em.vector(4, em.i32))
        for copy in range(copies if self.padding else 0):

            def clear(row: ir.Value, _: list[ir.Value], first: int = self.start + copy * distance) -> tuple[()]:
                at = code.add(code.mul(code.narrow(row), self.pitch), first + self.pieces * PIECE)
                for piece in range(self.padding):
                    code.store(zeros, code.add(at, piece * PIECE), PIECE)
                return ()

            em.loop(code.index(thread), em.number(self.rows), threads, clear)


class RowCopies:
    """How threads share the rows of a tile, in pieces.

    Attributes:
        row: the first row that a thread has.
        byte: where in its rows a thread begins.
    """

    def __init__(self, code: WarpCode, tile: RowTile, thread: ir.Value, threads: int):
        self.code, self.tile = code, tile
        self._across = max(n for n in range(1, threads + 1) if tile.pieces % n == 0)
        self._at_once = threads // self._across
        used = self._at_once * self._across
        pieces = code.number(self._across)
        self.row = code.em.op("arith.divui", [thread, pieces], code.em.i32)
        self.byte = code.mul(code.em.op("arith.remui", [thread, pieces], code.em.i32), PIECE)
        self._target = code.add(code.add(code.mul(self.row, tile.pitch), self.byte), tile.start)
        self._is_used = None if used == threads else code.em.compare("ult", thread, code.number(used))

    def start(
        self, stage: ir.Value, source: Callable[[int], ir.Value], rows: ir.Value, wants: Callable[[int], ir.Value] | None = None
    ) -> None:
        """Begins to copy.

        Args:
            stage: where the tile's stage begins.
            source: the address of the thread's piece of the row that is so many behind its first one, as an index.
            rows: how many rows there are, in 32 bits.
            wants: whether anybody wants that row: others become zeros, too.
        """
        code, em = self.code, self.code.em
        target, left = code.add(stage, self._target), em.op("arith.subi", [rows, self.row], em.i32)
        for first in range(0, self.tile.rows, self._at_once):

            def copy(first: int = first) -> None:
                exists = em.compare("sgt", left, code.number(first))
                if wants is not None:
                    exists = em.op("arith.andi", [exists, wants(first)], em.i1)
                valid = em.op("arith.select", [exists, code.number(PIECE), code.number(0)], em.i32)
                address = source(first)
                for byte in range(0, self.tile.pieces * PIECE, self._across * PIECE):
                    there = code.global_pointer(em.add(address, em.number(byte)))
                    code.copy(code.add(target, first * self.tile.pitch + byte), there, PIECE, valid)

            inside = self._is_used
            if first + self._at_once > self.tile.rows:
                there = em.compare("ult", self.row, code.number(self.tile.rows - first))
                inside = there if inside is None else em.op("arith.andi", [there, inside], em.i1)
            if inside is None:
                copy()
            else:
                em.only_when(inside, copy)
