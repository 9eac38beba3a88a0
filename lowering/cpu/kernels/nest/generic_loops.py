"""Lowers one linalg.generic to loops over vectors: elementwise, reductions and data movement.

Before::

    linalg.generic (i, j) -> (i, j), (i) -> (i): out[i, j] = in[i, j] * scale[i]

After::

    for i { %s = load scale[i]; for j step 16 { store (load in[i, j..j+15]) * broadcast %s } ; masked tail }

Every value is computed in the outermost loop that knows its inputs; loads too, which LLVM could not move past stores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter, LoopWork
from ....kernels.emit.lane_math import constant_of
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Buffer, Lanes, Memory, Point
from ....kernels.emit.scalar_body import Body, Environment
from ....kernels.structure.combiners import COMBINERS, combiners, element_bits
from ....kernels.structure.nest import Nest, Operand
from ..contraction.tuning import LINE
from .nest_plan import NestPlan
from .vector_plan import fetched_rows

__all__ = ["SHARED_AT_LEAST", "Loops"]

# These trap on 0 when run where the loop around them would not have: unless by a constant they stay in the innermost loop.
_PINNED = {"arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi", "arith.floordivsi", "arith.ceildivui"}

# So many whole vectors are built one after another: what they compute that no loop changes then leaves the loops around.
_STRAIGHT = 2

# A loop of fewer iterations is not shared by threads: one inside of it may be.
SHARED_AT_LEAST = 4

_EXTREMES = ("arith.maximumf", "arith.minimumf", "arith.maxnumf")

Chunk = Callable[[ir.Value, int, ir.Value | None, list[ir.Value]], Sequence[ir.Value]]


class Loops:
    """Builds one nest by one plan.

    Of what operands ``ahead`` read in a row, each vector of an elementwise nest asks for the same of the next row.
    """

    def __init__(self, nest: Nest, plan: NestPlan, emitter: Emitter, memory: Memory, ahead: Sequence[Operand] = ()):
        self.nest, self.plan, self.emitter, self.memory, self.ahead = nest, plan, emitter, memory, ahead
        self.operations, self.yielded = nest.body()
        self.body = Body(emitter, memory, self.operations, nest.dropped)
        self.combiners = combiners(nest) if plan.horizontal else None
        self.parallel_depth = len(plan.order) - len(nest.reductions)
        self.stages = self._stages()

    def build(self) -> None:
        self.memory.prepare(self.nest.sizes())
        self._guarded(lambda: self._parallel(0, {}, Point()))

    def build_row(self, point: Point) -> None:
        """Only the loops inside of those whose variables the point has; these are the first of the plan."""
        self.memory.prepare(self.nest.sizes())
        depth = sum(1 for d in self.plan.order if d in point.variables)

        def row() -> None:
            environment = self._scalars()
            for outer in range(depth):
                self._stage(outer, environment, point)
            self._parallel(depth, environment, point)

        self._guarded(row)

    def _guarded(self, build: Callable[[], None]) -> None:
        """Builds loops; where they may have no iteration, and a load may be outside of its buffer then, under a condition."""
        sources = [op.operands[0] for op in self.operations if op.name == "memref.load"]
        for source in sources:
            self.memory.captured(source)
        guard = self._any_iteration() if sources or self._computes_indices() else None
        if guard is None:
            build()
        else:
            self.emitter.only_when(guard, build)

    def _computes_indices(self) -> bool:
        """Whether an index is neither a loop's, which is inside however long the others are, nor one that is always there."""
        operation = self.nest.operation
        maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(operation.attributes["indexing_maps"])]
        places = [(v, i, e) for v, m in zip(operation.operands, maps, strict=True) for i, e in enumerate(m.results)]
        return not all(isinstance(e, ir.AffineDimExpr) or _is_there(v, i, e) for v, i, e in places)

    def _any_iteration(self) -> ir.Value | None:
        """Whether the nest has an iteration at all, None when types say so.

        A load that inner loops do not change is built outside of them: it must not run when they would not.
        """
        em, result = self.emitter, None
        for extent in self.nest.extents.values():
            if not extent.static:
                positive = em.compare("sgt", self.memory.size(extent), em.number(0))
                result = positive if result is None else em.op("arith.andi", [result, positive], em.i1)
        return result

    # -- what is computed where ------------------------------------------------------------------------------------

    def _stages(self) -> list[list[Operand | ir.Operation]]:
        """Per loop depth the loads and operations that need no deeper loop."""
        innermost = len(self.plan.order)
        depth_of = {d: i + 1 for i, d in enumerate(self.plan.order)}
        stages: list[list[Operand | ir.Operation]] = [[] for _ in range(innermost + 1)]
        depths: dict[ir.Value, int] = {}
        for operand in self.nest.inputs + (() if self.nest.reductions else self.nest.outputs):
            if operand.used and operand.buffer is not None:
                depth = max((depth_of[d] for d in operand.offset.dims()), default=0)
                depth = innermost if operand in self.nest.outputs else depth
                depths[operand.argument] = depth
                stages[depth].append(operand)
        if self.nest.reductions:
            depths |= {o.argument: innermost for o in self.nest.outputs}
        combining = [] if self.combiners is None else [operation for operation, _ in self.combiners]
        for operation in self.operations:
            if operation not in combining:
                depth = self._depth(operation, depths, depth_of)
                depths |= {result: depth for result in operation.results}
                stages[depth].append(operation)
        return stages

    def _depth(self, operation: ir.Operation, depths: dict[ir.Value, int], depth_of: dict[int, int]) -> int:
        if operation.name in _PINNED and not constant_of(operation.operands[1]):
            return len(self.plan.order)
        if operation.name == "linalg.index":
            return depth_of.get(ir.IntegerAttr(operation.attributes["dim"]).value, 0)
        return max((depths.get(v, 0) for v in operation.operands), default=0)

    def _stage(self, depth: int, environment: Environment, point: Point) -> None:
        for item in self.stages[depth]:
            if isinstance(item, Operand) and item.argument in environment:
                continue  # loaded as part of a transposed tile
            if isinstance(item, Operand):
                assert item.buffer is not None
                environment[item.argument] = self.memory.load(item.buffer, item.offset, point)
            else:
                self.body.evaluate(item, environment, point)

    # -- parallel loops --------------------------------------------------------------------------------------------

    def _parallel(self, depth: int, outer: Environment, point: Point) -> None:
        environment: Environment = dict(outer)
        if depth == 0:
            environment |= self._scalars()
        self._stage(depth, environment, point)
        if depth == self.parallel_depth:
            self._finish(depth, [environment], [point])
            return
        dim = self.plan.order[depth]
        if depth == self.parallel_depth - 1 and self.plan.block > 1:
            self._blocks(dim, environment, point)
            return
        self._over(dim, lambda inner: self._parallel(depth + 1, environment, inner), point)

    def _blocks(self, dim: int, environment: Environment, point: Point) -> None:
        """The last parallel loop, several iterations at a time; what they all read LLVM loads once."""
        em, extent, block = self.emitter, self.nest.extents[dim], self.plan.block

        def build(first: ir.Value, count: int) -> None:
            points = [point.at(dim, em.add(first, em.number(i)) if i else first) for i in range(count)]
            self._finish(self.parallel_depth, [self._staged(self.parallel_depth, environment, p) for p in points], points)

        static = extent.static
        if static is None:
            size = self.memory.size(extent)
            rest = em.op("arith.remui", [size, em.number(block)], em.index)
            whole = em.sub(size, rest)
            em.each(em.number(0), whole, block, lambda i: build(i, block))
            em.each(whole, size, 1, lambda i: build(i, 1))
            return
        whole = static // block * block
        em.each(em.number(0), em.number(whole), block, lambda i: build(i, block))
        if static > whole:
            build(em.number(whole), static - whole)

    def _staged(self, depth: int, outer: Environment, point: Point) -> Environment:
        """What is computed at a depth, added to what is computed around it."""
        environment: Environment = dict(outer)
        self._stage(depth, environment, point)
        return environment

    def _scalars(self) -> Environment:
        return {o.argument: o.value for o in self.nest.inputs if o.buffer is None}

    def _over(self, dim: int, build: Callable[[Point], None], point: Point) -> None:
        """A loop over one parallel dimension; over the vector dimension in chunks."""
        extent = self.nest.extents[dim]
        if dim != self.plan.vector:
            self._each(extent, self.memory.size(extent), 1, lambda i: build(point.at(dim, i)))
            return

        def chunk(start: ir.Value, width: int, active: ir.Value | None, carried: list[ir.Value]) -> Sequence[ir.Value]:
            inner = self._vector_point(point, dim, start, width, active)
            build(inner)
            for operand in self.ahead:
                self._ask_for_next_row(operand, inner)
            return ()

        self._chunks(extent, chunk, [])

    def _ask_for_next_row(self, operand: Operand, point: Point) -> None:
        """Asks for what the row behind this one has at a vector."""
        assert operand.buffer is not None
        em, row, width = self.emitter, self.plan.order[-2], point.width
        start = self.memory.index(operand.offset, point.at(row, em.add(point.variables[row], em.number(1))))
        self._ask_for(operand.buffer, start, width)

    def _ask_for(self, buffer: Buffer, start: ir.Value, count: int) -> None:
        """Asks for so many elements, a line at a time."""
        for element in range(0, count, 8 * LINE // element_bits(buffer.element)):
            self.emitter.prefetch(buffer.flat, self.emitter.add(start, self.emitter.number(element)))

    def _each(self, extent: Size, end: ir.Value, step: int, build: Callable[[ir.Value], None]) -> None:
        """A loop over a parallel dimension, shared by threads when it is long enough to be."""
        if extent.static is not None and extent.static < SHARED_AT_LEAST * step:
            self.emitter.each(self.emitter.number(0), end, step, build)
        else:
            self.emitter.shared(self.emitter.number(0), end, step, build, self._work())

    def _work(self) -> LoopWork:
        extents = self.nest.extents.values()
        amount = math.prod(e.static for e in extents if e.static is not None) * max(1, len(self.operations))
        return LoopWork(amount, tuple(self.memory.size(e) for e in extents if e.static is None))

    def _finish(self, depth: int, environments: Sequence[Environment], points: Sequence[Point]) -> None:
        """Computes and writes the results of points (or vectors) of the parallel loops; of one where lanes are summed."""
        if not self.nest.reductions:
            values = [self._value(v, e, p) for e, p in zip(environments, points, strict=True) for v in self.yielded]
        elif self.combiners is None:
            start = [self._initial(o, p) for p in points for o in self.nest.outputs]
            values = self._sequential(depth, environments, points, start)
        else:
            values = self._horizontal(depth, environments[0], points[0])
        places = [(operand, point) for point in points for operand in self.nest.outputs]
        for (operand, point), value in zip(places, values, strict=True):
            assert operand.buffer is not None
            self.memory.store(value, operand.buffer, operand.offset, point)

    def _value(self, value: ir.Value, environment: Environment, point: Point) -> ir.Value:
        return self.body.value(self.body.item(value, environment), point)

    def _initial(self, operand: Operand, point: Point) -> ir.Value:
        assert operand.buffer is not None
        return self.emitter.broadcast(self.memory.load(operand.buffer, operand.offset, point), point.width)

    # -- reductions whose accumulators are one per lane --------------------------------------------------------------

    def _sequential(
        self, depth: int, outer: Sequence[Environment], points: Sequence[Point], carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The reduction loops from ``depth`` on, over the whole body of each point; returns the accumulators."""
        if depth == len(self.plan.order):
            return self._combined(outer, points, carried)
        dim = self.plan.order[depth]

        def step(variable: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
            inner = [point.at(dim, variable) for point in points]
            if depth + 1 == len(self.plan.order):
                return self._sequential(depth + 1, outer, inner, accumulators)
            staged = [self._staged(depth + 1, e, p) for e, p in zip(outer, inner, strict=True)]
            return self._sequential(depth + 1, staged, inner, accumulators)

        extent = self.memory.size(self.nest.extents[dim])
        return self.emitter.loop(self.emitter.number(0), extent, 1, step, carried)

    def _combined(
        self, outer: Sequence[Environment], points: Sequence[Point], carried: Sequence[ir.Value]
    ) -> list[ir.Value]:  # fmt: skip
        """The accumulators of each point after one execution of the body."""
        values, remaining = list[ir.Value](), iter(carried)
        for around, point in zip(outer, points, strict=True):
            environment: Environment = dict(around)
            environment |= {o.argument: next(remaining) for o in self.nest.outputs}
            self._stage(len(self.plan.order), environment, point)
            values += [self.emitter.broadcast(self._value(v, environment, point), point.width) for v in self.yielded]
        return values

    # -- reductions along the vector -------------------------------------------------------------------------------

    def _horizontal(self, depth: int, environment: Environment, point: Point) -> list[ir.Value]:
        """Accumulates lanes apart, combines them at the end, then with what the output holds."""
        if self.plan.fetch:
            self._ask(point)
        widths = sorted({self.plan.wide, self.plan.width}, reverse=True)
        start = [self._neutral(o, w) for w in widths for o in self.nest.outputs]
        carried = self._lane_loops(depth, environment, point, start)
        count = len(self.nest.outputs)
        results = list[ir.Value]()
        for i, (operand, (operation, _)) in enumerate(zip(self.nest.outputs, self.combiners or [], strict=True)):
            total = self._initial(operand, point)
            for vector in carried[i::count]:
                total = self.emitter.clone(operation, [total, self._reduce(operation, vector)], total.type)
            results.append(total)
        return results

    def _ask(self, point: Point) -> None:
        """Asks for the row that is the plan's bytes behind this one."""
        em, row, vector = self.emitter, self.plan.order[-2], self.plan.order[-1]
        length = self.nest.extents[vector].static
        for operand in fetched_rows(self.nest, row, vector) if length else ():
            assert operand.buffer is not None
            bits, step = element_bits(operand.buffer.element), operand.offset.factor(row).static
            ahead = max(1, self.plan.fetch * 8 // (bits * (step or 1)))
            place = point.at(vector, em.number(0)).at(row, em.add(point.variables[row], em.number(ahead)))
            self._ask_for(operand.buffer, self.memory.index(operand.offset, place), length or 0)

    def _lane_loops(self, depth: int, outer: Environment, point: Point, carried: list[ir.Value]) -> list[ir.Value]:
        dim = self.plan.order[depth]
        extent = self.nest.extents[dim]
        if dim != self.plan.vector:

            def step(variable: ir.Value, accumulators: list[ir.Value]) -> list[ir.Value]:
                environment: Environment = dict(outer)
                inner = point.at(dim, variable)
                self._stage(depth + 1, environment, inner)
                return self._lane_loops(depth + 1, environment, inner, accumulators)

            return self.emitter.loop(self.emitter.number(0), self.memory.size(extent), 1, step, carried)
        count = len(self.nest.outputs)

        def chunk(start: ir.Value, width: int, active: ir.Value | None, every: list[ir.Value]) -> Sequence[ir.Value]:
            first = 0 if width == self.plan.wide else count
            inner = self._vector_point(point, dim, start, width, active)
            every[first : first + count] = self._accumulate(outer, inner, every[first : first + count])
            return every

        return self._chunks(extent, chunk, carried)

    def _accumulate(self, outer: Environment, point: Point, accumulators: Sequence[ir.Value]) -> list[ir.Value]:
        environment: Environment = dict(outer)
        self._stage(len(self.plan.order), environment, point)
        results = list[ir.Value]()
        for accumulator, operand, (operation, value) in zip(accumulators, self.nest.outputs, self.combiners or [], strict=True):
            item = self.body.value(self.body.item(value, environment), point)
            vector = self.emitter.broadcast(item, point.width)
            if point.lanes and point.lanes.mask is not None:
                neutral = self._neutral(operand, point.width)
                vector = self.emitter.op("arith.select", [point.lanes.mask, vector, neutral], vector.type)
            results.append(self.emitter.clone(operation, [accumulator, vector], accumulator.type))
        return results

    def _neutral(self, operand: Operand, width: int) -> ir.Value:
        index = self.nest.outputs.index(operand)
        operation = (self.combiners or [])[index][0]
        kind = self.emitter.vector(width, operand.argument.type)
        return self.emitter.constant(COMBINERS[operation.name].neutral_of(operand.argument.type), kind)

    def _reduce(self, operation: ir.Operation, vector: ir.Value) -> ir.Value:
        """All lanes combined; extremes of floats by halves, for LLVM would look for NaN at each step."""
        em, kind = self.emitter, ir.VectorType(vector.type)
        if not isinstance(kind.element_type, ir.F32Type) or operation.name not in _EXTREMES:
            return em.reduce(COMBINERS[operation.name].kind, vector)
        count = kind.shape[0]
        while count > 1:
            count //= 2
            halves = [em.lanes(vector, at, count) for at in (0, count)]
            vector = em.clone(operation, halves, halves[0].type)
        return em.first_lane(vector)

    # -- the vector loop -------------------------------------------------------------------------------------------

    def _vector_point(self, point: Point, dim: int, start: ir.Value, width: int, active: ir.Value | None) -> Point:
        mask = None if active is None else self.emitter.lane_mask(width, active)
        return point.at(dim, start, width).with_lanes(Lanes(dim, width, mask))

    def _chunks(self, extent: Size, chunk: Chunk, carried: list[ir.Value]) -> list[ir.Value]:
        """Covers ``0 .. extent`` by wide vectors, then vectors, then one masked vector."""
        static = extent.static
        if static is None:
            return self._dynamic_chunks(self.memory.size(extent), chunk, carried)
        em, wide, width = self.emitter, self.plan.wide, self.plan.width
        main = static // wide * wide
        if main // wide > _STRAIGHT and not carried:
            self._each(extent, em.number(main), wide, lambda i: (chunk(i, wide, None, []), None)[1])
        elif main // wide > _STRAIGHT:
            carried = em.loop(em.number(0), em.number(main), wide, lambda i, c: chunk(i, wide, None, c), carried)
        else:
            for start in range(0, main, wide):
                carried = list(chunk(em.number(start), wide, None, carried))
        for start in range(main, static, width):
            active = em.number(static - start) if static - start < width else None
            carried = list(chunk(em.number(start), width, active, carried))
        return carried

    def _dynamic_chunks(self, extent: ir.Value, chunk: Chunk, carried: list[ir.Value]) -> list[ir.Value]:
        em, begin = self.emitter, self.emitter.number(0)
        for width in sorted({self.plan.wide, self.plan.width}, reverse=True):
            end = em.op("arith.andi", [extent, em.number(-width)], em.index)  # rounded down: widths are powers of two
            if carried or begin != em.number(0):
                carried = em.loop(begin, end, width, lambda i, c, w=width: chunk(i, w, None, c), carried)
            else:
                em.shared(begin, end, width, lambda i, w=width: (chunk(i, w, None, []), None)[1], self._work())
            begin = end
        rest = em.sub(extent, begin)
        return em.when(
            em.compare("sgt", rest, em.number(0)),
            lambda: chunk(begin, self.plan.width, rest, list(carried)),
            lambda: carried,
            [v.type for v in carried],
        )


def _is_there(buffer: ir.Value, axis: int, index: ir.AffineExpr) -> bool:
    """Whether an index is a number, in a dimension that is known to be longer."""
    return isinstance(index, ir.AffineConstantExpr) and 0 <= index.value < ir.MemRefType(buffer.type).shape[axis]
