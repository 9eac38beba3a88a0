"""The loops around a contraction's tiles where k is long: it is cut into blocks, as are rows and columns.

::

    for unit of 128 rows and 32 panels {                    // what threads share
      sums = fill                                           // on the stack
      for k step 128 {
        rows = copy of the left factor                      // on the stack
        for panel, for tile { sums += products of these k } }
      for panel, for tile { out = epilogue(sums) } }

What the tiles of a panel read of the right operand then stays in the level-1 cache, and what the panels of a chunk read of the
left one in level 2; a whole panel of a long k, and all its rows, would come from further away for every tile. Sums add their
products in the same order as without blocks. Where few blocks would be left for threads to share, these have fewer panels, and
what copies cost is more than they gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .....dialect.bindings import ir
from ....kernels.emit.emitter import LoopWork
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Point
from .contraction_plan import Blocks
from .copied_left import LeftCopier
from .fma_sums import FmaSums
from .microkernel import Microkernel, Sums
from .shape import multiples_of
from .staging import Stager
from .tile_place import Column, NextPanel, Share, Steps, TilePlace
from .tiles import Tiles

__all__ = ["BlockLoops", "BlockUnit"]

TileBody = Callable[[TilePlace, Sequence[ir.Value]], None]
"""Builds a tile from where it is, and where its sums are."""


class BlockLoops:
    """Builds these loops for one contraction; ``stager`` computes a right factor that takes long, ``copies`` are of rows."""

    #: Panels that a unit has at least.
    least = 4

    def __init__(
        self,
        blocks: Blocks,
        tiles: Tiles,
        microkernel: Microkernel,
        sums: Sums,
        stager: Stager | None = None,
        *,
        copies: bool = False,
    ):
        loads = microkernel.loads
        self.tiles, self.microkernel, self.sums, self.stager = tiles, microkernel, sums, stager
        self.contraction, self.emitter, self.memory = loads.contraction, loads.emitter, loads.memory
        extents, m = self.contraction.nest.extents, self.contraction.m
        assert m is not None
        self.m, self.rows, self.columns = m, extents[m], extents[self.contraction.n]
        self.height, self.depth, self.most, self.few = blocks.rows, blocks.depth, blocks.columns, blocks.few
        self.copies = copies
        #: Columns of a unit.
        self.width = self.emitter.number(self.most)

    def build(self, point: Point, work: LoopWork) -> None:
        """The loop over units, those of a chunk one after the other: blocks of rows are not all of the same height."""
        em, blocks = self.emitter, self._blocks()
        chunks = self._ceil(self.columns, self.most)
        if self.few:
            self.width = self._width(blocks)
            chunks = em.op("arith.ceildivui", [self.memory.size(self.columns), self.width], em.index)

        def unit(number: ir.Value) -> None:
            chunk = em.op("arith.divui", [number, blocks], em.index)
            block = em.sub(number, em.mul(chunk, blocks))
            self._unit(point, *self._rows_of(block, blocks), em.mul(chunk, self.width))

        em.shared(em.number(0), em.mul(blocks, chunks), 1, unit, work)

    def _width(self, blocks: ir.Value) -> ir.Value:
        """The columns of a unit: half, and half of that, where there would be few units."""
        em, panel = self.emitter, self.tiles.panel
        widths = [self.most]
        while widths[-1] >= 2 * self.least * panel:
            widths.append(widths[-1] // (2 * panel) * panel)
        found = em.number(widths[-1])
        for width in reversed(widths[:-1]):
            units = em.mul(blocks, self._ceil(self.columns, width))
            enough = em.compare("uge", units, em.number(self.few))
            found = em.op("arith.select", [enough, em.number(width), found], em.index)
        return found

    def _ceil(self, size: Size, by: int) -> ir.Value:
        em = self.emitter
        if size.static is not None:
            return em.number(-(-size.static // by))
        return em.op("arith.ceildivui", [self.memory.size(size), em.number(by)], em.index)

    def _blocks(self) -> ir.Value:
        """How many blocks of rows there are."""
        return self._ceil(self.rows, self.height)

    def _rows_of(self, block: ir.Value, blocks: ir.Value) -> tuple[ir.Value, int | ir.Value]:
        """The first row of one of so many blocks, and how many it has."""
        em, static, row = self.emitter, self.rows.static, self.emitter.mul(block, self.emitter.number(self.height))
        if static is not None and (static <= self.height or static % self.height == 0):
            return row, min(static, self.height)
        return row, em.op("arith.minui", [em.sub(self.memory.size(self.rows), row), em.number(self.height)], em.index)

    def _unit(self, point: Point, row: ir.Value, count: int | ir.Value, column: ir.Value) -> None:
        unit = self.unit(point, row, count, column)
        unit.each_tile(unit.begin)
        self._add(unit)
        unit.finish()

    def _add(self, unit: BlockUnit) -> None:
        """All products of a unit."""
        em, k, depth = self.emitter, self.contraction.nest.extents[self.contraction.k].static, self.depth
        assert k is not None
        whole = k // depth * depth
        em.each(em.number(0), em.number(whole), depth, lambda k: unit.products(k, depth))
        if k > whole:
            unit.products(em.number(whole), k - whole)

    def unit(self, point: Point, row: ir.Value, count: int | ir.Value, column: ir.Value) -> BlockUnit:
        """The block of so many rows, and the chunk of panels, that begin there."""
        return BlockUnit(self, point, row, count, column)


class BlockUnit:
    """One block of ``count`` rows and chunk of panels: its sums, in tiles as they are computed."""

    def __init__(self, blocks: BlockLoops, point: Point, row: ir.Value, count: int | ir.Value, column: ir.Value):
        em, loads = blocks.emitter, blocks.microkernel.loads
        self.blocks, self.emitter, self.point, self.column = blocks, em, point, column
        self.row, self.count = row, count
        self.loads, self.epilogue = loads, blocks.microkernel.epilogue
        self.kind = em.vector(blocks.tiles.width, loads.element)
        self.sums = em.scratch(blocks.height * blocks.most, loads.element)
        k = blocks.contraction.nest.extents[blocks.contraction.k].static
        self.copier = LeftCopier(loads, blocks.height, min(blocks.depth, k)) if blocks.copies and k is not None else None

    def products(self, first: ir.Value, depth: int) -> None:
        """Adds the products of some steps of k; of a right factor that takes long, each panel of them is computed first."""
        sums, stager, steps = self.blocks.sums, self.blocks.stager, Steps(first, Size.of(depth))
        if self.copier is not None:
            loads = self.copier.copied(self.point, self.row, self.count, steps)
            sums, stager = FmaSums(loads), None if stager is None else Stager(loads, stager.groups)
        self.each_panel(lambda n, columns, last: self._products(n, columns, last, steps, sums, stager))

    def each_tile(self, tile: TileBody) -> None:
        """Every tile of every panel."""
        none = Steps(self.emitter.number(0), Size.of(0))
        self.each_panel(lambda n, columns, _: self._tiles(tile, n, columns, none, None, 0))

    def each_panel(self, panel: Callable[[ir.Value, Sequence[Column], ir.Value], None]) -> None:
        """Every panel, from its first column and its columns; and where the whole ones end."""
        em, blocks = self.emitter, self.blocks
        width, extent = blocks.tiles.panel, blocks.columns
        size, end = blocks.memory.size(extent), em.add(self.column, blocks.width)
        whole = em.op("arith.andi", [size, em.number(-width)], em.index)
        last = em.op("arith.minui", [end, whole], em.index)
        em.each(self.column, last, width, lambda n: panel(n, blocks.tiles.columns(n), last))
        if (multiples_of(blocks.contraction).columns if extent.static is None else extent.static) % width == 0:
            return
        rest = em.sub(size, whole) if extent.static is None else extent.static % width
        inside = em.compare("ugt", em.op("arith.minui", [end, size], em.index), whole)
        em.only_when(inside, lambda: panel(whole, blocks.tiles.columns(whole, rest), last))

    def _products(
        self, n: ir.Value, columns: Sequence[Column], last: ir.Value, steps: Steps, sums: Sums, stager: Stager | None
    ) -> None:
        following = self._following(n, steps, last)
        if stager is None:
            self._tiles(self._adding(sums), n, columns, steps, following, 0)
            return
        staged, done = self._stage(stager, n, columns, steps)
        self._tiles(self._adding(staged), n, columns, steps, following, done)

    def _adding(self, sums: Sums) -> TileBody:
        def tile(place: TilePlace, places: Sequence[ir.Value]) -> None:
            self.store(sums.accumulate(place, self.loaded(places)), places)

        return tile

    def _stage(self, stager: Stager, n: ir.Value, columns: Sequence[Column], steps: Steps) -> tuple[Sums, int | ir.Value]:
        """Computes some steps of a panel, in the first tile where there is a whole one; what reads it, and the rows done."""
        em, blocks, count = self.emitter, self.blocks, self.count
        height = self.loads.plan.first_height(count if isinstance(count, int) else None)
        scratch = stager.scratch(steps)

        def first_tile() -> None:
            places = self.places(n, self.row, height, len(columns))
            rows = blocks.tiles.points(self.point, blocks.m, self.row, height)
            totals = stager.in_tile(TilePlace(rows, columns, Share(em.number(0), 0), steps), self.loaded(places), scratch)
            self.store(totals, places)

        def alone() -> None:
            stager.alone(self.point, columns, steps, scratch)

        sums = stager.sums(steps, scratch)
        if not stager.in_tiles:
            alone()
            return sums, 0
        if isinstance(count, int):
            first_tile()
            return sums, height
        whole = em.number(height)
        em.only_when(em.compare("uge", count, whole), first_tile)
        em.only_when(em.compare("ult", count, whole), alone)
        return sums, em.op("arith.select", [em.compare("uge", count, whole), whole, em.number(0)], em.index)

    def _following(self, n: ir.Value, steps: Steps, last: ir.Value) -> NextPanel:
        """The same steps of the next panel; after the last one the next steps of the first, or a panel of another chunk."""
        em, contraction = self.emitter, self.blocks.contraction
        memory, zero = self.blocks.memory, em.number(0)
        column, step = em.add(n, em.number(self.blocks.tiles.panel)), em.add(steps.first, memory.size(steps.count))
        is_inside = em.compare("ult", column, last)
        has_steps = em.compare("ult", step, memory.size(contraction.nest.extents[contraction.k]))
        later = em.op("arith.select", [has_steps, step, zero], em.index)
        stays = em.op("arith.andi", [has_steps, em.compare("uge", column, last)], em.i1)
        return NextPanel(
            em.op("arith.select", [stays, self.column, column], em.index),
            em.op("arith.select", [is_inside, steps.first, later], em.index),
        )

    def _tiles(
        self,
        tile: TileBody,
        n: ir.Value,
        columns: Sequence[Column],
        steps: Steps,
        following: NextPanel | None,
        done: int | ir.Value,
    ) -> None:
        """The rows behind those that are done."""
        em, blocks, count = self.emitter, self.blocks, self.count

        def one(first: ir.Value, height: int, share: Share) -> None:
            places = self.places(n, first, height, len(columns))
            rows = blocks.tiles.points(self.point, blocks.m, first, height)
            tile(TilePlace(rows, columns, replace(share, following=following), steps), places)

        def loop(first: ir.Value, end: ir.Value, step: int, inner: Callable[[ir.Value], None]) -> None:
            em.each(first, end, step, inner)

        if isinstance(done, int):
            begin = em.add(self.row, em.number(done)) if done else self.row
            count = count - done if isinstance(count, int) else em.sub(count, em.number(done))
        else:
            begin, count = em.add(self.row, done), em.sub(count if isinstance(count, ir.Value) else em.number(count), done)
        blocks.tiles.split(begin, count, loop, one)

    def places(self, n: ir.Value, first: ir.Value, height: int, vectors: int) -> list[ir.Value]:
        """Where the sums of a tile are."""
        em, blocks = self.emitter, self.blocks
        start = em.mul(em.sub(n, self.column), em.number(blocks.height))
        start = em.add(start, em.mul(em.sub(first, self.row), em.number(blocks.tiles.panel)))
        offsets = [i * blocks.tiles.panel + j * blocks.tiles.width for i in range(height) for j in range(vectors)]
        return [em.add(start, em.number(i)) if i else start for i in offsets]

    def store(self, totals: Sequence[ir.Value], places: Sequence[ir.Value]) -> None:
        """Writes the sums of a tile."""
        for total, place in zip(totals, places, strict=True):
            self.emitter.effect("vector.store", [total, self.sums, place])

    def begin(self, place: TilePlace, places: Sequence[ir.Value]) -> None:
        """Where sums start."""
        for point, at in zip(self.loads.column_points(place), places, strict=True):
            first = self.emitter.broadcast(self.epilogue.initial(point), self.blocks.tiles.width)
            self.store([first], [at])

    def finish(self) -> None:
        """Behind all products."""
        self.each_tile(self.end)

    def end(self, place: TilePlace, places: Sequence[ir.Value]) -> None:
        """Writes the results: a pass over sums that are near costs less than code for the last block's tiles of their own."""
        for point, total in zip(self.loads.column_points(place), self.loaded(places), strict=True):
            self.epilogue.store(total, point)

    def loaded(self, places: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums of a tile."""
        return [self.emitter.op("vector.load", [self.sums, place], self.kind) for place in places]
