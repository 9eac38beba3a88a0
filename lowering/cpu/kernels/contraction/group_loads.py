"""A right factor with a part that groups of steps share: what each step adds to a sum, and what the sum of a group takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from .....dialect.packed_layout import NIBBLES
from ....kernels.emit.memory import Lanes, Point
from ....kernels.emit.scalar_body import Environment
from ....kernels.structure.group_invariant import GroupInvariant
from .operand_loads import OperandLoads
from .tile_place import Column

__all__ = ["GroupLoads", "ScaledRows"]

# The bits of 2.0 ** 23.
_EXPONENT_23 = (127 + 23) << 23


@dataclass(frozen=True)
class ScaledRows:
    """Rows of the left factor as words under a mask need them: per row its elements, and their sums per group."""

    rows: Sequence[tuple[ir.Value, ir.Value]]
    loads: OperandLoads

    def left(self, row: int, k: ir.Value) -> ir.Value:
        """An element of a row, in every lane."""
        em = self.loads.emitter
        return em.broadcast(em.op("memref.load", [self.rows[row][0], k], self.loads.element), self.loads.width)

    def sum(self, row: int, first: ir.Value, count: int) -> ir.Value:
        """The sum of a group of so many elements."""
        em = self.loads.emitter
        number = em.op("arith.divui", [first, em.number(count)], em.index)
        return em.op("memref.load", [self.rows[row][1], number], self.loads.element)


class GroupLoads:
    """Builds the parts of such a factor; with ``scaled`` rows, words are masked and not shifted."""

    def __init__(self, loads: OperandLoads, invariant: GroupInvariant, scaled: ScaledRows | None = None):
        self.loads, self.invariant, self.scaled = loads, invariant, scaled
        self.contraction, self.emitter = loads.contraction, loads.emitter
        self.width, self.element = loads.width, loads.element

    def invariant_values(self, point: Point, columns: Sequence[Column]) -> list[Environment]:
        """What stays the same from the point on, of each column."""
        operands, operations = self.invariant.operands, self.invariant.operations
        return [self.loads.environment(operands, operations, self.loads.column_point(point, c)) for c in columns]

    def step_value(self, point: Point, step: int, column: Column, part: Environment) -> ir.Value:
        """What a column multiplies ``step`` steps of k behind the point; :meth:`added` applies the rest to sums."""
        invariant, place = self.invariant, self.loads.column_point(point, column)
        if self.scaled is not None and invariant.packed_word is not None:
            word = self.loads.factor(invariant.packed_word, place, step, part)
            if invariant.high_word is not None:
                return self._converted(self._masked_planes(word, self._value(invariant.high_word, part), step))
            return self._converted(self._masked(word, step % NIBBLES.count))
        value = self.loads.factor(invariant.step_value, place, step, part)
        return value if invariant.conversion is None else self._converted(value)

    def difference(self, point: Point, step: int, column: Column, part: Environment) -> ir.Value:
        """What a column has ``step`` steps of k behind the point, in front of its scale: an integer as a float."""
        value = self.step_value(point, step, column, part)
        if self.invariant.zero_point is None:
            return value
        return self.emitter.op("arith.subf", [value, self._zero_point(part)], value.type)

    def _masked(self, words: ir.Value, place: int) -> ir.Value:
        """One integer of each word, where it is; the last one shifted, which would be negative."""
        em = self.emitter
        lowest = NIBBLES.places(self.invariant.word_rows)[place]
        if place == NIBBLES.count - 1:
            return em.op("arith.shrui", [words, em.constant(lowest, words.type)], words.type)
        return em.op("arith.andi", [words, em.constant(NIBBLES.mask(1) << lowest, words.type)], words.type)

    def _masked_planes(self, low: ir.Value, high: ir.Value, step: int) -> ir.Value:
        """The integer of each pair of words, where it is among those of every other step, of eight bits each.

        The high bits are moved once for four steps, and none is shifted by itself.
        """
        em, bits, kind = self.emitter, self.invariant.high_bits, low.type
        group, place = divmod(step % self.invariant.word_steps, NIBBLES.count)
        is_odd, apart = place % 2, 2 * NIBBLES.bits
        lowest = range(0, NIBBLES.width, apart)

        def fields(mask: int) -> ir.Value:
            return em.constant(sum(mask << i for i in lowest), kind)

        def shifted(x: ir.Value, right: int) -> ir.Value:
            name = "arith.shrui" if right > 0 else "arith.shli"
            return em.op(name, [x, em.constant(abs(right), kind)], kind) if right else x

        nibbles = em.op("arith.andi", [shifted(low, is_odd * NIBBLES.bits), fields(15)], kind)
        at_nibble = shifted(high, bits * group + (is_odd - 1) * NIBBLES.bits)
        more = em.op("arith.andi", [at_nibble, fields(((1 << bits) - 1) << NIBBLES.bits)], kind)
        whole = em.op("arith.ori", [nibbles, more], kind)
        mask = (1 << NIBBLES.bits + bits) - 1
        return em.op("arith.andi", [whole, em.constant(mask << lowest[place // 2], kind)], kind)

    def added(self, total: ir.Value, partial: ir.Value, part: Environment, left: ir.Value | None) -> ir.Value:
        """A total with the sum of a group; ``left`` is the left factors' sum, if it matters."""
        em, invariant = self.emitter, self.invariant
        if invariant.zero_point is not None and left is not None:
            zero = self._zero_point(part)
            partial = em.op("vector.fma", [self._negative(left), zero, partial], partial.type)
        if invariant.low is not None and left is not None:
            low = self._value(invariant.low, part)
            total = em.op("vector.fma", [self._negative(left), low, total], total.type)
        if invariant.scale is None:
            return em.op("arith.addf", [total, partial], total.type)
        return em.op("vector.fma", [partial, self._value(invariant.scale, part), total], total.type)

    def _negative(self, left: ir.Value) -> ir.Value:
        """Minus a sum of left factors, in every lane."""
        em = self.emitter
        return em.op("arith.negf", [em.broadcast(left, self.width)], em.vector(self.width, self.element))

    def widened(self, place: Point, step: int, part: Environment) -> ir.Value:
        """The whole factor. An integer q of four bits becomes the last bits of 2 ** 23 + q, a conversion less, and as exact.

        32 rows of 896 x 4864 of int4, Zen 5: 0.94 of the time of a conversion.
        """
        em, invariant = self.emitter, self.invariant
        if invariant.packed_word is None or invariant.scale is None or invariant.zero_point is None or self.element != em.f32:
            return self.loads.factor(invariant.varying, place, step, part)
        kind, nibble = em.vector(self.width, self.element), self.loads.factor(invariant.step_value, place, step, part)
        if nibble.type != em.vector(self.width, em.i32):  # of a wide zero point
            return self.loads.factor(invariant.varying, place, step, part)
        bits = em.op("arith.ori", [nibble, em.constant(_EXPONENT_23, nibble.type)], nibble.type)
        zero = em.op("arith.addf", [self._zero_point(part), em.constant(2.0**23, kind)], kind)
        distance = em.op("arith.subf", [em.op("arith.bitcast", [bits], kind), zero], kind)
        return em.op("arith.mulf", [distance, self._value(invariant.scale, part)], kind)

    def _zero_point(self, part: Environment) -> ir.Value:
        assert self.invariant.zero_point is not None
        return self._converted(self._value(self.invariant.zero_point, part))

    def _value(self, value: ir.Value, part: Environment) -> ir.Value:
        """An invariant value in every lane."""
        body = self.loads.body
        return self.emitter.broadcast(body.value(body.item(value, part), Point()), self.width)

    def _converted(self, integer: ir.Value) -> ir.Value:
        assert self.invariant.conversion is not None
        return self.emitter.clone(self.invariant.conversion, [integer], self.emitter.vector(self.width, self.element))

    @property
    def _needs_sums(self) -> bool:
        return self.invariant.zero_point is not None or self.invariant.low is not None

    # -- the left factor ---------------------------------------------------------------------------------------------

    def with_scaled(self, rows: Sequence[Point], depth: int) -> GroupLoads:
        """The same with these rows scaled first, and summed by groups where there are zero points or minima."""
        em, size = self.emitter, self.invariant.group_size or depth
        memory = [(em.scratch(depth, self.element), em.scratch(depth // size, self.element)) for _ in rows]
        for row, (scaled, sums) in zip(rows, memory, strict=True):
            self._scale_row(row, depth, scaled)
            if self._needs_sums:
                self._sum_row(row, depth, size, sums)
        return GroupLoads(self.loads, self.invariant, ScaledRows(memory, self.loads))

    def _scale_row(self, row: Point, depth: int, scaled: ir.Value) -> None:
        em, k, width, left = self.emitter, self.contraction.k, self.width, self.contraction.left
        chunk = max(width, NIBBLES.count)
        whole, vector = depth // chunk * chunk, em.vector(width, self.element)
        scaled_by = self._exponents()
        exponents = [scaled_by[j % NIBBLES.count] for j in range(chunk)]
        bits = [em.lane_constant([e << 23 for e in exponents[i : i + width]], em.i32) for i in range(0, chunk, width)]
        powers = [em.op("arith.bitcast", [b], vector) for b in bits]

        def several(begin: ir.Value) -> None:
            for i, power in enumerate(powers):
                at = em.add(begin, em.number(i * width))
                x = self.loads.factor(left, row.at(k, at).with_lanes(Lanes(k, width)))
                em.effect("vector.store", [em.op("arith.mulf", [x, power], vector), scaled, at])

        em.each(em.number(0), em.number(whole), chunk, several)
        for i in range(whole, depth):
            x = self.loads.factor(left, row.at(k, em.number(i)))
            power = em.constant(2.0 ** (exponents[i % NIBBLES.count] - 127), self.element)
            em.effect("memref.store", [em.op("arith.mulf", [x, power], self.element), scaled, em.number(i)])

    def _exponents(self) -> list[int]:
        """Of what the left factors of eight steps are multiplied with: 16 ** -j is 127 - 4 * j in the exponent's bits.

        The last of eight is not scaled, as its word is shifted; of more than four bits every other one is where it is.
        """
        places = NIBBLES.places(self.invariant.word_rows)
        if self.invariant.high_word is not None:
            return [127 - places[j // 2 * 2] for j in range(NIBBLES.count)]
        return [127 - place for place in places[:-1]] + [127]

    def _sum_row(self, row: Point, depth: int, size: int, sums: ir.Value) -> None:
        em = self.emitter

        def group(number: ir.Value) -> None:
            total = self.left_sum(row, em.mul(number, em.number(size)), size)
            em.effect("memref.store", [total, sums, number])

        em.each(em.number(0), em.number(depth // size), 1, group)

    def left(self, rows: Sequence[Point], k: ir.Value) -> list[ir.Value]:
        """The left factor of each row, in every lane."""
        if self.scaled is not None:
            return [self.scaled.left(r, k) for r in range(len(rows))]
        return [self.loads.left(row.at(self.contraction.k, k)) for row in rows]

    def left_sums(self, rows: Sequence[Point], first: ir.Value, count: int) -> Sequence[ir.Value | None]:
        """The sum of ``count`` elements of each row, where zero points or minima are taken out."""
        if not self._needs_sums:
            return [None] * len(rows)
        if self.scaled is not None:
            return [self.scaled.sum(r, first, count) for r in range(len(rows))]
        return [self.left_sum(row, first, count) for row in rows]

    def left_sum(self, row: Point, first: ir.Value, count: int) -> ir.Value:
        """The sum of the left factors of ``count`` steps of k."""
        em, k, whole = self.emitter, self.contraction.k, count // self.width * self.width
        vector, end = em.vector(self.width, self.element), em.add(first, em.number(whole))

        def several(begin: ir.Value, totals: list[ir.Value]) -> list[ir.Value]:
            lanes = row.at(k, begin).with_lanes(Lanes(k, self.width))
            return [em.op("arith.addf", [totals[0], self.loads.factor(self.contraction.left, lanes)], vector)]

        (total,) = em.loop(first, end, self.width, several, [em.constant(0, vector)])
        result = em.reduce("add", total)
        for i in range(count - whole):
            one = self.loads.factor(self.contraction.left, row.at(k, em.add(end, em.number(i))))
            result = em.op("arith.addf", [result, one], self.element)
        return result
