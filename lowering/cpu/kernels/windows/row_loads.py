"""Rows of windows as they are loaded: channels of the image, or of a frame around it, and of filters."""

from __future__ import annotations

from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.nest import Operand
from .shape import Windows

__all__ = ["QUAD", "Row", "RowLoads", "Vector"]

QUAD = 4


@dataclass(frozen=True)
class Vector:
    """Channels that are taken at once: from the first on, so many lanes, of which the first ``active`` are there.

    Sums of them are in so many ``parts``: those of bytes take four times as much.
    """

    first: ir.Value
    lanes: int
    active: int
    parts: int = QUAD

    @property
    def quarter(self) -> int:
        """Channels of a vector of sums."""
        return self.lanes // self.parts

    @property
    def quarters(self) -> int:
        """How many vectors of sums have channels that are there."""
        return -(-self.active // self.quarter)


@dataclass(frozen=True)
class Row:
    """A row of the image that windows of a line read.

    Attributes:
        is_outside: whether it is known to be in the frame.
        inside: whether it is in the image, where that is known at run time only.
        shift: how far one that is in the image is behind it.
    """

    is_outside: bool = False
    inside: ir.Value | None = None
    shift: ir.Value | None = None


class RowLoads:
    """Loads rows of windows, a vector of channels of type ``kind``."""

    def __init__(self, windows: Windows, kind: ir.Type, vector: Vector, emitter: Emitter, memory: Memory):
        self.windows, self.kind, self.vector, self.emitter, self.memory = windows, kind, vector, emitter, memory

    def is_outside(self, point: Point, tap: int) -> bool:
        """Whether a column is known to be in the frame; those in loops are none."""
        frame, x = self.windows.frame, self.windows.x
        if frame is None:
            return False
        base, place = (None, 0) if x is None else self.emitter.split(point.variables[x])
        return base is None and not 0 <= frame.columns.at(place, tap) < frame.columns.size

    def frame(self) -> ir.Value:
        """What is around the image."""
        assert self.windows.frame is not None
        return self.emitter.broadcast(self.windows.frame.number, self.vector.lanes)

    def row(self, point: Point, row: Row) -> ir.Value:
        """A row's channels, or the frame's number."""
        if row.is_outside:
            return self.frame()
        loaded = self.load(self.windows.image, point, row.shift)
        if row.inside is None:
            return loaded
        inside = self.emitter.broadcast(row.inside, self.vector.lanes)
        return self.emitter.op("arith.select", [inside, loaded, self.frame()], self.kind)

    def load(self, operand: Operand, point: Point, shift: ir.Value | None = None) -> ir.Value:
        """Channels of a factor, those that are there."""
        em, vector = self.emitter, self.vector
        point = point.at(self.windows.n, vector.first, vector.lanes)
        assert operand.buffer is not None
        at = self.memory.index(operand.offset, point)
        at = at if shift is None else em.add(at, shift)
        if vector.active == vector.lanes:
            return em.op("vector.load", [operand.buffer.flat, at], self.kind)
        mask = em.lane_mask(vector.lanes, em.number(vector.active))
        return em.op("vector.maskedload", [operand.buffer.flat, at, mask, em.constant(0, self.kind)], self.kind)
