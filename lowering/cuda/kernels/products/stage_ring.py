"""Stages in shared memory that are filled and read in turn: barriers for those that are full, and those that are free."""

from __future__ import annotations

from .....dialect.bindings import ir
from .warpgroup_code import WarpgroupCode

__all__ = ["StageRing"]


class StageRing:
    """Builds with the barriers of so many stages, which begin at a byte of shared memory."""

    def __init__(self, code: WarpgroupCode, stages: int, start: int):
        self.code, self.em, self.stages, self.start = code, code.em, stages, start

    def make(self, readers: int) -> None:
        """Makes all barriers, for one thread that asks and so many that say that they have read."""
        code = self.code
        for stage in range(self.stages):
            code.init_barrier(self.full(code.number(stage)), 1)
            code.init_barrier(self.free(code.number(stage)), readers)
        code.barriers_are_made()

    def full(self, stage: ir.Value) -> ir.Value:
        """The barrier at which a stage's bytes arrive."""
        return self.code.add(self.code.mul(stage, 8), self.start)

    def free(self, stage: ir.Value) -> ir.Value:
        """The barrier at which warpgroups that have read a stage arrive."""
        return self.code.add(self.full(stage), 8 * self.stages)

    def following(self, stage: ir.Value, parity: ir.Value) -> list[ir.Value]:
        """The stage behind one, and the parity of its phase, which changes with every turn."""
        em, code = self.em, self.code
        following = code.add(stage, 1)
        is_over = em.compare("eq", following, code.number(self.stages))
        turned = code.xor(parity, 1)
        return [
            em.op("arith.select", [is_over, code.number(0), following], em.i32),
            em.op("arith.select", [is_over, turned, parity], em.i32),
        ]
