"""The sums of one tile by an instruction that multiplies pairs of neighbours and adds both products to a sum.

With bf16 packed as ``B[n floordiv 32, k floordiv 2, n mod 32, k mod 2]``::

    for k step 2 { 8 pairs of A, each in every lane; 2 vectors of 16 pairs of B; 16 dot products }

Of an odd number of rows the last has a zero beside it in B, and gets another one in A. Products are exact; the instructions
round each sum on their own and take numbers below the normal ones for zero, whatever the mode of the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .....dialect.bindings import ir
from .operand_loads import OperandLoads
from .prefetch import Prefetch
from .tile_place import TilePlace

__all__ = ["DotSums"]

# Bytes of an element.
_BYTES = 2


class DotSums:
    """Builds the sums of tiles, from even steps of k on."""

    def __init__(self, loads: OperandLoads):
        self.contraction, self.emitter, self.plan = loads.contraction, loads.emitter, loads.plan
        self.loads, self.memory, self.width = loads, loads.memory, loads.width
        self.prefetch = Prefetch(self.contraction, loads.fetched(), self.emitter, self.memory, self.plan)
        (self.left,), (self.right,) = self.contraction.left.operands, self.contraction.right.operands
        # Elements between two pairs of rows.
        self.stride = 2 * ir.MemRefType(self.right.value.type).shape[-2]

    def accumulate(self, place: TilePlace, start: Sequence[ir.Value]) -> list[ir.Value]:
        """Adds the products of the tile's steps of k; several copies of few accumulators make additions overlap."""
        em, count = self.emitter, len(start)
        _, copies = self._unroll(len(place.rows), len(place.columns), count)
        carried = [*start, *[em.constant(0, start[0].type)] * (count * (copies - 1))]
        carried = self._outer(self.contraction.outer, place, carried, count)
        totals = carried[:count]
        for c in range(1, copies):
            more = carried[c * count : (c + 1) * count]
            totals = [em.op("arith.addf", [a, b], a.type) for a, b in zip(totals, more, strict=True)]
        return totals

    def _outer(self, dims: Sequence[int], place: TilePlace, carried: Sequence[ir.Value], count: int) -> list[ir.Value]:
        """The loops over all reductions but the last one."""
        if not dims:
            return self._inner(place, carried, count)
        em, (first, *inner) = self.emitter, dims
        size = self.memory.size(self.contraction.nest.extents[first])

        def step(i: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self._outer(inner, replace(place, rows=[row.at(first, i) for row in place.rows]), sums, count)

        return em.loop(em.number(0), size, 1, step, carried)

    def _inner(self, place: TilePlace, carried: Sequence[ir.Value], count: int) -> list[ir.Value]:
        """The loop over pairs, several in an iteration; the first copy takes what is left over."""
        em, memory, rows = self.emitter, self.memory, place.rows
        several, copies = self._unroll(len(rows), len(place.columns), count)
        share, steps = place.share, place.steps
        k, zero, depth = self.contraction.k, em.number(0), steps.count.static
        assert depth is not None
        left = [memory.index(self.left.offset, row.at(k, zero)) for row in rows]
        n, first = self.contraction.n, rows[0].at(k, zero)
        right = [memory.index(self.right.offset, first.at(n, column, self.width)) for column, _ in place.columns]
        fetches = not share.of and self.plan.fetches(len(rows))

        def step(pair: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            result = list(sums)
            if share.of:
                self.prefetch.next_panel(place, em.mul(pair, em.number(2)), 2 * several)
            for i in range(several):
                own = slice(i % copies * count, (i % copies + 1) * count)
                at = em.add(pair, em.number(i)) if i else pair
                vectors = self._vectors(right, at, fetch=fetches)
                result[own] = self._dots([self._pair(base, at) for base in left], vectors, result[own])
            return result

        def one(pair: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self._dots([self._pair(base, pair) for base in left], self._vectors(right, pair), sums)

        pairs = depth // 2
        whole = pairs // several * several
        begin = em.op("arith.shrui", [steps.first, em.number(1)], em.index)
        middle, end = em.add(begin, em.number(whole)), em.add(begin, em.number(pairs))
        if whole:
            carried = em.loop(begin, middle, several, step, carried)
        first_copy, others = list(carried[:count]), carried[count:]
        if pairs > whole:
            first_copy = em.loop(middle, end, 1, one, first_copy)
        if depth % 2:
            first_copy = self._dots([self._last(base, end) for base in left], self._vectors(right, end), first_copy)
        return [*first_copy, *others]

    def finished(self, place: TilePlace, start: Sequence[ir.Value], products: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums of all products, which are there, and of what they start from."""
        del place
        return [self.emitter.op("arith.addf", [a, b], a.type) for a, b in zip(start, products, strict=True)]

    def _unroll(self, rows: int, columns: int, sums: int) -> tuple[int, int]:
        """Pairs of rows in an iteration, and copies of accumulators; few rows read the plan's bytes in an iteration."""
        copies = self.plan.copies(sums)
        if self.plan.fetches(rows):
            return max(self.plan.unroll, copies), copies
        several = max(1, self.plan.stream_bytes // (2 * _BYTES * self.width * columns))
        return several, min(copies, several)

    def _vectors(self, bases: Sequence[ir.Value], pair: ir.Value, *, fetch: bool = False) -> list[ir.Value]:
        """Pairs of the right factor, one per lane."""
        em, buffer = self.emitter, self.right.buffer
        assert buffer is not None
        offset, result = em.mul(pair, em.number(self.stride)), list[ir.Value]()
        for base in bases:
            at = em.add(base, offset)
            if fetch and self.plan.fetch is not None:
                em.prefetch(buffer.flat, em.add(at, em.number(self.plan.fetch.bytes // _BYTES)))
            found = em.op("vector.load", [buffer.flat, at], em.vector(2 * self.width, buffer.stored))
            result.append(em.op("vector.bitcast", [found], em.vector(2 * self.width, buffer.element)))
        return result

    def _pair(self, base: ir.Value, pair: ir.Value) -> ir.Value:
        """A pair of the left factor in every lane."""
        em, buffer = self.emitter, self.left.buffer
        assert buffer is not None
        at = em.add(base, em.mul(pair, em.number(2)))
        two = em.op("vector.load", [buffer.flat, at], em.vector(2, buffer.stored))
        bits = em.op("vector.bitcast", [two], em.vector(1, em.i32))
        position = {"static_position": ir.DenseI64ArrayAttr.get([0], em.context)}
        return self._in_lanes(em.op("vector.extract", [bits], em.i32, position))

    def _last(self, base: ir.Value, pair: ir.Value) -> ir.Value:
        """The last element of an odd number, with a zero beside it."""
        em, buffer = self.emitter, self.left.buffer
        assert buffer is not None
        at = em.add(base, em.mul(pair, em.number(2)))
        return self._in_lanes(em.op("arith.extui", [em.op("memref.load", [buffer.flat, at], buffer.stored)], em.i32))

    def _in_lanes(self, bits: ir.Value) -> ir.Value:
        em, width = self.emitter, self.width
        assert self.left.buffer is not None
        return em.op("vector.bitcast", [em.broadcast(bits, width)], em.vector(2 * width, self.left.buffer.element))

    def _dots(self, left: Sequence[ir.Value], right: Sequence[ir.Value], sums: Sequence[ir.Value]) -> list[ir.Value]:
        em = self.emitter
        products = [(x, y) for x in left for y in right]
        name = self.plan.instruction
        return [em.intrinsic(name, [total, x, y], total.type) for total, (x, y) in zip(sums, products, strict=True)]
