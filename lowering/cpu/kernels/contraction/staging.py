"""A panel of a right factor that takes long to compute, on the stack: computed once, read by the tiles of all rows.

Multiply-adds of the first tile hide what computes it. 32 rows of 896 x 4864, Zen 5, in times of f32: so 1.06 for int4 and 1.05
for int8 per channel, computed before all tiles 1.21 and 1.38; 16 rows of int4 1.09 and 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.memory import Point
from ....kernels.emit.scalar_body import Environment
from ....kernels.structure.nest import Operand
from .fma_sums import FmaSums
from .group_loads import GroupLoads
from .operand_loads import OperandLoads
from .prefetch import Prefetch
from .tile_place import Column, Steps, TilePlace

__all__ = ["StagedLoads", "Stager"]


class StagedLoads:
    """Loads of a right factor that is on the stack, from a step of k on; the left one is loaded as before."""

    def __init__(self, loads: OperandLoads, scratch: ir.Value, first: ir.Value):
        self.contraction, self.emitter, self.memory, self.plan = loads.contraction, loads.emitter, loads.memory, loads.plan
        self.width, self.element, self.left = loads.width, loads.element, loads.left
        self.scratch, self.first = scratch, first

    def in_pairs(self, columns: Sequence[Column]) -> bool:
        """Columns come out in their order."""
        del columns
        return False

    def fetched(self) -> Sequence[Operand]:
        """The stack needs no fetching."""
        return ()

    def right(self, row: Point, columns: Sequence[Column]) -> list[ir.Value]:
        """The right factor of each column."""
        em, k = self.emitter, row.variables[self.contraction.k]
        kind = em.vector(self.width, self.element)
        return [em.op("vector.load", [self.scratch, self.place(k, j)], kind) for j in range(len(columns))]

    def place(self, k: ir.Value, vector: int) -> ir.Value:
        """Where a vector of a step of k is."""
        em = self.emitter
        start = em.mul(em.sub(k, self.first), em.number(self.plan.tile.columns))
        return em.add(start, em.number(vector * self.width)) if vector else start


class Stager:
    """Computes panels of the right factor of one contraction; ``groups`` are its parts, where it has such."""

    def __init__(self, loads: OperandLoads, groups: GroupLoads | None):
        self.loads, self.groups, self.plan = loads, groups, loads.plan
        self.contraction, self.emitter = loads.contraction, loads.emitter
        self.prefetch = Prefetch(self.contraction, loads.fetched(), self.emitter, loads.memory, self.plan)

    @property
    def in_tiles(self) -> bool:
        """Whether the first tile computes a panel, and not code in front of all tiles."""
        return self.plan.stage is not None and self.plan.stage.in_tile

    def sums(self, steps: Steps, scratch: ir.Value) -> FmaSums:
        """The sums of tiles that read some steps of a panel from the stack."""
        return FmaSums(StagedLoads(self.loads, scratch, steps.first))

    def scratch(self, steps: Steps) -> ir.Value:
        """Memory for a panel of so many steps of k."""
        assert steps.count.static is not None
        return self.emitter.scratch(steps.count.static * self.plan.tile.columns, self.loads.element)

    def alone(self, point: Point, columns: Sequence[Column], steps: Steps, scratch: ir.Value) -> None:
        """Computes some steps of a panel."""
        self._compute(StagedLoads(self.loads, scratch, steps.first), point, [], columns, steps, [])

    def in_tile(self, place: TilePlace, start: Sequence[ir.Value], scratch: ir.Value) -> list[ir.Value]:
        """The same in a tile, whose products are added to ``start`` meanwhile: its sums."""
        sums = [self.emitter.broadcast(value, self.loads.width) for value in start]
        staged = StagedLoads(self.loads, scratch, place.steps.first)
        return self._compute(staged, place.rows[0], place.rows, place.columns, place.steps, sums)

    def _compute(
        self,
        staged: StagedLoads,
        point: Point,
        rows: Sequence[Point],
        columns: Sequence[Column],
        steps: Steps,
        sums: Sequence[ir.Value],
    ) -> list[ir.Value]:
        em, k, depth = self.emitter, self.contraction.k, steps.count.static
        assert depth is not None
        size = depth if self.groups is None else min(depth, self.groups.invariant.group_size or depth)
        fetches = bool(rows) and self.plan.fetches(len(rows))

        def group(first: ir.Value, totals: Sequence[ir.Value]) -> list[ir.Value]:
            parts = self._invariant_values(point.at(k, first, size), columns)

            def step(place: Point, number: int, totals: list[ir.Value]) -> list[ir.Value]:
                at = em.add(place.variables[k], em.number(number))
                if fetches:
                    self.prefetch.ahead(point, columns, at, number)
                right: list[ir.Value] = []
                for j, (column, part) in enumerate(zip(columns, parts, strict=True)):
                    right.append(self._value(self.loads.column_point(place, column), number, part))
                    em.effect("vector.store", [right[-1], staged.scratch, staged.place(at, j)])
                left = [self.loads.left(row.at(k, at)) for row in rows]
                products = [(x, y) for x in left for y in right]
                return [em.op("vector.fma", [x, y, s], s.type) for (x, y), s in zip(products, totals, strict=True)]

            return self.loads.steps(first, size, step, point, totals)

        end = em.add(steps.first, em.number(depth))
        return group(steps.first, sums) if size == depth else em.loop(steps.first, end, size, group, sums)

    def _invariant_values(self, point: Point, columns: Sequence[Column]) -> list[Environment]:
        return [{} for _ in columns] if self.groups is None else self.groups.invariant_values(point, columns)

    def _value(self, place: Point, step: int, part: Environment) -> ir.Value:
        if self.groups is None:
            return self.loads.factor(self.contraction.right, place, step, part)
        return self.groups.widened(place, step, part)
