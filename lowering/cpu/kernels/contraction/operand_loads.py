"""The operands of a contraction's products, computed where they are read: a scalar of a row, a vector of a column.

Other ways to load the right one are subclasses (:mod:`.word_loads`, :mod:`.staging`), or take sums apart (:mod:`.group_loads`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.lane_math import Item
from ....kernels.emit.linear_index import Linear
from ....kernels.emit.memory import Lanes, Memory, Point
from ....kernels.emit.scalar_body import Body, Environment
from ....kernels.structure.factor import Factor
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand
from .contraction_plan import ContractionPlan
from .shape import buffer_shape
from .tile_place import Column, TilePlace

__all__ = ["CopiedRows", "OperandLoads"]


@dataclass(frozen=True)
class CopiedRows:
    """A copy of rows of the left factor: the first row and step of k that are in it, and elements from one row to the next."""

    scratch: ir.Value
    row: ir.Value
    step: ir.Value
    stride: int


class OperandLoads:
    """Builds both factors of one contraction, for the tiles of a plan."""

    def __init__(self, contraction: Contraction, emitter: Emitter, memory: Memory, plan: ContractionPlan):
        nest = contraction.nest
        self.contraction, self.emitter, self.memory, self.plan = contraction, emitter, memory, plan
        self.width, self.element = plan.tile.lanes, nest.outputs[0].argument.type
        self.body = Body(emitter, memory, nest.body()[0], nest.dropped)
        shapes = ((o, buffer_shape(o, contraction.n, contraction.k)) for o in nest.inputs if o.buffer is not None)
        self._copied: CopiedRows | None = None
        self._padded = {o.argument for o, shape in shapes if shape.is_padded(plan.tile.columns)}

    def column_point(self, row: Point, column: Column) -> Point:
        """The vector that begins at a column."""
        start, mask = column
        n = self.contraction.n
        return row.at(n, start, self.width).with_lanes(Lanes(n, self.width, mask))

    def column_points(self, place: TilePlace) -> list[Point]:
        """The vectors of a tile, row by row."""
        return [self.column_point(row, column) for row in place.rows for column in place.columns]

    def left(self, point: Point) -> ir.Value:
        """The left factor in every lane."""
        copied, em, m = self._copied, self.emitter, self.contraction.m
        if copied is None or m is None:
            return em.broadcast(self.factor(self.contraction.left, point), self.width)
        row, step = em.sub(point.variables[m], copied.row), em.sub(point.variables[self.contraction.k], copied.step)
        at = em.add(em.mul(row, em.number(copied.stride)), step)
        return em.broadcast(em.op("memref.load", [copied.scratch, at], self.element), self.width)

    def with_copied(self, rows: CopiedRows) -> OperandLoads:
        """The same, with rows of the left factor read from a copy."""
        found = copy.copy(self)
        found._copied = rows
        return found

    def right(self, row: Point, columns: Sequence[Column]) -> list[ir.Value]:
        """The right factor of each column; of those :meth:`in_pairs`, even columns, then odd ones."""
        return [self.factor(self.contraction.right, self.column_point(row, column)) for column in columns]

    def in_pairs(self, columns: Sequence[Column]) -> bool:
        """Whether two vectors of neighbours come out as their even and their odd ones."""
        del columns
        return False

    def fetched(self) -> Sequence[Operand]:
        """What is read of memory for the right factor, and worth fetching ahead."""
        return self.contraction.right.operands

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, part: Factor, point: Point) -> ir.Value:
        """The value of a part of a factor; a scalar where the point has no lanes, or where it is the same in all."""
        environment = self.environment(part.operands, part.operations, point)
        return self.body.value(self.body.item(part.value, environment), point)

    def factor(self, factor: Factor, point: Point, step: int = 0, known: Mapping[ir.Value, Item] | None = None) -> ir.Value:
        """A factor ``step`` steps of k behind the point, in its lanes; ``known`` are values that are there already."""
        environment = self.environment(factor.operands, factor.operations, point, step, known)
        value = self.body.value(self.body.item(factor.value, environment), point)
        return self.emitter.broadcast(value, point.width)

    def environment(
        self,
        operands: Sequence[Operand],
        operations: Sequence[ir.Operation],
        point: Point,
        step: int = 0,
        known: Mapping[ir.Value, Item] | None = None,
    ) -> Environment:
        """What operands and operations of the body are there."""
        environment: Environment = dict(known or {})
        for operand in operands:
            environment[operand.argument] = self._element(operand, point, step)
        if step:
            k, em = self.contraction.k, self.emitter
            point = point.at(k, em.add(point.variables[k], em.number(step)))
        for operation in operations:
            self.body.evaluate(operation, environment, point)
        return environment

    def _element(self, operand: Operand, point: Point, step: int) -> ir.Value:
        if operand.buffer is None:
            return operand.value
        memory, k = self.memory, self.contraction.k
        offset = operand.offset.shifted(k, step, point.multiples)
        point = point.without_mask() if operand.argument in self._padded else point
        start = memory.row_index(offset, point, k) if self._begins_alike(offset, point) else memory.index(offset, point)
        return memory.load_from(start, operand.buffer, offset, point)

    def _begins_alike(self, offset: Linear, point: Point) -> bool:
        """Whether vectors of a packed panel begin at one place and a constant; rows of an image do, where they can."""
        if not offset.floors() and not self.plan.joined and self.plan.parts is None:
            return False
        if point.lanes is not None and point.lanes.dim != self.contraction.n:
            return False
        base, _ = self.emitter.split(point.variables[self.contraction.n]) if point.lanes is not None else (None, 0)
        return base is None or self.emitter.divisor(base) % self.plan.tile.columns == 0

    # -- loops -------------------------------------------------------------------------------------------------------

    def steps(
        self,
        first: ir.Value,
        count: int,
        step: Callable[[Point, int, list[ir.Value]], list[ir.Value]],
        row: Point,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """A loop over ``count`` steps of k from ``first`` on, a multiple of it, several at a time.

        Args:
            first: the first step.
            count: how many there are.
            step: given the point where an iteration begins, and how far behind the step is; and what is carried.
            row: where the loop is.
            carried: what the first step gets.
        """
        em, unroll = self.emitter, self.plan.group_unroll
        whole = count // unroll * unroll

        def several(begin: ir.Value, number: int, values: Sequence[ir.Value]) -> list[ir.Value]:
            multiple = unroll if first == em.number(0) else gcd(count, unroll)
            point, found = row.at(self.contraction.k, begin, multiple), list(values)
            for i in range(number):
                found = step(point, i, found)
            return found

        end = em.add(first, em.number(whole))
        if whole:
            carried = em.loop(first, end, unroll, lambda k, values: several(k, unroll, values), carried)
        return several(end, count - whole, carried)
