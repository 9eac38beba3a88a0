"""Lowers operations that share their rows: all of them on one row, one after another, then the next row.

Before::

    %m, %p = memref.alloc : memref<64xf32>, memref<64x768xf32>
    linalg.generic (i, j) -> (i, j), (i): m[i] = max(m[i], in[i, j])
    linalg.generic (i, j) -> (i, j), (i), (i, j): p[i, j] = exp(in[i, j] - m[i])
    ...

After::

    for i { %m, %p = memref.alloca : memref<1xf32>, memref<768xf32>; for j { ... }; for j step 16 { ... }; ... }

What reads a row for the last time asks for the next one: processors' own guesses end at a page, and start again with a row.
Buffers of the kernel's own hold one row, of each thread's; one of the result's type may be the row of the result itself.
:mod:`relaxir.lowering.fusion.row_groups` decides what comes together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .....dialect.bindings import ir
from .....dialect.errors import RelaxError
from ....kernels.emit.emitter import Emitter, LoopWork
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.combiners import element_bits
from ....kernels.structure.nest import Nest, Operand, collapse, read_nest
from ....target import Target
from .generic_loops import SHARED_AT_LEAST, Loops
from .nest_plan import NestPlan
from .plan_loops import checked_nest_plan

__all__ = ["lower_rows"]

# Bytes of a row of which the next one is asked for. Softmax of 1024 x 1024 f32 on an Emerald Rapids takes 0.50 ns an element
# with it, 0.62 without, of 1024 x 4096 0.48 and 0.60; what is in a cache takes the same.
_ASKED = range(1 << 10, 1 << 16)


def lower_rows(operations: Sequence[ir.Operation], rows: int, emitter: Emitter, target: Target) -> None:
    """Replaces the operations of a kernel, and the buffers between them, by one loop nest over the rows.

    Raises:
        RelaxError: a buffer's row has no static size; the function is then left half lowered.
    """
    _Rows(operations, rows, emitter, target).build()


class _Rows:
    """One kernel of several operations; the last one writes its result."""

    def __init__(self, operations: Sequence[ir.Operation], rows: int, emitter: Emitter, target: Target):
        self.operations, self.rows, self.emitter, self.target = operations, rows, emitter, target
        self.out = _output(operations[-1])
        self.own = [v for v in dict.fromkeys(map(_output, operations)) if _is_own(v)]

    def build(self) -> None:
        kept = next((v for v in self.own if self._fits_result(v)), None)
        if kept is not None:
            kept.replace_all_uses_with(self.out)
        with self.emitter.before(self.operations[-1]):
            sizes = Memory(self.emitter)
            extents = [sizes.extent(self.out, i, (0, i)) for i in range(self.rows)]
            sizes.prepare(extents)
            self._loop([(extent, sizes.size(extent)) for extent in extents], Point(), self._work())
        for operation in self.operations:
            operation.erase()
        for value in self.own:
            value.owner.operation.erase()

    def _fits_result(self, value: ir.Value) -> bool:
        """Whether a buffer may be the result's: the last operation reads each element just before it writes it."""
        last = self.operations[-1]
        if sum(_output(op) == self.out for op in self.operations) > 1:
            return False  # its first value is there already
        *maps, written = (ir.AffineMapAttr(m).value for m in ir.ArrayAttr(last.attributes["indexing_maps"]))
        kinds = ir.ArrayAttr(last.attributes["iterator_types"])
        read = [m for v, m in zip(list(last.operands)[:-1], maps, strict=True) if v == value]
        return value.type == self.out.type and all(m == written for m in read) and all("parallel" in str(k) for k in kinds)

    def _loop(self, sizes: Sequence[tuple[Size, ir.Value]], point: Point, work: LoopWork) -> None:
        if not sizes:
            self._row(point)
            return
        em, dim, ((extent, end), *rest) = self.emitter, self.rows - len(sizes), sizes

        def body(i: ir.Value) -> None:
            self._loop(rest, point.at(dim, i), work)

        if extent.static == 1:
            body(em.number(0))
        elif extent.static is not None and extent.static < SHARED_AT_LEAST:
            em.each(em.number(0), end, 1, body)
        else:
            em.shared(em.number(0), end, 1, body, work)

    def _row(self, point: Point) -> None:
        buffers = {v: (self._row_buffer(v), self.rows) for v in self.own if next(iter(v.uses), None) is not None}
        for operation in self.operations:
            self.emitter.location = operation.location
            memory = Memory(self.emitter, buffers)
            nest = collapse(read_nest(operation, memory), range(self.rows))
            plan = checked_nest_plan(nest, self.target, self.rows)
            Loops(nest, plan, self.emitter, memory, self._ahead(nest, plan)).build_row(point)

    def _ahead(self, nest: Nest, plan: NestPlan) -> list[Operand]:
        """What a nest that goes through a row in one loop reads for the last time, and others have read before."""
        if nest.reductions or len(plan.order) != self.rows + 1 or plan.vector != plan.order[-1]:
            return []
        return [o for o in nest.inputs if o.used and self._is_asked_for(o, nest, plan)]

    def _is_asked_for(self, operand: Operand, nest: Nest, plan: NestPlan) -> bool:
        row, vector = plan.order[-2:]
        if not isinstance(operand.value, ir.BlockArgument) or operand.buffer is None or row not in operand.offset.dims():
            return False
        length = nest.extents[vector].static or 0
        if operand.offset.factor(vector).static != 1 or length * element_bits(operand.buffer.element) // 8 not in _ASKED:
            return False
        place = self.operations.index(nest.operation)
        read = [_reads(op, operand.value) for op in self.operations]
        return any(read[:place]) and not any(read[place + 1 :])

    def _row_buffer(self, value: ir.Value) -> ir.Value:
        kind = ir.MemRefType(value.type)
        shape = list(kind.shape)[self.rows :]
        if ir.ShapedType.get_dynamic_size() in shape:
            raise RelaxError(f"expected rows of known size between operations of a kernel, got '{kind}'", self.emitter.location)
        return self.emitter.scratch(max(1, math.prod(shape)), kind.element_type)

    def _work(self) -> LoopWork:
        """The operations of all bodies, on the largest thing that is read or written."""
        values = [v for op in self.operations for v in op.operands if isinstance(v.type, ir.MemRefType) and not _is_own(v)]
        largest = max(values, key=lambda v: ir.MemRefType(v.type).rank)
        kind, em = ir.MemRefType(largest.type), self.emitter
        amount = sum(len(list(op.regions[0].blocks[0].operations)) - 1 for op in self.operations)
        sizes = [i for i in range(kind.rank) if kind.is_dynamic_dim(i)]
        amount *= math.prod(kind.shape[i] for i in range(kind.rank) if i not in sizes)
        return LoopWork(max(1, amount), tuple(em.op("memref.dim", [largest, em.number(i)], em.index) for i in sizes))


def _reads(operation: ir.Operation, value: ir.Value) -> bool:
    return value in list(operation.operands)[:-1]


def _output(operation: ir.Operation) -> ir.Value:
    return operation.operands[len(operation.operands) - 1]


def _is_own(value: ir.Value) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.name == "memref.alloc"
