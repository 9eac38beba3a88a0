"""The values of a contraction's factors: a scalar of a row, a vector of a column, computed first where many rows read it.

A packed right operand is fetched ahead of the step of k that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd

from .....dialect.bindings import ir
from .....dialect.packed_layout import NIBBLES
from ..emit.emitter import Emitter
from ..emit.lane_math import Item
from ..emit.linear_index import Linear
from ..emit.memory import Lanes, Memory, Point
from ..emit.scalar_body import Body, Environment
from ..nest.nest import Operand
from ..nest.vector_plan import element_bits
from .factor import Factor
from .group_invariant import find_group_invariant
from .match import Contraction
from .shares import Column, Following, Share, Steps

__all__ = ["OperandLoads"]

# A factor of that many operations is computed once per panel, when rows fill more than a tile. 64 rows of 4096 x 4096 on Zen 3,
# in times of f32: int4 with zero points 1.7 when each of 11 tiles computes it and 1.0 so, int8 per channel (2 operations) 1.1
# and 1.0; a cast, which is one operation, takes 0.9.
_LONG_FACTOR = 2
# With a step of so few operations, so many tiles compute it themselves: 8 rows of 4096 x 4096 of int8 on Zen 3 take
# 0.75 of the time.
_SHORT_STEP, _SHORT_TILES = 3, 3
# What is on the stack then, at most: a panel of 16 columns and 4096 rows of f32, half of a level-2 cache.
_STAGED_BYTES = 1 << 18
# How far ahead of a step of k the right operand is fetched, in bytes, to which cache (2: level 2), and what a fetch brings. Of
# the time that 1 KiB and level 1 take, 8 rows of 4096 x 2048 take 0.82 of f32 and 0.87 of bf16 on Zen 4, 6 rows 0.80 and 0.72
# of its AVX2 code: a page is 4 KiB, at the end of which the processor's own prefetching begins anew.
_AHEAD, _LEVEL, _LINE = 8192, 2, 64
# With fewer multiply-adds per line the processor reads far enough ahead itself: of the same time 4 rows of f32 (4 of them) take
# 0.71 without, 3 rows of bf16 (6) 1.18, and 4 rows of AVX2 code (8) 1.42.
_BUSY = 5
# So many hold eight sums, eight words and their masks: two rows of four bits read 1.17 times as much on Zen 4, one row 1.07.
_MANY_REGISTERS = 32
# The bits of 2.0 ** 23.
_EXPONENT_23 = (127 + 23) << 23
# Steps of k in one iteration of a loop over narrow weights: two rows of nibbles are one load, eight are a line.
_UNROLLED = 8


class OperandLoads:
    """Builds both factors of one contraction, for tiles of ``vectors`` vectors of ``width`` lanes, with that many registers."""

    def __init__(self, contraction: Contraction, emitter: Emitter, memory: Memory, width: int, vectors: int, registers: int):
        nest = contraction.nest
        self.contraction, self.emitter, self.memory = contraction, emitter, memory
        self.width, self.vectors, self.registers = width, vectors, registers
        self.element = nest.outputs[0].argument.type
        self.body = Body(emitter, memory, nest.body()[0], nest.dropped)
        splits = (
            not contraction.outer and nest.extents[contraction.k].static is not None and isinstance(self.element, ir.FloatType)
        )
        self.invariant = find_group_invariant(contraction.right, contraction.k) if splits else None
        #: Per row: its left factors, and their sums per group.
        self.prepared: list[tuple[ir.Value, ir.Value]] = []
        self.scratch: ir.Value | None = None
        self.staged_from = emitter.number(0)
        self.is_staged = False

    def column_point(self, row: Point, column: Column) -> Point:
        """The vector that begins at a column."""
        start, mask = column
        n = self.contraction.n
        return row.at(n, start, self.width).with_lanes(Lanes(n, self.width, mask))

    def left(self, point: Point) -> ir.Value:
        """The left factor in every lane."""
        return self.emitter.broadcast(self._factor(self.contraction.left, point), self.width)

    def value(self, part: Factor, point: Point) -> ir.Value:
        """The value of a part of a factor; a scalar where the point has no lanes, or where it is the same in all."""
        environment = self._environment(part.operands, part.operations, point)
        return self.body.value(self.body.item(part.value, environment), point)

    def right(self, row: Point, columns: Sequence[Column]) -> list[ir.Value]:
        """The right factor of each column; of those that :meth:`takes_pairs` says, even columns, then odd ones."""
        if not self.takes_pairs(columns):
            return [self._right(row, column, j) for j, column in enumerate(columns)]
        pairs = [self._pair(self.column_point(row, (column, None))) for column, _ in columns[::2]]
        return [value for pair in pairs for value in pair]

    def takes_pairs(self, columns: Sequence[Column]) -> bool:
        """Whether two vectors are computed from words of two bf16: a shift and a mask widen them."""
        if self.is_staged or self.has_groups or len(columns) % 2 or self.vectors % 2 or not self.is_packed():
            return False
        operands, operations = self.contraction.right.operands, self.contraction.right.operations
        if self.element != self.emitter.f32 or [op.name for op in operations] != ["arith.extf"] or len(operands) != 1:
            return False
        buffer = operands[0].buffer
        return buffer is not None and isinstance(buffer.element, ir.BF16Type) and self._is_padded(operands[0])

    def _pair(self, point: Point) -> tuple[ir.Value, ir.Value]:
        """The even and the odd ones of the columns from a point on."""
        em, (operand,) = self.emitter, self.contraction.right.operands
        buffer, wide = operand.buffer, em.vector(self.width, self.element)
        assert buffer is not None
        start = self.memory.index(operand.offset, point)
        both = em.op("vector.load", [buffer.flat, start], em.vector(2 * self.width, buffer.stored))
        words = em.op("vector.bitcast", [both], em.vector(self.width, em.i32))
        even = em.op("arith.shli", [words, em.constant(16, words.type)], words.type)
        odd = em.op("arith.andi", [words, em.constant(-65536, words.type)], words.type)
        return em.op("arith.bitcast", [even], wide), em.op("arith.bitcast", [odd], wide)

    def fetches(self, rows: int) -> bool:
        """Whether a tile of so many rows is busy long enough with each line of a packed right operand to fetch ahead."""
        return any(0 < line_bytes * _BUSY <= rows * self.vectors * _LINE for line_bytes in self._step_bytes())

    def is_wide(self) -> bool:
        """Whether a step of k reads more than a line of a panel: memory gives as much to one stream of these as to several."""
        return any(line_bytes > _LINE for line_bytes in self._step_bytes())

    def _step_bytes(self) -> list[float]:
        """Of each packed operand, the bytes of a panel that a step of k reads."""
        row = self.width * self.vectors
        packed = [(o.buffer, self._steps_per_row(o)) for o in self.contraction.right.operands]
        return [row * element_bits(b.element) / 8 / steps for b, steps in packed if b is not None and steps]

    def fetch(self, row: Point, columns: Sequence[Column], k: ir.Value, copy: int) -> None:
        """Asks for what later steps of k read of a packed right operand: a panel is too short for the processor to guess."""
        em, panel = self.emitter, self.width * self.vectors
        for operand in () if self.is_staged else self.contraction.right.operands:
            steps = self._steps_per_row(operand)
            if operand.buffer is None or not steps:
                continue
            row_bytes = panel * element_bits(operand.buffer.element) // 8
            if copy * row_bytes // steps % _LINE:
                continue  # the copy before fetched this line
            point = row.at(self.contraction.k, em.add(k, em.number(_AHEAD * steps // row_bytes)))
            lines = max(1, row_bytes // _LINE)
            for start, _ in columns[:: max(1, self.vectors // lines)]:
                at = self.memory.index(operand.offset, point.at(self.contraction.n, start, self.width))
                em.prefetch(operand.buffer.flat, at, _LEVEL)

    def fetch_next(self, row: Point, column: ir.Value, steps: Steps, k: ir.Value, count: int, share: Share) -> None:
        """The same for several tiles: each asks for its share of what follows, in order, ``count`` steps of k at a time."""
        em, panel, k_dim = self.emitter, self.width * self.vectors, self.contraction.k
        for operand in () if self.is_staged else self.contraction.right.operands:
            if operand.buffer is None or not self._is_row_by_row(operand):
                continue
            following = share.following or Following(em.add(column, em.number(panel)), steps.first)
            beyond = row.at(k_dim, following.step).at(self.contraction.n, following.column, panel)
            part = em.op("arith.andi", [share.number, em.number(share.of - 1)], em.index)
            length = em.op("arith.shrui", [self.memory.size(steps.count), em.number(_log2(share.of))], em.index)
            done = em.op("arith.shrui", [em.sub(k, steps.first), em.number(_log2(share.of))], em.index)
            at = em.add(em.mul(part, length), done)
            at = em.add(self.memory.index(operand.offset, beyond), em.mul(at, em.number(panel)))
            size = element_bits(operand.buffer.element) // 8
            for line in range(max(1, count * panel * size // share.of // _LINE)):
                em.prefetch(operand.buffer.flat, em.add(at, em.number(line * _LINE // size)))

    def _is_row_by_row(self, operand: Operand) -> bool:
        """Whether a panel has its steps of k one after the other, or groups of neighbours among them."""
        k, panel = self.contraction.k, self.width * self.vectors
        floors = [(a.divisor, f.static) for a, f in operand.offset.terms if not isinstance(a, int) and a.inner == Linear.dim(k)]
        along = operand.offset.factor(k).static
        return along == panel or (along == 1 and [(g, g * panel - g) for g, _ in floors] == floors != [])

    def vectors_at_once(self, most: int, holds: bool = False) -> int:
        """How many vectors a tile may take of as many accumulators: half, when few registers hold words or zero points, too."""
        holds |= self.invariant is not None and (self.invariant.packed_word is not None or self.invariant.reads_invariant)
        return most // 2 if holds and self.registers < _MANY_REGISTERS else most

    def is_packed(self) -> bool:
        """Whether the right factor is read from panels."""
        return any(self._steps_per_row(operand) for operand in self.contraction.right.operands)

    def _steps_per_row(self, operand: Operand) -> int:
        """How many steps of k read one row of a packed operand: 1, 8 of words; 0 when it is not packed, or read rarely."""
        k, row = Linear.dim(self.contraction.k), self.width * self.vectors
        found = [a.divisor for a, f in operand.offset.terms if not isinstance(a, int) and a.inner == k and f.static == row]
        if operand.offset.factor(self.contraction.k).static == row:
            found.append(1)
        return found[0] if len(found) == 1 and found[0] <= _UNROLLED else 0

    # -- a right factor with an invariant part --------------------------------------------------------------------

    def steps(
        self,
        first: ir.Value,
        count: int,
        step: Callable[[Point, int, list[ir.Value]], list[ir.Value]],
        row: Point,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """A loop over ``count`` steps of k from ``first`` on, a multiple of it, several at a time.

        Args:
            first: the first step.
            count: how many there are.
            step: given the point where an iteration begins, and how far behind the step is; and what is carried.
            row: where the loop is.
            carried: what the first step gets.
        """
        em, whole = self.emitter, count // _UNROLLED * _UNROLLED

        def several(begin: ir.Value, number: int, values: Sequence[ir.Value]) -> list[ir.Value]:
            multiple = _UNROLLED if first == em.number(0) else gcd(count, _UNROLLED)
            point, found = row.at(self.contraction.k, begin, multiple), list(values)
            for i in range(number):
                found = step(point, i, found)
            return found

        end = em.add(first, em.number(whole))
        if whole:
            carried = em.loop(first, end, _UNROLLED, lambda k, values: several(k, _UNROLLED, values), carried)
        return several(end, count - whole, carried)

    @property
    def has_groups(self) -> bool:
        """Whether sums are to be taken per group of steps, or of all, that share a part of the right factor."""
        return self.invariant is not None and not self.is_staged

    @property
    def takes_zero_out(self) -> bool:
        """Whether :meth:`scaled` needs the sum of the left factors."""
        return self.invariant is not None and self.invariant.zero_point is not None

    def invariant_values(self, point: Point, columns: Sequence[Column]) -> list[Environment]:
        """What stays the same from the point on, of each column."""
        if self.invariant is None:
            return [{} for _ in columns]
        operands, operations = self.invariant.operands, self.invariant.operations
        return [self._environment(operands, operations, self.column_point(point, c)) for c in columns]

    def step_value(self, point: Point, step: int, column: Column, part: Environment) -> ir.Value:
        """What a column multiplies ``step`` steps of k behind the point; :meth:`scaled` applies the rest to sums."""
        assert self.invariant is not None
        place = self.column_point(point, column)
        if self.prepared and self.invariant.packed_word is not None:
            return self._converted(
                self._masked(self._factor(self.invariant.packed_word, place, step, part), step % NIBBLES.count)
            )
        value = self._factor(self.invariant.step_value, place, step, part)
        return value if self.invariant.conversion is None else self._converted(value)

    def _masked(self, words: ir.Value, place: int) -> ir.Value:
        """One integer of each word, where it is; the last one shifted, which would be negative."""
        em = self.emitter
        if place == NIBBLES.count - 1:
            return em.op("arith.shrui", [words, em.constant(4 * place, words.type)], words.type)
        return em.op("arith.andi", [words, em.constant(15 << 4 * place, words.type)], words.type)

    def scaled(self, total: ir.Value, partial: ir.Value, part: Environment, left: ir.Value | None) -> ir.Value:
        """Adds the sum of a group to a total; ``left`` is the left factors' sum, if it matters."""
        assert self.invariant is not None
        em, invariant = self.emitter, self.invariant
        if invariant.zero_point is not None and left is not None:
            zero = self._converted(em.broadcast(self._invariant_value(invariant.zero_point, part), self.width))
            negative = em.op("arith.negf", [em.broadcast(left, self.width)], partial.type)
            partial = em.op("vector.fma", [negative, zero, partial], partial.type)
        if invariant.scale is None:
            return em.op("arith.addf", [total, partial], total.type)
        scale = em.broadcast(self._invariant_value(invariant.scale, part), self.width)
        return em.op("vector.fma", [partial, scale, total], total.type)

    def prepare_left(self, rows: Sequence[Point]) -> None:
        """For all columns: the left factors as :meth:`step_value` needs them to mask words only, and sums of them per group."""
        depth, invariant, em = self.contraction.nest.extents[self.contraction.k].static, self.invariant, self.emitter
        if depth is None or invariant is None or invariant.packed_word is None or self.element != em.f32:
            return
        if len(rows) * depth * 4 > _STAGED_BYTES:
            return
        every = invariant.group_size or depth
        self.prepared = [(em.scratch(depth, self.element), em.scratch(depth // every, self.element)) for _ in rows]
        for row, (scaled, sums) in zip(rows, self.prepared, strict=True):
            self._prepare_row(row, depth, scaled)
            if invariant.zero_point is not None:
                self._prepare_sums(row, depth, every, sums)

    def _prepare_row(self, row: Point, depth: int, scaled: ir.Value) -> None:
        em, k, width = self.emitter, self.contraction.k, self.width
        chunk = max(width, NIBBLES.count)
        whole, vector = depth // chunk * chunk, em.vector(width, self.element)
        # 16 ** -j is 127 - 4 * j in the exponent's bits; the last of eight is not scaled, as its word is shifted.
        exponents = [127 - 4 * (j % NIBBLES.count) if j % NIBBLES.count != NIBBLES.count - 1 else 127 for j in range(chunk)]
        bits = [em.lane_constant([e << 23 for e in exponents[i : i + width]], em.i32) for i in range(0, chunk, width)]
        powers = [em.op("arith.bitcast", [b], vector) for b in bits]

        def several(begin: ir.Value) -> None:
            for i, power in enumerate(powers):
                at = em.add(begin, em.number(i * width))
                x = self._factor(self.contraction.left, row.at(k, at).with_lanes(Lanes(k, width)))
                em.effect("vector.store", [em.op("arith.mulf", [x, power], vector), scaled, at])

        em.each(em.number(0), em.number(whole), chunk, several)
        for i in range(whole, depth):
            x = self._factor(self.contraction.left, row.at(k, em.number(i)))
            power = em.constant(2.0 ** (exponents[i % NIBBLES.count] - 127), self.element)
            em.effect("memref.store", [em.op("arith.mulf", [x, power], self.element), scaled, em.number(i)])

    def _prepare_sums(self, row: Point, depth: int, every: int, sums: ir.Value) -> None:
        em = self.emitter

        def group(number: ir.Value) -> None:
            total = self.left_sum(row, em.mul(number, em.number(every)), every)
            em.effect("memref.store", [total, sums, number])

        em.each(em.number(0), em.number(depth // every), 1, group)

    def forget_left(self) -> None:
        """Ends what :meth:`prepare_left` began."""
        self.prepared = []

    def prepared_left(self, row: int, k: ir.Value) -> ir.Value:
        """The left factor of a row that was prepared, in every lane."""
        em = self.emitter
        return em.broadcast(em.op("memref.load", [self.prepared[row][0], k], self.element), self.width)

    def prepared_sum(self, row: int, first: ir.Value, every: int) -> ir.Value:
        """The sum of the left factors of a row that was prepared."""
        em = self.emitter
        number = em.op("arith.divui", [first, em.number(every)], em.index)
        return em.op("memref.load", [self.prepared[row][1], number], self.element)

    def left_sum(self, row: Point, first: ir.Value, count: int) -> ir.Value:
        """The sum of the left factors of ``count`` steps of k."""
        em, k, whole = self.emitter, self.contraction.k, count // self.width * self.width
        vector, end = em.vector(self.width, self.element), em.add(first, em.number(whole))

        def several(begin: ir.Value, totals: list[ir.Value]) -> list[ir.Value]:
            lanes = row.at(k, begin).with_lanes(Lanes(k, self.width))
            return [em.op("arith.addf", [totals[0], self._factor(self.contraction.left, lanes)], vector)]

        (total,) = em.loop(first, end, self.width, several, [em.constant(0, vector)])
        result = em.reduce("add", total)
        for i in range(count - whole):
            one = self._factor(self.contraction.left, row.at(k, em.add(end, em.number(i))))
            result = em.op("arith.addf", [result, one], self.element)
        return result

    def _invariant_value(self, value: ir.Value, part: Environment) -> ir.Value:
        return self.body.value(self.body.item(value, part), Point())

    def _converted(self, integer: ir.Value) -> ir.Value:
        assert self.invariant is not None
        assert self.invariant.conversion is not None
        return self.emitter.clone(self.invariant.conversion, [integer], self.emitter.vector(self.width, self.element))

    # -- a right factor that takes long ------------------------------------------------------------------------------

    def is_long(self) -> bool:
        """Whether a vector of the right factor takes long, compared to a tile's multiply-adds, for a known number of steps."""
        if self.contraction.nest.extents[self.contraction.k].static is None or self.contraction.outer:
            return False
        return sum(op.name != "arith.constant" for op in self.contraction.right.operations) >= _LONG_FACTOR

    def tiles_before_staging(self) -> int:
        """How many tiles compute the right factor each for itself."""
        invariant = self.invariant
        short = invariant is not None and invariant.packed_word is None
        return _SHORT_TILES if short and len(invariant.step_value.operations) <= _SHORT_STEP else 1

    def stage(
        self,
        point: Point,
        columns: Sequence[Column],
        steps: Steps | None = None,
        rows: Sequence[Point] = (),
        sums: Sequence[ir.Value] = (),
        scratch: ir.Value | None = None,
    ) -> list[ir.Value]:
        """Computes a panel of the right factor, or some steps of it; :meth:`right` reads that until :meth:`unstage`.

        The products with ``rows`` are added to ``sums`` meanwhile. ``scratch`` is from :meth:`stage_scratch`.
        """
        em, k_dim = self.emitter, self.contraction.k
        steps = steps or Steps(em.number(0), self.contraction.nest.extents[k_dim])
        depth = steps.count.static
        assert depth is not None
        scratch = scratch or self.stage_scratch(steps)
        every = depth if self.invariant is None or not self.invariant.group_size else min(depth, self.invariant.group_size)
        varying = self.contraction.right if self.invariant is None else self.invariant.varying
        self.scratch, self.staged_from = scratch, steps.first
        fetches = bool(rows) and self.fetches(len(rows))

        def group(first: ir.Value, totals: Sequence[ir.Value]) -> list[ir.Value]:
            parts = self.invariant_values(point.at(k_dim, first, every), columns)

            def step(place: Point, number: int, totals: list[ir.Value]) -> list[ir.Value]:
                at = em.add(place.variables[k_dim], em.number(number))
                if fetches:
                    self.fetch(point, columns, at, number)
                right: list[ir.Value] = []
                for j, (column, part) in enumerate(zip(columns, parts, strict=True)):
                    right.append(self._widened(varying, self.column_point(place, column), number, part))
                    em.effect("vector.store", [right[-1], scratch, self._scratch_index(at, j)])
                left = [self.left(row.at(k_dim, at)) for row in rows]
                products = [(x, y) for x in left for y in right]
                return [em.op("vector.fma", [x, y, s], s.type) for (x, y), s in zip(products, totals, strict=True)]

            return self.steps(first, every, step, point, totals)

        end = em.add(steps.first, em.number(depth))
        totals = group(steps.first, sums) if every == depth else em.loop(steps.first, end, every, group, sums)
        self.is_staged = True
        return totals

    def stage_scratch(self, steps: Steps) -> ir.Value:
        """Memory for a panel of so many steps of k."""
        assert steps.count.static is not None
        return self.emitter.scratch(steps.count.static * self.width * self.vectors, self.element)

    def _widened(self, varying: Factor, place: Point, step: int, part: Environment) -> ir.Value:
        """The right factor. An integer q of four bits becomes the last bits of 2 ** 23 + q, a conversion less, and as exact.

        32 rows of 896 x 4864 of int4 take 0.94 of the time on Zen 5.
        """
        em, invariant = self.emitter, self.invariant
        if invariant is None or invariant.packed_word is None or self.element != em.f32:
            return self._factor(varying, place, step, part)
        if invariant.scale is None or invariant.zero_point is None:
            return self._factor(varying, place, step, part)
        kind, nibble = em.vector(self.width, self.element), self._factor(invariant.step_value, place, step, part)
        if nibble.type != em.vector(self.width, em.i32):  # of a wide zero point
            return self._factor(varying, place, step, part)
        bits = em.op("arith.ori", [nibble, em.constant(_EXPONENT_23, nibble.type)], nibble.type)
        zero = self._converted(em.broadcast(self._invariant_value(invariant.zero_point, part), self.width))
        zero = em.op("arith.addf", [zero, em.constant(2.0**23, kind)], kind)
        distance = em.op("arith.subf", [em.op("arith.bitcast", [bits], kind), zero], kind)
        return em.op("arith.mulf", [distance, em.broadcast(self._invariant_value(invariant.scale, part), self.width)], kind)

    def can_stage(self, depth: int) -> bool:
        """Whether blocks of so many steps of k are small, and begin where groups do or are inside of one."""
        every = 0 if self.invariant is None else self.invariant.group_size
        fits = depth * self.width * self.vectors * element_bits(self.element) // 8 <= _STAGED_BYTES
        return fits and (not every or depth % every == 0 or every % depth == 0)

    def unstage(self) -> None:
        """Ends what :meth:`stage` began."""
        self.is_staged = False

    def _scratch_index(self, k: ir.Value, vector: int) -> ir.Value:
        em = self.emitter
        start = em.mul(em.sub(k, self.staged_from), em.number(self.width * self.vectors))
        return em.add(start, em.number(vector * self.width)) if vector else start

    # -- elements ----------------------------------------------------------------------------------------------------

    def _right(self, row: Point, column: Column, vector: int) -> ir.Value:
        if not self.is_staged:
            return self._factor(self.contraction.right, self.column_point(row, column))
        assert self.scratch is not None
        kind = self.emitter.vector(self.width, self.element)
        return self.emitter.op(
            "vector.load", [self.scratch, self._scratch_index(row.variables[self.contraction.k], vector)], kind
        )

    def _factor(self, factor: Factor, point: Point, step: int = 0, known: Mapping[ir.Value, Item] | None = None) -> ir.Value:
        """The value of a factor ``step`` steps of k behind the point; ``known`` are values that are there already."""
        environment = self._environment(factor.operands, factor.operations, point, step, known)
        value = self.body.value(self.body.item(factor.value, environment), point)
        return self.emitter.broadcast(value, point.width)

    def _environment(
        self,
        operands: Sequence[Operand],
        operations: Sequence[ir.Operation],
        point: Point,
        step: int = 0,
        known: Mapping[ir.Value, Item] | None = None,
    ) -> Environment:
        environment: Environment = dict(known or {})
        for operand in operands:
            environment[operand.argument] = self._element(operand, point, step)
        if step:
            k, em = self.contraction.k, self.emitter
            point = point.at(k, em.add(point.variables[k], em.number(step)))
        for operation in operations:
            self.body.evaluate(operation, environment, point)
        return environment

    def _element(self, operand: Operand, point: Point, step: int) -> ir.Value:
        if operand.buffer is None:
            return operand.value
        offset = operand.offset.shifted(self.contraction.k, step, point.multiples)
        return self.memory.load(operand.buffer, offset, point.without_mask() if self._is_padded(operand) else point)

    def _is_padded(self, operand: Operand) -> bool:
        """Packed in panels at least as wide as a tile: columns beyond the last exist in memory."""
        tile = self.width * self.vectors
        shape = ir.MemRefType(operand.value.type).shape
        return any(
            floor.inner.dims() == {self.contraction.n} and floor.divisor % tile == 0 and floor.divisor in shape
            for floor in operand.offset.floors()
        )


def _log2(power: int) -> int:
    return power.bit_length() - 1
