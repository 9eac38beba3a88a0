"""A warp's products with small integers, whose sums over a group of steps of k are multiplied with the columns' scales."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.memory import Lanes, Memory, Point
from ..factor_code import FactorCode
from .copies import Depth
from .fragments import Fragments, WarpPlace
from .narrow import NarrowFactor
from .plan import ProductPlan
from .tile_order import RowsOfTile
from .warp_code import WarpCode

__all__ = ["ScaledProducts"]

# Neighbouring columns of which a thread has sums, in each 8.
_PAIR = 2


class ScaledProducts:
    """Builds them, for one thread."""

    def __init__(
        self, code: WarpCode, memory: Memory, narrow: NarrowFactor, plan: ProductPlan, columns: RowsOfTile, n: int,
        place: WarpPlace, depth: Depth,
    ):  # fmt: skip
        self.code, self.em, self.memory, self.narrow, self.plan = code, code.em, memory, narrow, plan
        self.columns, self.n, self.depth = columns, n, depth
        # Steps of k that are summed before they are scaled; a stage of a warp has some such runs.
        self._run = narrow.group if narrow.group and narrow.group < plan.run else plan.run
        self._share = code.index(code.mul(place.share, plan.run))
        own = code.add(place.columns, code.mul(code.bits(place.lane, 0, 2), _PAIR))
        self._first = self.em.add(columns.first, code.index(own))
        self._scales = FactorCode(memory, narrow.scale)
        self._blocks = plan.warp_columns // 8

    @property
    def is_at_end(self) -> bool:
        """Whether all steps of k have one scale, so that sums are scaled when they are complete."""
        return not self.narrow.group

    def scales(self, k: ir.Value) -> list[list[ir.Value]]:
        """The scales of each run of the stage that begins at a step of k: of the thread's columns, two of each 8.

        Runs behind the last step, which are of zeros, have those of the last one.
        """
        em = self.em
        last = em.sub(self.depth.count, em.number(1))
        first = em.add(k, self._share)
        steps = [em.add(first, em.number(i)) for i in range(0, self.plan.run, self._run)]
        return [self._of_columns(em.op("arith.minui", [step, last], em.index)) for step in steps]

    def _of_columns(self, k: ir.Value) -> list[ir.Value]:
        """The scales at a step of k."""
        return [value for j in range(self._blocks) for value in self._pair(self.em.add(self._first, self.em.number(8 * j)), k)]

    def _pair(self, column: ir.Value, k: ir.Value) -> list[ir.Value]:
        em, static = self.em, self.columns.static
        if static is None or static % _PAIR:
            return [self._scale(self._inside(em.add(column, em.number(i)), 1), k, 1) for i in range(_PAIR)]
        both = self._scale(self._inside(column, _PAIR), k, _PAIR)
        return [self.em.lane(both, i) for i in range(_PAIR)]

    def _inside(self, column: ir.Value, count: int) -> ir.Value:
        """The column, or the last one behind which there are so many."""
        em, static = self.em, self.columns.static
        if static is not None and static % self.plan.tile.columns == 0:
            return column
        return em.op("arith.minui", [column, em.sub(self.columns.count, em.number(count))], em.index)

    def _scale(self, column: ir.Value, k: ir.Value, width: int) -> ir.Value:
        lanes = Lanes(self.n, width) if width > 1 else None
        return self._scales.at(Point({**self.columns.variables(self.em, column), self.depth.dim: k}, lanes, {self.n: width}))

    # -- sums ------------------------------------------------------------------------------------------------------

    def add(
        self, left: Fragments, right: Fragments, stage: ir.Value, sums: Sequence[ir.Value], scales: Sequence[Sequence[ir.Value]]
    ) -> list[ir.Value]:
        """A warp's products of a stage, in order of :func:`.fragments.products`."""
        sums, steps = list(sums), self._run // self.plan.instruction.depth
        for number, own in enumerate(scales):
            at = range(number * steps, (number + 1) * steps)
            rows = [left.at_step(stage, step) for step in at]
            for pair in range(self._blocks // 2):
                columns = [right.of(stage, step, pair) for step in at]
                for j in (0, 1):
                    self._scaled([c[j] for c in columns], rows, 2 * pair + j, sums, own)
        return sums

    def _scaled(
        self, columns: Sequence[Sequence[ir.Value]], rows: Sequence[Sequence[Sequence[ir.Value]]], j: int,
        sums: list[ir.Value], scales: Sequence[ir.Value],
    ) -> None:  # fmt: skip
        """Adds those of 8 columns and all rows."""
        plan = self.plan
        zero = self.em.constant(0, sums[0].type)
        for i in range(plan.warp_rows // 16):
            part = [zero] * 4
            for a, b in zip(rows, columns, strict=True):
                part = self.code.multiply(plan.instruction, a[i], b, part)
            for at, value in enumerate(part, 4 * (i * self._blocks + j)):
                sums[at] = self.em.op("math.fma", [value, scales[2 * j + at % 2], sums[at]], value.type)

    def finish(self, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """Complete sums, scaled."""
        scales = self._of_columns(self.em.number(0))
        at = [2 * (i // 4 % self._blocks) + i % 2 for i in range(len(sums))]
        return [self.em.op("arith.mulf", [s, scales[a]], s.type) for s, a in zip(sums, at, strict=True)]
