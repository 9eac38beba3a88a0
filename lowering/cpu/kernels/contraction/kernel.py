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

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul

from .....dialect.bindings import ir
from ....target import Target
from ..emit.emitter import Emitter, Work
from ..emit.lane_math import constant_of
from ..emit.linear_index import Size
from ..emit.memory import Memory, Point
from ..nest.nest import Nest, read_nest
from ..nest.vector_plan import element_bits
from .blocks import Blocks
from .dot_sums import DotSums
from .epilogue import Epilogue
from .integer_sums import IntegerSums
from .match import Contraction, Group, match_contraction
from .microkernel import Microkernel
from .operand_loads import OperandLoads
from .shares import Column, Share
from .tiles import Tiles

__all__ = ["lower_group"]

# A loop of fewer iterations is not shared by threads: one inside of it may be.
_SHARED_AT_LEAST = 4
# Multiplications that count as one element operation of work.
_PER_STEP = 4


def lower_group(group: Group, emitter: Emitter, target: Target) -> bool:
    """Replaces a contraction and what is fused with it by one kernel; False, and nothing changed, when it does not match."""
    at = group.epilogue or group.contraction
    with emitter.before(at):
        memory = Memory(emitter)
        contraction = match_contraction(group.contraction, memory)
        if contraction is None:
            return False
        epilogue = None if group.epilogue is None else read_nest(group.epilogue, memory)
        Kernel(contraction, epilogue, group, emitter, memory, target).build()
    _erase(group)
    return True


def _erase(group: Group) -> None:
    for operation in (group.epilogue, group.contraction, group.fill):
        if operation is not None:
            operation.erase()
    if group.temporary is None:
        return
    for use in list(group.temporary.uses):
        use.owner.operation.erase()  # its deallocation and unused views
    group.temporary.owner.operation.erase()


