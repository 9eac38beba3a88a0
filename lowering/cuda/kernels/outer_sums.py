"""The template of reductions over outer loops: threads of a warp have neighbouring results, and warps share what is reduced.

Before::

    linalg.generic (i, j) -> (i, j), (j) {reduction, parallel}: out[j] += in[i, j]

after, one launch of blocks of 32 columns by 32 parts::

    total = 0;  for i = part; i < rows; i += 32 { total += in[i, j] }         // a warp reads neighbours
    out[j] += sum of the parts' totals                                        // in shared memory
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of
from ....dialect.traversal import nested_operations
from ...kernels.emit.buffers import Buffers
from ...kernels.emit.memory import Memory, Point
from ...kernels.structure.combiners import COMBINERS, combiners
from ...kernels.structure.nest import Nest
from ...marks import CONTRACTION, ROWS
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .device_memory import DeviceMemory
from .host_code import HostCode
from .nest_code import NestCode, Terms, is_plain, read

__all__ = ["OuterPlan", "build_outer", "plan_outer"]

_COLUMNS, _PARTS = 32, 32


@dataclass(frozen=True)
class OuterPlan:
    """How a reduction over outer loops is computed.

    Attributes:
        fill: what sets the result before, if anything does.
        operation: the reduction.
        column: the loop along which results, and what they are made of, are contiguous.
        reduced: the loops that are reduced, outermost first.
    """

    fill: ir.Operation | None
    operation: ir.Operation
    column: int
    reduced: tuple[int, ...]

    def __str__(self) -> str:
        return f"outer columns={_COLUMNS} parts={_PARTS}"


def plan_outer(function: func.FuncOp, target: CudaTarget) -> OuterPlan | None:
    """The plan of a kernel function that reduces outer loops, None for others."""
    del target
    block = body_of(function)
    found = [op for op in nested_operations(function.operation) if op.name.startswith(("linalg.generic", "memref.", "scf."))]
    found = [op for op in found if op.name != "memref.dim"]
    top = [] if block is None else [op.operation for op in block.operations]
    if ROWS in function.attributes or not 0 < len(found) < 3 or any(op not in top or not is_plain(op) for op in found):
        return None
    *fill, operation = found
    nest = read(operation, Buffers(operation.location))
    if CONTRACTION in operation.attributes or (fill and not _fills(fill[0], operation)):
        return None
    column = _column(nest)
    is_sum = len(nest.outputs) == 1 and combiners(nest) is not None
    if column is None or not is_sum or str(nest.outputs[0].argument.type) not in ("f32", "i32"):
        return None
    return OuterPlan(fill[0] if fill else None, operation, column, tuple(d for d in nest.extents if d in nest.reductions))


def _fills(fill: ir.Operation, operation: ir.Operation) -> bool:
    """Whether an operation writes a number to the result of another one."""
    scalar = len(fill.operands) == 2 and not isinstance(fill.operands[0].type, ir.MemRefType)
    return scalar and fill.operands[1] == operation.operands[len(operation.operands) - 1]


def _column(nest: Nest) -> int | None:
    """The last loop that is no reduction, if the result and something that is read are contiguous along it."""
    parallel = [d for d in nest.extents if d not in nest.reductions]
    if not parallel or not nest.reductions:
        return None
    column, buffers = parallel[-1], [o for o in nest.inputs if o.buffer is not None]
    along = [o.offset.factor(column).static == 1 for o in buffers]
    return column if any(along) and all(o.offset.factor(column).static == 1 for o in nest.outputs) else None


def build_outer(code: HostCode, plan: OuterPlan, target: CudaTarget) -> None:
    """Puts the launch in the place of the operations."""
    del target
    with code.em.before(plan.operation):
        em, memory = code.em, Memory(code.em)
        nest = read(plan.operation, memory)
        columns = memory.size(nest.extents[plan.column])
        blocks = em.op("arith.ceildivui", [columns, em.number(_COLUMNS)], em.index)
        for dim, extent in nest.extents.items():
            blocks = blocks if dim == plan.column or dim in plan.reduced else em.mul(blocks, memory.size(extent))
        code.launch([blocks], [_COLUMNS, _PARTS], lambda device: _Thread(device, plan).build())
    for op in (plan.operation, plan.fill):
        if op is not None:
            op.erase()


class _Thread:
    """Builds what one thread does."""

    def __init__(self, device: DeviceCode, plan: OuterPlan):
        self.device, self.em, self.plan = device, device.em, plan
        self.memory = DeviceMemory(device)
        nest = read(plan.operation, self.memory)
        self.memory.prepare(nest.sizes())
        self.nest, self.code = nest, NestCode(self.em, nest, self.memory)
        self.start = None if plan.fill is None else self.memory.outside(plan.fill.operands[0])
        self.element = nest.outputs[0].argument.type
        found = combiners(nest)
        assert found is not None
        ((self.operation, term),) = found
        self.terms = Terms(self.code, self.operation, term)
        kind = ir.MemRefType.get([_PARTS, _COLUMNS], self.element, loc=self.em.location)
        self.shared = device.shared(kind)

    def _combine(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.em.clone(self.operation, [a, b], a.type)

    def build(self) -> None:
        em, lane, part = self.em, self.device.thread(), self.device.thread(1)
        size = self.memory.size(self.nest.extents[self.plan.column])
        point, column = self._point(size, lane)
        exists = em.compare("ult", column, size)
        neutral = em.constant(COMBINERS[self.operation.name].neutral_of(self.element), self.element)
        total = em.when(exists, lambda: [self._total(point, part, neutral)], lambda: [neutral], [self.element])[0]
        em.effect("memref.store", [total, self.shared, part, lane])
        self.device.barrier()
        first = em.op("arith.andi", [exists, em.compare("eq", part, em.number(0))], em.i1)
        em.only_when(first, lambda: self._finish(point, lane))

    def _point(self, size: ir.Value, lane: ir.Value) -> tuple[Point, ir.Value]:
        """The place of a result, and its column."""
        em, plan, rest = self.em, self.plan, self.device.block()
        blocks = em.op("arith.ceildivui", [size, em.number(_COLUMNS)], em.index)
        outer = [d for d in self.nest.extents if d != plan.column and d not in plan.reduced]
        point, number = Point(), rest
        if outer:
            rest = em.op("arith.divui", [number, blocks], em.index)
            number = em.sub(number, em.mul(rest, blocks))
        for dim in reversed(outer):
            count = self.memory.size(self.nest.extents[dim])
            quotient = em.op("arith.divui", [rest, count], em.index)
            point, rest = point.at(dim, em.sub(rest, em.mul(quotient, count))), quotient
        column = em.add(em.mul(number, em.number(_COLUMNS)), lane)
        return point.at(plan.column, column), column

    def _total(self, point: Point, part: ir.Value, neutral: ir.Value) -> ir.Value:
        """What a thread has of its part: every so many rows of the outermost loop that is reduced."""
        return self._reduced(point, list(self.plan.reduced), part, _PARTS, neutral)

    def _reduced(self, point: Point, dims: Sequence[int], first: ir.Value, step: int, start: ir.Value) -> ir.Value:
        if not dims:
            return self._combine(start, self.terms.build(point, {}))
        size = self.memory.size(self.nest.extents[dims[0]])
        zero = self.em.number(0)

        def body(i: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            return [self._reduced(point.at(dims[0], i), dims[1:], zero, 1, carried[0])]

        return self.em.loop(first, size, step, body, [start])[0]

    def _finish(self, point: Point, lane: ir.Value) -> None:
        em, output = self.em, self.nest.outputs[0]
        start = self.code.load(output, point) if self.start is None else self.start

        def body(part: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            return [self._combine(carried[0], em.op("memref.load", [self.shared, part, lane], self.element))]

        total = em.loop(em.number(0), em.number(_PARTS), 1, body, [start])[0]
        self.code.store(total, output, point)
