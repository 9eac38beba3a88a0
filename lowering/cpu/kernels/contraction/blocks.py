"""The loops around a contraction's tiles where k is long: it is cut into blocks, as are rows and columns.

::

    for unit of 126 rows and 8 panels {                     // what threads share
      sums = fill                                           // on the stack
      for k step 256, for panel, for tile { sums += products of these k }
      for panel, for tile { out = epilogue(sums) } }

What the tiles of a panel read of the right operand then stays in the level-1 cache, and what the panels of a chunk read of the
left one in level 2; a whole panel of a long k, and all its rows, would come from further away for every tile. Sums add their
products in the same order as without blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .....dialect.bindings import ir
from ..emit.emitter import Work
from ..emit.linear_index import Size
from ..emit.memory import Point
from .match import Contraction
from .microkernel import Microkernel
from .operand_loads import OperandLoads
from .shares import Column, Following, Share, Steps
from .tiles import Tiles

__all__ = ["Blocks"]

# Steps of k in a block: 16 KiB of a panel of f32. On Zen 3 2048 x 2048 x 2048 takes 0.85 of the time then, 1024 x 2048 x 1024
# 0.94, 128 x 3072 x 768 0.98; with 768 steps 128 rows take 1.07 and 1024 x 1024 x 1024 the same.
_DEPTH, _LONG = 256, 1024
# Blocks are of similar depth, a multiple of the steps of an iteration.
_EVEN = 8
# Rows of a block, and panels of a chunk; half of these where there would be few units to share. Of f32 and AVX2 the rows' part
# of k is 126 KiB and the sums are 63 KiB, of a level-2 cache of 512. 96 rows and 16 panels, or 192 rows, take as long. Blocks
# are of similar height: two threads take 55.9 instead of 69.4 ms for 12 products of 197 x 768 x 3072 (Zen 4).
_ROWS, _PANELS, _FEW_UNITS = 128, 8, 32

TileBody = Callable[[Sequence[Point], Sequence[Column], Share, Sequence[ir.Value]], None]
"""Builds a tile from its rows, columns, share of what is fetched, and where its sums are."""


class Blocks:
    """Builds these loops for one contraction."""

    def __init__(self, contraction: Contraction, tiles: Tiles, microkernel: Microkernel):
        self.contraction, self.tiles, self.microkernel = contraction, tiles, microkernel
        self.loads, self.epilogue = microkernel.loads, microkernel.epilogue
        self.emitter, self.memory = microkernel.emitter, microkernel.memory
        assert contraction.m is not None
        self.rows, self.columns = contraction.nest.extents[contraction.m], contraction.nest.extents[contraction.n]
        rows, columns = self.rows.static, self.columns.static
        self.height = _height(rows, tiles.rows)
        whole = _PANELS * tiles.panel
        few = rows is not None and columns is not None and -(-rows // self.height) * -(-columns // whole) < _FEW_UNITS
        self.width = whole // 2 if few else whole

    @staticmethod
    def suit(contraction: Contraction, tiles: Tiles, microkernel: Microkernel) -> bool:
        """Whether k is long enough, there may be rows enough, and blocks of the right factor can be computed."""
        loads = microkernel.loads
        if contraction.m is None or contraction.shared or contraction.outer or not microkernel.takes_steps:
            return False
        k, rows = (contraction.nest.extents[d].static for d in (contraction.k, contraction.m))
        if k is None or k <= _LONG or (rows is not None and rows <= Blocks.least(tiles, loads)):
            return False
        return not loads.is_long() or loads.can_stage(_depth(k, loads))

    @staticmethod
    def least(tiles: Tiles, loads: OperandLoads) -> int:
        """Of so many rows there are no blocks: each part of the right operand is read by a few tiles only."""
        return (loads.tiles_before_staging() if loads.is_long() else 3) * tiles.rows

    def build(self, point: Point, work: Work) -> None:
        """The loop over units, those of a chunk one after the other: blocks of rows are not all of the same height."""
        em, chunks, blocks = self.emitter, self._ceil(self.columns, self.width), self._ceil(self.rows, self.height)

        def unit(number: ir.Value) -> None:
            chunk = em.op("arith.divui", [number, blocks], em.index)
            block = em.sub(number, em.mul(chunk, blocks))
            self._unit(point, em.mul(block, em.number(self.height)), em.mul(chunk, em.number(self.width)))

        em.shared(em.number(0), em.mul(blocks, chunks), 1, unit, work)

    def _ceil(self, size: Size, by: int) -> ir.Value:
        em = self.emitter
        if size.static is not None:
            return em.number(-(-size.static // by))
        return em.op("arith.ceildivui", [self.memory.size(size), em.number(by)], em.index)

    def _unit(self, point: Point, row: ir.Value, column: ir.Value) -> None:
        em, k = self.emitter, self.contraction.nest.extents[self.contraction.k].static
        assert k is not None
        depth = _depth(k, self.loads)
        unit = _Unit(self, point, row, column)
        unit.each_tile(unit.begin)
        whole = k // depth * depth
        em.each(em.number(0), em.number(whole), depth, lambda k: unit.each_product(Steps(k, Size.of(depth))))
        if k > whole:
            unit.each_product(Steps(em.number(whole), Size.of(k - whole)))
        unit.each_tile(unit.end)


def _height(rows: int | None, tile: int) -> int:
    """Rows of a block; a multiple of a tile where there are several blocks."""
    if rows is None:
        return _ROWS // tile * tile
    if rows <= _ROWS:
        return rows
    blocks = -(-rows // (_ROWS // tile * tile))
    return -(-rows // (blocks * tile)) * tile


def _depth(k: int, loads: OperandLoads) -> int:
    """Steps of k in a block; where groups share a scale, whole groups."""
    every = 0 if loads.invariant is None else loads.invariant.group_size
    even = every if every % _EVEN == 0 and _EVEN < every <= _DEPTH else _EVEN
    return -(-k // (-(-k // _DEPTH) * even)) * even


class _Unit:
    """One block of rows and chunk of panels: its sums, in tiles as they are computed."""

    def __init__(self, blocks: Blocks, point: Point, row: ir.Value, column: ir.Value):
        em, element = blocks.emitter, blocks.loads.element
        self.blocks, self.emitter, self.point, self.row, self.column = blocks, em, point, row, column
        self.kind = em.vector(blocks.tiles.width, element)
        self.sums = em.scratch(blocks.height * blocks.width, element)

    def each_product(self, steps: Steps) -> None:
        """Adds the products of some steps of k; of a right factor that takes long, each panel of them is computed first."""

        def tile(rows: Sequence[Point], columns: Sequence[Column], share: Share, places: Sequence[ir.Value]) -> None:
            totals = self.blocks.microkernel.sums(rows, columns, share, self._loaded(places), steps)
            self._store(totals, places)

        self.each_tile(tile, steps)

    def each_tile(self, tile: TileBody, steps: Steps | None = None) -> None:
        """Every tile of every panel."""
        em, blocks = self.emitter, self.blocks
        panel, extent = blocks.tiles.panel, blocks.columns
        size, end = blocks.memory.size(extent), em.add(self.column, em.number(blocks.width))
        whole = em.op("arith.andi", [size, em.number(-panel)], em.index)
        last = em.op("arith.minui", [end, whole], em.index)
        em.each(self.column, last, panel, lambda n: self._rows(tile, n, blocks.tiles.columns(n), steps, last))
        if extent.static is not None and extent.static % panel == 0:
            return
        rest = em.sub(size, whole) if extent.static is None else extent.static % panel
        inside = em.compare("ugt", em.op("arith.minui", [end, size], em.index), whole)
        em.when(inside, lambda: (self._rows(tile, whole, blocks.tiles.columns(whole, rest), steps, last), ())[1])

    def _rows(self, tile: TileBody, n: ir.Value, columns: Sequence[Column], steps: Steps | None, last: ir.Value) -> None:
        loads, following = self.blocks.loads, None if steps is None else self._following(n, steps, last)
        done = self._stage(n, columns, steps) if steps is not None and loads.is_long() else 0
        self._tiles(tile, n, columns, following, done)
        loads.unstage()

    def _stage(self, n: ir.Value, columns: Sequence[Column], steps: Steps) -> int | ir.Value:
        """Computes some steps of a panel, in the first tile where there is a whole one; the rows that this takes."""
        em, blocks, m, count = self.emitter, self.blocks, self.blocks.contraction.m, self._count()
        assert m is not None
        height = blocks.tiles.first_height(count if isinstance(count, int) else None)
        scratch = blocks.loads.stage_scratch(steps)

        def first_tile() -> tuple[()]:
            places = self._places(n, columns, self.row, height)
            rows = blocks.tiles.points(self.point, m, self.row, height)
            totals = blocks.microkernel.staging_sums(rows, columns, self._loaded(places), steps, scratch)
            self._store(totals, places)
            return ()

        def alone() -> tuple[()]:
            blocks.loads.stage(self.point, columns, steps, scratch=scratch)
            return ()

        if not blocks.microkernel.stages_in_tiles:
            alone()
            return 0
        if isinstance(count, int):
            first_tile()
            return height
        whole = em.number(height)
        em.when(em.compare("uge", count, whole), first_tile)
        em.when(em.compare("ult", count, whole), alone)
        return em.op("arith.select", [em.compare("uge", count, whole), whole, em.number(0)], em.index)

    def _following(self, n: ir.Value, steps: Steps, last: ir.Value) -> Following:
        """The same steps of the next panel; after the last one the next steps of the first, or a panel of another chunk."""
        em, contraction = self.emitter, self.blocks.contraction
        memory, zero = self.blocks.memory, em.number(0)
        column, step = em.add(n, em.number(self.blocks.tiles.panel)), em.add(steps.first, memory.size(steps.count))
        is_inside = em.compare("ult", column, last)
        has_steps = em.compare("ult", step, memory.size(contraction.nest.extents[contraction.k]))
        later = em.op("arith.select", [has_steps, step, zero], em.index)
        stays = em.op("arith.andi", [has_steps, em.compare("uge", column, last)], em.i1)
        return Following(
            em.op("arith.select", [stays, self.column, column], em.index),
            em.op("arith.select", [is_inside, steps.first, later], em.index),
        )

    def _tiles(
        self, tile: TileBody, n: ir.Value, columns: Sequence[Column], following: Following | None, done: int | ir.Value
    ) -> None:
        """The rows behind those that are done."""
        em, blocks, m, count = self.emitter, self.blocks, self.blocks.contraction.m, self._count()
        assert m is not None

        def one(first: ir.Value, height: int, share: Share) -> None:
            places = self._places(n, columns, first, height)
            tile(blocks.tiles.points(self.point, m, first, height), columns, replace(share, following=following), places)

        def loop(first: ir.Value, end: ir.Value, step: int, inner: Callable[[ir.Value], None]) -> None:
            em.each(first, end, step, inner)

        if isinstance(done, int):
            begin = em.add(self.row, em.number(done)) if done else self.row
            count = count - done if isinstance(count, int) else em.sub(count, em.number(done))
        else:
            begin, count = em.add(self.row, done), em.sub(count if isinstance(count, ir.Value) else em.number(count), done)
        blocks.tiles.split(begin, count, loop, one)

    def _count(self) -> int | ir.Value:
        """The rows of this block."""
        em, blocks, static = self.emitter, self.blocks, self.blocks.rows.static
        if static is not None and static % blocks.height == 0:
            return blocks.height
        left = em.sub(blocks.memory.size(blocks.rows), self.row)
        return em.op("arith.minui", [left, em.number(blocks.height)], em.index)

    def _places(self, n: ir.Value, columns: Sequence[Column], first: ir.Value, height: int) -> list[ir.Value]:
        """Where the sums of a tile are."""
        em, blocks = self.emitter, self.blocks
        start = em.mul(em.sub(n, self.column), em.number(blocks.height))
        start = em.add(start, em.mul(em.sub(first, self.row), em.number(blocks.tiles.panel)))
        offsets = [i * blocks.tiles.panel + j * blocks.tiles.width for i in range(height) for j in range(len(columns))]
        return [em.add(start, em.number(i)) if i else start for i in offsets]

    def _store(self, totals: Sequence[ir.Value], places: Sequence[ir.Value]) -> None:
        for total, place in zip(totals, places, strict=True):
            self.emitter.effect("vector.store", [total, self.sums, place])

    def begin(self, rows: Sequence[Point], columns: Sequence[Column], _: Share, places: Sequence[ir.Value]) -> None:
        """Where sums start."""
        points = [self.blocks.loads.column_point(row, column) for row in rows for column in columns]
        for point, place in zip(points, places, strict=True):
            first = self.emitter.broadcast(self.blocks.epilogue.initial(point), self.blocks.tiles.width)
            self._store([first], [place])

    def end(self, rows: Sequence[Point], columns: Sequence[Column], _: Share, places: Sequence[ir.Value]) -> None:
        """Writes the results: a pass over sums that are near costs less than code for the last block's tiles of their own."""
        points = [self.blocks.loads.column_point(row, column) for row in rows for column in columns]
        for point, total in zip(points, self._loaded(places), strict=True):
            self.blocks.epilogue.store(total, point)

    def _loaded(self, places: Sequence[ir.Value]) -> list[ir.Value]:
        return [self.emitter.op("vector.load", [self.sums, place], self.kind) for place in places]
