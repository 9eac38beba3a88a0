"""Blocks of a product of f32 whose parts in bf16 tile registers multiply (Intel AMX).

::

    for unit of 128 rows and 16 panels {                     // what threads share
      sums = fill                                            // on the stack
      for k step 512 {
        rows = three bf16 for each element of the left factor            // on the stack
        for panel {
          steps = three bf16 for each element of the right factor        // on the stack
          for 16 rows { sums += 6 products of parts } } }          // of integers with scales 3, :mod:`.scaled_tiles`
      for panel, for row { where a sum is not a number, it is summed again in vectors }
      for panel, for tile { out = epilogue(sums) } }

Sums are nearer to the exact ones than those of fused multiply-adds: an instruction sums 32 products apart, which are less than
all before them, and then adds these. Infinity has no parts (what is left of it is not a number), hence the sums again. Parts
below the normal numbers count as zero: of elements below 2 ** -110 the last bits are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .....dialect.bindings import ir
from ....kernels.emit.memory import Point
from ....kernels.emit.scalar_body import Environment
from .blocks import BlockLoops, BlockUnit
from .contraction_plan import Blocks, ContractionPlan
from .group_loads import GroupLoads
from .matrix_shape import TILE_ROWS, TILE_WORDS, WORD_BYTES
from .microkernel import Microkernel, Sums
from .scaled_tiles import ScaledTiles
from .split_factors import SPLIT_INSTRUCTION, TILE_STEPS, LeftSplitter, RightSplitter, SplitSteps
from .tile_place import Column, Share, Steps, TilePlace
from .tile_registers import Registers, TileMemory, TileRegisters
from .tiles import Tiles

__all__ = ["SplitBlockLoops"]

# Shares that registers of rows have at most in splitting what follows, and where the rows of a block may be any number.
_SHARES, _FEW_SHARES = 8, 4
# Panels of a chunk at least, where there would be few units otherwise.
_LEAST_PANELS = 6
# Rows of sums that are scaled at once behind the last group.
_ROWS = 2


@dataclass(frozen=True)
class _Following:
    """The panel behind one: its columns, in how many shares it is split, and the buffer for it."""

    columns: Sequence[Column]
    shares: int
    buffer: ir.Value


@dataclass(frozen=True)
class _Panel:
    """Some steps of a panel: its first column, its columns, and the buffer that has its parts."""

    n: ir.Value
    columns: Sequence[Column]
    steps: SplitSteps
    buffer: ir.Value
    following: _Following | None


class SplitBlockLoops(BlockLoops):
    """Builds these loops for one contraction; ``sums`` are those of rows that are summed again.

    Blocks of rows and of k, and chunks of panels, are of similar size.
    """

    def __init__(self, plan: ContractionPlan, tiles: Tiles, microkernel: Microkernel, sums: Sums, groups: GroupLoads | None):
        assert plan.split is not None
        self.split, self.groups, most = plan.split, groups, plan.split.blocks
        extents, contraction = microkernel.loads.contraction.nest.extents, microkernel.loads.contraction
        assert contraction.m is not None
        rows, columns, depth = (extents[d].static for d in (contraction.m, contraction.n, contraction.k))
        blocks = Blocks(
            most.rows if rows is None else _even(rows, most.rows, TILE_ROWS),
            most.columns if columns is None else min(most.columns, -(-columns // tiles.panel) * tiles.panel),
            most.depth if depth is None or groups is not None else _even(depth, most.depth, TILE_STEPS),
            most.above,
            most.few,
        )
        super().__init__(blocks, tiles, microkernel, sums)
        #: Registers of rows that every block has at least.
        self.registers = self._registers(rows)

    def _registers(self, rows: int | None) -> int:
        number = -(-(self.split.blocks.above + 1 if rows is None else rows) // TILE_ROWS)
        most = self.split.blocks.rows // TILE_ROWS
        # Of an unknown number there may be one more than a block has.
        return min(number, (most + 1) // 2) if rows is None else number // -(-number // most)

    def _blocks(self) -> ir.Value:
        """As :meth:`BlockLoops._blocks`: each has its share of the registers of rows."""
        em, most = self.emitter, self.split.blocks.rows // TILE_ROWS
        return em.op("arith.ceildivui", [self._ceil(self.rows, TILE_ROWS), em.number(most)], em.index)

    def _rows_of(self, block: ir.Value, blocks: ir.Value) -> tuple[ir.Value, int | ir.Value]:
        """As :meth:`BlockLoops._rows_of`."""
        em, static = self.emitter, self.rows.static
        if static is not None and static <= self.height:
            return em.number(0), static
        registers = self._ceil(self.rows, TILE_ROWS)

        def first(number: ir.Value) -> ir.Value:
            return em.mul(em.op("arith.divui", [em.mul(number, registers), blocks], em.index), em.number(TILE_ROWS))

        row, behind = first(block), first(em.add(block, em.number(1)))
        return row, em.sub(em.op("arith.minui", [behind, self.memory.size(self.rows)], em.index), row)

    def _width(self, blocks: ir.Value) -> ir.Value:
        """As :meth:`BlockLoops._width`: twice as many chunks where there would be few units, an even number if it can be."""
        em, panel, one = self.emitter, self.tiles.panel, self.emitter.number(1)
        panels = em.op("arith.maxui", [self._ceil(self.columns, panel), one], em.index)
        chunks = em.op("arith.ceildivui", [panels, em.number(self.split.blocks.columns // panel)], em.index)

        def has(number: ir.Value) -> ir.Value:
            """Whether there are enough panels for so many chunks."""
            return em.compare("uge", panels, em.mul(number, em.number(_LEAST_PANELS)))

        for _ in range((self.few - 1).bit_length()):
            twice, is_few = em.mul(chunks, em.number(2)), em.compare("ult", em.mul(blocks, chunks), em.number(self.few))
            chunks = em.select(em.op("arith.andi", [is_few, has(twice)], em.i1), twice, chunks)
        odd = em.op("arith.andi", [chunks, em.op("arith.minui", [em.sub(chunks, one), one], em.index)], em.index)
        more = em.add(chunks, odd)
        chunks = em.select(has(more), more, chunks)
        return em.mul(em.op("arith.ceildivui", [panels, chunks], em.index), em.number(panel))

    def _add(self, unit: BlockUnit) -> None:
        """As :meth:`BlockLoops._add`."""
        em, extent = self.emitter, self.contraction.nest.extents[self.contraction.k]
        if extent.static is not None:
            super()._add(unit)
            return
        assert isinstance(unit, _SplitUnit)
        size = self.memory.size(extent)
        number = em.op("arith.ceildivui", [size, em.number(self.depth)], em.index)
        registers = em.op("arith.ceildivui", [size, em.mul(number, em.number(TILE_STEPS))], em.index)
        depth = em.mul(registers, em.number(TILE_STEPS))

        def block(i: ir.Value) -> None:
            first = em.mul(i, depth)
            unit.add(SplitSteps(first, em.op("arith.minui", [depth, em.sub(size, first)], em.index)))

        em.each(em.number(0), number, 1, block)

    def unit(self, point: Point, row: ir.Value, count: int | ir.Value, column: ir.Value) -> BlockUnit:
        """As :meth:`BlockLoops.unit`."""
        return _SplitUnit(self, point, row, count, column)


class _SplitUnit(BlockUnit):
    """One block of rows and chunk of panels."""

    def __init__(self, blocks: SplitBlockLoops, point: Point, row: ir.Value, count: int | ir.Value, column: ir.Value):
        super().__init__(blocks, point, row, count, column)
        self.k = blocks.contraction.nest.extents[blocks.contraction.k]
        static = self.k.static
        depth = blocks.depth if static is None else min(blocks.depth, static)
        self.split, self.least = blocks.split, blocks.registers
        split = replace(blocks.split, blocks=replace(blocks.split.blocks, rows=blocks.height))
        self.left = LeftSplitter(self.loads, split, depth)
        self.right = RightSplitter(self.loads, split, depth, blocks.tiles.vectors, blocks.groups)
        self.registers = TileRegisters(self.emitter, SPLIT_INSTRUCTION)

    def products(self, first: ir.Value, depth: int) -> None:
        """As :meth:`BlockUnit.products`."""
        self.add(SplitSteps(first, depth))

    def add(self, steps: SplitSteps) -> None:
        """Adds the products of some steps of k."""
        em, count = self.emitter, self.count
        self.left.split(self.point, self.row, count, steps)
        shares = self._shares()
        if not self.right.takes_units(steps, TILE_STEPS // shares):
            self.each_panel(lambda n, columns, _: self._alone(n, columns, steps))
            return
        if self.least >= shares:
            self._ahead(steps, shares)
            return
        rows, least = em.as_index(count), em.number((shares - 1) * TILE_ROWS + 1)
        em.only_when(em.compare("uge", rows, least), lambda: self._ahead(steps, shares))
        is_less = em.compare("ult", rows, least)
        em.only_when(is_less, lambda: self.each_panel(lambda n, columns, _: self._alone(n, columns, steps)))

    def _shares(self) -> int:
        """In how many shares a panel is split: a power of two."""
        enough = self.least if isinstance(self.count, int) else max(self.least, _FEW_SHARES)
        return 1 << min(enough, self.blocks.height // TILE_ROWS, _SHARES).bit_length() - 1

    def _alone(self, n: ir.Value, columns: Sequence[Column], steps: SplitSteps) -> None:
        """A panel, split first."""
        zero = self.emitter.number(0)
        self.right.split(self.point, columns, steps, zero)
        self._panel(_Panel(n, columns, steps, zero, None))

    def _ahead(self, steps: SplitSteps, shares: int) -> None:
        """All panels, each split between the products of the one before."""
        em, size = self.emitter, self.emitter.number(self.blocks.tiles.panel)

        def panel(n: ir.Value, columns: Sequence[Column], last: ir.Value) -> None:
            if columns[0][1] is not None or len(columns) < self.blocks.tiles.vectors:
                self._alone(n, columns, steps)
                return
            number, after = em.op("arith.divui", [em.sub(n, self.column), size], em.index), em.add(n, size)
            buffer = em.op("arith.andi", [number, em.number(1)], em.index)
            em.only_when(em.compare("eq", n, self.column), lambda: self.right.split(self.point, columns, steps, buffer))
            # Behind the last panel it is split once more: a condition costs more.
            following = em.select(em.compare("ult", after, last), after, n)
            other = em.op("arith.xori", [buffer, em.number(1)], em.index)
            ahead = _Following(self.blocks.tiles.columns(following), shares, other)
            self._panel(_Panel(n, columns, steps, buffer, ahead))

        self.each_panel(panel)

    def finish(self) -> None:
        """As :meth:`BlockUnit.finish`."""
        self.each_panel(lambda n, columns, _: self._again(n, columns))
        super().finish()

    def _panel(self, panel: _Panel) -> None:
        """The products of some steps of a panel: one register of rows after the other, as two would need more registers."""
        em = self.emitter
        held = Registers((TILE_ROWS,), len(panel.columns), TILE_WORDS, keeps=True)
        begin = self.registers.begin(held)
        number = em.op("arith.ceildivui", [em.as_index(self.count), em.number(TILE_ROWS)], em.index)
        first = em.number(0 if panel.following is None else panel.following.shares)
        if panel.following is not None:
            em.each(em.number(0), first, 1, lambda tile: self._tile(held, panel, tile))
        em.each(first, number, 1, lambda tile: self._tile(held, replace(panel, following=None), tile))
        self.registers.end(held, begin)

    def _tile(self, held: Registers, panel: _Panel, number: ir.Value) -> None:
        """The same of one register of rows."""
        em, depth = self.emitter, panel.steps.count
        if self.right.is_scaled:
            assert isinstance(depth, int)
            self._scaled_tile(held, panel, number, -(-depth // TILE_STEPS))
            return
        sums = [[self._sum(panel.n, number, j) for j in range(held.vectors)]]
        self.registers.load(held, sums)
        steps = panel.steps.registers(em)
        em.each(em.number(0), steps, 1, lambda at: self._multiply(held, panel, number, at, []))
        self.registers.store(held, sums)

    def _scaled_tile(self, held: Registers, panel: _Panel, tile: ir.Value, steps: int) -> None:
        """The same of integers: the sums of a group are scaled between the products of the next one."""
        em, groups = self.emitter, self.right.groups
        assert groups is not None
        every = self._scaled_together(groups, steps)
        own = ScaledTiles(groups, len(panel.columns), self.blocks.tiles.panel)
        sums = self.sums, self.places(panel.n, em.add(self.row, em.mul(tile, em.number(TILE_ROWS))), 1, 1)[0]

        def group(number: ir.Value, before: ir.Value | None) -> None:
            self.registers.empty(held)
            factors, rows = [] if before is None else self._scales(panel, before, every), TILE_ROWS // every

            def step(at: ir.Value) -> None:
                first = em.mul(at, em.number(rows))
                done = [] if before is None else own.added(before, factors, sums, first, rows)
                self._multiply(held, panel, tile, em.add(em.mul(number, em.number(every)), at), done)

            em.each(em.number(0), em.number(every), 1, step)
            self.registers.store(held, own.tiles(number))

        group(em.number(0), None)
        em.each(em.number(1), em.number(steps // every), 1, lambda number: group(number, em.sub(number, em.number(1))))
        last = em.number(steps // every - 1)
        factors = self._scales(panel, last, every)

        def rest(row: ir.Value) -> None:
            for build in own.added(last, factors, sums, row, _ROWS):
                build()

        em.each(em.number(0), em.number(TILE_ROWS), _ROWS, rest)

    @staticmethod
    def _scaled_together(groups: GroupLoads, steps: int) -> int:
        """How many times 32 steps are scaled together: those of a group, or part of one, each with as many rows before them."""
        size = groups.invariant.group_size // TILE_STEPS
        whole = steps if not size or size > steps else size
        return min(whole & -whole, TILE_ROWS)

    def _scales(self, panel: _Panel, number: ir.Value, every: int) -> list[Environment]:
        """What the sums of so many times 32 steps take, of each vector of columns."""
        em, k, size = self.emitter, self.blocks.contraction.k, every * TILE_STEPS
        first = em.add(panel.steps.first, em.mul(number, em.number(size)))
        return self.right.invariants(self.point.at(k, first, size), panel.columns)

    def _multiply(
        self,
        held: Registers,
        panel: _Panel,
        number: ir.Value,
        at: ir.Value,
        others: list[Callable[[], None]],
    ) -> None:
        """Adds the products of 32 steps of k, and does something else between them."""
        split = self.split
        columns = [self.right.register(panel.buffer, j) for j in range(held.vectors)]
        left = [self.left.tile(at, part, number) for part in range(split.left)]
        right = [[self.right.tile(at, part, column) for part in range(split.right)] for column in columns]
        self.registers.multiply(held, [left], right, _merged(self._between(panel, number, at), others))

    def _between(self, panel: _Panel, number: ir.Value, at: ir.Value) -> list[Callable[[], None]]:
        """What a step of a tile does for the panel that follows: its share of splitting it."""
        em, following, steps = self.emitter, panel.following, panel.steps
        if following is None:
            return []
        count = TILE_STEPS // following.shares
        share = em.mul(steps.whole(em), em.number(count))
        done = em.add(em.mul(number, share), em.mul(at, em.number(count)))
        begin = em.add(steps.first, done)
        return self.right.unit(self.point, following.columns, steps, following.buffer, begin, count)

    def _sum(self, n: ir.Value, tile: ir.Value, vector: int) -> TileMemory:
        """Where the sums of a register of rows and a vector of columns are."""
        em, panel = self.emitter, self.blocks.tiles.panel
        first = em.add(self.row, em.mul(tile, em.number(TILE_ROWS)))
        (place,) = self.places(n, first, 1, 1)
        place = em.add(place, em.number(vector * TILE_WORDS))
        return TileMemory(self.sums, em.mul(place, em.number(WORD_BYTES)), em.number(panel * WORD_BYTES))

    def _again(self, n: ir.Value, columns: Sequence[Column]) -> None:
        """Sums the rows of a panel again that have sums which are no numbers."""
        em, blocks = self.emitter, self.blocks
        end = em.add(self.row, em.as_index(self.count))

        def row(first: ir.Value) -> None:
            places = self.places(n, first, 1, len(columns))
            rows = blocks.tiles.points(self.point, blocks.m, first, 1)
            place = TilePlace(rows, columns, Share(em.number(0), 0), Steps(em.number(0), self.k))
            em.only_when(self._has_none(places), lambda: self._sum_again(place, places))

        em.each(self.row, end, 1, row)

    def _has_none(self, places: Sequence[ir.Value]) -> ir.Value:
        """Whether one of the sums is not a number."""
        em = self.emitter
        kind, unordered = em.vector(self.blocks.tiles.width, em.i1), {"predicate": em.float_predicate("uno")}
        found = [em.op("arith.cmpf", [v, v], kind, unordered) for v in self.loaded(places)]
        every = found[0]
        for one in found[1:]:
            every = em.op("arith.ori", [every, one], kind)
        return em.reduce("or", every)

    def _sum_again(self, place: TilePlace, places: Sequence[ir.Value]) -> None:
        self.begin(place, places)
        self.store(self.blocks.sums.accumulate(place, self.loaded(places)), places)


def _merged(some: Sequence[Callable[[], None]], others: Sequence[Callable[[], None]]) -> list[Callable[[], None]]:
    """Both, each spread evenly."""
    placed = [((i + 0.5) / len(of), build) for of in (some, others) for i, build in enumerate(of)]
    return [build for _, build in sorted(placed, key=lambda p: p[0])]


def _even(size: int, most: int, register: int) -> int:
    """What each of as few parts of a size as can be has at most, in whole registers."""
    registers = -(-size // register)
    return -(-registers // -(-registers // (most // register))) * register
