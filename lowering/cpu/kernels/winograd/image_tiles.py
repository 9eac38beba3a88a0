"""The elements of a tile as vectors of channels, of an image in a frame, or of the image alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from .....dialect.bindings import ir
from .....dialect.winograd import PLACES, RESULTS, TILE
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.match import Contraction
from ....winograd_loops import ACROSS, DOWN, EACH, IMAGES
from ..windows.frame import MadeFrame

__all__ = ["ImageTile", "ImageTiles", "Loads"]

Loads = Callable[[Point], list[ir.Value]]
"""Loads the 16 elements of a tile, row by row, at a point of it whose lanes are channels."""


@dataclass(frozen=True)
class ImageTile:
    """Where the elements of a tile are.

    Attributes:
        origin: the first channel of the first element in the image, were it there.
        inside: of lines and of columns the first one that is in the image, and the first one behind it.
        is_whole: whether all are in the image; None where those of all tiles are.
    """

    origin: ir.Value
    inside: Sequence[tuple[ir.Value, ir.Value]]
    is_whole: ir.Value | None


class ImageTiles:
    """Builds loads of tiles.

    Where the kernel makes a frame around the image, in a buffer, it is not made. Of a tile that is not all in the image,
    vectors of channels are put together on the stack: elements outside of the image are the frame's number.
    """

    def __init__(self, contraction: Contraction, frame: MadeFrame | None, emitter: Emitter, memory: Memory, width: int):
        self.emitter, self.memory, self.width, self.frame = emitter, memory, width, frame
        read = contraction.nest.inputs[0]
        assert read.buffer is not None
        self.offset, self.buffer = read.offset, read.buffer
        if frame is not None:
            self.buffer, self.before = memory.buffer(frame.image), frame.offsets[1:3]
            self.sizes = ir.MemRefType(frame.image.type).shape[1:3]
        _, *self.steps, _ = self.buffer.strides

    def make_room(self) -> None:
        """Takes the memory on the stack that a vector of a tile's channels needs, where it is asked for."""
        self.elements = self.emitter.scratch(PLACES * self.width, self.emitter.f32)

    def each_way(self, point: Point, build: Callable[[Loads], None]) -> None:
        """Builds what reads the tile at a point: once, or where all of it is in the image, and where it is not."""
        em, tile = self.emitter, self.tile(point)
        whole = lambda: build(lambda lanes: self._of_image(tile, lanes))  # noqa: E731
        if tile.is_whole is None:
            whole()
            return
        em.only_when(tile.is_whole, whole)
        em.only_when(em.invert(tile.is_whole), lambda: self._by_way_of_the_stack(tile, build))

    def tile(self, point: Point) -> ImageTile:
        """The tile at a point."""
        em = self.emitter
        if self.frame is not None:
            return self._at_edges(point)
        origin = self.memory.index(self.offset, point.at(EACH, em.number(0)))
        return ImageTile(origin, [(em.number(0), em.number(TILE))] * 2, None)

    def begin(self) -> None:
        """Puts what elements of a tile are outside of the image on the stack, before :meth:`copy` puts the others there."""
        if self.frame is None:
            return
        em, number = self.emitter, self.memory.outside(self.frame.number)
        value, end = em.broadcast(number, self.width), em.number(PLACES * self.width)
        em.each(em.number(0), end, self.width, lambda at: em.effect("vector.store", [value, self.elements, at]))

    def copy(self, tile: ImageTile, lanes: Point) -> None:
        """Puts the elements of a tile that are in the image on the stack."""
        em = self.emitter

        def copy(y: ir.Value, x: ir.Value) -> None:
            place = em.mul(em.add(em.mul(y, em.number(TILE)), x), em.number(self.width))
            em.effect("vector.store", [self._element(tile, lanes, y, x), self.elements, place])

        lines, columns = tile.inside
        em.each(*lines, 1, lambda y: em.each(*columns, 1, lambda x: copy(y, x)))

    def _of_image(self, tile: ImageTile, lanes: Point) -> list[ir.Value]:
        numbers = [self.emitter.number(i) for i in range(TILE)]
        return [self._element(tile, lanes, y, x) for y in numbers for x in numbers]

    def _element(self, tile: ImageTile, lanes: Point, y: ir.Value, x: ir.Value) -> ir.Value:
        """A vector of channels of an element that is in the image."""
        em, at = self.emitter, self.emitter.add(tile.origin, lanes.variables[EACH])
        for value, step in zip((y, x), self.steps, strict=True):
            at = em.add(at, em.mul(value, self.memory.size(step)))
        return self.memory.load_lanes(self.buffer, at, None, lanes)

    def _by_way_of_the_stack(self, tile: ImageTile, build: Callable[[Loads], None]) -> None:
        em = self.emitter
        self.begin()

        def load(lanes: Point) -> list[ir.Value]:
            self.copy(tile, lanes)
            kind, places = em.vector(self.width, em.f32), range(0, PLACES * self.width, self.width)
            return [em.op("vector.load", [self.elements, em.number(place)], kind) for place in places]

        build(load)

    def _at_edges(self, point: Point) -> ImageTile:
        """A tile that may be at an edge of the image."""
        em, size, inside, asked = self.emitter, self.memory.size, list[tuple[ir.Value, ir.Value]](), list[ir.Value]()
        n, *steps, _ = self.buffer.strides
        origin = em.add(size(self.buffer.offset), em.mul(point.variables[IMAGES], size(n)))
        for dim, before, extent, step in zip((DOWN, ACROSS), self.before, self.sizes, steps, strict=True):
            first = em.sub(em.mul(point.variables[dim], em.number(RESULTS)), em.number(before))
            begin = em.op("arith.maxsi", [em.sub(em.number(0), first), em.number(0)], em.index)
            end = em.op("arith.minsi", [em.sub(em.number(extent), first), em.number(TILE)], em.index)
            origin = em.add(origin, em.mul(first, size(step)))
            inside.append((begin, end))
            asked += [em.compare("eq", begin, em.number(0)), em.compare("eq", end, em.number(TILE))]
        return ImageTile(origin, inside, reduce(lambda a, b: em.op("arith.andi", [a, b], em.i1), asked))
