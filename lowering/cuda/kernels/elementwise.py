"""The template of elementwise kernels: each thread computes some neighbours, and reads and writes them as vectors of 16 bytes.

Before::

    linalg.generic (i, j) -> (i, j), (j): out[i, j] = in[i, j] + bias[j]       // bf16, rows of 768

after, one launch with a thread for every 8 elements::

    number = block * 256 + thread;  if number < rows * 96 { i = number / 96; j = 8 * (number % 96)
      out[i, j..j+7] = (16 bytes of in[i, j..]) + (16 bytes of bias[j..]) }

Where a row does not end with whole vectors its last thread computes elements one by one. Inputs that are broadcast are read as
they lie; what is contiguous along no loop of the results is computed one element per thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....dialect.bindings import func, ir
from ....dialect.functions import body_of
from ....dialect.struct_info import element_bytes
from ....dialect.traversal import nested_operations
from ...kernels.emit.buffers import Buffers
from ...kernels.emit.emitter import Emitter
from ...kernels.emit.linear_index import Size
from ...kernels.emit.memory import Lanes, Memory, Point
from ...kernels.structure.nest import Nest, Operand
from ...marks import CONTRACTION, ROWS
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .device_memory import DeviceMemory
from .host_code import HostCode
from .nest_code import NestCode, is_plain, read

__all__ = ["ElementwisePlan", "build_elementwise", "elementwise_plan", "only_operation", "plan_elementwise", "vector_loop"]

# Threads of a block. Eight blocks fill a multiprocessor of 2048 threads; with 16 bytes of each operand per thread, these have
# 32 KiB of reads in flight.
_THREADS = 256
#: Bytes of the widest access, and the most bytes of one operand that a thread holds.
_ACCESS, _HELD = 16, 64
_MEMORY = ("memref.load", "memref.store", "memref.copy", "memref.alloc", "memref.dealloc")


@dataclass(frozen=True)
class ElementwisePlan:
    """How an elementwise operation is computed.

    Attributes:
        operation: the operation.
        vector: the loop whose iterations a thread takes some of; None: a thread has one element.
        width: how many.
        threads: of a block.
    """

    operation: ir.Operation
    vector: int | None
    width: int
    threads: int = _THREADS

    def __str__(self) -> str:
        along = "" if self.vector is None else f" vector={self.vector}"
        return f"elementwise{along} width={self.width} threads={self.threads}"


def plan_elementwise(function: func.FuncOp, target: CudaTarget) -> ElementwisePlan | None:
    """The plan of a kernel function that is one elementwise operation, None for others."""
    del target
    op = only_operation(function)
    if op is None or ROWS in function.attributes or CONTRACTION in op.attributes or not is_plain(op):
        return None
    nest = read(op, Buffers(op.location))
    return None if nest.reductions or not nest.extents else elementwise_plan(op)


def elementwise_plan(op: ir.Operation) -> ElementwisePlan:
    """The plan of an elementwise operation."""
    nest = read(op, Buffers(op.location))
    vector = vector_loop(nest)
    return ElementwisePlan(op, vector, 1 if vector is None else _width(nest, vector))


def only_operation(function: func.FuncOp) -> ir.Operation | None:
    """The operation on buffers that is all that a function does; None where it does something else, too."""
    block = body_of(function)
    inside = [op for op in nested_operations(function.operation) if op.name.startswith(("linalg.generic", *_MEMORY))]
    top = [] if block is None else [op.operation for op in block.operations]
    return inside[0] if len(inside) == 1 and inside[0] in top else None


def vector_loop(nest: Nest) -> int | None:
    """The loop along which all results are contiguous, None where there is none."""
    for dim in reversed(list(nest.extents)):
        along = [o.offset for o in nest.outputs]
        inside = any(dim in f.inner.dims() for offset in along for f in offset.floors())
        if not inside and all(offset.factor(dim).static == 1 for offset in along):
            return dim
    return None


def _width(nest: Nest, vector: int) -> int:
    """Neighbours per thread: 16 bytes of the narrowest operand that is contiguous, and no more than there are."""
    sizes = [_bytes(o) for o in nest.operands if o.buffer is not None and o.offset.factor(vector).static == 1]
    width, extent = min(_ACCESS // min(sizes), _HELD // max(sizes)), nest.extents[vector].static
    while extent is not None and width > 1 and extent < width:
        width //= 2
    return max(1, width)


def _bytes(operand: Operand) -> int:
    return element_bytes(ir.MemRefType(operand.value.type).element_type)


def build_elementwise(code: HostCode, plan: ElementwisePlan, target: CudaTarget) -> None:
    """Puts the launch in the place of the operation."""
    del target
    op = plan.operation
    with code.em.before(op):
        memory = Memory(code.em)
        nest = read(op, memory)
        total = _product(code.em, _counts(code.em, memory, nest, plan))
        blocks = _ceildiv(code.em, total, plan.threads)
        code.launch([blocks], [plan.threads], lambda device: _Thread(device, plan).build())
    op.erase()


def _counts(em: Emitter, memory: Memory, nest: Nest, plan: ElementwisePlan) -> list[ir.Value]:
    """How many threads there are along each loop."""
    counts = list[ir.Value]()
    for dim, extent in nest.extents.items():
        size = memory.size(extent)
        counts.append(_ceildiv(em, size, plan.width) if dim == plan.vector and plan.width > 1 else size)
    return counts


def _ceildiv(em: Emitter, value: ir.Value, by: int) -> ir.Value:
    up = em.add(value, em.number(by - 1))
    return up if by == 1 else em.op("arith.divui", [up, em.number(by)], em.index)


def _product(em: Emitter, values: Sequence[ir.Value]) -> ir.Value:
    total = em.number(1)
    for value in values:
        total = em.mul(total, value)
    return total


class _Thread:
    """Builds what one thread does."""

    def __init__(self, device: DeviceCode, plan: ElementwisePlan):
        self.device, self.em, self.plan = device, device.em, plan
        self.memory = DeviceMemory(device)
        self.nest = read(plan.operation, self.memory)
        self.memory.prepare(self.nest.sizes())
        self.code = NestCode(self.em, self.nest, self.memory)

    def build(self) -> None:
        em = self.em
        counts = _counts(em, self.memory, self.nest, self.plan)
        number = em.add(em.mul(self.device.block(), em.number(self.plan.threads)), self.device.thread())
        em.only_when(em.compare("ult", number, _product(em, counts)), lambda: self._point(number, counts))

    def _point(self, number: ir.Value, counts: Sequence[ir.Value]) -> None:
        indices = dict(zip(self.nest.extents, self._indices(number, counts), strict=True))
        point = Point()
        for dim, index in indices.items():
            if dim != self.plan.vector:
                point = point.at(dim, index)
        if self.plan.vector is None:
            self._write(point)
        else:
            self._neighbours(point, self.plan.vector, indices[self.plan.vector])

    def _neighbours(self, point: Point, dim: int, index: ir.Value) -> None:
        em, width, extent = self.em, self.plan.width, self.nest.extents[dim]
        if width == 1:
            self._write(point.at(dim, index))
            return
        start = em.mul(index, em.number(width))
        whole = point.at(dim, start, width).with_lanes(Lanes(dim, width))
        if extent.static is not None and extent.static % width == 0:
            self._write(whole)
            return
        end, last = em.add(start, em.number(width)), self.memory.size(extent)
        fits = em.compare("ule", end, last)
        em.only_when(fits, lambda: self._write(whole))
        cut = em.op("arith.xori", [fits, em.constant(True, em.i1)], em.i1)
        em.only_when(cut, lambda: em.each(start, last, 1, lambda i: self._write(point.at(dim, i))))

    def _write(self, point: Point) -> None:
        for value, operand in zip(self.code.values(point, {}), self.nest.outputs, strict=True):
            self.code.store(value, operand, point)

    def _indices(self, number: ir.Value, counts: Sequence[ir.Value]) -> list[ir.Value]:
        """A number as indices, the last loop's fastest; in 32 bits where it is known that these suffice."""
        em, one = self.em, self.em.number(1)
        narrow = _fits_32_bits(self.nest.extents.values())
        rest = em.op("arith.index_castui", [number], em.i32) if narrow else number
        found = [em.number(0)] * len(counts)
        counted = [i for i, count in enumerate(counts) if count != one]
        for i in reversed(counted[1:]):
            count = em.op("arith.index_castui", [counts[i]], em.i32) if narrow else counts[i]
            quotient = em.op("arith.divui", [rest, count], rest.type)
            left = em.sub(rest, em.mul(quotient, count))
            found[i] = em.op("arith.index_castui", [left], em.index) if narrow else left
            rest = quotient
        if counted:
            found[counted[0]] = em.op("arith.index_castui", [rest], em.index) if narrow else rest
        return found


def _fits_32_bits(extents: Iterable[Size]) -> bool:
    total = 1
    for extent in extents:
        if extent.static is None:
            return False
        total *= extent.static
    return total < 2**31
