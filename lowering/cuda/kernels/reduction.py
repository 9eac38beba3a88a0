"""Reductions of much to little: blocks that each combine a part of what one result is made of, then what combines the parts.

Before::

    linalg.generic (i, j) -> (i, j), (j), () {reduction, reduction}: out = min(out, in[i, j] * scale[j])

after, two launches, of 96 blocks and of one::

    total = inf;  for each run of 1024 neighbours that is this warp's { total = min(total, in[i, j..j+3] * scale[j..j+3]) }
    parts[block] = minimum of all threads' totals                                  // in shared memory
    out = min(out, minimum of parts)

A thread for each result, as other operations have one, would go through all of it alone. Which elements a thread combines does
not depend on when it runs: results are the same each time. Where one block is enough for a result there is one launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod

from ....dialect.bindings import func, ir
from ....dialect.struct_info import element_bytes
from ...kernels.emit.buffers import Buffers
from ...kernels.emit.emitter import Emitter
from ...kernels.emit.memory import Lanes, Memory, Point
from ...kernels.structure.combiners import combiners
from ...kernels.structure.nest import Nest
from ...marks import CONTRACTION
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .device_memory import DeviceMemory
from .host_code import HostCode
from .nest_code import Combined, NestCode, is_plain, plain_operations, read
from .points import delinearized

__all__ = ["ReductionPlan", "build_reduction", "fills", "launch_reduction", "plan_reduction", "reduction_of"]

_WARP, _ACCESS = 32, 16
# Fewer elements a thread has combined before threads of a block have met.
_FEW = 64
# Results that make as many threads as a GPU has, whichever way each is computed.
_MANY = 4096
# Warps of a block, and steps of a warp through neighbours before it looks for where it goes on.
_WARPS, _STEPS = 8, 8
# Blocks that all results are cut into: two for each multiprocessor of the largest GPUs.
_BLOCKS = 256


@dataclass(frozen=True)
class ReductionPlan:
    """How an operation is computed.

    Attributes:
        operation: a ``linalg.generic`` with one result.
        inner: the loop that neighbouring threads share.
        outer: the other loops that are reduced.
        width: elements along the inner loop that a thread reads at once.
        parts: how many blocks a result has; None: sizes decide.
        warps: of a block.
    """

    operation: ir.Operation
    inner: int
    outer: tuple[int, ...]
    width: int
    parts: int | None
    warps: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return _WARP * self.warps

    @property
    def run(self) -> int:
        """Neighbours that a warp goes through."""
        return _WARP * self.width * _STEPS

    def __str__(self) -> str:
        return f"reduction parts={self.parts or 'any'} threads={self.threads} width={self.width}"


def plan_reduction(function: func.FuncOp, target: CudaTarget) -> ReductionPlan | None:
    """The plan of a kernel function that is one reduction, with what fills its result at most; None for others."""
    del target
    found = plain_operations(function)
    if not found or (len(found) == 2 and not fills(found[0], found[1])) or len(found) > 2:
        return None
    return reduction_of(found[-1])


def build_reduction(code: HostCode, plan: ReductionPlan, target: CudaTarget) -> None:
    """Puts the launches in the place of the operations."""
    del target
    first = plain_operations(code.function)[0]
    launch_reduction(code, plan, None if first == plan.operation else first)


def reduction_of(operation: ir.Operation) -> ReductionPlan | None:
    """How an operation on buffers is reduced by blocks; None where a thread for each result is as good."""
    if not is_plain(operation):
        return None
    nest = read(operation, Buffers(operation.location))
    if len(nest.outputs) != 1 or combiners(nest) is None:
        return None
    depth, results = (_known(nest, d) for d in (_reduced(nest), _parallel(nest)))
    if depth is not None and depth < _FEW:
        return None
    inner, width = _inner(nest)
    is_far = width == 0 or CONTRACTION in operation.attributes  # threads of neighbouring results read neighbours instead
    if is_far and (results is None or results >= _MANY):
        return None
    outer = tuple(d for d in _reduced(nest) if d != inner)
    plan = ReductionPlan(operation, inner, outer, max(1, width), None, _WARPS)
    if depth is None or results is None:
        return plan
    runs = prod(_known(nest, [d]) or 0 for d in outer) * -(-(_known(nest, [inner]) or 0) // plan.run)
    warps = next(n for n in (1, 2, 4, _WARPS) if n >= min(runs, _WARPS))
    parts = max(1, min(runs // warps, _BLOCKS // max(1, results)))
    return ReductionPlan(operation, inner, outer, plan.width, parts, warps)


def _reduced(nest: Nest) -> list[int]:
    return [d for d in nest.extents if d in nest.reductions]


def _parallel(nest: Nest) -> list[int]:
    return [d for d in nest.extents if d not in nest.reductions]


def _known(nest: Nest, dims: Sequence[int]) -> int | None:
    """The iterations of some loops together, if types say them."""
    sizes = [nest.extents[d].static for d in dims]
    return None if None in sizes else prod(n or 0 for n in sizes)


def _inner(nest: Nest) -> tuple[int, int]:
    """The loop that threads share, and how many elements along it each reads at once; 0: no buffer is contiguous along one."""
    dims = _reduced(nest)
    found = [(_width(nest, d), d) for d in dims]
    width, inner = max(found)
    return (inner, width) if width else (dims[-1], 0)


def _width(nest: Nest, dim: int) -> int:
    """Elements along a loop: 16 bytes of the widest operand that is contiguous, none beyond the last; 0: none is contiguous."""
    read_along = [o for o in nest.inputs if o.buffer is not None and o.used and dim in o.offset.dims()]
    near = [o for o in read_along if o.offset.lanes(dim, 2, {dim: 2}).contiguous]
    if not near:
        return 0
    width = _ACCESS // max(element_bytes(ir.MemRefType(o.value.type).element_type) for o in near)
    extent = nest.extents[dim].static
    width = 1 if extent is None or len(near) < len(read_along) else gcd(width, extent)
    while width > 1 and not all(o.offset.lanes(dim, width, {dim: width}).contiguous for o in near):
        width //= 2
    return width


def fills(fill: ir.Operation, operation: ir.Operation) -> bool:
    """Whether an operation writes a number to all of the result of another one."""
    is_scalar = len(fill.operands) == 2 and not isinstance(fill.operands[0].type, ir.MemRefType)
    return is_scalar and is_plain(fill) and fill.operands[1] == operation.operands[len(operation.operands) - 1]


def launch_reduction(code: HostCode, plan: ReductionPlan, fill: ir.Operation | None) -> None:
    """Puts launches in the place of the operation, and of what fills its result in front of it; both are erased."""
    em = code.em
    with em.before(plan.operation):
        memory = Memory(em)
        nest = read(plan.operation, memory)
        results = _product(em, [memory.size(nest.extents[d]) for d in _parallel(nest)])
        parts = em.number(plan.parts) if plan.parts is not None else _parts(em, memory, nest, plan, results)
        if plan.parts == 1:
            code.launch([results], [plan.threads], lambda device: _Block(device, plan, fill).build())
        else:
            # As many as there can be, whatever the sizes: the arena has room for sums of sizes, not for what decides the parts.
            most = em.mul(results, parts) if plan.parts is not None else em.add(results, em.number(_BLOCKS))
            sums = _allocated(em, most, nest.outputs[0].argument.type)
            blocks = em.mul(results, parts)
            code.launch([blocks], [plan.threads], lambda device: _Block(device, plan, fill).build_part(sums, parts))
            code.launch([results], [plan.threads], lambda device: _Block(device, plan, fill).build_total(sums, parts))
    for op in (plan.operation, fill):
        if op is not None:
            op.erase()


def _parts(em: Emitter, memory: Memory, nest: Nest, plan: ReductionPlan, results: ir.Value) -> ir.Value:
    """How many blocks a result has: as many as have something to do, and not more than are at work at once."""
    runs = _runs(em, memory, nest, plan)
    busy = em.op("arith.divui", [runs, em.number(plan.warps)], em.index)
    free = em.op("arith.divui", [em.number(_BLOCKS), em.op("arith.maxui", [results, em.number(1)], em.index)], em.index)
    return em.op("arith.maxui", [em.op("arith.minui", [busy, free], em.index), em.number(1)], em.index)


def _runs(em: Emitter, memory: Memory, nest: Nest, plan: ReductionPlan) -> ir.Value:
    """How many runs of neighbours a result is made of."""
    return em.mul(
        _product(em, [memory.size(nest.extents[d]) for d in plan.outer]),
        _runs_along(em, memory.size(nest.extents[plan.inner]), plan),
    )


def _runs_along(em: Emitter, size: ir.Value, plan: ReductionPlan) -> ir.Value:
    return em.op("arith.ceildivui", [size, em.number(plan.run)], em.index)


def _allocated(em: Emitter, count: ir.Value, element: ir.Type) -> ir.Value:
    with em.context, em.location:
        kind = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], element)
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0])}
    return em.op("memref.alloc", [count], kind, segments)


def _product(em: Emitter, sizes: Sequence[ir.Value]) -> ir.Value:
    total = em.number(1)
    for size in sizes:
        total = em.mul(total, size)
    return total


class _Block:
    """Builds what a thread does in each of the kernels."""

    def __init__(self, device: DeviceCode, plan: ReductionPlan, fill: ir.Operation | None):
        self.device, self.em, self.plan = device, device.em, plan
        self.memory = DeviceMemory(device)
        self.nest = nest = read(plan.operation, self.memory)
        self.memory.prepare(nest.sizes())
        self.code = NestCode(self.em, nest, self.memory)
        self.start = None if fill is None else self.memory.outside(fill.operands[0])
        combined = Combined(self.code)
        self.element, self.terms, self.neutral = combined.element, combined.terms, combined.neutral
        self._combine = combined.combine

    def build(self) -> None:
        """All of a result."""
        em = self.em
        result = self.device.block()
        total = self._met(self._combined(self._at(result), em.number(0), em.number(1)))
        self._by_one(lambda: self._write(result, total()))

    def build_part(self, sums: ir.Value, parts: ir.Value) -> None:
        """A part of a result, to its place among all parts."""
        em, number, count = self.em, self.device.block(), self.device.value(parts)
        result, part = (em.op(f"arith.{n}", [number, count], em.index) for n in ("divui", "remui"))
        total = self._met(self._combined(self._at(result), part, count))
        self._by_one(lambda: em.effect("memref.store", [total(), self.device.value(sums), number]))

    def build_total(self, sums: ir.Value, parts: ir.Value) -> None:
        """A result of its parts."""
        em, result, count, source = self.em, self.device.block(), self.device.value(parts), self.device.value(sums)
        first = em.mul(result, count)

        def step(i: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
            return [self._combine(carried[0], em.op("memref.load", [source, em.add(first, i)], self.element))]

        neutral = em.constant(self.neutral, self.element)
        (value,) = em.loop(self.device.thread(), count, self.plan.threads, step, [neutral])
        total = self._met(value)
        self._by_one(lambda: self._write(result, total()))

    def _by_one(self, write: Callable[[], object]) -> None:
        em = self.em
        em.only_when(em.compare("eq", self.device.thread(), em.number(0)), write)

    def _at(self, result: ir.Value) -> Point:
        """A result's place in the loops that are not reduced."""
        dims = _parallel(self.nest)
        return self._placed(Point(), dims, result)

    def _placed(self, point: Point, dims: Sequence[int], number: ir.Value) -> Point:
        extents = [self.memory.size(self.nest.extents[d]) for d in dims]
        for dim, index in zip(dims, delinearized(self.em, number, extents), strict=True):
            point = point.at(dim, index)
        return point

    def _write(self, result: ir.Value, total: ir.Value) -> None:
        point, output = self._at(result), self.nest.outputs[0]
        start = self.code.load(output, point) if self.start is None else self.start
        self.code.store(self._combine(start, total), output, point)

    # -- a thread's part -------------------------------------------------------------------------------------------

    def _combined(self, point: Point, part: ir.Value, parts: ir.Value) -> ir.Value:
        """What a thread has of a part: of each run that is its warp's, every 32nd access."""
        em, plan = self.em, self.plan
        warp = em.op("arith.divui", [self.device.thread(), em.number(_WARP)], em.index)
        first, stride = em.add(em.mul(part, em.number(plan.warps)), warp), em.mul(parts, em.number(plan.warps))
        size = self.memory.size(self.nest.extents[plan.inner])
        along = _runs_along(em, size, plan)
        total = _runs(em, self.memory, self.nest, plan)
        # The last warp of all begins before the stride's end: this is never below zero.
        rounds = em.op("arith.divui", [em.sub(em.sub(em.add(total, stride), first), em.number(1)), stride], em.index)

        def run(i: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
            number = em.add(first, em.mul(i, stride))
            where, place = (em.op(f"arith.{n}", [number, along], em.index) for n in ("divui", "remui"))
            return self._run(self._placed(point, plan.outer, where), place, size, carried)

        kind = em.vector(plan.width, self.element)
        (found,) = em.loop(em.number(0), rounds, 1, run, [em.constant(self.neutral, kind)])
        value = em.lane(found, 0)
        for i in range(1, plan.width):
            value = self._combine(value, em.lane(found, i))
        return value

    def _run(self, point: Point, number: ir.Value, size: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """A thread's accesses of a run."""
        em, plan = self.em, self.plan
        lane = em.op("arith.remui", [self.device.thread(), em.number(_WARP)], em.index)
        start = em.mul(number, em.number(plan.run))
        end = em.op("arith.minui", [em.add(start, em.number(plan.run)), size], em.index)

        def step(i: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
            at = point.at(plan.inner, i, plan.width).with_lanes(Lanes(plan.inner, plan.width))
            return [self._combine(carried[0], self.terms.build(at, {}))]

        return em.loop(em.add(start, em.mul(lane, em.number(plan.width))), end, _WARP * plan.width, step, carried)

    # -- a block's -------------------------------------------------------------------------------------------------

    def _met(self, value: ir.Value) -> Callable[[], ir.Value]:
        """The values of all threads of a block combined, for its first thread to ask for."""
        em, thread = self.em, self.device.thread()
        shared = self.device.shared(ir.MemRefType.get([self.plan.threads], self.element, loc=em.location))
        em.effect("memref.store", [value, shared, thread])
        distance = self.plan.threads // 2
        while distance:
            self.device.barrier()
            em.only_when(em.compare("ult", thread, em.number(distance)), lambda d=distance: self._take(shared, thread, d))
            distance //= 2
        return lambda: em.op("memref.load", [shared, thread], self.element)

    def _take(self, shared: ir.Value, thread: ir.Value, distance: int) -> None:
        em = self.em
        own, other = (em.op("memref.load", [shared, at], self.element) for at in (thread, em.add(thread, em.number(distance))))
        em.effect("memref.store", [self._combine(own, other), shared, thread])
