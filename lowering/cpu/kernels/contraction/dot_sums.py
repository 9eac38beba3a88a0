"""The sums of one tile by an instruction that multiplies pairs of neighbours and adds both products to a sum.

With bf16 packed as ``B[n floordiv 32, k floordiv 2, n mod 32, k mod 2]``::

    for k step 2 { 8 pairs of A, each in every lane; 2 vectors of 16 pairs of B; 16 dot products }

Of an odd number of rows the last has a zero beside it in B, and gets another one in A. Products are exact; the instructions
round each sum on their own and take numbers below the normal ones for zero, whatever the mode of the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from .....dialect.bindings import ir
from .....dialect.errors import RelaxError
from .....dialect.packed_layout import EXAMPLE, PackedLayout
from ....fusion.linalg_queries import index_maps
from ....marks import LAYOUT
from ....target import Target
from ..emit.emitter import Emitter
from ..emit.memory import Point
from ..nest.nest import Operand
from .factor import Factor
from .match import Contraction
from .operand_loads import OperandLoads
from .shares import Column, Share, Steps

__all__ = ["DotSums"]

# Pairs of rows in one iteration, at least: four rows, as many as a loop over single rows takes.
_UNROLLED = 2
# How far ahead of what is read the right factor is fetched, in elements: 4 KiB, where tiles have so many rows. On Zen 4 8 rows
# of 4096 x 4096 take 0.95 of the time that they take with 2 KiB, and 4 rows without fetching 0.9.
_AHEAD, _FETCHING_ROWS = 2048, 5
# Bytes that an iteration reads for fewer rows: prefetchers follow few loads of short strides best. One row reads 0.94 of what
# memory gives on Zen 4, 0.86 with 512 bytes an iteration or by several panels at once.
_PER_ITERATION = 128


class DotSums:
    """Builds the sums of one tile.

    ``name`` is LLVM's name of the instruction.
    """

    def __init__(self, contraction: Contraction, loads: OperandLoads, emitter: Emitter, name: str):
        self.contraction, self.loads, self.emitter, self.name = contraction, loads, emitter, name
        (self.left,), (self.right,) = contraction.left.operands, contraction.right.operands
        # Elements between two pairs of rows.
        self.stride = 2 * ir.MemRefType(self.right.value.type).shape[-2]

    @staticmethod
    def of(contraction: Contraction, loads: OperandLoads, emitter: Emitter, target: Target) -> DotSums | None:
        """None where the target has no such instruction, or factors are not as it takes them."""
        dot, k = target.bf16_dot, contraction.k
        is_f32 = isinstance(loads.element, ir.F32Type)
        if dot is None or not is_f32 or contraction.outer or contraction.nest.extents[k].static is None:
            return None
        if not all(_is_bf16(f) for f in (contraction.left, contraction.right)):
            return None
        (left,), (right,) = contraction.left.operands, contraction.right.operands
        in_a_row = left.offset.factor(k).static == 1 and not any(k in f.inner.dims() for f in left.offset.floors())
        if not in_a_row or not _in_pairs(contraction, right, loads.width * loads.vectors):
            return None
        return DotSums(contraction, loads, emitter, dot.name)

    def accumulate(
        self,
        rows: Sequence[Point],
        columns: Sequence[Column],
        share: Share,
        start: Sequence[ir.Value],
        copies: int,
        steps: Steps,
    ) -> list[ir.Value]:
        """Adds the products of some steps of k to ``start``, from an even one on.

        ``copies`` is how many accumulators each sum has, so that additions overlap.
        """
        em, memory, count, several = self.emitter, self.loads.memory, len(start), max(_UNROLLED, copies)
        if len(rows) < _FETCHING_ROWS:
            several = max(1, _PER_ITERATION // (4 * self.loads.width * len(columns)))
            copies = min(copies, several)
        k, zero, depth = self.contraction.k, em.number(0), steps.count.static
        assert depth is not None
        left = [memory.index(self.left.offset, row.at(k, zero)) for row in rows]
        n, first = self.contraction.n, rows[0].at(k, zero)
        right = [memory.index(self.right.offset, first.at(n, column, self.loads.width)) for column, _ in columns]

        def step(pair: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            result = list(sums)
            if share.of:
                begin = em.mul(pair, em.number(2))
                self.loads.fetch_next(rows[0], columns[0][0], steps, begin, 2 * several, share)
            for i in range(several):
                own = slice(i % copies * count, (i % copies + 1) * count)
                at = em.add(pair, em.number(i)) if i else pair
                vectors = self._vectors(right, at, fetch=not share.of and len(rows) >= _FETCHING_ROWS)
                result[own] = self._dots([self._pair(base, at) for base in left], vectors, result[own])
            return result

        def one(pair: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self._dots([self._pair(base, pair) for base in left], self._vectors(right, pair), sums)

        pairs = depth // 2
        whole = pairs // several * several
        begin = em.op("arith.shrui", [steps.first, em.number(1)], em.index)
        middle, end = em.add(begin, em.number(whole)), em.add(begin, em.number(pairs))
        carried = [*start, *[em.constant(0, start[0].type)] * (count * (copies - 1))]
        if whole:
            carried = em.loop(begin, middle, several, step, carried)
        totals = carried[:count]
        for c in range(1, copies):
            more = carried[c * count : (c + 1) * count]
            totals = [em.op("arith.addf", [a, b], a.type) for a, b in zip(totals, more, strict=True)]
        if pairs > whole:
            totals = em.loop(middle, end, 1, one, totals)
        if depth % 2:
            totals = self._dots([self._last(base, end) for base in left], self._vectors(right, end), totals)
        return totals

    def _vectors(self, bases: Sequence[ir.Value], pair: ir.Value, *, fetch: bool = False) -> list[ir.Value]:
        """Pairs of the right factor, one per lane."""
        em, buffer = self.emitter, self.right.buffer
        assert buffer is not None
        offset, result = em.mul(pair, em.number(self.stride)), list[ir.Value]()
        for base in bases:
            at = em.add(base, offset)
            if fetch:
                em.prefetch(buffer.flat, em.add(at, em.number(_AHEAD)))
            found = em.op("vector.load", [buffer.flat, at], em.vector(2 * self.loads.width, buffer.stored))
            result.append(em.op("vector.bitcast", [found], em.vector(2 * self.loads.width, buffer.element)))
        return result

    def _pair(self, base: ir.Value, pair: ir.Value) -> ir.Value:
        """A pair of the left factor in every lane."""
        em, buffer = self.emitter, self.left.buffer
        assert buffer is not None
        at = em.add(base, em.mul(pair, em.number(2)))
        two = em.op("vector.load", [buffer.flat, at], em.vector(2, buffer.stored))
        bits = em.op("vector.bitcast", [two], em.vector(1, em.i32))
        position = {"static_position": ir.DenseI64ArrayAttr.get([0], em.context)}
        return self._spread(em.op("vector.extract", [bits], em.i32, position))

    def _last(self, base: ir.Value, pair: ir.Value) -> ir.Value:
        """The last element of an odd number, with a zero beside it."""
        em, buffer = self.emitter, self.left.buffer
        assert buffer is not None
        at = em.add(base, em.mul(pair, em.number(2)))
        return self._spread(em.op("arith.extui", [em.op("memref.load", [buffer.flat, at], buffer.stored)], em.i32))

    def _spread(self, bits: ir.Value) -> ir.Value:
        em, width = self.emitter, self.loads.width
        assert self.left.buffer is not None
        return em.op("vector.bitcast", [em.broadcast(bits, width)], em.vector(2 * width, self.left.buffer.element))

    def _dots(self, left: Sequence[ir.Value], right: Sequence[ir.Value], sums: Sequence[ir.Value]) -> list[ir.Value]:
        em = self.emitter
        products = [(x, y) for x in left for y in right]
        attributes = {
            "intrin": ir.StringAttr.get(self.name, em.context),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([], em.context),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 0], em.context),
        }
        return [
            em.op("llvm.call_intrinsic", [total, x, y], total.type, attributes)
            for total, (x, y) in zip(sums, products, strict=True)
        ]


def _is_bf16(factor: Factor) -> bool:
    """Whether it is an element of bf16, widened."""
    operations = [op.name for op in factor.operations]
    buffers = [o.buffer for o in factor.operands]
    return operations == ["arith.extf"] and all(b is not None and isinstance(b.element, ir.BF16Type) for b in buffers)


def _in_pairs(contraction: Contraction, operand: Operand, columns: int) -> bool:
    """Whether a right operand is packed in pairs of rows, and in panels that tiles of so many columns do not cross.

    Raises RelaxError where the operand is not read as the mark says that it is packed.
    """
    operation = contraction.nest.operation
    layout = _layout(operation)
    if layout is None or layout.rows != 2 or layout.tile % columns:
        return False
    place = next(i for i, value in enumerate(contraction.nest.inputs) if value.argument == operand.argument)
    map_ = index_maps(operation)[place]
    with operation.context:
        loops = [ir.AffineExpr.get_dim(d) for d in range(map_.n_dims)]
        where = {
            (k, n): layout.place(loops[k], loops[n], ir.AffineExpr.get_floor_div) for k, n in permutations(range(len(loops)), 2)
        }
    found = next((pair for pair, exprs in where.items() if list(map_.results)[-len(exprs) :] == exprs), None)
    if found is None:
        raise RelaxError(f"expected a right operand that is read as it is packed, '{layout}', got {map_}", operation.location)
    return found == (contraction.k, contraction.n)


def _layout(operation: ir.Operation) -> PackedLayout | None:
    """How the right-hand side is packed. Raises RelaxError at an operation that is marked with anything else."""
    if LAYOUT not in operation.attributes:
        return None
    try:
        return PackedLayout.parse(ir.StringAttr(operation.attributes[LAYOUT]).value)
    except (ValueError, RelaxError):
        raise RelaxError(
            f"expected {LAYOUT} such as {EXAMPLE}, got {operation.attributes[LAYOUT]}", operation.location
        ) from None
