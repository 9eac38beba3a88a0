"""Lowers a contraction (matrix multiplication, batched, B packed or not) to a register-tiled kernel, its epilogue fused.

Before::

    linalg.fill 0 -> C;  linalg.generic {relax.contraction} C[m, n] += A[m, k] * B[n floordiv 32, k, n mod 32]
    linalg.generic out[m, n] = max(C[m, n] + bias[n], 0)

After::

    for batch, for n step 32, for m step 8 {
      8x2 accumulators = for k { 8 scalars of A, 2 vectors of B, 16 fused multiply-adds }
      out[m.., n..] = max(accumulator + bias[n..], 0) }             // C never is in memory

Rows that do not fill a tile use smaller tiles; columns that do not are computed whole and stored under a mask. A factor may be
computed from narrower operands: the right one once per vector and step of k for all rows of a tile, or, when that takes long,
once per panel for all tiles. A packed right operand is fetched ahead of the step of k that reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul

from ....dialect.bindings import ir
from ...target import Target
from .access import Lanes, Memory, Point
from .body import Body, Environment
from .contraction import Contraction, Factor, Group, match_contraction, plain_dims
from .emitter import Emitter, Work
from .index_math import Size
from .lane_math import constant_of
from .nest import Nest, Operand, read_nest
from .plan import element_bits

__all__ = ["lower_group"]

# Accumulators in flight that hide the latency of a fused multiply-add (4 cycles, 2 per cycle).
_IN_FLIGHT = 8

# A factor of that many operations is computed once per panel, when rows fill more than a tile. 64 rows of 4096 x 4096 on Zen 3,
# in times of f32: int4 with zero points 1.7 when each of 11 tiles computes it and 1.0 so, int8 per channel (2 operations) 1.1
# and 1.0; a cast, which is one operation, takes 0.9.
_LONG_FACTOR = 2
# What is on the stack then, at most: a panel of 16 columns and 4096 rows of f32, half of a level-2 cache.
_STAGED_BYTES = 1 << 18
# How far ahead of a step of k the right operand is fetched, in bytes, and what one fetch brings. On Zen 3 48 rows of 512 x 512
# take 0.96 of the time without, 49 rows of 2048 x 512 take 0.97; products of more rows do not change.
_AHEAD, _LINE = 2048, 64
# A loop of fewer iterations is not shared by threads: one inside of it may be.
_SHARED_AT_LEAST = 4
# Multiplications that count as one element operation of work.
_PER_STEP = 4

Columns = list[tuple[ir.Value, ir.Value | None]]
"""The first column of each vector of a tile, and the mask of the columns that exist when not all do."""


def lower_group(group: Group, emitter: Emitter, target: Target) -> bool:
    """Replaces a contraction and what is fused with it by one kernel; False, and nothing changed, when it does not match."""
    at = group.epilogue or group.contraction
    with emitter.before(at):
        memory = Memory(emitter)
        contraction = match_contraction(group.contraction, memory)
        if contraction is None:
            return False
        epilogue = None if group.epilogue is None else read_nest(group.epilogue, memory)
        Kernel(contraction, epilogue, group, emitter, memory, target).build()
    _erase(group)
    return True


def _erase(group: Group) -> None:
    for operation in (group.epilogue, group.contraction, group.fill):
        if operation is not None:
            operation.erase()
    if group.temporary is None:
        return
    for use in list(group.temporary.uses):
        use.owner.operation.erase()  # its deallocation and unused views
    group.temporary.owner.operation.erase()


class Kernel:
    """Builds one contraction kernel."""

    def __init__(
        self,
        contraction: Contraction,
        epilogue: Nest | None,
        group: Group,
        emitter: Emitter,
        memory: Memory,
        target: Target,
    ):
        self.contraction, self.epilogue, self.group = contraction, epilogue, group
        self.emitter, self.memory = emitter, memory
        nest = contraction.nest
        self.extents = nest.extents
        self.body = Body(emitter, memory, nest.body()[0], nest.dropped)
        self.output = nest.outputs[0]
        rows, columns = target.matmul_tile
        self.rows = max(1, rows * 32 // max(32, element_bits(self.output.argument.type)))  # f64 takes two registers
        self.width = target.lanes()
        self.vectors = max(1, columns // self.width)
        self.scratch: ir.Value | None = None
        self.is_staged = False
        self.epilogue_body = None if epilogue is None else Body(emitter, memory, epilogue.body()[0], epilogue.dropped)

    def build(self) -> None:
        self.memory.prepare(self.contraction.nest.sizes() | (self.epilogue.sizes() if self.epilogue else set()))
        for nest in (self.contraction.nest, self.epilogue):
            for operation in nest.body()[0] if nest else []:
                if operation.name == "memref.load":
                    self.memory.captured(operation.operands[0])
        self._loops(self.contraction.batch, Point(), self._panels)

    # -- loops around a tile ---------------------------------------------------------------------------------------

    def _loops(self, dims: Sequence[int], point: Point, inner: Callable[[Point], None]) -> None:
        if not dims:
            inner(point)
            return
        first, rest = dims[0], dims[1:]
        self._range(0, self.extents[first], 1, lambda i: self._loops(rest, point.at(first, i), inner))

    def _range(self, begin: int, end: Size | ir.Value, step: int, inner: Callable[[ir.Value], None]) -> None:
        last = self.memory.size(end) if isinstance(end, Size) else end
        static = end.static if isinstance(end, Size) else constant_of(end)
        if static is not None and static - begin < _SHARED_AT_LEAST * step:
            self.emitter.each(self.emitter.number(begin), last, step, inner)
        else:
            self.emitter.shared(self.emitter.number(begin), last, step, inner, self._work())

    def _work(self) -> Work:
        extents = self.extents.values()
        amount = math.prod(e.static for e in extents if e.static is not None)
        return Work(max(1, amount // _PER_STEP), tuple(self.memory.size(e) for e in extents if e.static is None))

    def _panels(self, point: Point) -> None:
        """Column panels: whole ones in a loop, then the one that is cut off."""
        em, tile, extent = self.emitter, self.width * self.vectors, self.extents[self.contraction.n]
        static = extent.static
        if static is not None:
            whole = static // tile * tile
            if whole:
                self._range(0, em.number(whole), tile, lambda n: self._panel(point, n, None, self.vectors))
            if static > whole:
                rest = static - whole
                self._panel(point, em.number(whole), em.number(rest), -(-rest // self.width))
            return
        size = self.memory.size(extent)
        whole = em.op("arith.andi", [size, em.number(-tile)], em.index)
        self._range(0, whole, tile, lambda n: self._panel(point, n, None, self.vectors))
        rest = em.sub(size, whole)
        self._when_positive(rest, lambda: self._panel(point, whole, rest, self.vectors))

    def _when_positive(self, value: ir.Value, then: Callable[[], None]) -> None:
        condition = self.emitter.compare("sgt", value, self.emitter.number(0))
        self.emitter.when(condition, lambda: (then(), ())[1])

    def _panel(self, point: Point, n: ir.Value, active: ir.Value | None, vectors: int) -> None:
        """All rows of one column panel, of which ``active`` columns exist when that is given."""
        em, columns = self.emitter, Columns()
        for j in range(vectors):
            start = em.add(n, em.number(j * self.width)) if j else n
            left = None if active is None else em.sub(active, em.number(j * self.width))
            columns.append((start, None if left is None else em.lane_mask(self.width, left)))
        self._staged(point, columns, lambda: self._loops(self.contraction.shared, point, lambda p: self._all_rows(p, columns)))

    def _staged(self, point: Point, columns: Columns, tiles: Callable[[], None]) -> None:
        """The tiles of a panel; where many rows read a factor that takes long to compute, it is computed first, once."""
        if not self._is_long(self.contraction.right):
            tiles()
            return
        em, dims = self.emitter, [*self.contraction.shared, *([] if self.contraction.m is None else [self.contraction.m])]
        rows = reduce(mul, (self.extents[d] for d in dims), Size.of(1))
        if rows.static is not None:
            self._stage(point, columns, tiles) if rows.static > self.rows else tiles()
            return
        count, most = self.memory.size(rows), em.number(self.rows)
        em.when(em.compare("sgt", count, most), lambda: (self._stage(point, columns, tiles), ())[1])
        em.when(em.compare("sle", count, most), lambda: (tiles(), ())[1])

    def _is_long(self, factor: Factor) -> bool:
        """Whether a vector of the factor takes long, compared to a tile's multiply-adds, and a panel of it is small."""
        depth = self.extents[self.contraction.k].static
        element = self.output.argument.type
        if depth is None or depth * self.width * self.vectors * element_bits(element) // 8 > _STAGED_BYTES:
            return False
        return sum(op.name != "arith.constant" for op in factor.operations) >= _LONG_FACTOR

    def _stage(self, point: Point, columns: Columns, tiles: Callable[[], None]) -> None:
        em, depth, width = self.emitter, self.extents[self.contraction.k].static, self.width * self.vectors
        assert depth is not None
        scratch = em.scratch(depth * width, self.output.argument.type)

        def row(k: ir.Value) -> None:
            for j, column in enumerate(columns):
                value = self._factor(self.contraction.right, self._column_point(point.at(self.contraction.k, k), column))
                em.effect("vector.store", [value, scratch, self._scratch_index(k, j)])

        em.each(em.number(0), em.number(depth), 1, row)
        self.scratch, self.is_staged = scratch, True
        tiles()
        self.is_staged = False

    def _scratch_index(self, k: ir.Value, vector: int) -> ir.Value:
        em = self.emitter
        start = em.mul(k, em.number(self.width * self.vectors))
        return em.add(start, em.number(vector * self.width)) if vector else start

    def _all_rows(self, point: Point, columns: Columns) -> None:
        em, m = self.emitter, self.contraction.m
        if m is None:
            self._tile([point], columns)
            return
        static = self.extents[m].static
        if static is None:
            self._dynamic_rows(point, columns)
            return
        whole = static // self.rows * self.rows
        if whole == self.rows:
            self._tile(self._row_points(point, em.number(0), self.rows), columns)
        elif whole:
            self._range(0, em.number(whole), self.rows, lambda i: self._tile(self._row_points(point, i, self.rows), columns))
        if static > whole:
            self._tile(self._row_points(point, em.number(whole), static - whole), columns)

    def _dynamic_rows(self, point: Point, columns: Columns) -> None:
        """Whole tiles in a loop, then tiles of 4, 2 and 1 rows as the rest needs them."""
        em = self.emitter
        assert self.contraction.m is not None
        size = self.memory.size(self.extents[self.contraction.m])
        rest = em.op("arith.remui", [size, em.number(self.rows)], em.index)
        start = em.sub(size, rest)
        self._range(0, start, self.rows, lambda i: self._tile(self._row_points(point, i, self.rows), columns))
        for count in (c for c in (4, 2, 1) if c < self.rows):
            taken = em.op("arith.andi", [rest, em.number(count)], em.index)
            first = start
            self._when_positive(taken, lambda c=count, f=first: self._tile(self._row_points(point, f, c), columns))
            start = em.add(start, taken)

    def _row_points(self, point: Point, first: ir.Value, count: int) -> list[Point]:
        em, m = self.emitter, self.contraction.m
        assert m is not None
        return [point.at(m, em.add(first, em.number(i)) if i else first) for i in range(count)]

    # -- a tile ----------------------------------------------------------------------------------------------------

    def _tile(self, rows: Sequence[Point], columns: Columns) -> None:
        """Accumulates over k in registers, then stores, through the epilogue if there is one."""
        points = [[self._column_point(row, column) for column in columns] for row in rows]
        start = [self._initial(p) for row in points for p in row]
        copies = max(1, _IN_FLIGHT // len(start))
        totals = self._accumulate(rows, columns, start, copies)
        for point, total in zip((p for row in points for p in row), totals, strict=True):
            self._store(total, point)

    def _column_point(self, row: Point, column: tuple[ir.Value, ir.Value | None]) -> Point:
        start, mask = column
        n = self.contraction.n
        return row.at(n, start, self.width).with_lanes(Lanes(n, self.width, mask))

    def _initial(self, point: Point) -> ir.Value:
        if self.group.fill is not None:
            return self.emitter.broadcast(self.group.fill.operands[0], self.width)
        assert self.output.buffer is not None
        return self.memory.load(self.output.buffer, self.output.offset, point)

    def _accumulate(self, rows: Sequence[Point], columns: Columns, start: Sequence[ir.Value], copies: int) -> list[ir.Value]:
        """The loop over k, with several copies of few accumulators so that additions overlap."""
        em, count = self.emitter, len(start)
        extent = self.extents[self.contraction.k]
        size = self.memory.size(extent)
        zero = em.constant(0, start[0].type)
        carried = [*start, *[zero] * (count * (copies - 1))]

        def step(k: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
            result = list[ir.Value]()
            for c in range(len(accumulators) // count):
                at = em.add(k, em.number(c)) if c else k
                self._fetch(rows[0], columns, at, c)
                result += self._multiply_add(rows, columns, at, accumulators[c * count : (c + 1) * count])
            return result

        if copies == 1:
            return em.loop(em.number(0), size, 1, step, carried)
        whole = em.op("arith.andi", [size, em.number(-copies)], em.index)
        carried = em.loop(em.number(0), whole, copies, step, carried)
        totals = carried[:count]
        for c in range(1, copies):
            totals = [self._add(a, b) for a, b in zip(totals, carried[c * count : (c + 1) * count], strict=True)]
        if extent.static is not None and extent.static % copies == 0:
            return totals
        return em.loop(whole, size, 1, step, totals)

    def _multiply_add(
        self, rows: Sequence[Point], columns: Columns, k: ir.Value, accumulators: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """One step of k on the whole tile."""
        k_dim, result = self.contraction.k, list[ir.Value]()
        right = [self._right(rows[0].at(k_dim, k), column, j) for j, column in enumerate(columns)]
        for i, row in enumerate(rows):
            scalar = self._factor(self.contraction.left, row.at(k_dim, k))
            left = self.emitter.broadcast(scalar, self.width)
            for j, vector in enumerate(right):
                result.append(self._fma(left, vector, accumulators[i * len(columns) + j]))
        return result

    def _fetch(self, row: Point, columns: Columns, k: ir.Value, copy: int) -> None:
        """Asks for what later steps of k read of a packed right operand: a panel is too short for the processor to guess."""
        em, panel = self.emitter, self.width * self.vectors
        for operand in () if self.is_staged else self.contraction.right.operands:
            if operand.buffer is None or operand.offset.factor(self.contraction.k).static != panel:
                continue
            step = panel * element_bits(operand.buffer.element) // 8
            if copy * step % _LINE:
                continue  # the copy before fetched this line
            point = row.at(self.contraction.k, em.add(k, em.number(_AHEAD // step)))
            lines = max(1, step // _LINE)
            for start, _ in columns[:: max(1, len(columns) // lines)]:
                at = self.memory.index(operand.offset, point.at(self.contraction.n, start, self.width))
                em.prefetch(operand.buffer.flat, at)

    def _right(self, row: Point, column: tuple[ir.Value, ir.Value | None], vector: int) -> ir.Value:
        if not self.is_staged:
            return self._factor(self.contraction.right, self._column_point(row, column))
        assert self.scratch is not None
        kind = self.emitter.vector(self.width, self.output.argument.type)
        return self.emitter.op(
            "vector.load", [self.scratch, self._scratch_index(row.variables[self.contraction.k], vector)], kind
        )

    def _factor(self, factor: Factor, point: Point) -> ir.Value:
        environment: Environment = {}
        for operand in factor.operands:
            if operand.buffer is None:
                environment[operand.argument] = operand.value
                continue
            unmasked = self._is_padded(operand)
            environment[operand.argument] = self.memory.load(
                operand.buffer, operand.offset, point.without_mask() if unmasked else point
            )
        for operation in factor.operations:
            self.body.evaluate(operation, environment, point)
        value = self.body.value(self.body.item(factor.value, environment), point)
        return self.emitter.broadcast(value, point.width)

    def _is_padded(self, operand: Operand) -> bool:
        """Packed in panels at least as wide as a tile: columns beyond the last exist in memory."""
        tile = self.width * self.vectors
        shape = ir.MemRefType(operand.value.type).shape
        return any(
            floor.inner.dims() == {self.contraction.n} and floor.divisor % tile == 0 and floor.divisor in shape
            for floor in operand.offset.floors()
        )

    def _fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        em = self.emitter
        if isinstance(ir.VectorType(c.type).element_type, ir.FloatType):
            return em.op("vector.fma", [a, b, c], c.type)
        return em.add(em.mul(a, b), c)

    def _add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        em = self.emitter
        if isinstance(ir.VectorType(a.type).element_type, ir.FloatType):
            return em.op("arith.addf", [a, b], a.type)
        return em.add(a, b)

    # -- results ---------------------------------------------------------------------------------------------------

    def _store(self, total: ir.Value, point: Point) -> None:
        if self.epilogue is None or self.epilogue_body is None:
            assert self.output.buffer is not None
            self.memory.store(total, self.output.buffer, self.output.offset, point)
            return
        inner = self._epilogue_point(point)
        environment: Environment = {}
        for operand in self.epilogue.operands:
            if operand.value == self.output.value:
                environment[operand.argument] = total
            elif operand.buffer is None:
                environment[operand.argument] = operand.value
            elif operand.used:
                environment[operand.argument] = self.memory.load(operand.buffer, operand.offset, inner)
        operations, yielded = self.epilogue.body()
        for operation in operations:
            self.epilogue_body.evaluate(operation, environment, inner)
        for operand, value in zip(self.epilogue.outputs, yielded, strict=True):
            assert operand.buffer is not None
            result = self.epilogue_body.value(self.epilogue_body.item(value, environment), inner)
            self.memory.store(result, operand.buffer, operand.offset, inner)

    def _epilogue_point(self, point: Point) -> Point:
        """The same point in the epilogue's own loop dimensions."""
        assert self.group.epilogue is not None
        assert point.lanes is not None
        produced = plain_dims(self.group.contraction, len(self.group.contraction.operands) - 1) or []
        place = list(self.group.epilogue.operands).index(self.output.value)
        consumed = plain_dims(self.group.epilogue, place) or []
        zero = self.emitter.number(0)
        variables = {e: point.variables.get(c, zero) for c, e in zip(produced, consumed, strict=True)}
        lane = consumed[produced.index(self.contraction.n)]
        lanes = Lanes(lane, point.lanes.width, point.lanes.mask)
        return Point(variables, lanes, {lane: self.width})
