"""Factors in f32 as sums of numbers in bf16, on the stack, as tile registers read them.

An f32 has 24 significant bits, a bf16 has 8: the upper half of its bits is a bf16, and so is the upper half of what is left
twice. The three add up to it exactly. Of the products of two such sums those are left out that are below the
last bit of the whole one.

Source: Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations",
2019 (https://arxiv.org/abs/1904.06376), which rounds where this cuts off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from ....kernels.emit.memory import Lanes, Point
from ....kernels.emit.scalar_body import Environment
from .contraction_plan import SplitTile
from .group_loads import GroupLoads
from .matrix_shape import TILE_ROWS, TILE_WORDS, WORD_BYTES
from .operand_loads import OperandLoads
from .tile_place import Column
from .tile_registers import TileMemory

__all__ = ["SPLIT_INSTRUCTION", "TILE_STEPS", "LeftSplitter", "RightSplitter", "SplitSteps"]

#: LLVM's name of what multiplies parts.
SPLIT_INSTRUCTION = "llvm.x86.tdpbf16ps"
#: Steps of k that a tile register has: two in each word.
TILE_STEPS = 2 * TILE_WORDS
#: Words of a tile register.
_TILE = TILE_ROWS * TILE_WORDS
# The bits of an f32 that are a bf16.
_UPPER, _HALF = -(1 << 16), 16


class _Splitter:
    """Writes parts of elements to the stack: for one register after the other all parts of 32 steps of k, then of the next."""

    def __init__(self, loads: OperandLoads, parts: int, registers: int, depth: int):
        self.loads, self.emitter, self.contraction, self.parts = loads, loads.emitter, loads.contraction, parts
        #: Places in the scratch from one register of the same steps to the next.
        self.apart = -(-depth // TILE_STEPS) * parts
        self.words = loads.emitter.vector(TILE_WORDS, loads.emitter.i32)
        self.scratch = loads.emitter.scratch(registers * self.apart * _TILE, loads.emitter.i32)

    def tile(self, step: ir.Value, part: int, number: int | ir.Value) -> TileMemory:
        """Where a register is read: of the ``step``-th 32 steps of k, one part, and which one of those of rows or columns."""
        em = self.emitter
        place = self._place(step, part, number, _TILE * WORD_BYTES)
        return TileMemory(self.scratch, place, em.number(TILE_WORDS * WORD_BYTES))

    def _place(self, step: ir.Value, part: int, number: int | ir.Value, size: int) -> ir.Value:
        em = self.emitter
        begin = em.mul(em.number(number) if isinstance(number, int) else number, em.number(self.apart * size))
        return em.add(em.add(begin, em.mul(step, em.number(self.parts * size))), em.number(part * size))

    def _line(self, step: ir.Value, number: ir.Value, row: ir.Value) -> ir.Value:
        """Where a row of a register begins, of its first part."""
        return self.emitter.add(self._place(step, 0, number, _TILE), self.emitter.mul(row, self.emitter.number(TILE_WORDS)))

    def _store(self, parts: Sequence[ir.Value], line: ir.Value, behind: int = 0) -> None:
        """Writes the parts of a row so many words behind a line."""
        em = self.emitter
        for part, words in enumerate(parts):
            em.effect("vector.store", [words, self.scratch, em.add(line, em.number(behind + part * _TILE))])

    def _halves(self, value: ir.Value) -> list[ir.Value]:
        """The parts of 16 elements, each in the upper half of a word; the last one with what is behind it."""
        em, found, kind = self.emitter, list[ir.Value](), value.type
        for number in range(self.parts):
            bits = em.op("arith.bitcast", [value], self.words)
            if number < self.parts - 1:
                bits = em.op("arith.andi", [bits, em.constant(_UPPER, self.words)], self.words)
                value = em.op("arith.subf", [value, em.op("arith.bitcast", [bits], kind)], kind)
            found.append(bits)
        return found


class LeftSplitter(_Splitter):
    """Splits ``height`` rows of ``depth`` steps of k at most of the left factor: each register has 16 of them."""

    def __init__(self, loads: OperandLoads, split: SplitTile, depth: int):
        super().__init__(loads, split.left, -(-split.blocks.rows // TILE_ROWS), depth)

    def split(self, point: Point, row: ir.Value, count: int | ir.Value, steps: SplitSteps) -> None:
        """Splits ``count`` rows from one on, and some steps of k of them; rows behind them in a register are zero."""
        em, m = self.emitter, self.contraction.m
        assert m is not None
        whole, end = steps.whole(em), em.as_index(count)
        last = em.op("arith.andi", [em.add(end, em.number(TILE_ROWS - 1)), em.number(-TILE_ROWS)], em.index)
        zero = em.constant(0.0, em.vector(self.loads.width, self.loads.element))

        def some(first: ir.Value, number: ir.Value, steps_: int) -> None:
            """So many of the 32 steps that are the ``number``-th, of a register of rows: lines that are neighbours."""
            begin, behind = em.add(steps.first, em.mul(number, em.number(TILE_STEPS))), em.add(first, em.number(TILE_ROWS))
            until = (
                behind if isinstance(count, int) and count % TILE_ROWS == 0 else em.op("arith.minui", [behind, end], em.index)
            )

            def one(at: ir.Value) -> None:
                self._row(self._vectors(point.at(m, em.add(row, at)), begin, steps_), number, at)

            em.each(first, until, 1, one)
            if until != behind:
                em.each(until, behind, 1, lambda at: self._row([zero, zero], number, at))

        def register(first: ir.Value) -> None:
            em.each(em.number(0), whole, 1, lambda number: some(first, number, TILE_STEPS))
            if steps.rest:
                some(first, whole, steps.rest)

        em.each(em.number(0), last, TILE_ROWS, register)

    def _vectors(self, place: Point, first: ir.Value, count: int) -> list[ir.Value]:
        """So many elements of a row, in two vectors."""
        em, k, width = self.emitter, self.contraction.k, self.loads.width
        found = list[ir.Value]()
        for begin in (0, width):
            active = min(width, count - begin)
            if active <= 0:
                found.append(em.constant(0.0, em.vector(width, self.loads.element)))
                continue
            mask = None if active == width else em.lane_mask(width, em.number(active))
            at = place.at(k, em.add(first, em.number(begin)), width).with_lanes(Lanes(k, width, mask))
            found.append(self.loads.factor(self.contraction.left, at))
        return found

    def _row(self, vectors: Sequence[ir.Value], step: ir.Value, row: ir.Value) -> None:
        """Writes the parts of 32 elements of a row."""
        em = self.emitter
        tile = em.op("arith.shrui", [row, em.number(TILE_ROWS.bit_length() - 1)], em.index)
        line = self._line(step, tile, em.op("arith.andi", [row, em.number(TILE_ROWS - 1)], em.index))
        shorts = em.vector(2 * TILE_WORDS, em.integer(16))
        halves = zip(*map(self._halves, vectors), strict=True)
        upper = [em.separated([em.op("vector.bitcast", [half], shorts) for half in both])[1] for both in halves]
        self._store([em.op("vector.bitcast", [half], self.words) for half in upper], line)


@dataclass(frozen=True)
class SplitSteps:
    """Steps of k: the first one, and how many; a number that only a call tells is a multiple of 32."""

    first: ir.Value
    count: int | ir.Value

    @property
    def rest(self) -> int:
        """Those behind the ones that fill registers."""
        return self.count % TILE_STEPS if isinstance(self.count, int) else 0

    def whole(self, emitter: Emitter) -> ir.Value:
        """How many registers they fill."""
        if isinstance(self.count, int):
            return emitter.number(self.count // TILE_STEPS)
        return emitter.op("arith.shrui", [self.count, emitter.number(TILE_STEPS.bit_length() - 1)], emitter.index)

    def registers(self, emitter: Emitter) -> ir.Value:
        """How many registers have them."""
        return emitter.add(self.whole(emitter), emitter.number(1 if self.rest else 0))


@dataclass(frozen=True)
class _Panel:
    """Where a panel is split to: its columns, the first step of k in the buffer, and which one."""

    columns: Sequence[Column]
    first: ir.Value
    buffer: ir.Value


class RightSplitter(_Splitter):
    """Splits ``depth`` steps of k at most of panels of the right factor, one behind the other into one of two buffers.

    ``groups`` are its parts, where it has such.
    """

    def __init__(self, loads: OperandLoads, split: SplitTile, depth: int, vectors: int, groups: GroupLoads | None):
        super().__init__(loads, split.right, 2 * vectors, depth)
        self.groups, self.vectors = groups, vectors
        #: Whether elements are integers, whose sums are scaled.
        self.is_scaled = groups is not None and groups.invariant.scale is not None and split.right == 1

    def register(self, buffer: ir.Value, vector: int) -> ir.Value:
        """Which of all registers has a vector of columns, in a buffer."""
        em = self.emitter
        return em.add(em.mul(buffer, em.number(self.vectors)), em.number(vector))

    def split(self, point: Point, columns: Sequence[Column], steps: SplitSteps, buffer: ir.Value) -> None:
        """Splits some steps of a panel; behind the last one there are zeros."""
        em, depth, panel = self.emitter, steps.count, _Panel(columns, steps.first, buffer)
        most = depth if isinstance(depth, int) else TILE_STEPS
        size = most if self.groups is None else min(most, self.groups.invariant.group_size or most)
        end = em.add(steps.first, em.as_index(depth))
        em.each(steps.first, end, size, lambda first: self._group(point, panel, first, size))
        if not isinstance(depth, int):
            return
        zero, pairs = [em.constant(0, self.words)] * self.parts, -(-depth // 2)

        def nothing(pair: ir.Value) -> None:
            line = self._begin(panel, em.add(steps.first, em.mul(pair, em.number(2))))
            for j in range(len(columns)):
                self._store(zero, line, j * self.apart * _TILE)

        em.each(em.number(pairs), em.number(-(-depth // TILE_STEPS) * TILE_WORDS), 1, nothing)

    def takes_units(self, steps: SplitSteps, unit: int) -> bool:
        """Whether some steps of k can be split so many at a time."""
        size = 0 if self.groups is None else self.groups.invariant.group_size or 0
        return not steps.rest and not size % unit

    def unit(
        self, point: Point, columns: Sequence[Column], steps: SplitSteps, buffer: ir.Value, first: ir.Value, count: int
    ) -> list[Callable[[], None]]:
        """Builds that split ``count`` steps of k from one on, a multiple of it, to be called one after the other."""
        panel, place = _Panel(columns, steps.first, buffer), point.at(self.contraction.k, first, count)
        parts, line = self.invariants(place, columns), self._begin(panel, first)

        def one(number: int, j: int) -> None:
            even, odd = (self._halves(self._value(place, number + i, columns[j], parts[j])) for i in (0, 1))
            self._pairs(even, odd, line, number, j)

        return [partial(one, number, j) for number in range(0, count, 2) for j in range(len(columns))]

    def _group(self, point: Point, panel: _Panel, first: ir.Value, size: int) -> None:
        """Steps of one group, whose invariant part is read once."""
        em, k, columns = self.emitter, self.contraction.k, panel.columns
        parts, unroll = self.invariants(point.at(k, first, size), columns), self.loads.plan.group_unroll
        # Steps of an iteration are rows of one register where groups begin with an iteration.
        every = 2 if size % unroll or TILE_STEPS % unroll else unroll
        even, begin = list[list[ir.Value]](), list[ir.Value]()

        def step(place: Point, number: int, totals: list[ir.Value]) -> list[ir.Value]:
            halves = [
                self._halves(self._value(place, number, column, part)) for column, part in zip(columns, parts, strict=True)
            ]
            if number % every == 0:
                begin[:] = [self._begin(panel, em.add(place.variables[k], em.number(number)))]
            if number % 2 == 0:
                even[:] = halves
                return totals
            for j, both in enumerate(zip(even, halves, strict=True)):
                self._pairs(*both, begin[0], (number - 1) % every, j)
            even.clear()
            return totals

        self.loads.steps(first, size, step, point, [])
        for j, halves in enumerate(even):  # of an odd number of steps the last one
            self._pairs(halves, [em.constant(0, self.words)] * self.parts, begin[0], (size - 1) % every, j)

    def _begin(self, panel: _Panel, step: ir.Value) -> ir.Value:
        """The line of an even step of k."""
        em, inside = self.emitter, self.emitter.sub(step, panel.first)
        number = em.op("arith.shrui", [inside, em.number(TILE_STEPS.bit_length() - 1)], em.index)
        pair = em.op("arith.shrui", [inside, em.number(1)], em.index)
        row = em.op("arith.andi", [pair, em.number(TILE_WORDS - 1)], em.index)
        return self._line(number, em.mul(panel.buffer, em.number(self.vectors)), row)

    def _pairs(self, even: Sequence[ir.Value], odd: Sequence[ir.Value], line: ir.Value, behind: int, j: int) -> None:
        """Writes the parts of two steps of a vector of columns, an even number of steps behind that of a line."""
        words = [self._joined(*halves) for halves in zip(even, odd, strict=True)]
        self._store(words, line, behind // 2 * TILE_WORDS + j * self.apart * _TILE)

    def _joined(self, even: ir.Value, odd: ir.Value) -> ir.Value:
        """Pairs of neighbours: the even one is below."""
        em, kind = self.emitter, self.words
        below = em.op("arith.shrui", [even, em.constant(_HALF, kind)], kind)
        return em.op("arith.ori", [below, em.op("arith.andi", [odd, em.constant(_UPPER, kind)], kind)], kind)

    def invariants(self, point: Point, columns: Sequence[Column]) -> list[Environment]:
        """What stays the same from the point on, of each column."""
        return [{} for _ in columns] if self.groups is None else self.groups.invariant_values(point, columns)

    def _value(self, point: Point, step: int, column: Column, part: Environment) -> ir.Value:
        """An element, ``step`` steps of k behind a point; without its scale where sums are scaled."""
        if self.groups is not None and self.is_scaled:
            return self.groups.difference(point, step, column, part)
        place = self.loads.column_point(point, column)
        if self.groups is None:
            return self.loads.factor(self.contraction.right, place, step, part)
        return self.groups.widened(place, step, part)
