"""Rows of the left factor in a block, copied to the stack one behind the other: what the tiles of all panels read.

Rows of a matrix of 1024, 4096 or 5120 f32 begin a multiple of a page apart: their elements compete for the same few lines of
the level-1 cache, and each row takes the address of a page of its own. Rows of a copy begin an odd number of lines apart. What
a factor is computed from is read, and computed, once for all panels.
"""

from __future__ import annotations

from math import gcd

from .....dialect.bindings import ir
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Lanes, Point
from ....kernels.structure.combiners import element_bits
from .operand_loads import CopiedRows, OperandLoads
from .tile_place import Steps
from .tuning import LINE

__all__ = ["LeftCopier"]


class LeftCopier:
    """Copies ``height`` rows of ``depth`` steps of k at most, of the left factor of one contraction."""

    def __init__(self, loads: OperandLoads, height: int, depth: int):
        line = LINE * 8 // element_bits(loads.element)
        #: Elements from one row to the next: whole vectors, and an odd number of lines.
        self.stride = (-(-depth // loads.width) * loads.width // line | 1) * line
        self.loads, self.emitter = loads, loads.emitter
        self.scratch = self.emitter.scratch(height * self.stride, loads.element)

    def copied(self, point: Point, row: ir.Value, count: int | ir.Value, steps: Steps) -> OperandLoads:
        """Copies ``count`` rows from one on, and some steps of k of them; how they are loaded then."""
        em, m, k = self.emitter, self.loads.contraction.m, self.loads.contraction.k
        depth, width = steps.count.static, self.loads.width
        assert m is not None
        assert depth is not None
        whole, multiple = depth // width * width, gcd(depth, width)

        def one_row(number: ir.Value) -> None:
            start, place = em.mul(number, em.number(self.stride)), point.at(m, em.add(row, number))

            def vector(step: ir.Value, mask: ir.Value | None) -> None:
                at = place.at(k, em.add(steps.first, step), multiple).with_lanes(Lanes(k, width, mask))
                value = self.loads.factor(self.loads.contraction.left, at)
                em.effect("vector.store", [value, self.scratch, em.add(start, step)])

            em.each(em.number(0), em.number(whole), width, lambda step: vector(step, None))
            if whole < depth:
                vector(em.number(whole), em.lane_mask(width, em.number(depth - whole)))

        em.each(em.number(0), self.loads.memory.size(Size.of(count)) if isinstance(count, int) else count, 1, one_row)
        return self.loads.with_copied(CopiedRows(self.scratch, row, steps.first, self.stride))
