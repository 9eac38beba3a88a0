"""Asks for what tiles will read: a panel is too short for the processor to guess what follows, and so are a few keys."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand
from .contraction_plan import ContractionPlan
from .shape import BufferShape, buffer_shape
from .tile_place import Column, NextPanel, TilePlace
from .tuning import LINE

__all__ = ["Prefetch"]

# The level of caches that a single tile asks for: the second. The next panel is asked for in the first.
_LEVEL = 2


class Prefetch:
    """Fetches some operands of the right factor ahead: those that are packed in the plan's panels, or rows of a matrix."""

    def __init__(
        self, contraction: Contraction, operands: Sequence[Operand], emitter: Emitter, memory: Memory, plan: ContractionPlan
    ):
        self.contraction, self.emitter, self.memory, self.plan = contraction, emitter, memory, plan
        self.operands = [(o, buffer_shape(o, contraction.n, contraction.k)) for o in operands if o.buffer is not None]

    def ahead(self, row: Point, columns: Sequence[Column], k: ir.Value, copy: int) -> None:
        """Asks for what a step of k reads that is the plan's bytes behind one, the ``copy``-th of an iteration."""
        em, panel = self.emitter, self.plan.tile.columns
        assert self.plan.fetch is not None
        for operand, shape in self.operands:
            assert operand.buffer is not None
            steps = shape.steps_per_row(panel)
            row_bytes = panel * shape.bits // 8
            ahead = self.plan.fetch.bytes * steps // row_bytes if steps else shape.steps_ahead(self.plan.fetch.bytes)
            if not ahead or (steps and copy * row_bytes // steps % LINE):
                continue  # neither, or the copy before fetched this line
            point = row.at(self.contraction.k, em.add(k, em.number(ahead)))
            lines = max(1, row_bytes // LINE)
            for start, _ in columns[:: max(1, self.plan.tile.vectors // lines)]:
                at = self.memory.index(operand.offset, point.at(self.contraction.n, start, self.plan.tile.lanes))
                em.prefetch(operand.buffer.flat, at, _LEVEL)

    def next_panel(self, place: TilePlace, k: ir.Value, count: int) -> None:
        """Asks for a tile's share of what follows its panel, in order, ``count`` steps of k at a time."""
        for operand, shape in self.operands:
            if shape.is_row_by_row(self.plan.tile.columns):
                self._share(operand, shape, place, k, count)

    def _share(self, operand: Operand, shape: BufferShape, place: TilePlace, k: ir.Value, count: int) -> None:
        em, panel, steps, share = self.emitter, self.plan.tile.columns, place.steps, place.share
        assert operand.buffer is not None
        following = share.following or NextPanel(em.add(place.columns[0][0], em.number(panel)), steps.first)
        beyond = place.rows[0].at(self.contraction.k, following.step).at(self.contraction.n, following.column, panel)
        part = em.op("arith.andi", [share.number, em.number(share.of - 1)], em.index)
        length = em.op("arith.shrui", [self.memory.size(steps.count), em.number(_log2(share.of))], em.index)
        done = em.op("arith.shrui", [em.sub(k, steps.first), em.number(_log2(share.of))], em.index)
        rows = em.add(em.mul(part, length), done)
        at = em.add(self.memory.index(operand.offset, beyond), em.mul(rows, em.number(panel)))
        size = shape.bits // 8
        for line in range(max(1, count * panel * size // share.of // LINE)):
            em.prefetch(operand.buffer.flat, em.add(at, em.number(line * LINE // size)))


def _log2(power: int) -> int:
    return power.bit_length() - 1
