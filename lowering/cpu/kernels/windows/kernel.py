"""Lowers sums over windows, one filter per channel, their epilogue fused; of bytes to products of four rows at once.

Before::

    linalg.fill 0 -> sums;  linalg.generic sums[n, y, x, c] += image[n, y + i, x + j, c] * filter[i, j, c]
    linalg.generic out[n, y, x, c] = quantized(sums[n, y, x, c] * scale[c])

After, for a window of three rows, two rows of the result from four of the image::

    for n, y step 2, c step 64 {
      %w = filters, their rows in the bytes of a lane, one and for the other row of the result shifted by one
      for x { %new = four rows of the last column, interleaved; 24 dot products of three columns; two quantized results } }

Columns stay in registers for the windows that they are in. Of floats a column is a vector for each row: of three rows, two rows
of the result read four, and multiply 18 times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter, LoopWork
from ....kernels.emit.epilogue import Epilogue
from ....kernels.emit.memory import Lanes, Memory, Point
from ....kernels.structure.match import MatchedGroup
from ....kernels.structure.nest import Nest, read_nest
from ....target import Target
from .columns import Columns
from .float_columns import FloatColumns
from .group import find_windows
from .plan import WindowPlan, checked_window_plan, widths_of
from .row_loads import QUAD, Row, Vector
from .shape import Windows

__all__ = ["lower_windows"]

# Loops of less iterations are not shared by threads: one inside of them may be.
_SHARED = 4
# Element operations that a result takes as long as.
_WORK = 4

Taps = Sequence[ir.Value | None]


def lower_windows(found: Sequence[ir.Operation], emitter: Emitter, target: Target) -> bool:
    """Replaces sums over windows and what is fused with them by one kernel; False, and nothing changed, for anything else.

    Raises:
        RelaxError: the plan does not fit.
    """
    group = find_windows(found)
    plan = None if group is None else checked_window_plan(group.windows, target)
    if group is None or plan is None:
        return False
    with emitter.before(group.group.epilogue or group.group.contraction):
        memory = Memory(emitter)
        windows = group.windows_in(memory)
        epilogue = None if group.group.epilogue is None else read_nest(group.group.epilogue, memory)
        _WindowKernel(windows, epilogue, group.group, emitter, memory, plan, target).build()
    group.erase()
    return True


@dataclass(frozen=True)
class _Block:
    """A vector of channels: what builds columns, filters for each row of the result, and what their sums have too much."""

    columns: Columns | FloatColumns
    filters: list[list[Taps]]
    too_much: list[ir.Value] | None


class _WindowKernel:
    """Builds one kernel, as its plan says."""

    def __init__(
        self, windows: Windows, epilogue: Nest | None, group: MatchedGroup, emitter: Emitter, memory: Memory,
        plan: WindowPlan, target: Target,
    ):  # fmt: skip
        self.windows, self.plan, self.emitter, self.memory = windows, plan, emitter, memory
        self.extents, self.dots, self.widths = windows.nest.extents, target.quad_dots, widths_of(windows.unsigned, target)
        self.parts = QUAD if windows.unsigned else 1
        self.nests = [windows.nest, *([] if epilogue is None else [epilogue])]
        self.epilogue = Epilogue(windows, epilogue, group, emitter, memory)
        step, (_, width) = windows.column_step, windows.window
        self.kept = 0 if step is None else max(0, width - step)

    def build(self) -> None:
        em = self.emitter
        self.memory.prepare({size for nest in self.nests for size in nest.sizes()})
        for operation in (op for nest in self.nests for op in nest.body()[0] if op.name == "memref.load"):
            self.memory.captured(operation.operands[0])
        along = None if self.windows.x is None else self.extents[self.windows.x]

        def build() -> None:
            self.epilogue.read_scalars()
            self._batch(list(self.windows.batch), Point())

        if along is None or along.static is not None:
            build()
            return
        # The first columns are read in front of the loop over a row.
        em.only_when(em.compare("sgt", self.memory.size(along), em.number(0)), build)

    # -- loops -----------------------------------------------------------------------------------------------------

    def _batch(self, dims: list[int], point: Point) -> None:
        if not dims:
            self._rows(point)
            return
        first, *others = dims
        extent = self.extents[first]
        zero, end = self.emitter.number(0), self.memory.size(extent)
        self._each(zero, end, 1, extent.static, lambda i: self._batch(others, point.at(first, i)))

    def _each(
        self, begin: ir.Value, end: ir.Value, step: int, count: int | None, build: Callable[[ir.Value], None]
    ) -> None:  # fmt: skip
        """A loop that threads share where it is long enough to be."""
        if count is not None and count < _SHARED * step:
            self.emitter.each(begin, end, step, build)
        else:
            self.emitter.shared(begin, end, step, build, self._work())

    def _work(self) -> LoopWork:
        extents = [e for d, e in self.extents.items() if d not in self.windows.nest.reductions]
        amount = _WORK * math.prod(e.static for e in extents if e.static is not None)
        return LoopWork(amount, tuple(self.memory.size(e) for e in extents if e.static is None))

    def _rows(self, point: Point) -> None:
        """All rows of the result: in shares, then those that are left."""
        em, y, share = self.emitter, self.windows.y, self.plan.share
        if y is None:
            self._share(point, None, 1)
            return
        extent, zero = self.extents[y], em.number(0)
        if extent.static is not None:
            whole = extent.static // share * share
            self._each(zero, em.number(whole), share, whole, lambda i: self._share(point, i, share))
            if whole < extent.static:
                self._share(point, em.number(whole), extent.static - whole)
            return
        size = self.memory.size(extent)
        whole = em.sub(size, em.op("arith.remui", [size, em.number(share)], em.index))
        self._each(zero, whole, share, None, lambda i: self._share(point, i, share))
        if share > 1:
            em.each(whole, size, 1, lambda i: self._share(point, i, 1))

    def _share(self, point: Point, first: ir.Value | None, count: int) -> None:
        """Some rows, a vector of channels after the other: as wide as can be, the last ones narrower, or in part."""
        em, channels, done = self.emitter, self.windows.channels, 0
        for lanes in (n for n in self.widths if n <= self.plan.channels):
            whole = done + (channels - done) // lanes * lanes

            def block(c: ir.Value, lanes: int = lanes) -> None:
                self._block(point, first, count, Vector(c, lanes, lanes, self.parts))

            self._each(em.number(done), em.number(whole), lanes, whole - done, block)
            done = whole
        if done < channels:
            self._block(point, first, count, Vector(em.number(done), min(self.widths), channels - done, self.parts))

    def _columns(self, vector: Vector) -> Columns | FloatColumns:
        if not self.windows.unsigned:
            return FloatColumns(self.windows, vector, self.emitter, self.memory)
        return Columns(self.windows, self.dots[vector.lanes], vector, self.emitter, self.memory)

    def _block(self, point: Point, first: ir.Value | None, count: int, vector: Vector) -> None:
        """Some rows of a vector of channels, several at once."""
        em, rows = self.emitter, min(self.plan.rows, count)
        columns = self._columns(vector)
        (height, width), step = self.windows.window, self.windows.row_step or 0
        read = height + (rows - 1) * step
        first_row: list[Taps] = [columns.of_filter(j, read, 0) for j in range(width)]
        filters: list[list[Taps]] = [
            first_row,
            *([columns.moved(taps, read, r * step) for taps in enumerate(first_row)] for r in range(1, rows)),
        ]
        block = _Block(columns, filters, columns.corrections(first_row))
        if first is None:
            self._line(point, block, 1)
            return
        y, whole = self.windows.y, count // rows * rows
        assert y is not None
        if whole == rows:
            self._line(point.at(y, first), block, rows)
        else:
            em.each(first, em.add(first, em.number(whole)), rows, lambda i: self._line(point.at(y, i), block, rows))
        for i in range(whole, count):
            self._line(point.at(y, em.add(first, em.number(i))), block, 1)

    # -- one line --------------------------------------------------------------------------------------------------

    def _line(self, point: Point, block: _Block, rows: int) -> None:
        """All places of a row, of several rows at once: columns go from one to the next."""
        em, x, several, read = self.emitter, self.windows.x, self.plan.pixels, self._read(point, rows)
        if x is None:
            self._pixels(point, None, 1, [], block, read, rows)
            return
        first = point.at(x, em.number(0))
        start = [v for j in range(self.kept) for v in block.columns.of_image(first, j, read)]
        extent = self.extents[x]

        def some(i: ir.Value, count: int, carried: Sequence[ir.Value]) -> list[ir.Value]:
            return self._pixels(point, i, count, carried, block, read, rows)

        if extent.static is None:
            size, zero = self.memory.size(extent), em.number(0)
            whole = em.sub(size, em.op("arith.remui", [size, em.number(several)], em.index))
            start = em.loop(zero, whole, several, lambda i, c: some(i, several, c), start)
            if several > 1:
                em.loop(whole, size, 1, lambda i, c: some(i, 1, c), start)
            return
        begin, end = self._within(extent.static)
        whole = begin + (end - begin) // several * several
        if begin:
            start = some(em.number(0), begin, start)
        if whole > begin:
            start = em.loop(em.number(begin), em.number(whole), several, lambda i, c: some(i, several, c), start)
        if whole < extent.static:
            some(em.number(whole), extent.static - whole, start)

    def _within(self, places: int) -> tuple[int, int]:
        """The places of a row whose windows have no new column in the frame."""
        frame, (_, width) = self.windows.frame, self.windows.window
        if frame is None:
            return 0, places
        along = frame.columns
        inside = [along.at(i, self.kept) >= 0 and along.at(i, width - 1) < along.size for i in range(places)]
        begin = next((i for i, is_inside in enumerate(inside) if is_inside), 0)
        return begin, begin + sum(inside)

    def _read(self, point: Point, rows: int) -> list[Row]:
        """The rows of the image that some rows of the result read."""
        (height, _), step = self.windows.window, self.windows.row_step or 0
        return [self._row(point, tap, rows) for tap in range(height + (rows - 1) * step)]

    def _row(self, point: Point, tap: int, rows: int) -> Row:
        em, frame, y = self.emitter, self.windows.frame, self.windows.y
        if frame is None:
            return Row()
        along, (base, place) = frame.rows, (None, 0) if y is None else em.split(point.variables[y])
        count = 1 if y is None else self.extents[y].static
        assert count is not None
        least, most = (along.at(n, tap) for n in ((place, place) if base is None else (0, count - rows)))
        if least >= 0 and most < along.size:
            return Row()
        if most < 0 or least >= along.size:
            return Row(is_outside=True)
        assert y is not None
        row = em.add(em.mul(point.variables[y], em.number(along.stride)), em.number(along.at(0, tap)))
        nearest = em.op("arith.minsi", [row, em.number(along.size - 1)], em.index)
        nearest = em.op("arith.maxsi", [nearest, em.number(0)], em.index)
        inside = em.compare("eq", nearest, row)
        return Row(inside=inside, shift=em.mul(em.sub(nearest, row), self.memory.size(along.step)))

    def _pixels(
        self, point: Point, first: ir.Value | None, count: int, carried: Sequence[ir.Value], block: _Block,
        read: Sequence[Row], rows: int,
    ) -> list[ir.Value]:  # fmt: skip
        """Neighbouring places; takes the columns that the first window shares with the one before, returns the next ones."""
        em, x, (_, width) = self.emitter, self.windows.x, self.windows.window
        size = len(carried) // self.kept if carried else 0
        columns = [list(carried[i : i + size]) for i in range(0, len(carried), size or 1)]
        for i in range(count):
            place = point
            if x is not None and first is not None:
                place = point.at(x, em.add(first, em.number(i)) if i else first)
            columns += [block.columns.of_image(place, j, read) for j in range(len(columns), width)]
            self._window(place, columns, block, rows)
            columns = columns[width - self.kept :]
        return [v for column in columns for v in column]

    def _window(self, point: Point, columns: Sequence[Sequence[ir.Value]], block: _Block, rows: int) -> None:
        """The sums of a window in each row, and what the epilogue makes of them."""
        em, y, vector = self.emitter, self.windows.y, block.columns.vector
        for row, filters in enumerate(block.filters[:rows]):
            place = point if y is None else point.at(y, em.add(point.variables[y], em.number(row)))
            parts = [self._part(place, vector, q) for q in range(vector.quarters)]
            sums = [self.epilogue.initial(part) for part in parts]
            if block.too_much is not None:
                sums = [em.sub(total, much) for total, much in zip(sums, block.too_much, strict=True)]
            for column, taps in zip(columns, filters, strict=True):
                sums = block.columns.added(sums, column, taps)
            for total, part in zip(sums, parts, strict=True):
                self.epilogue.store(total, part)

    def _part(self, point: Point, vector: Vector, q: int) -> Point:
        """The point of a vector of sums."""
        em, n, width = self.emitter, self.windows.n, vector.quarter
        left = vector.active - q * width
        mask = None if left >= width else em.lane_mask(width, em.number(left))
        at = em.add(vector.first, em.number(q * width)) if q else vector.first
        return point.at(n, at, width).with_lanes(Lanes(n, width, mask))
