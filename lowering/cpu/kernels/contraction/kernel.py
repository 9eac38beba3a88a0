"""Lowers a contraction (matrix multiplication, batched, B packed or not) to a register-tiled kernel, its epilogue fused.

Before::

    linalg.fill 0 -> C;  linalg.generic {relax.contraction} C[m, n] += A[m, k] * B[n floordiv 32, k, n mod 32]
    linalg.generic out[m, n] = max(C[m, n] + bias[n], 0)

After::

    for batch, for n step 32, for m step 8 {
      8x2 accumulators = for k { 8 scalars of A, 2 vectors of B, 16 fused multiply-adds }
      out[m.., n..] = max(accumulator + bias[n..], 0) }             // C never is in memory

Rows that do not fill a tile use smaller tiles; columns that do not are computed whole and stored under a mask. A factor may be
computed from narrower operands: the right one once per vector and step of k for all rows of a tile, or, when that takes long,
once per panel for all tiles. Reductions may be several, as a window's height, width and channels are: neighbours that are
contiguous in all operands are one loop, and the accumulators stay in registers through all.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from functools import reduce
from operator import mul

from .....dialect.bindings import ir
from .....dialect.traversal import erase_with_users
from ....integer_product import IntegerProduct
from ....kernels.emit.emitter import Emitter, LoopWork
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Memory, Point
from ....kernels.structure.match import Contraction, MatchedGroup
from ....kernels.structure.nest import Nest, read_nest
from ....kernels.structure.row_groups import ROWS_OF_GROUP, GroupedContraction, match_one_group
from ....target import Target
from .blocks import BlockLoops
from .byte_sums import ByteSums
from .contraction_plan import COLUMNS, PARTS, ROWS, ContractionPlan, batch_loop, shared_loop
from .dot_sums import DotSums
from .epilogue import FetchedEpilogue, GroupedEpilogue
from .fma_sums import FmaSums
from .folded_sums import FoldedSums
from .group_loads import GroupLoads
from .grouped_sums import GroupedSums
from .integer_sums import IntegerSums
from .matrix_kernel import MatrixMicrokernel
from .microkernel import Microkernel, Sums
from .operand_loads import OperandLoads
from .parts import PartLoops
from .plan_contractions import checked_plan
from .row_group_loops import RowGroupLoops
from .shape import factors_of_tiles, group_invariant_of, multiples_of
from .split_blocks import SplitBlockLoops
from .staging import Stager
from .tile_place import Column, Share, Steps, TilePlace
from .tiles import Tiles
from .tuning import tuning_of
from .word_loads import WordLoads

__all__ = ["lower_group"]


def lower_group(group: MatchedGroup, emitter: Emitter, target: Target) -> bool:
    """Replaces a contraction and what is fused with it by one kernel; False, and nothing changed, when it does not match.

    Raises:
        RelaxError: its plan does not fit it, or its marks do not.
    """
    at = group.epilogue or group.contraction
    with emitter.before(at):
        memory = Memory(emitter)
        contraction = match_one_group(group.contraction, memory)
        if contraction is None:
            return False
        epilogue = None if group.epilogue is None else read_nest(group.epilogue, memory)
        plan = checked_plan(contraction, target)
        ContractionKernel(contraction, epilogue, group, emitter, memory, plan, tuning_of(target).work).build()
    _erase(group)
    return True


def _erase(group: MatchedGroup) -> None:
    for operation in (group.epilogue, group.contraction, group.fill):
        if operation is not None:
            operation.erase()
    if group.temporary is not None:
        erase_with_users(group.temporary.owner.operation)  # its deallocation and unused views


class ContractionKernel:
    """Builds one contraction kernel, as its plan says."""

    def __init__(
        self,
        contraction: Contraction,
        epilogue: Nest | None,
        group: MatchedGroup,
        emitter: Emitter,
        memory: Memory,
        plan: ContractionPlan,
        multiplications_per_work: int,
    ):
        self.contraction, self.epilogue, self.plan = contraction, epilogue, plan
        self.emitter, self.memory, self.per_work = emitter, memory, multiplications_per_work
        self.extents = contraction.nest.extents
        # Groups are of few rows each, and their matrices are read for these alone.
        has_groups = isinstance(contraction, GroupedContraction) and plan.matrix is None
        self.tiles = Tiles(emitter, plan, has_every_height=has_groups)
        self.loads = (WordLoads if plan.sums == "words" else OperandLoads)(contraction, emitter, memory, plan)
        invariant = group_invariant_of(contraction) if plan.sums == "groups" or plan.stage is not None else None
        self.groups = None if invariant is None else GroupLoads(self.loads, invariant)
        self.sums = self._sums(self.groups)
        self.stager = None if plan.stage is None else Stager(self.loads, self.groups)
        stores = GroupedEpilogue if isinstance(contraction, GroupedContraction) else FetchedEpilogue
        self.microkernel = self._microkernel(stores(contraction, epilogue, group, emitter, memory))

    def build(self) -> None:
        sizes = self.contraction.nest.sizes() | (self.epilogue.sizes() if self.epilogue else set())
        of_group = {size for size in sizes if any(ROWS_OF_GROUP in symbols for symbols, _ in size.terms)}
        self.memory.prepare(sizes - of_group)
        for nest in (self.contraction.nest, self.epilogue):
            for operation in nest.body()[0] if nest else []:
                if operation.name == "memref.load":
                    self.memory.captured(operation.operands[0])
        self.microkernel.epilogue.read_scalars()
        inner, contraction = self._split if self.plan.split is not None else self._blocked, self.contraction
        if isinstance(contraction, GroupedContraction):
            loops, work = RowGroupLoops(contraction, self.emitter, self.memory), self._work_of_groups(contraction)
            loops.build(self.microkernel, self.tiles, of_group, inner, work)
        else:
            self._loops([(d, batch_loop(i)) for i, d in enumerate(contraction.batch)], Point(), inner)
        self.microkernel.done()

    def _microkernel(self, epilogue: FetchedEpilogue) -> Microkernel:
        """What builds tiles."""
        factors = None if self.plan.matrix is None else factors_of_tiles(self.contraction)
        if factors is None:
            return Microkernel(self.loads, epilogue)
        return MatrixMicrokernel(self.loads, epilogue, self.plan, factors)

    def _sums(self, groups: GroupLoads | None) -> Sums:
        """How tiles sum that compute the right factor themselves."""
        if self.plan.sums == "integers":
            product = IntegerProduct.of(self.contraction.nest.operation)
            assert product is not None
            return IntegerSums(self.loads, product)
        if self.plan.sums == "bytes":
            return ByteSums(self.loads)
        if self.plan.sums == "dot":
            return DotSums(self.loads)
        if self.plan.sums == "folded":
            return FoldedSums(self.loads)
        if self.plan.sums == "groups":
            assert groups is not None
            return GroupedSums(groups)
        return FmaSums(self.loads)

    # -- loops around a tile ---------------------------------------------------------------------------------------

    def _loops(self, dims: Sequence[tuple[int, str]], point: Point, inner: Callable[[Point], None]) -> None:
        if not dims:
            inner(point)
            return
        (first, name), *others = dims
        end = self.memory.size(self.extents[first])
        self._range(name, self.emitter.number(0), end, 1, lambda i: self._loops(others, point.at(first, i), inner))

    def _range(self, name: str, begin: ir.Value, end: ir.Value, step: int, inner: Callable[[ir.Value], None]) -> None:
        """A loop that threads share where the plan says so."""
        if name in self.plan.threads:
            self.emitter.shared(begin, end, step, inner, self._work(self.extents.values()))
        elif not name:
            self.emitter.once(lambda: self.emitter.each(begin, end, step, inner))
        else:
            self.emitter.each(begin, end, step, inner)

    def _work_of_groups(self, contraction: GroupedContraction) -> LoopWork | None:
        """That of all groups, where threads share what is outermost in each."""
        if not {COLUMNS, PARTS} & set(self.plan.threads):
            return None
        extents, rows = dict(self.extents), contraction.groups.rows
        if contraction.m is not None and rows is not None:
            extents[contraction.m] = rows
        return self._work(extents.values())

    def _work(self, extents: Collection[Size]) -> LoopWork:
        amount = math.prod(e.static for e in extents if e.static is not None)
        return LoopWork(max(1, amount // self.per_work), tuple(self.memory.size(e) for e in extents if e.static is None))

    def _all_steps(self) -> Steps:
        return Steps(self.emitter.number(0), self.extents[self.contraction.k])

    # -- columns -----------------------------------------------------------------------------------------------------

    def _columns(self, point: Point) -> None:
        """All columns; for a single row in a way of its own, where it is known at run time only whether there is one."""
        em, m = self.emitter, self.contraction.m
        rows = Size.of(1) if m is None else self.extents[m]
        if rows.static is not None:
            sums = self._scaled(point, rows.static)
            self._panels(point, sums, self._streamed(point, rows.static, sums))
            return
        if self.plan.panels == 1:
            self._panels(point, self.sums)
            return

        def single() -> None:
            self._panels(point, self.sums, self._streamed(point, 1, self._scaled(point, 1)))

        count, one = self.memory.size(rows), em.number(1)
        em.only_when(em.compare("eq", count, one), single)
        em.only_when(em.compare("ne", count, one), lambda: self._panels(point, self.sums))

    def _scaled(self, point: Point, rows: int) -> Sums:
        """How tiles of all rows sum, which are scaled first where the plan says so."""
        depth = self.extents[self.contraction.k].static
        if not self.plan.scaled_left or self.groups is None or depth is None:
            return self.sums
        return self._sums(self.groups.with_scaled(self._rows(point, rows), depth))

    def _rows(self, point: Point, count: int) -> list[Point]:
        """The first rows."""
        m = self.contraction.m
        return [point] if m is None else self.tiles.points(point, m, self.emitter.number(0), count)

    def _streamed(self, point: Point, rows: int, sums: Sums) -> int:
        """Tiles of all rows and several panels; the columns that they take, from the first on."""
        em, panel, several = self.emitter, self.tiles.panel, self.plan.panels
        columns = self.extents[self.contraction.n].static
        if several == 1 or columns is None:
            return 0
        points = self._rows(point, rows)

        def tile(n: ir.Value) -> None:
            starts = [em.add(n, em.number(i * panel)) if i else n for i in range(several)]
            vectors = [c for start in starts for c in self.tiles.columns(start)]
            self.microkernel.tile(sums, TilePlace(points, vectors, Share(em.number(0), 0), self._all_steps()))

        done = columns // (several * panel) * several * panel
        self._range(COLUMNS, em.number(0), em.number(done), several * panel, tile)
        return done

    def _split(self, point: Point) -> None:
        """Many rows in blocks that tile registers multiply."""
        assert self.plan.split is not None
        blocks = SplitBlockLoops(self.plan, self.tiles, self.microkernel, self.sums, self.groups)
        if self.plan.split.always:
            blocks.build(point, self._work(self.extents.values()))
            return
        self._many_rows(point, blocks, self.plan.split.blocks.above, self._blocked)

    def _blocked(self, point: Point) -> None:
        """In blocks, where the plan has such."""
        plan = self.plan
        if plan.blocks is None:
            self._columns(point)
            return
        blocks = BlockLoops(plan.blocks, self.tiles, self.microkernel, self.sums, self.stager, copies=plan.copied_left)
        self._many_rows(point, blocks, plan.blocks.above, self._columns)

    def _many_rows(self, point: Point, blocks: BlockLoops, above: int, few: Callable[[Point], None]) -> None:
        """In blocks; few rows without these, where it is known at run time only how many there are."""
        em, m = self.emitter, self.contraction.m
        assert m is not None
        work = self._work(self.extents.values())
        if self.extents[m].static is not None:
            blocks.build(point, work)
            return
        count, least = self.memory.size(self.extents[m]), em.number(above)
        em.only_when(em.compare("ugt", count, least), lambda: blocks.build(point, work))
        em.only_when(em.compare("ule", count, least), lambda: few(point))

    def _panels(self, point: Point, sums: Sums, begin: int = 0) -> None:
        """Column panels: whole ones in a loop, then the one that is cut off; or those of each part of the rows."""
        if self.plan.parts is not None and not begin:
            PartLoops(self.plan, self.tiles, self.microkernel, sums).build(point, functools.partial(self._range, PARTS))
            return
        em, panel, extent = self.emitter, self.tiles.panel, self.extents[self.contraction.n]
        static, first = extent.static, em.number(begin)
        # What several panels at once leave are few.
        name = COLUMNS if not begin else ""
        if static is not None:
            whole = static // panel * panel
            if whole > begin:
                self._range(name, first, em.number(whole), panel, lambda n: self._panel(point, sums, self.tiles.columns(n)))
            if static > whole:
                em.once(lambda: self._panel(point, sums, self.tiles.columns(em.number(whole), static - whole)))
            return
        size = self.memory.size(extent)
        if multiples_of(self.contraction).columns % panel == 0:
            self._range(name, first, size, panel, lambda n: self._panel(point, sums, self.tiles.columns(n)))
            return
        whole = em.op("arith.andi", [size, em.number(-panel)], em.index)
        self._range(name, first, whole, panel, lambda n: self._panel(point, sums, self.tiles.columns(n)))
        rest = em.sub(size, whole)
        self.tiles.when_positive(rest, lambda: em.once(lambda: self._panel(point, sums, self.tiles.columns(whole, rest))))

    # -- rows --------------------------------------------------------------------------------------------------------

    def _panel(self, point: Point, sums: Sums, columns: Sequence[Column]) -> None:
        """All rows of one column panel; where many read a factor that takes long to compute, it is computed first, once."""
        stage = self.plan.stage
        if stage is None or stage.above is None:
            self._all_rows(point, sums, columns)
            return
        em, dims = self.emitter, [*self.contraction.shared, *([] if self.contraction.m is None else [self.contraction.m])]
        rows = reduce(mul, (self.extents[d] for d in dims), Size.of(1))
        if rows.static is not None:
            self._staged(point, columns)
            return
        count, most = self.memory.size(rows), em.number(stage.above)
        em.only_when(em.compare("sgt", count, most), lambda: self._staged(point, columns))
        em.only_when(em.compare("sle", count, most), lambda: self._all_rows(point, sums, columns))

    def _staged(self, point: Point, columns: Sequence[Column]) -> None:
        assert self.stager is not None
        steps, m = self._all_steps(), self.contraction.m
        if not self.stager.in_tiles or m is None:
            scratch = self.stager.scratch(steps)
            self.stager.alone(point, columns, steps, scratch)
            self._all_rows(point, self.stager.sums(steps, scratch), columns)
            return
        height = self.plan.first_height(self.extents[m].static)
        place = TilePlace(self._rows(point, height), columns, Share(self.emitter.number(0), 0), steps)
        self._all_rows(point, self.microkernel.staging_tile(self.stager, place), columns, height)

    def _all_rows(self, point: Point, sums: Sums, columns: Sequence[Column], begin: int = 0) -> None:
        """All rows from one on, for each place in the dimensions that the left operand has alone."""
        if self.plan.joined:
            self._joined_tiles(point, sums, columns)
            return
        dims = [(d, shared_loop(i)) for i, d in enumerate(self.contraction.shared)]
        self._loops(dims, point, lambda p: self._row_tiles(p, sums, columns, begin))

    def _row_tiles(self, point: Point, sums: Sums, columns: Sequence[Column], begin: int) -> None:
        """The rows from the first or a later one on, in tiles."""
        em, m, steps = self.emitter, self.contraction.m, self._all_steps()
        if m is None:
            self.microkernel.tile(sums, TilePlace([point], columns, Share(em.number(0), 0), steps))
            return
        extent = self.extents[m]

        def loop(first: ir.Value, end: ir.Value, step: int, inner: Callable[[ir.Value], None]) -> None:
            self._range(ROWS, first, end, step, inner)

        def tile(first: ir.Value, height: int, share: Share) -> None:
            self.microkernel.tile(sums, TilePlace(self.tiles.points(point, m, first, height), columns, share, steps))

        count = em.sub(self.memory.size(extent), em.number(begin)) if extent.static is None else extent.static - begin
        self.tiles.split(em.number(begin), count, loop, tile)

    def _joined_tiles(self, point: Point, sums: Sums, columns: Sequence[Column]) -> None:
        """The rows of all places in the shared loop in tiles, some of which begin in one and end in another."""
        em, m, (line,), steps = self.emitter, self.contraction.m, self.contraction.shared, self._all_steps()
        assert m is not None
        width, lines = self.memory.size(self.extents[m]), self.memory.size(self.extents[line])

        def tile(first: ir.Value, height: int, share: Share) -> None:
            rows = self.tiles.joined_points(point, (line, m), first, width, height)
            self.microkernel.tile(sums, TilePlace(rows, columns, share, steps))

        def loop(first: ir.Value, end: ir.Value, step: int, inner: Callable[[ir.Value], None]) -> None:
            self._range(ROWS, first, end, step, inner)

        self.tiles.even(em.number(0), em.mul(lines, width), loop, tile)
