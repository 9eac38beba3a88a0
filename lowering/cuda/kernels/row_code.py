"""Code of a kernel over rows: the operations of a row, one after the other, by threads that have its elements in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialect.bindings import ir
from ....dialect.traversal import erase_with_users
from ...kernels.emit.lane_math import Item
from ...kernels.emit.memory import Lanes, Memory, Point
from ...kernels.structure.combiners import COMBINERS, combiners
from ...kernels.structure.nest import Nest, Operand
from ..cuda_target import CudaTarget
from .device_code import DeviceCode
from .device_memory import DeviceMemory
from .host_code import HostCode
from .nest_code import NestCode, Terms, read
from .rows import WARP, RowsPlan, columns_of
from .shuffles import combined_by_warp

__all__ = ["build_rows"]

# What a thread may have of rows that are a warp's. Left alone the assembler stops at 40 in a kernel of ConvNeXt (rows of 192,
# sm_80), to have 48 warps at once in the place of 40, and spills two of 42. Where a row is a block's it spills nothing.
_REGISTERS = 48


class _RowCode:
    """Builds the kernel of one plan."""

    def __init__(self, device: DeviceCode, plan: RowsPlan):
        self.device, self.em, self.plan = device, device.em, plan
        self.memory = DeviceMemory(device, plan.own)
        nests = [read(op, self.memory, plan.rows) for op in plan.operations]
        for nest in nests:
            self.memory.prepare(nest.sizes())
        self.nests = [NestCode(self.em, nest, self.memory) for nest in nests]
        self.thread = self._index("remui", device.thread(), plan.threads) if plan.per_block > 1 else device.thread()
        # What is in registers: of a buffer between operations, or read already; one value, or one for each of a thread's parts.
        self.once: dict[object, ir.Value] = {}
        self.parts: dict[object, list[ir.Value]] = {}

    def _index(self, name: str, value: ir.Value, by: int) -> ir.Value:
        return self.em.op(f"arith.{name}", [value, self.em.number(by)], self.em.index)

    def build(self) -> None:
        em, plan = self.em, self.plan
        nest = self.nests[-1].nest
        counts = [self.memory.size(extent) for dim, extent in nest.extents.items() if dim < plan.rows]
        number = self.device.block()
        if plan.per_block == 1:
            self._row(number, counts)
            return
        number = em.add(em.mul(number, em.number(plan.per_block)), self._index("divui", self.device.thread(), plan.threads))
        total = em.number(1)
        for count in counts:
            total = em.mul(total, count)
        em.only_when(em.compare("ult", number, total), lambda: self._row(number, counts))

    def _row(self, number: ir.Value, counts: Sequence[ir.Value]) -> None:
        em, dims = self.em, [d for d in self.nests[-1].nest.extents if d < self.plan.rows]
        indices, rest = dict[int, ir.Value](), number
        for dim, count in reversed(list(zip(dims, counts, strict=True))[1:]):
            quotient = em.op("arith.divui", [rest, count], em.index)
            indices[dim], rest = em.sub(rest, em.mul(quotient, count)), quotient
        if dims:
            indices[dims[0]] = rest
        point = Point()
        for dim in dims:
            point = point.at(dim, indices[dim])
        for nest in self.nests:
            self._operation(nest, point)

    # -- operations ------------------------------------------------------------------------------------------------

    def _operation(self, code: NestCode, row: Point) -> None:
        nest = code.nest
        column, output = columns_of(nest, self.plan.rows), nest.outputs[0]
        if column is None:
            (value,) = code.values(row, self._known_once(nest))
            self._keep_once(code, output, value, row)
        elif nest.reductions:
            self._keep_once(code, output, self._reduced(code, column, row), row)
        elif self.plan.columns is None:
            self._each(column, nest, row, lambda point: code.store(self._values(code, point)[0], output, point))
        else:
            values = [self._part(code, column, row, i) for i in range(self.plan.parts)]
            if output.value in self.plan.own:
                self.parts[output.value] = values
                return
            for i, value in enumerate(values):
                self._guarded(i, self._point(column, row, i), lambda p, v=value: code.store(v, output, p))

    def _keep_once(self, code: NestCode, output: Operand, value: ir.Value, row: Point) -> None:
        """A value of the row: all threads know it, one writes it, if it is a result."""
        if output.value in self.plan.own:
            self.once[output.value] = value
            return
        self.once[output.value] = value
        first = self.em.compare("eq", self.thread, self.em.number(0))
        if self._is_final(code):
            self.em.only_when(first, lambda: code.store(value, output, row))

    def _is_final(self, code: NestCode) -> bool:
        """Whether no later operation writes what this one does."""
        later = self.nests[self.nests.index(code) + 1 :]
        return not any(other.nest.outputs[0].value == code.nest.outputs[0].value for other in later)

    def _known_once(self, nest: Nest) -> dict[ir.Value, Item]:
        return {o.argument: self.once[o.value] for o in nest.operands if o.value in self.once}

    def _values(self, code: NestCode, point: Point) -> list[ir.Value]:
        return code.values(point, self._known_once(code.nest))

    # -- a thread's parts of a row ---------------------------------------------------------------------------------

    def _start(self, part: int) -> ir.Value:
        em, plan = self.em, self.plan
        return em.mul(em.add(self.thread, em.number(part * plan.threads)), em.number(plan.width))

    def _point(self, column: int, row: Point, part: int) -> Point:
        return row.at(column, self._start(part), self.plan.width).with_lanes(Lanes(column, self.plan.width))

    def _is_cut(self, part: int) -> bool:
        """Whether some thread has no such part."""
        plan = self.plan
        return plan.columns is not None and (part + 1) * plan.width * plan.threads > plan.columns

    def _exists(self, part: int) -> ir.Value:
        return self.em.compare("ult", self._start(part), self.em.number(self.plan.columns or 0))

    def _guarded(self, part: int, point: Point, build: Callable[[Point], None]) -> None:
        if self._is_cut(part):
            self.em.only_when(self._exists(part), lambda: build(point))
        else:
            build(point)

    def _part(self, code: NestCode, column: int, row: Point, part: int) -> ir.Value:
        """What an operation yields for a part; nothing that counts where the thread has none."""
        point, nest = self._point(column, row, part), code.nest
        known = self._known_once(nest)
        for operand in nest.operands:
            if not operand.used or operand.argument in known or operand.buffer is None:
                continue
            if column in operand.offset.dims():
                known[operand.argument] = self._of_part(code, operand, column, point, part)
        return code.values(point, known)[0]

    def _of_part(self, code: NestCode, operand: Operand, column: int, point: Point, part: int) -> ir.Value:
        """An operand's elements: in registers, or read and kept there."""
        if operand.value in self.parts:
            return self.parts[operand.value][part]
        key = operand.value, operand.offset, column, part
        if key not in self.once:
            self.once[key] = self._loaded(code, operand, point, part)
        return self.once[key]

    def _loaded(self, code: NestCode, operand: Operand, point: Point, part: int) -> ir.Value:
        em = self.em
        if not self._is_cut(part):
            return em.broadcast(code.load(operand, point), point.width)
        kind = em.vector(point.width, operand.argument.type)
        return em.when(
            self._exists(part),
            lambda: [em.broadcast(code.load(operand, point), point.width)],
            lambda: [em.constant(0, kind)],
            [kind],
        )[0]

    # -- reductions ------------------------------------------------------------------------------------------------

    def _reduced(self, code: NestCode, column: int, row: Point) -> ir.Value:
        """What all threads have of a row combined, and with what its result holds."""
        nest, em = code.nest, self.em
        found = combiners(nest)
        assert found is not None
        ((operation, term),) = found
        element = nest.outputs[0].argument.type
        combine: Callable[[ir.Value, ir.Value], ir.Value] = lambda a, b: em.clone(operation, [a, b], a.type)  # noqa: E731
        neutral = em.constant(COMBINERS[operation.name].neutral_of(element), em.vector(self.plan.width, element))
        total = self._lanes(self._terms(code, operation, term, column, row, neutral, combine), combine)
        total = self._across(total, combine)
        output = nest.outputs[0]
        start = self.once[output.value] if output.value in self.once else code.load(output, row)
        return combine(start, total)

    def _terms(
        self, code: NestCode, operation: ir.Operation, term: ir.Value, column: int, row: Point, neutral: ir.Value,
        combine: Callable[[ir.Value, ir.Value], ir.Value],
    ) -> ir.Value:  # fmt: skip
        """A thread's terms combined lane by lane."""
        em, nest, plan = self.em, code.nest, self.plan
        terms = Terms(code, operation, term)
        if plan.columns is None:

            def step(point: Point, carried: ir.Value) -> ir.Value:
                return combine(carried, terms.build(point, self._known_once(nest)))

            return self._looped(column, nest, row, neutral, step)
        total = neutral  # the accumulator is a number, as the body's own operation may say (``relax.number_first``)
        for part in range(plan.parts):
            point, known = self._point(column, row, part), self._known_once(nest)
            for operand in nest.inputs:
                if operand.used and operand.argument not in known and column in operand.offset.dims():
                    known[operand.argument] = self._of_part(code, operand, column, point, part)
            value = terms.build(point, known)
            if self._is_cut(part):
                value = em.op("arith.select", [self._exists(part), value, neutral], value.type)
            total = combine(total, value)
        return total

    def _lanes(self, vector: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
        """The lanes of a vector combined, neighbours first."""
        em, kind = self.em, ir.VectorType(vector.type)
        lanes = [em.lane(vector, i) for i in range(kind.shape[0])]
        while len(lanes) > 1:
            lanes = [combine(a, b) for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
        return lanes[0]

    def _across(self, value: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
        """The values of a row's threads combined; all of them get the result."""
        value = combined_by_warp(self.em, value, combine)
        warps = self.plan.threads // WARP
        if warps == 1:
            return value
        em, device = self.em, self.device
        shared = device.shared(ir.MemRefType.get([warps], value.type, loc=em.location))
        lane, warp = (self._index(name, self.thread, WARP) for name in ("remui", "divui"))
        first = em.compare("eq", lane, em.number(0))
        em.only_when(first, lambda: em.effect("memref.store", [value, shared, warp]))
        device.barrier()
        found = em.op("memref.load", [shared, self._index("remui", lane, warps)], value.type)
        return combined_by_warp(em, found, combine, warps)

    # -- rows of any length ----------------------------------------------------------------------------------------

    def _each(self, column: int, nest: Nest, row: Point, build: Callable[[Point], None]) -> None:
        """Whole vectors of a row in turn, then what is left, one element per thread."""
        em, width = self.em, self.plan.width
        size = self.memory.size(nest.extents[column])
        whole = em.op("arith.andi", [size, em.number(-width)], em.index)

        def vector(i: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            build(row.at(column, i, width).with_lanes(Lanes(column, width)))
            return ()

        em.loop(em.mul(self.thread, em.number(width)), whole, width * self.plan.threads, vector)
        last = em.add(whole, self.thread)
        if width > 1:
            em.only_when(em.compare("ult", last, size), lambda: build(row.at(column, last)))

    def _looped(
        self, column: int, nest: Nest, row: Point, start: ir.Value, step: Callable[[Point, ir.Value], ir.Value]
    ) -> ir.Value:
        """Whole vectors of a row in turn, then what is left, one element per thread in the first lane."""
        em, width = self.em, self.plan.width
        size = self.memory.size(nest.extents[column])
        whole = em.op("arith.andi", [size, em.number(-width)], em.index)

        def vectors(i: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            return [step(row.at(column, i, width).with_lanes(Lanes(column, width)), carried[0])]

        first = em.mul(self.thread, em.number(width))
        total = em.loop(first, whole, width * self.plan.threads, vectors, [start])[0]
        if width == 1:
            return total

        def one(i: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            lane = step(row.at(column, i).with_lanes(Lanes(column, 1)), carried[0])
            return [lane]

        return self._rest(total, em.add(whole, self.thread), size, one)

    def _rest(self, total: ir.Value, first: ir.Value, size: ir.Value, one: Callable[..., Sequence[ir.Value]]) -> ir.Value:
        em, kind = self.em, ir.VectorType(total.type)
        scalar = em.vector(1, kind.element_type)
        lane = em.lanes(total, 0, 1)
        assert lane.type == scalar
        found = em.when(em.compare("ult", first, size), lambda: one(first, [lane]), lambda: [lane], [scalar])[0]
        position = {"static_position": ir.DenseI64ArrayAttr.get([0], em.context)}
        return em.op("vector.insert", [em.first_lane(found), total], total.type, position)


def build_rows(code: HostCode, plan: RowsPlan, target: CudaTarget) -> None:
    """Puts the launch in the place of the operations."""
    last = plan.operations[-1]
    with code.em.before(last):
        em, memory = code.em, Memory(code.em)
        nest = read(last, memory, plan.rows)
        total = em.number(1)
        for dim, extent in nest.extents.items():
            total = em.mul(total, memory.size(extent)) if dim < plan.rows else total
        count = em.op("arith.ceildivui", [total, em.number(plan.per_block)], em.index) if plan.per_block > 1 else total
        resident = target.architecture.registers_per_sm // (_REGISTERS * plan.block) if plan.per_block > 1 else None
        code.launch([count], [plan.block], lambda device: _RowCode(device, plan).build(), resident=resident)
    for op in plan.operations:
        op.erase()
    for value in plan.own:
        erase_with_users(value.owner.operation)
