"""A product of few rows, whose matrix is read as a stream: the code of one thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from .....dialect.bindings import ir
from ....kernels.emit.epilogue import Epilogue
from ....kernels.emit.memory import Lanes, Point
from ....kernels.structure.match import Contraction, MatchedGroup
from ....kernels.structure.nest import read_nest
from ....kernels.structure.row_groups import GroupedContraction, match_rows
from ..device_code import DeviceCode
from ..device_memory import DeviceMemory
from ..factor_code import FactorCode
from ..products.group_search import GroupSearch
from ..products.results import starts_at_zero
from ..products.tensor_maps import dims_of_rows
from ..products.tile_order import delinearized
from ..shuffles import combined_by_warp
from .integers import IntegerFloats
from .plan import LANES, MatvecPlan
from .stream import find_stream

__all__ = ["MatvecKernel"]

# Steps of k whose values are in registers as numbers.
_PIECE = 8


class MatvecKernel:
    """Builds one kernel."""

    def __init__(self, device: DeviceCode, group: MatchedGroup, plan: MatvecPlan):
        """Reads the operation for the kernel.

        Args:
            device: where to build; a block of it has all parts of k of some columns.
            group: what is computed.
            plan: how.
        """
        self.device, self.em, self.group, self.plan = device, device.em, group, plan
        self.memory = DeviceMemory(device, () if group.temporary is None else (group.temporary,))
        contraction = match_rows(group.contraction, self.memory)
        assert contraction is not None
        stream = find_stream(contraction)
        assert stream is not None
        self.contraction: Contraction = contraction
        self.stream = stream
        epilogue = None if group.epilogue is None else read_nest(group.epilogue, self.memory)
        for nest in (contraction.nest, epilogue):
            if nest is not None:
                self.memory.prepare(nest.sizes())
        self.epilogue = Epilogue(contraction, epilogue, group, self.em, self.memory)
        for op in [] if epilogue is None else epilogue.body()[0]:
            if op.name == "memref.load":
                self.memory.captured(op.operands[0])
        self.left, self.right = FactorCode(self.memory, contraction.left), FactorCode(self.memory, contraction.right)
        self.is_summed: ir.Value | None = None
        self.scale = self.zero = self.floats = None
        if stream.integers is not None:
            self.floats = IntegerFloats(self.em, stream.integers)
            self.scale = FactorCode(self.memory, stream.integers.scale)
            self.zero = None if stream.integers.zero is None else FactorCode(self.memory, stream.integers.zero)
        self.rows = list(self._rows_of(Point()))

    @property
    def _is_grouped(self) -> bool:
        """Whether sums are scaled step by step, as scales differ."""
        return self.stream.integers is not None and self.stream.integers.group > 0

    def _rows_of(self, point: Point) -> Iterator[Point]:
        """The points of all rows at a point of the other loops."""
        dims, extents = dims_of_rows(self.contraction), self.contraction.nest.extents
        for numbers in product(*(range(extents[d].static or 0) for d in dims)):
            found = point
            for dim, number in zip(dims, numbers, strict=True):
                found = found.at(dim, self.em.number(number))
            yield found

    def _split(self, number: ir.Value, by: int) -> tuple[ir.Value, ir.Value]:
        """Quotient and remainder."""
        em, divisor = self.em, self.em.number(by)
        return em.op("arith.divui", [number, divisor], em.index), em.op("arith.remui", [number, divisor], em.index)

    # -- what a block computes -------------------------------------------------------------------------------------

    def build(self) -> None:
        """Builds the kernel's code."""
        em, plan = self.em, self.plan
        warp, lane = self._split(self.device.thread(), LANES)
        across, part = self._split(warp, plan.warps.depth)
        batch, first = self._block()
        own = em.mul(across, em.number(plan.columns))
        places = [em.add(first, em.add(own, em.number(i))) for i in range(plan.columns)]
        columns = [batch.at(self.contraction.n, self._inside(place)) for place in places]
        sums = self._sums(batch, columns, em.add(em.mul(part, em.number(LANES)), lane))
        sums = [combined_by_warp(em, value, lambda a, b: em.op("arith.addf", [a, b], a.type)) for value in sums]
        self._finish(sums, batch, first, own, part, lane)

    def _block(self) -> tuple[Point, ir.Value]:
        """The block's product, and the first of its columns."""
        em, contraction, number = self.em, self.contraction, self.device.block()
        point, extents = Point(), contraction.nest.extents
        count = em.number(self.plan.block_columns)
        if contraction.batch:
            blocks = em.op("arith.ceildivui", [self.memory.size(extents[contraction.n]), count], em.index)
            which = em.op("arith.divui", [number, blocks], em.index)
            number = em.op("arith.remui", [number, blocks], em.index)
            for dim, index in delinearized(em, which, [(d, self.memory.size(extents[d])) for d in contraction.batch]).items():
                point = point.at(dim, index)
        return self._in_group(point), em.mul(number, count)

    def _in_group(self, point: Point) -> Point:
        """The point of a row in its group, the last one of a row that has none, and no matrix is read for."""
        if not isinstance(self.contraction, GroupedContraction):
            return point
        em, (row, rows), groups = self.em, self._row(point), self.contraction.groups
        search = GroupSearch(em, self.memory, groups, rows)
        group = search.last(lambda _, first: em.compare("ule", first, row))
        self.is_summed = search.is_group(group)
        return point if groups.dim is None else point.at(groups.dim, search.known(group))

    def _row(self, point: Point) -> tuple[ir.Value, ir.Value]:
        """A point's row, and how many there are."""
        em = self.em
        for dim in self.contraction.batch:
            return point.variables[dim], self.memory.size(self.contraction.nest.extents[dim])
        return em.number(0), em.number(1)

    def _inside(self, column: ir.Value) -> ir.Value:
        """The column, or the last one."""
        em, size = self.em, self.contraction.nest.extents[self.contraction.n]
        if size.static is not None and size.static % self.plan.block_columns == 0:
            return column
        return em.op("arith.minui", [column, em.sub(self.memory.size(size), em.number(1))], em.index)

    # -- a thread's sums -------------------------------------------------------------------------------------------

    def _sums(self, batch: Point, columns: Sequence[Point], number: ir.Value) -> list[ir.Value]:
        """Those of all columns and rows, of the steps of k that the thread with such a number has."""
        em, plan, depth = self.em, self.plan, self.contraction.nest.extents[self.contraction.k].static
        assert depth is not None
        first, step = em.mul(number, em.number(plan.steps)), plan.steps * LANES * plan.warps.depth
        sums = [em.constant(0.0, em.f32)] * (plan.columns * len(self.rows))
        whole = depth // (step * plan.loads) * step * plan.loads
        for start, end, loads in ((0, whole, plan.loads), (whole, depth, 1)):
            if start < end:
                sums = em.loop(
                    em.add(first, em.number(start)), self._end(end), step * loads,
                    lambda k, carried, loads=loads: self._turn(batch, columns, k, step, loads, carried), sums,
                )  # fmt: skip
        return sums

    def _end(self, k: int) -> ir.Value:
        """A step of k behind those that are summed; 0 where none are."""
        em, end = self.em, self.em.number(k)
        return end if self.is_summed is None else em.op("arith.select", [self.is_summed, end, em.number(0)], em.index)

    def _turn(
        self, batch: Point, columns: Sequence[Point], k: ir.Value, step: int, loads: int, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Some loads of each column, all before they are used."""
        em, plan, dim = self.em, self.plan, self.contraction.k
        operand = self.stream.operand
        assert operand.buffer is not None
        count = plan.steps // self.stream.per_element
        starts = [em.add(k, em.number(i * step)) for i in range(loads)]
        loaded = [
            [self.memory.neighbours(operand.buffer, operand.offset, c.at(dim, start, plan.steps), count) for c in columns]
            for start in starts
        ]
        carried = list(sums)
        for start, vectors in zip(starts, loaded, strict=True):
            carried = self._added(batch, columns, start, vectors, carried)
        return carried

    def _added(
        self, batch: Point, columns: Sequence[Point], k: ir.Value, vectors: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Sums with the products of a load of each column."""
        em, plan = self.em, self.plan
        count = min(_PIECE, plan.steps)
        known = [self._prepared(c.at(self.contraction.k, k, plan.steps), v) for c, v in zip(columns, vectors, strict=True)]
        found = [em.constant(0.0, em.f32)] * len(sums) if self._is_grouped else list(sums)
        for first in range(0, plan.steps, count):
            lanes, at = Lanes(self.contraction.k, count), em.add(k, em.number(first))
            rows = [self.left.at(p.at(self.contraction.k, at, count).with_lanes(lanes)) for p in self._rows_of(batch)]
            numbers = [self._elements(row) for row in rows]
            for c, (column, own) in enumerate(zip(columns, known, strict=True)):
                values = self._values(column.at(self.contraction.k, at, count).with_lanes(lanes), own, first, count)
                for r, row in enumerate(numbers):
                    for x, value in zip(row, values, strict=True):
                        found[c * len(rows) + r] = em.op("math.fma", [x, value, found[c * len(rows) + r]], em.f32)
        return self._scaled(columns, k, found, sums) if self._is_grouped else found

    def _elements(self, vector: ir.Value) -> list[ir.Value]:
        return [self.em.lane(vector, i) for i in range(ir.VectorType(vector.type).shape[0])]

    def _prepared(self, point: Point, vector: ir.Value) -> tuple[list[ir.Value], list[ir.Value]]:
        """What values of a load are made of: of integers words and what is taken from them, else the numbers."""
        if self.floats is None:
            operand = self.stream.operand
            assert operand.buffer is not None
            return [self.memory.retyped(vector, operand.buffer.element)], []
        zero = None if self.zero is None else self.em.op("arith.sitofp", [self.zero.at(point)], self.em.f32)
        return self.floats.words(vector), self.floats.taken(zero)

    def _values(
        self, point: Point, own: tuple[Sequence[ir.Value], Sequence[ir.Value]], first: int, count: int
    ) -> list[ir.Value]:
        """The right factor's, without their scale where they are integers."""
        if self.floats is not None:
            return self.floats.floats(own[0], first, count, own[1])
        part = self.em.lanes(own[0][0], first, count)
        return self._elements(self.right.at(point, {self.stream.operand.argument: part}))

    def _scaled(
        self, columns: Sequence[Point], k: ir.Value, found: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Sums with those of a load, which have one scale for each column."""
        assert self.scale is not None
        scales = [self.scale.at(c.at(self.contraction.k, k, self.plan.steps)) for c in columns]
        own = [scale for scale in scales for _ in self.rows]
        return [self.em.op("math.fma", [f, s, total], total.type) for f, s, total in zip(found, own, sums, strict=True)]

    # -- all threads' ----------------------------------------------------------------------------------------------

    def _finish(
        self, sums: Sequence[ir.Value], batch: Point, first: ir.Value, own: ir.Value, part: ir.Value, lane: ir.Value
    ) -> None:
        """Parts of k pass through shared memory, and a thread for each column adds them up in order."""
        em, plan, count = self.em, self.plan, len(self.rows)
        shape = [plan.warps.depth, plan.block_columns * count]
        shared = self.device.shared(ir.MemRefType.get(shape, em.f32, loc=em.location))

        def write() -> None:
            start = em.mul(own, em.number(count))
            for i, value in enumerate(sums):
                em.effect("memref.store", [value, shared, part, em.add(start, em.number(i))])

        em.only_when(em.compare("eq", lane, em.number(0)), write)
        self.device.barrier()
        size, n = self.memory.size(self.contraction.nest.extents[self.contraction.n]), self.contraction.n

        def results(thread: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            column = em.add(first, thread)
            em.only_when(em.compare("ult", column, size), lambda: self._column(shared, thread, batch.at(n, column)))
            return ()

        em.loop(self.device.thread(), em.number(plan.block_columns), plan.threads, results)

    def _column(self, shared: ir.Value, number: ir.Value, point: Point) -> None:
        """The results of a column of the block."""
        em, count = self.em, len(self.rows)
        scale = None
        if self.scale is not None and not self._is_grouped:
            scale = self.scale.at(point.at(self.contraction.k, em.number(0)))
        for r, row in enumerate(self._rows_of(point)):
            place = em.add(em.mul(number, em.number(count)), em.number(r))
            parts = [em.op("memref.load", [shared, em.number(i), place], em.f32) for i in range(self.plan.warps.depth)]
            total = parts[0]
            for part in parts[1:]:
                total = em.op("arith.addf", [total, part], em.f32)
            if scale is not None:
                total = em.op("arith.mulf", [total, scale], em.f32)
            at = row.with_lanes(Lanes(self.contraction.n, 1))
            vector = em.broadcast(total, 1)
            if not starts_at_zero(self.group):
                vector = em.op("arith.addf", [em.broadcast(self.epilogue.initial(at), 1), vector], vector.type)
            self.epilogue.store(vector, at)
