"""The template of reductions over outer loops, and of products of few rows: neighbours per thread, threads share the reduction.

Before::

    linalg.generic (i, j) -> (i, j), (j) {reduction, parallel}: out[j] += in[i, j]                             // bf16

after, one launch of blocks of 32 columns; four threads have these, eight each, and 64 such groups have every 64th row::

    total = 0;  for i = part; i < rows; i += 64 { total += (16 bytes of in[i, j..j+7]) }
    out[j..] += sum of the parts' totals                                           // by shuffles, then in shared memory

A product of few rows is one, too: the weight is read once, as it lies, and each thread has the sums of all rows. What follows a
reduction element by element is computed where its sums are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from ....dialect.bindings import func, ir
from ....dialect.struct_info import element_bytes
from ....dialect.traversal import erase_with_users
from ...kernels.emit.buffers import Buffers
from ...kernels.emit.memory import Lanes, Memory, Point
from ...kernels.structure.combiners import combiners
from ...kernels.structure.nest import Nest
from ...marks import CONTRACTION, ROWS
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .device_memory import DeviceMemory
from .host_code import HostCode
from .nest_code import Combined, NestCode, plain_operations, read
from .reduction import fills
from .shuffles import exchanged

__all__ = ["OuterPlan", "build_outer", "plan_outer"]

_WARP, _COLUMNS, _ACCESS = 32, 32, 16
# Threads of a block: of single columns more, as each has less in flight.
_THREADS, _THREADS_OF_ONE = 256, 1024
# Rows of a product whose sums a thread has; for more of them tensor cores pay.
_ROWS = 4
# Steps in an iteration, where their number is known to be a multiple: reads that are in flight together.
_UNROLL = 4


@dataclass(frozen=True)
class OuterPlan:
    """How a reduction is computed.

    Attributes:
        fill: what sets the result before, if anything does.
        operation: the reduction.
        epilogue: what is computed of its results, if anything is.
        column: the loop along which results, and what they are made of, are contiguous.
        rows: loops whose iterations a thread computes all, as what is read along the columns is the same for them.
        reduced: the loops that are reduced, outermost first.
        width: columns of a thread.
        unroll: steps of the outermost reduced loop that are taken together.
    """

    fill: ir.Operation | None
    operation: ir.Operation
    epilogue: ir.Operation | None
    column: int
    rows: tuple[int, ...]
    reduced: tuple[int, ...]
    width: int
    unroll: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return _THREADS if self.width > 1 else _THREADS_OF_ONE

    @property
    def across(self) -> int:
        """Threads along the columns of a block."""
        return _COLUMNS // self.width

    @property
    def parts(self) -> int:
        """Into how many a reduction is cut."""
        return self.threads // self.across

    def __str__(self) -> str:
        rows = f" rows={len(self.rows)}" if self.rows else ""
        return f"outer columns={_COLUMNS} width={self.width} parts={self.parts} unroll={self.unroll}{rows}"


def plan_outer(function: func.FuncOp, target: CudaTarget) -> OuterPlan | None:
    """The plan of a kernel function that reduces outer loops, or multiplies few rows; None for others."""
    del target
    found = plain_operations(function)
    reductions = [op for op in found if "reduction" in str(op.attributes["iterator_types"])]
    if ROWS in function.attributes or len(reductions) != 1:
        return None
    (operation,) = reductions
    at = found.index(operation)
    fill, epilogue = found[:at], found[at + 1 :]
    if len(fill) > 1 or len(epilogue) > 1 or not all(fills(op, operation) for op in fill):
        return None
    if epilogue and not _follows(epilogue[0], operation):
        return None
    return _planned(fill[0] if fill else None, operation, epilogue[0] if epilogue else None)


def _planned(fill: ir.Operation | None, operation: ir.Operation, epilogue: ir.Operation | None) -> OuterPlan | None:
    nest = read(operation, Buffers(operation.location), _parallel(operation))
    column = _column(nest)
    if column is None or len(nest.outputs) != 1 or combiners(nest) is None:
        return None
    if str(nest.outputs[0].argument.type) not in ("f32", "i32"):
        return None
    rows = _rows(nest, column) if CONTRACTION in operation.attributes else ()
    if rows is None:
        return None
    width = _width(nest, column)
    reduced = tuple(d for d in nest.extents if d in nest.reductions)
    steps, parts = nest.extents[reduced[0]].static, (_THREADS if width > 1 else _THREADS_OF_ONE) * width // _COLUMNS
    unroll = _UNROLL if steps is not None and steps % (parts * _UNROLL) == 0 and len(reduced) == 1 else 1
    return OuterPlan(fill, operation, epilogue, column, rows, reduced, width, unroll)


def _written(operation: ir.Operation) -> ir.Value:
    return operation.operands[len(operation.operands) - 1]


def _maps(operation: ir.Operation) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(operation.attributes["indexing_maps"])]


def _parallel(operation: ir.Operation) -> int:
    """How many loops are no reductions."""
    return str(operation.attributes["iterator_types"]).count("<parallel>")


def _follows(epilogue: ir.Operation, operation: ir.Operation) -> bool:
    """Whether an operation computes the elements of its result from those of another one at the same places, its own buffer."""
    rank, result = _parallel(operation), _written(operation)
    first = "".join(f"d{i}, " for i in range(rank)).rstrip(", ")
    own = not isinstance(result, ir.BlockArgument) and result.owner.name == "memref.alloc"
    kinds = [str(k) for k in ir.ArrayAttr(operation.attributes["iterator_types"])]
    leading = all("parallel" in k for k in kinds[:rank])
    written, after = _maps(operation)[-1], _maps(epilogue)
    places = [m for m, v in zip(after, epilogue.operands, strict=True) if v == result or v == _written(epilogue)]
    identical = all(str(m).endswith(f"-> ({first})") and m.n_dims == rank for m in places)
    return own and leading and str(written).endswith(f"-> ({first})") and identical and _written(epilogue) != result


def _column(nest: Nest) -> int | None:
    """The last loop that is no reduction, if the result and something that is read are contiguous along it."""
    parallel = [d for d in nest.extents if d not in nest.reductions]
    if not parallel or not nest.reductions:
        return None
    column, along = parallel[-1], list[bool]()
    for operand in nest.operands:
        if operand.buffer is not None:
            form = operand.offset.lanes(column, 2, {column: 2})
            along.append(form.contiguous)
    results = nest.outputs[0].offset.factor(column).static == 1 and not nest.outputs[0].offset.floors()
    return column if any(along[:-1]) and results else None


def _rows(nest: Nest, column: int) -> tuple[int, ...] | None:
    """The loops that what is read along the columns does not depend on; None where their iterations are too many."""
    inside = {d for o in nest.inputs if column in o.offset.dims() for d in o.offset.dims()}
    rows = tuple(d for d in nest.extents if d not in nest.reductions and d != column and d not in inside)
    counts = [nest.extents[d].static for d in rows]
    return rows if all(n is not None for n in counts) and prod(n or 1 for n in counts) <= _ROWS else None


def _width(nest: Nest, column: int) -> int:
    """Columns of a thread: 16 bytes of the narrowest operand that is contiguous, none of them beyond the last column."""
    extent = nest.extents[column].static
    inputs = [o for o in nest.inputs if o.buffer is not None and o.used and column in o.offset.dims()]
    sizes = [element_bytes(ir.MemRefType(o.value.type).element_type) for o in inputs]
    width = min(8, _ACCESS // min(sizes, default=_ACCESS))
    width = 1 if extent is None else gcd(width, extent)
    while width > 1 and not all(o.offset.lanes(column, width, {column: width}).contiguous for o in inputs):
        width //= 2
    return width


def build_outer(code: HostCode, plan: OuterPlan, target: CudaTarget) -> None:
    """Puts the launch in the place of the operations."""
    del target
    operations = [op for op in (plan.epilogue, plan.operation, plan.fill) if op is not None]
    with code.em.before(operations[0]):
        em, memory = code.em, Memory(code.em)
        nest = read(plan.operation, memory, _parallel(plan.operation))
        columns = memory.size(nest.extents[plan.column])
        blocks = em.op("arith.ceildivui", [columns, em.number(_COLUMNS)], em.index)
        for dim in _outer(nest, plan):
            blocks = em.mul(blocks, memory.size(nest.extents[dim]))
        code.launch([blocks], [plan.threads], lambda device: _Thread(device, plan).build())
    result = _written(plan.operation)
    for op in operations:
        op.erase()
    if plan.epilogue is not None:
        erase_with_users(result.owner.operation)


def _outer(nest: Nest, plan: OuterPlan) -> list[int]:
    """The loops whose iterations are blocks."""
    return [d for d in nest.extents if d != plan.column and d not in plan.reduced and d not in plan.rows]


class _Thread:
    """Builds what one thread does."""

    def __init__(self, device: DeviceCode, plan: OuterPlan):
        self.device, self.em, self.plan = device, device.em, plan
        own = () if plan.epilogue is None else (_written(plan.operation),)
        rank = _parallel(plan.operation)
        self.memory = DeviceMemory(device, own)
        self.nest = nest = read(plan.operation, self.memory, rank)
        after = None if plan.epilogue is None else read(plan.epilogue, self.memory, rank)
        for each in (nest, after):
            if each is not None:
                self.memory.prepare(each.sizes())
        self.code = NestCode(self.em, nest, self.memory)
        self.after = None if after is None else NestCode(self.em, after, self.memory)
        self.start = None if plan.fill is None else self.memory.outside(plan.fill.operands[0])
        combined = Combined(self.code)
        self.element, self.terms, self.neutral = combined.element, combined.terms, combined.neutral
        self._combine = combined.combine

    def _rows(self, point: Point, dims: Sequence[int] | None = None) -> Iterator[Point]:
        """The points of all rows at a point of the other loops."""
        dims = self.plan.rows if dims is None else dims
        if not dims:
            yield point
            return
        for i in range(self.nest.extents[dims[0]].static or 0):
            yield from self._rows(point.at(dims[0], self.em.number(i)), dims[1:])

    def build(self) -> None:
        em, plan = self.em, self.plan
        thread, across = self.device.thread(), em.number(plan.across)
        part, lane = (em.op(f"arith.{n}", [thread, across], em.index) for n in ("divui", "remui"))
        size = self.memory.size(self.nest.extents[plan.column])
        outer, first = self._block(size)
        column = em.add(first, em.mul(lane, em.number(plan.width)))
        exists = em.compare("ult", column, size)
        kind = em.vector(plan.width, self.element)
        start = [em.constant(self.neutral, kind) for _ in self._rows(Point())]
        point = outer.at(plan.column, column, plan.width).with_lanes(Lanes(plan.column, plan.width))
        totals = em.when(exists, lambda: self._totals(point, part, start), lambda: start, [kind] * len(start))
        self._share(totals, thread, lane, size, outer, first)

    def _block(self, size: ir.Value) -> tuple[Point, ir.Value]:
        """The block's place in the outer loops, and its first column."""
        em, number = self.em, self.device.block()
        point, outer = Point(), _outer(self.nest, self.plan)
        if outer:
            blocks = em.op("arith.ceildivui", [size, em.number(_COLUMNS)], em.index)
            rest = em.op("arith.divui", [number, blocks], em.index)
            number = em.sub(number, em.mul(rest, blocks))
            for dim in reversed(outer):
                count = self.memory.size(self.nest.extents[dim])
                quotient = em.op("arith.divui", [rest, count], em.index)
                point, rest = point.at(dim, em.sub(rest, em.mul(quotient, count))), quotient
        return point, em.mul(number, em.number(_COLUMNS))

    # -- a thread's part -------------------------------------------------------------------------------------------

    def _totals(self, point: Point, part: ir.Value, start: Sequence[ir.Value]) -> list[ir.Value]:
        """What a thread has of its part: some steps of the outermost loop that is reduced, of each row."""
        em, plan, (dim, *inner) = self.em, self.plan, self.plan.reduced
        size, step = self.memory.size(self.nest.extents[dim]), plan.parts

        def body(i: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            for number in range(plan.unroll):
                carried = self._step(point.at(dim, em.add(i, em.number(number * step))), inner, carried)
            return carried

        return em.loop(part, size, step * plan.unroll, body, start)

    def _step(self, point: Point, dims: Sequence[int], carried: list[ir.Value]) -> list[ir.Value]:
        if not dims:
            return [self._combine(c, self.terms.build(p, {})) for p, c in zip(self._rows(point), carried, strict=True)]
        size, zero = self.memory.size(self.nest.extents[dims[0]]), self.em.number(0)
        return self.em.loop(zero, size, 1, lambda i, c: self._step(point.at(dims[0], i), dims[1:], c), carried)

    # -- all parts -------------------------------------------------------------------------------------------------

    def _share(
        self, totals: Sequence[ir.Value], thread: ir.Value, lane: ir.Value, size: ir.Value, outer: Point, first: ir.Value
    ) -> None:
        """Parts of a warp by shuffles, warps in shared memory; then a thread for each column ends it."""
        em, plan = self.em, self.plan
        warps = plan.threads // _WARP
        shape = [len(totals) * warps, _COLUMNS]
        shared = self.device.shared(ir.MemRefType.get(shape, self.element, loc=em.location))
        warp, in_warp = (em.op(f"arith.{n}", [thread, em.number(_WARP)], em.index) for n in ("divui", "remui"))
        summed = [[self._shuffled(v) for v in self._elements(total)] for total in totals]

        def write() -> None:
            for row, elements in enumerate(summed):
                for i, value in enumerate(elements):
                    place = em.add(em.mul(lane, em.number(plan.width)), em.number(i))
                    em.effect("memref.store", [value, shared, em.add(warp, em.number(row * warps)), place])

        em.only_when(em.compare("ult", in_warp, em.number(plan.across)), write)
        self.device.barrier()
        column = em.add(first, thread)
        is_one = em.compare("ult", thread, em.number(_COLUMNS))
        exists = em.op("arith.andi", [is_one, em.compare("ult", column, size)], em.i1)
        em.only_when(exists, lambda: self._finish(outer.at(plan.column, column), thread, shared, warps))

    def _elements(self, vector: ir.Value) -> list[ir.Value]:
        return [self.em.lane(vector, i) for i in range(self.plan.width)]

    def _shuffled(self, value: ir.Value) -> ir.Value:
        """The values of a warp's threads that have the same columns combined."""
        distance = self.plan.across
        while distance < _WARP:
            value, distance = self._combine(value, exchanged(self.em, value, distance)), distance * 2
        return value

    def _finish(self, point: Point, column: ir.Value, shared: ir.Value, warps: int) -> None:
        for row, place in enumerate(self._rows(point)):
            value = self._summed(place, row * warps, column, shared, warps)
            if self.after is None:
                self.code.store(value, self.nest.outputs[0], place)
                continue
            known = {o.argument: value for o in self.after.nest.inputs if o.value == _written(self.plan.operation)}
            for made, operand in zip(self.after.values(place, known), self.after.nest.outputs, strict=True):
                self.after.store(made, operand, place)

    def _summed(self, place: Point, first: int, column: ir.Value, shared: ir.Value, warps: int) -> ir.Value:
        em = self.em
        start = self.code.load(self.nest.outputs[0], place) if self.start is None else self.start
        for warp in range(warps):
            value = em.op("memref.load", [shared, em.number(first + warp), column], self.element)
            start = self._combine(start, value)
        return start
