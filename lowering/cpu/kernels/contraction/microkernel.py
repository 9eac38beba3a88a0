"""One register tile of a contraction: accumulators for some rows and vectors of columns, summed over all reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .....dialect.bindings import ir
from ..emit.emitter import Emitter
from ..emit.memory import Point
from .dot_sums import DotSums
from .epilogue import Epilogue
from .grouped_sums import GroupedSums
from .integer_sums import IntegerSums
from .match import Contraction
from .operand_loads import OperandLoads
from .shares import Column, Share, Steps

__all__ = ["Microkernel"]

# Accumulators in flight that hide the latency of a fused multiply-add (4 cycles, 2 per cycle).
_IN_FLIGHT = 8
# Steps of k in one iteration: 128 rows of 768 x 3072 on Zen 3 take 0.94 of the time that they take one by one.
_UNROLLED = 4


@dataclass(frozen=True)
class _Tile:
    """Its rows, vectors of columns and share of what is fetched; how many copies of accumulators it has; its steps of k."""

    rows: Sequence[Point]
    columns: Sequence[Column]
    share: Share
    copies: int
    steps: Steps


class Microkernel:
    """Builds tiles of one contraction."""

    def __init__(
        self,
        contraction: Contraction,
        loads: OperandLoads,
        epilogue: Epilogue,
        emitter: Emitter,
        dots: DotSums | None = None,
        integers: IntegerSums | None = None,
    ):
        self.contraction, self.loads, self.epilogue, self.emitter = contraction, loads, epilogue, emitter
        self.dots, self.integers = dots, integers
        self.extents, self.memory = contraction.nest.extents, loads.memory

    def panels_at_once(self, rows: int, vectors: int) -> int:
        """Panels of so many vectors that fill the accumulators with so few rows; one where its steps of k are long."""
        if self.loads.is_wide():
            return 1
        holds = self.integers is not None and self.integers.holds_zeros
        return self.loads.vectors_at_once(_IN_FLIGHT // rows, holds) // vectors

    @property
    def takes_steps(self) -> bool:
        """Whether :meth:`sums` may be given some steps of k only; those of a factor that takes long are staged."""
        return self.integers is None and (self.dots is not None or self.loads.is_long() or not self.loads.has_groups)

    @property
    def stages_in_tiles(self) -> bool:
        """Whether the first tile of a panel can compute the right factor for the others, with :meth:`staging_sums`."""
        return self.dots is None and isinstance(self.loads.element, ir.FloatType)

    def tile(self, rows: Sequence[Point], columns: Sequence[Column], share: Share, is_staging: bool = False) -> None:
        """Accumulates in registers, then stores, through the epilogue if there is one."""
        points = [self.loads.column_point(row, column) for row in rows for column in columns]
        start = [self.epilogue.initial(point) for point in points]
        if len(rows) > 1:
            self.epilogue.fetch(points, len(columns))
        totals = self.staging_sums(rows, columns, start) if is_staging else self.sums(rows, columns, share, start)
        for point, total in zip(points, totals, strict=True):
            self.epilogue.store(total, point)

    def staging_sums(
        self,
        rows: Sequence[Point],
        columns: Sequence[Column],
        start: Sequence[ir.Value],
        steps: Steps | None = None,
        scratch: ir.Value | None = None,
    ) -> list[ir.Value]:
        """The same as :meth:`sums`, which leaves the right factor on the stack for the tiles that follow.

        Multiply-adds hide what computes it. 32 rows of 896 x 4864 on Zen 5, in times of f32, when the panel is computed first
        and so: int4 1.21 and 1.06, int8 per channel 1.38 and 1.05; 16 rows of int4 1.33 and 1.09.
        """
        vectors = [self.emitter.broadcast(value, self.loads.width) for value in start]
        return self.loads.stage(rows[0], columns, steps, rows, vectors, scratch)

    def sums(
        self,
        rows: Sequence[Point],
        columns: Sequence[Column],
        share: Share,
        start: Sequence[ir.Value],
        steps: Steps | None = None,
    ) -> list[ir.Value]:
        """Adds the products of some steps of k, or of all; several copies of few accumulators make additions overlap."""
        count, copies = len(start), max(1, _IN_FLIGHT // len(start))
        steps = steps or Steps(self.emitter.number(0), self.extents[self.contraction.k])
        if self.integers is not None:
            return self.integers.accumulate(rows, columns, start, copies)
        if self.dots is not None:
            return self.dots.accumulate(rows, columns, share, start, copies, steps)
        if self.loads.has_groups:
            copies = max(1, self.loads.vectors_at_once(_IN_FLIGHT) // len(start))
            fetches = self.loads.fetches(len(rows))
            return GroupedSums(self.contraction, self.loads, self.emitter, copies, fetches).accumulate(rows, columns, start)
        zero, in_pairs = self.emitter.constant(0, start[0].type), self.loads.takes_pairs(columns)
        start = self.emitter.separated(start) if in_pairs else start
        carried = [*start, *[zero] * (count * (copies - 1))]
        carried = self._outer(self.contraction.outer, _Tile(rows, columns, share, copies, steps), carried)
        totals = carried[:count]
        for c in range(1, copies):
            totals = [self._add(a, b) for a, b in zip(totals, carried[c * count : (c + 1) * count], strict=True)]
        return self.emitter.interleaved(totals) if in_pairs else totals

    def _outer(self, dims: Sequence[int], tile: _Tile, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The loops over all reductions but the last one."""
        if not dims:
            return self._inner(tile, carried)
        em, (first, *rest) = self.emitter, dims
        size = self.memory.size(self.extents[first])

        def step(i: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
            return self._outer(rest, replace(tile, rows=[row.at(first, i) for row in tile.rows]), accumulators)

        return em.loop(em.number(0), size, 1, step, carried)

    def _inner(self, tile: _Tile, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The loop over k, several steps at a time; the first copy takes what is left over."""
        em, count, several = self.emitter, len(carried) // tile.copies, max(_UNROLLED, tile.copies)
        first, static, size = tile.steps.first, tile.steps.count.static, self.memory.size(tile.steps.count)

        def step(k: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
            self._fetch(tile, k, several)
            result = list(accumulators)
            for i in range(several):
                own = slice(i % tile.copies * count, (i % tile.copies + 1) * count)
                result[own] = self._multiply_add(tile, em.add(k, em.number(i)) if i else k, result[own])
            return result

        whole = em.op("arith.andi", [size, em.number(-several)], em.index) if static is None else em.number(static & -several)
        middle = em.add(first, whole)
        carried = em.loop(first, middle, several, step, carried)
        if static is not None and static % several == 0:
            return carried
        left = em.loop(middle, em.add(first, size), 1, lambda k, sums: self._multiply_add(tile, k, sums), carried[:count])
        return [*left, *carried[count:]]

    def _fetch(self, tile: _Tile, k: ir.Value, steps: int) -> None:
        """Asks for what will be read of a packed right operand."""
        loads, row = self.loads, tile.rows[0]
        if tile.share.of:
            loads.fetch_next(row, tile.columns[0][0], tile.steps, k, steps, tile.share)
        elif loads.fetches(len(tile.rows)):
            for i in range(steps):
                loads.fetch(row, tile.columns, self.emitter.add(k, self.emitter.number(i)), i)

    def _multiply_add(self, tile: _Tile, k: ir.Value, accumulators: Sequence[ir.Value]) -> list[ir.Value]:
        """One step of k on the whole tile."""
        k_dim, result = self.contraction.k, list[ir.Value]()
        right = self.loads.right(tile.rows[0].at(k_dim, k), tile.columns)
        for i, row in enumerate(tile.rows):
            left = self.loads.left(row.at(k_dim, k))
            for j, vector in enumerate(right):
                result.append(self._fma(left, vector, accumulators[i * len(tile.columns) + j]))
        return result

    def _fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        em = self.emitter
        if _is_float(c):
            return em.op("vector.fma", [a, b, c], c.type)
        return em.add(em.mul(a, b), c)

    def _add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.emitter.op("arith.addf", [a, b], a.type) if _is_float(a) else self.emitter.add(a, b)


def _is_float(value: ir.Value) -> bool:
    return isinstance(ir.VectorType(value.type).element_type, ir.FloatType)