class Kernel:
    """Builds one contraction kernel."""

    def __init__(
        self,
        contraction: Contraction,
        epilogue: Nest | None,
        group: Group,
        emitter: Emitter,
        memory: Memory,
        target: Target,
    ):
        self.contraction, self.epilogue = contraction, epilogue
        self.emitter, self.memory = emitter, memory
        self.extents = contraction.nest.extents
        rows, columns = target.matmul_tile
        element = contraction.nest.outputs[0].argument.type
        rows = max(1, rows * 32 // max(32, element_bits(element)))  # f64 takes two registers
        width = IntegerSums.lanes(contraction, target.lanes())
        self.tiles = Tiles(emitter, rows, width, max(1, columns // target.lanes()))
        self.loads = OperandLoads(contraction, emitter, memory, self.tiles.width, self.tiles.vectors, target.vector_registers)
        outputs = Epilogue(contraction, epilogue, group, emitter, memory)
        dots = DotSums.of(contraction, self.loads, emitter, target)
        integers = IntegerSums.of(contraction, self.loads, emitter, target)
        self.microkernel = Microkernel(contraction, self.loads, outputs, emitter, dots, integers)

    def build(self) -> None:
        self.memory.prepare(self.contraction.nest.sizes() | (self.epilogue.sizes() if self.epilogue else set()))
        for nest in (self.contraction.nest, self.epilogue):
            for operation in nest.body()[0] if nest else []:
                if operation.name == "memref.load":
                    self.memory.captured(operation.operands[0])
        suits = Blocks.suit(self.contraction, self.tiles, self.microkernel)
        self._loops(self.contraction.batch, Point(), self._blocked if suits else self._columns)

    # -- loops around a tile ---------------------------------------------------------------------------------------

    def _loops(self, dims: Sequence[int], point: Point, inner: Callable[[Point], None]) -> None:
        if not dims:
            inner(point)
            return
        first, rest = dims[0], dims[1:]
        self._range(0, self.extents[first], 1, lambda i: self._loops(rest, point.at(first, i), inner))

    def _range(self, begin: int, end: Size | ir.Value, step: int, inner: Callable[[ir.Value], None]) -> None:
        last = self.memory.size(end) if isinstance(end, Size) else end
        static = end.static if isinstance(end, Size) else constant_of(end)
        if static is not None and static - begin < _SHARED_AT_LEAST * step:
            self.emitter.each(self.emitter.number(begin), last, step, inner)
        else:
            self.emitter.shared(self.emitter.number(begin), last, step, inner, self._work())

    def _work(self) -> Work:
        extents = self.extents.values()
        amount = math.prod(e.static for e in extents if e.static is not None)
        return Work(max(1, amount // _PER_STEP), tuple(self.memory.size(e) for e in extents if e.static is None))

    def _columns(self, point: Point) -> None:
        """All columns; for a single row in a way of its own, where it is known at run time only whether there is one."""
        em, m = self.emitter, self.contraction.m
        rows = Size.of(1) if m is None else self.extents[m]
        if rows.static is not None:
            is_tile = rows.static <= self.tiles.rows and not self.contraction.shared
            self.loads.prepare_left(self._rows(point, rows.static) if is_tile else [])
            self._panels(point, self._streamed(point, rows.static))
            self.loads.forget_left()
            return
        if not self._streams(1):
            self._panels(point)
            return

        def single() -> tuple[()]:
            self.loads.prepare_left(self._rows(point, 1))
            done = self._streamed(point, 1)
            self.loads.forget_left()
            self._panels(point, done)
            return ()

        count, one = self.memory.size(rows), em.number(1)
        em.when(em.compare("eq", count, one), single)
        em.when(em.compare("ne", count, one), lambda: (self._panels(point), ())[1])

    def _rows(self, point: Point, count: int) -> list[Point]:
        """The first rows."""
        m = self.contraction.m
        return [point] if m is None else self.tiles.points(point, m, self.emitter.number(0), count)

    def _streams(self, rows: int) -> int:
        """How many panels a tile of few rows takes at once: memory gives more to several streams. 0 where it takes one."""
        columns, several = self.extents[self.contraction.n].static, self.microkernel.panels_at_once(rows, self.tiles.vectors)
        if self.contraction.shared or columns is None or self.microkernel.dots is not None or not self.loads.is_packed():
            return 0
        return several if several > 1 and columns >= _SHARED_AT_LEAST * several * self.tiles.panel else 0

    def _streamed(self, point: Point, rows: int) -> int:
        """Tiles of all rows and several panels; the columns that they take, from the first on."""
        several = self._streams(rows)
        em, panel, columns = self.emitter, self.tiles.panel, self.extents[self.contraction.n].static
        if not several or columns is None:
            return 0
        points = self._rows(point, rows)

        def tile(n: ir.Value) -> None:
            starts = [em.add(n, em.number(i * panel)) if i else n for i in range(several)]
            self.microkernel.tile(points, [c for start in starts for c in self.tiles.columns(start)], Share(em.number(0), 0))

        done = columns // (several * panel) * several * panel
        self._range(0, em.number(done), several * panel, tile)
        return done

    def _blocked(self, point: Point) -> None:
        """In blocks; few rows without, where it is known at run time only how many there are."""
        em, blocks, m = self.emitter, Blocks(self.contraction, self.tiles, self.microkernel), self.contraction.m
        assert m is not None
        if self.extents[m].static is not None:
            blocks.build(point, self._work())
            return
        count, least = self.memory.size(self.extents[m]), em.number(Blocks.least(self.tiles, self.loads))
        em.when(em.compare("ugt", count, least), lambda: (blocks.build(point, self._work()), ())[1])
        em.when(em.compare("ule", count, least), lambda: (self._columns(point), ())[1])

    def _panels(self, point: Point, begin: int = 0) -> None:
        """Column panels: whole ones in a loop, then the one that is cut off."""
        em, panel, extent = self.emitter, self.tiles.panel, self.extents[self.contraction.n]
        static = extent.static
        if static is not None:
            whole = static // panel * panel
            if whole > begin:
                self._range(begin, em.number(whole), panel, lambda n: self._panel(point, self.tiles.columns(n)))
            if static > whole:
                self._panel(point, self.tiles.columns(em.number(whole), static - whole))
            return
        size = self.memory.size(extent)
        whole = em.op("arith.andi", [size, em.number(-panel)], em.index)
        self._range(0, whole, panel, lambda n: self._panel(point, self.tiles.columns(n)))
        rest = em.sub(size, whole)
        self.tiles.when_positive(rest, lambda: self._panel(point, self.tiles.columns(whole, rest)))

    def _panel(self, point: Point, columns: Sequence[Column]) -> None:
        """All rows of one column panel."""
        self._staged(point, columns, lambda: self._loops(self.contraction.shared, point, lambda p: self._all_rows(p, columns)))

    def _staged(self, point: Point, columns: Sequence[Column], tiles: Callable[[], None]) -> None:
        """The tiles of a panel; where many rows read a factor that takes long to compute, it is computed first, once."""
        depth = self.extents[self.contraction.k].static
        computes = self.loads.is_long() and self.microkernel.integers is None
        if depth is None or not computes or not self.loads.can_stage(depth):
            tiles()
            return
        em, dims = self.emitter, [*self.contraction.shared, *([] if self.contraction.m is None else [self.contraction.m])]
        rows = reduce(mul, (self.extents[d] for d in dims), Size.of(1))
        few = self.loads.tiles_before_staging() * self.tiles.rows
        if rows.static is not None:
            self._stage(point, columns, tiles) if rows.static > few else tiles()
            return
        count, most = self.memory.size(rows), em.number(few)
        em.when(em.compare("sgt", count, most), lambda: (self._stage(point, columns, tiles), ())[1])
        em.when(em.compare("sle", count, most), lambda: (tiles(), ())[1])

    def _stage(self, point: Point, columns: Sequence[Column], tiles: Callable[[], None]) -> None:
        if self.contraction.m is None or self.contraction.shared or not self.microkernel.stages_in_tiles:
            self.loads.stage(point, columns)
            tiles()
        else:
            height = self.tiles.first_height(self.extents[self.contraction.m].static)
            self.microkernel.tile(self._rows(point, height), columns, Share(self.emitter.number(0), 0), is_staging=True)
            self._all_rows(point, columns, height)
        self.loads.unstage()

    def _all_rows(self, point: Point, columns: Sequence[Column], begin: int = 0) -> None:
        """The rows from the first or a later one on, in tiles."""
        em, m = self.emitter, self.contraction.m
        if m is None:
            self.microkernel.tile([point], columns, Share(em.number(0), 0))
            return
        extent = self.extents[m]

        def loop(_: ir.Value, end: ir.Value, step: int, inner: Callable[[ir.Value], None]) -> None:
            self._range(begin, end, step, inner)

        def tile(first: ir.Value, height: int, share: Share) -> None:
            self.microkernel.tile(self.tiles.points(point, m, first, height), columns, share)

        count = em.sub(self.memory.size(extent), em.number(begin)) if extent.static is None else extent.static - begin
        self.tiles.split(em.number(begin), count, loop, tile)
