"""Tiles of a contraction whose products tile registers sum (Intel AMX), rows by rows behind that.

::

    for k step 64 { 2 tiles of 16 rows of A, 2 tiles of 16 columns of B: 4 times 16 x 16 x 64 products are added to 4 tiles }
    the 4 tiles, on the stack
    for row step 4 { out = epilogue(its sums, from the stack) }

Sums of parts of rows, which are scaled each, are all on the stack.

Products of bytes are exact. Those of bf16 are exact, too: the instruction adds up those of its even and those of its odd
elements, then both, then that to the sum; each addition rounds, and numbers below the normal ones are zero.
Tiles of few rows, which are left over, are summed in vectors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from .....dialect.bindings import ir
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Point
from ....kernels.structure.nest import Operand
from .contraction_plan import ContractionPlan
from .epilogue import FetchedEpilogue
from .matrix_shape import WORD_BYTES, MatrixFactors
from .microkernel import Microkernel, Sums
from .operand_loads import OperandLoads
from .tile_place import Share, Steps, TilePlace
from .tile_registers import Registers, TileMemory, TileRegisters
from .tuning import LINE

__all__ = ["MatrixMicrokernel"]

# The level of caches that the right factor is asked for in: a panel may be more than the first one holds.
_LEVEL = 2
# Where a tile asks for parts of its share: the processor reads ahead at each. bf16, Emerald Rapids, one thread, two by one:
# BERT-base 0.94, 128 rows of 2048 x 2048 from memory 0.93; four by one 0.97 and 0.96.
_PLACES = 2
# Rows whose epilogues are built together, which share what they read of columns.
_TOGETHER = 4


@runtime_checkable
class _Finished(Protocol):
    """A way to sum that takes sums of products which are there."""

    def finished(self, place: TilePlace, start: Sequence[ir.Value], products: Sequence[ir.Value]) -> list[ir.Value]:
        """What they become, with what sums start from."""
        ...


class MatrixMicrokernel(Microkernel):
    """Builds tiles of one contraction, those of enough rows by tile registers."""

    def __init__(self, loads: OperandLoads, epilogue: FetchedEpilogue, plan: ContractionPlan, factors: MatrixFactors):
        super().__init__(loads, epilogue)
        assert plan.matrix is not None
        self.plan, self.matrix, self.factors = plan, plan.matrix, factors
        self.emitter, self.memory, self.contraction = loads.emitter, loads.memory, loads.contraction
        #: Of sums of products: integers may be scaled only behind that.
        self.element = loads.emitter.i32 if factors.element_bytes == 1 else loads.element
        self.registers = TileRegisters(loads.emitter, factors.instruction)

    def tile(self, sums: Sums, place: TilePlace) -> None:
        """As :meth:`Microkernel.tile`."""
        if len(place.rows) < self.matrix.least:
            super().tile(sums, place)
            return
        assert isinstance(sums, _Finished)
        size, parts = len(place.rows) * len(place.columns) * self.loads.width, self._parts()
        scratch = self.emitter.scratch(size * len(parts), self.element)
        for i, part in enumerate(parts):
            self._products(self._part(place, part), scratch, i * size, i + 1 == len(parts))
        self._each_rows(len(place.rows), lambda first, count: self._finish(sums, place, scratch, first, count))

    def done(self) -> None:
        """Behind all tiles: what may be done once for several is."""
        self.registers.around_loops()

    # -- products ------------------------------------------------------------------------------------------------------

    def _parts(self) -> list[tuple[int, ...]]:
        """The places of all parts of rows, a single one where rows are in none."""
        return list(itertools.product(*(range(size) for _, size in self.factors.parts)))

    def _part(self, place: TilePlace, part: Sequence[int]) -> TilePlace:
        """A part of a tile's rows."""
        rows = place.rows
        for (dim, _), i in zip(self.factors.parts, part, strict=True):
            rows = [row.at(dim, self.emitter.number(i)) for row in rows]
        return replace(place, rows=rows)

    def _products(self, place: TilePlace, scratch: ir.Value, behind: int, is_last: bool) -> None:
        """Leaves the sums of a tile's products in memory, behind so many others; the last ones ask for what follows."""
        em, height = self.emitter, len(place.rows)
        heights = self.matrix.registers(height)
        held = Registers(heights, len(place.columns), self.matrix.words)
        begin = self.registers.begin(held)
        self.registers.empty(held)
        firsts = [sum(heights[:i]) for i in range(len(heights))]
        rows = [place.rows[first] for first in firsts]
        for dim in self.factors.inner:
            rows = [row.at(dim, em.number(0)) for row in rows]
        around = {*self.factors.inner, *(d for d, _ in self.factors.parts)}
        self._outer([d for d in self.contraction.outer if d not in around], rows, place, held, is_last)
        vector = self.loads.width * WORD_BYTES
        line = len(place.columns) * vector
        places = [[WORD_BYTES * behind + first * line + j * vector for j in range(held.vectors)] for first in firsts]
        tiles = [[TileMemory(scratch, em.number(place), em.number(line)) for place in row] for row in places]
        self.registers.store(held, tiles)
        self.registers.end(held, begin)

    def _outer(self, dims: Sequence[int], rows: Sequence[Point], place: TilePlace, held: Registers, fetches: bool) -> None:
        """The loops over all reductions but those whose steps are neighbours."""
        if not dims:
            self._inner(rows, place, held, fetches)
            return
        em, (first, *inner) = self.emitter, dims
        size = self.memory.size(self.contraction.nest.extents[first])
        em.each(em.number(0), size, 1, lambda i: self._outer(inner, [row.at(first, i) for row in rows], place, held, fetches))

    def _inner(self, rows: Sequence[Point], place: TilePlace, held: Registers, fetches: bool) -> None:
        em, memory, factors, n = self.emitter, self.memory, self.factors, self.contraction.n
        size, m = factors.element_bytes, self.contraction.m
        assert m is not None
        left = [em.mul(memory.index(factors.left.offset, row), em.number(size)) for row in rows]
        places = [rows[0].at(n, column, self.loads.width) for column, _ in place.columns]
        right = [em.mul(memory.index(factors.right.offset, point), em.number(size)) for point in places]
        stride = em.mul(memory.size(factors.left.offset.factor(m)), em.number(size))
        panel, ahead = em.number(factors.panel * WORD_BYTES), self._ahead(place, right) if fetches else None

        def step(word: ir.Value) -> None:
            if ahead is not None:
                self._fetch(ahead, word, max(1, place.share.of))
            along, down = em.mul(word, em.number(WORD_BYTES)), em.mul(word, panel)
            self.registers.multiply(
                held,
                [[TileMemory(self._memory(factors.left), em.add(base, along), stride)] for base in left],
                [[TileMemory(self._memory(factors.right), em.add(base, down), panel)] for base in right],
            )

        em.each(em.number(0), em.number(factors.words), self.matrix.words, step)

    def _ahead(self, place: TilePlace, right: Sequence[ir.Value]) -> ir.Value | None:
        """The first byte that a tile asks for: its share of the panel that follows, or what it reads itself soon."""
        em, share, factors = self.emitter, place.share, self.factors
        if len(factors.inner) + len(factors.parts) < len(self.contraction.outer) + 1:
            return None
        if not share.of:
            return em.add(right[0], em.number(self.plan.fetch.bytes)) if self.plan.fetch is not None else None
        size = factors.words * factors.panel * WORD_BYTES
        part = em.op("arith.andi", [share.number, em.number(share.of - 1)], em.index)
        return em.add(em.add(right[0], em.number(size)), em.mul(part, em.number(size // share.of // LINE * LINE)))

    def _fetch(self, ahead: ir.Value, word: ir.Value, shares: int) -> None:
        """Asks for as many lines as a step reads, or for its share of the next panel's, at two places."""
        em, size, panel = self.emitter, self.factors.element_bytes, self.factors.panel * WORD_BYTES
        lines = self.matrix.words * panel // shares // LINE
        places = _PLACES if shares > 1 and lines % _PLACES == 0 else 1
        apart = self.factors.words * panel // shares // places // LINE * LINE
        done = em.op("arith.divui", [em.mul(word, em.number(panel)), em.number(shares * places)], em.index)
        first = em.op("arith.divui", [em.add(ahead, done), em.number(size)], em.index)
        for line in range(lines):
            at = line // places * LINE + line % places * apart
            em.prefetch(self._memory(self.factors.right), em.add(first, em.number(at // size)), _LEVEL)

    @staticmethod
    def _memory(operand: Operand) -> ir.Value:
        assert operand.buffer is not None
        return operand.buffer.flat

    # -- sums ------------------------------------------------------------------------------------------------------------

    def _each_rows(self, height: int, build: Callable[[ir.Value, int], None]) -> None:
        em, whole = self.emitter, height // _TOGETHER * _TOGETHER
        if whole:
            em.each(em.number(0), em.number(whole), _TOGETHER, lambda first: build(first, _TOGETHER))
        if height > whole:
            build(em.number(whole), height - whole)

    def _some_rows(self, place: TilePlace, first: ir.Value, count: int) -> TilePlace:
        """Some rows of a tile, from the first one of the tile on."""
        em, m = self.emitter, self.contraction.m
        assert m is not None
        begin = em.add(place.rows[0].variables[m], first)
        rows = [place.rows[0].at(m, em.add(begin, em.number(i))) for i in range(count)]
        return TilePlace(rows, place.columns, Share(em.number(0), 0), Steps(em.number(0), Size.of(0)))

    def _finish(self, sums: _Finished, place: TilePlace, scratch: ir.Value, first: ir.Value, count: int) -> None:
        """What some rows' sums become, from the first one of the tile on."""
        em, width, columns = self.emitter, self.loads.width, len(place.columns)
        here = self._some_rows(place, first, count)
        kind = em.vector(width, self.element)
        at = em.mul(first, em.number(columns * width))
        totals = [self.epilogue.initial(point) for point in self.loads.column_points(here)]
        for i, part in enumerate(self._parts()):
            behind = i * len(place.rows) * columns
            places = [em.add(at, em.number((behind + j) * width)) for j in range(count * columns)]
            products = [em.op("vector.load", [scratch, p], kind) for p in places]
            totals = sums.finished(self._part(here, part), totals, products)
        self._store(here, totals)
