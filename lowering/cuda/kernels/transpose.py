"""Elementwise kernels whose inputs lie across: tiles go through shared memory, and both ways are of neighbours.

Before::

    linalg.generic (i, j) -> (j, i), (i, j), (i, j): out[i, j] = x[j, i] + y[i, j]

after, one launch with a block of 32 x 8 threads for each tile of 32 x 32 points::

    for k = 0 to 32 step 8 { tile[thread.y + k, thread.x] = x[j + thread.x of the tile, i + thread.y + k] }     // along i
    for k = 0 to 32 step 8 { out[i + thread.y + k, j + thread.x] = tile[thread.x, thread.y + k] + y[...] }      // along j

A row of a tile has one element more than is used, so that a column is in 32 banks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....dialect.bindings import func, ir
from ...kernels.emit.buffers import Buffers
from ...kernels.emit.emitter import Emitter
from ...kernels.emit.memory import Memory, Point
from ...kernels.structure.nest import Nest, Operand
from ...marks import CONTRACTION, ROWS
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .device_memory import DeviceMemory
from .elementwise import only_operation, vector_loop
from .host_code import HostCode
from .nest_code import NestCode, is_plain, read
from .points import delinearized

__all__ = ["TransposePlan", "build_transpose", "plan_transpose"]

_TILE, _ROWS = 32, 8
# Points that there are at least along both directions: a tile that is mostly empty moves less than its threads cost.
_FEW = 8


@dataclass(frozen=True)
class TransposePlan:
    """How an operation with inputs that lie across is computed.

    Attributes:
        operation: the operation.
        along: the loop along which the results are contiguous.
        across: that along which some inputs are.
    """

    operation: ir.Operation
    along: int
    across: int

    def __str__(self) -> str:
        return f"transpose along={self.along} across={self.across} tile={_TILE}x{_TILE}"


def plan_transpose(function: func.FuncOp, target: CudaTarget) -> TransposePlan | None:
    """The plan of a kernel function that is one elementwise operation some of whose inputs lie across, None for others."""
    del target
    op = only_operation(function)
    if op is None or ROWS in function.attributes or CONTRACTION in op.attributes or not is_plain(op):
        return None
    nest = read(op, Buffers(op.location))
    along = None if nest.reductions or len(nest.extents) < 2 else vector_loop(nest)
    if along is None:
        return None
    across = {d for operand in nest.inputs for d in _across(operand, nest, along)}
    if len(across) != 1 or any(_is_short(nest, d) for d in (along, *across)):
        return None
    return TransposePlan(op, along, *across)


def _across(operand: Operand, nest: Nest, along: int) -> list[int]:
    """The other loop along which an input is contiguous, where there is one."""
    if operand.buffer is None or not operand.used or operand.offset.floors() or along not in operand.offset.dims():
        return []
    return [d for d in nest.extents if d != along and operand.offset.factor(d).static == 1]


def _is_short(nest: Nest, dim: int) -> bool:
    extent = nest.extents[dim].static
    return extent is not None and extent < _FEW


def build_transpose(code: HostCode, plan: TransposePlan, target: CudaTarget) -> None:
    """Puts the launch in the place of the operation."""
    del target
    with code.em.before(plan.operation):
        memory = Memory(code.em)
        blocks = _product(code.em, _tiles(code.em, memory, read(plan.operation, memory), plan))
        code.launch([blocks], [_TILE, _ROWS], lambda device: _Block(device, plan).build())
    plan.operation.erase()


def _tiles(em: Emitter, memory: Memory, nest: Nest, plan: TransposePlan) -> list[ir.Value]:
    """How many blocks there are along each loop, of which that along the results is the fastest."""
    tiled = {d: em.op("arith.ceildivui", [memory.size(nest.extents[d]), em.number(_TILE)], em.index) for d in _tiled(plan)}
    return [*(memory.size(nest.extents[d]) for d in _others(nest, plan)), *tiled.values()]


def _tiled(plan: TransposePlan) -> tuple[int, int]:
    return plan.across, plan.along


def _others(nest: Nest, plan: TransposePlan) -> list[int]:
    return [d for d in nest.extents if d not in _tiled(plan)]


def _product(em: Emitter, values: Sequence[ir.Value]) -> ir.Value:
    total = em.number(1)
    for value in values:
        total = em.mul(total, value)
    return total


class _Block:
    """Builds what a block does."""

    def __init__(self, device: DeviceCode, plan: TransposePlan):
        self.device, self.em, self.plan = device, device.em, plan
        self.memory = DeviceMemory(device)
        self.nest = read(plan.operation, self.memory)
        self.memory.prepare(self.nest.sizes())
        self.code = NestCode(self.em, self.nest, self.memory)
        self.turned = [o for o in self.nest.inputs if _across(o, self.nest, plan.along)]

    def build(self) -> None:
        em, plan, device = self.em, self.plan, self.device
        indices = delinearized(em, device.block(), _tiles(em, self.memory, self.nest, plan))
        point, starts = Point(), [em.mul(i, em.number(_TILE)) for i in indices[-2:]]
        for dim, index in zip(_others(self.nest, plan), indices, strict=False):
            point = point.at(dim, index)
        across, along = starts
        column, row = device.thread(0), device.thread(1)
        tiles = [device.shared(ir.MemRefType.get([_TILE, _TILE + 1], o.argument.type, loc=em.location)) for o in self.turned]
        for first in range(0, _TILE, _ROWS):
            line = em.add(row, em.number(first))
            at = point.at(plan.across, em.add(across, column)).at(plan.along, em.add(along, line))
            self._inside(at, lambda line=line, at=at: self._read(tiles, line, column, at))
        device.barrier()
        for first in range(0, _TILE, _ROWS):
            line = em.add(row, em.number(first))
            at = point.at(plan.across, em.add(across, line)).at(plan.along, em.add(along, column))
            self._inside(at, lambda line=line, at=at: self._write(tiles, column, line, at))

    def _inside(self, point: Point, build: Callable[[], object]) -> None:
        em = self.em
        within = [em.compare("ult", point.variables[d], self.memory.size(self.nest.extents[d])) for d in _tiled(self.plan)]
        em.only_when(em.op("arith.andi", within, em.i1), build)

    def _read(self, tiles: Sequence[ir.Value], line: ir.Value, column: ir.Value, point: Point) -> None:
        for operand, tile in zip(self.turned, tiles, strict=True):
            self.em.effect("memref.store", [self.code.load(operand, point), tile, line, column])

    def _write(self, tiles: Sequence[ir.Value], line: ir.Value, column: ir.Value, point: Point) -> None:
        known = {
            operand.argument: self.em.op("memref.load", [tile, line, column], operand.argument.type)
            for operand, tile in zip(self.turned, tiles, strict=True)
        }
        for value, operand in zip(self.code.values(point, known), self.nest.outputs, strict=True):
            self.code.store(value, operand, point)
