"""The elements of a tile as vectors of channels, of an image in a frame, or of the image alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from .....dialect.bindings import ir
from .....dialect.winograd import PLACES, RESULTS, TILE
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.match import Contraction
from ....winograd_loops import ACROSS, DOWN, EACH, IMAGES
from ..windows.frame import MadeFrame

__all__ = ["ImageLoads", "Loads"]

Loads = Callable[[Point], list[ir.Value]]
"""Loads the 16 elements of a tile at a point, row by row."""


class ImageLoads:
    """Builds loads of tiles.

    Where the kernel makes a frame around the image, in a buffer, it is not made: elements outside of the image are its number.
    """

    def __init__(self, contraction: Contraction, frame: MadeFrame | None, emitter: Emitter, memory: Memory):
        self.inputs, self.frame, self.emitter, self.memory = contraction.nest.inputs[:PLACES], frame, emitter, memory
        if frame is not None:
            kind = ir.MemRefType(frame.image.type)
            self.buffer, self.sizes, self.before = memory.buffer(frame.image), kind.shape[1:3], frame.offsets[1:3]

    def each_way(self, point: Point, build: Callable[[Loads], None]) -> None:
        """Builds what reads a tile: once, or where all of it is in the image, and where it is not."""
        if self.frame is None:
            build(self._framed)
            return
        em = self.emitter
        firsts = self._firsts(point)
        limits = [size - TILE for size in self.sizes]
        asked = [em.compare("sge", first, em.number(0)) for first in firsts]
        asked += [em.compare("sle", first, em.number(limit)) for first, limit in zip(firsts, limits, strict=True)]
        is_inside = reduce(lambda a, b: em.op("arith.andi", [a, b], em.i1), asked)
        if min(limits) >= 0:
            em.only_when(is_inside, lambda: build(self._inside))
            em.only_when(em.invert(is_inside), lambda: build(self._at_edges))
        else:
            build(self._at_edges)

    def anywhere(self, point: Point) -> list[ir.Value]:
        """The elements of a tile wherever it is, in more time than where that is known."""
        return self._framed(point) if self.frame is None else self._at_edges(point)

    def _framed(self, point: Point) -> list[ir.Value]:
        return [self.memory.load(o.buffer, o.offset, point) for o in self.inputs if o.buffer is not None]

    def _firsts(self, point: Point) -> list[ir.Value]:
        """Line and column of the first element in the image; they may be before it."""
        em = self.emitter
        starts = (em.mul(point.variables[dim], em.number(RESULTS)) for dim in (DOWN, ACROSS))
        return [em.sub(start, em.number(before)) for start, before in zip(starts, self.before, strict=True)]

    def _at(self, point: Point, line: ir.Value, column: ir.Value) -> ir.Value:
        """Where the channels of an element are."""
        em, size = self.emitter, self.memory.size
        n, y, x, c = self.buffer.strides
        parts = ((point.variables[IMAGES], n), (line, y), (column, x), (point.variables[EACH], c))
        return reduce(em.add, (em.mul(value, size(stride)) for value, stride in parts), size(self.buffer.offset))

    def _inside(self, point: Point) -> list[ir.Value]:
        em, (line, column) = self.emitter, self._firsts(point)
        places = ((em.add(line, em.number(y)), em.add(column, em.number(x))) for y in range(TILE) for x in range(TILE))
        return [self.memory.load_lanes(self.buffer, self._at(point, *place), None, point) for place in places]

    def _at_edges(self, point: Point) -> list[ir.Value]:
        """Of elements outside of the image the nearest one is read, and the number taken."""
        em, found = self.emitter, list[ir.Value]()
        assert self.frame is not None
        number = em.broadcast(self.memory.outside(self.frame.number), point.width)
        axes = [
            [self._nearest(first, i, size) for i in range(TILE)]
            for first, size in zip(self._firsts(point), self.sizes, strict=True)
        ]
        for line, is_line in axes[0]:
            for column, is_column in axes[1]:
                loaded = self.memory.load_lanes(self.buffer, self._at(point, line, column), None, point)
                inside = em.op("arith.andi", [is_line, is_column], em.i1)
                found.append(em.op("arith.select", [inside, loaded, number], loaded.type))
        return found

    def _nearest(self, first: ir.Value, number: int, size: int) -> tuple[ir.Value, ir.Value]:
        """A line or column of the image, and whether it is the one that is asked for."""
        em, zero = self.emitter, self.emitter.number(0)
        wanted = em.add(first, em.number(number))
        nearest = em.op("arith.maxsi", [em.op("arith.minsi", [wanted, em.number(size - 1)], em.index), zero], em.index)
        return nearest, em.compare("eq", nearest, wanted)
