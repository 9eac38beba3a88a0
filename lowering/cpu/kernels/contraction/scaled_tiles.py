"""Sums of groups of integers, from registers to the stack, and from there, scaled, to the sums of all groups.

::

    for group { for 32 steps { products; some rows of sums += scale * those of the group before } }

There are two buffers: rows of one are added between the products that the other one is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .....dialect.bindings import ir
from ....kernels.emit.scalar_body import Environment
from .group_loads import GroupLoads
from .matrix_shape import TILE_ROWS, TILE_WORDS, WORD_BYTES
from .tile_registers import TileMemory

__all__ = ["ScaledTiles"]


class ScaledTiles:
    """The sums of one group in a register of rows by vectors of columns.

    ``apart`` are elements from one row of all sums to the next.
    """

    def __init__(self, groups: GroupLoads, vectors: int, apart: int):
        self.groups, self.emitter, self.vectors, self.apart = groups, groups.emitter, vectors, apart
        self.line = vectors * TILE_WORDS
        self.scratch = self.emitter.scratch(2 * TILE_ROWS * self.line, groups.element)

    def tiles(self, number: ir.Value) -> list[list[TileMemory]]:
        """Where registers leave the sums of a group, by its number."""
        em, begin = self.emitter, self._begin(number)
        stride = em.number(self.line * WORD_BYTES)
        firsts = [em.add(begin, em.number(j * TILE_WORDS)) for j in range(self.vectors)]
        return [[TileMemory(self.scratch, em.mul(first, em.number(WORD_BYTES)), stride) for first in firsts]]

    def _begin(self, number: ir.Value) -> ir.Value:
        em = self.emitter
        parity = em.op("arith.andi", [number, em.number(1)], em.index)
        return em.mul(parity, em.number(TILE_ROWS * self.line))

    def added(
        self,
        number: ir.Value,
        factors: Sequence[Environment],
        sums: tuple[ir.Value, ir.Value],
        row: ir.Value,
        rows: int,
    ) -> list[Callable[[], None]]:
        """Builds that add some rows of a group, to be called one after the other.

        Args:
            number: of the group.
            factors: what its sums take, of each vector of columns.
            sums: memory of all sums, and where the first row of the registers is.
            row, rows: the first one, and how many.
        """
        em, (memory, first) = self.emitter, sums
        to = em.add(first, em.mul(row, em.number(self.apart)))
        begin = em.add(self._begin(number), em.mul(row, em.number(self.line)))
        kind = em.vector(TILE_WORDS, self.groups.element)

        def one(i: int, j: int) -> None:
            at = em.add(to, em.number(i * self.apart + j * TILE_WORDS))
            there = em.add(begin, em.number(i * self.line + j * TILE_WORDS))
            of_group, total = (em.op("vector.load", [m, p], kind) for m, p in ((self.scratch, there), (memory, at)))
            em.effect("vector.store", [self.groups.added(total, of_group, factors[j], None), memory, at])

        return [partial(one, i, j) for i in range(rows) for j in range(self.vectors)]
