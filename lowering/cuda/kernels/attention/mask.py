"""What rows see of some keys: by the mask, by causality, and because there are no more keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.structure.attention import AttentionOperand, MatchedAttention
from ..device_memory import element_bytes_of
from ..products.warp_code import WarpCode
from .places import AttentionPlaces
from .shape import BOOLEAN
from .softmax import HALVES

__all__ = ["MaskCode", "Visible", "is_same_for_rows"]


@dataclass(frozen=True)
class Visible:
    """Keys of a tile that rows see: those below a bound, as a number from the thread's first column of the tile on.

    Attributes:
        bounds: one for each row that a thread has of 16.
    """

    bounds: list[ir.Value]

    def sees(self, code: WarpCode, number: int) -> ir.Value:
        """Whether a score is seen: a thread has four for each eight columns."""
        column = code.number(8 * (number // 4) + number % 2)
        return code.em.compare("slt", column, self.bounds[number % 4 // 2])

    def limited(self, code: WarpCode, scores: Sequence[ir.Value]) -> list[ir.Value]:
        """The scores that are seen; -inf in the place of others."""
        em, hidden = code.em, code.em.constant(-math.inf, code.em.f32)
        return [em.op("arith.select", [self.sees(code, i), score, hidden], em.f32) for i, score in enumerate(scores)]


def is_same_for_rows(attention: MatchedAttention) -> bool:
    """Whether all rows of heads that share keys have one mask."""
    dims = attention.dims
    assert attention.mask is not None
    along = attention.mask.offset.dims() & {dims.head, dims.row}
    return all(attention.extents[dim].static == 1 for dim in along)


class MaskCode:
    """Reads a mask for the rows of a warp."""

    def __init__(self, code: WarpCode, places: AttentionPlaces, mask: AttentionOperand, rows: Sequence[ir.Value]):
        """``rows`` are those of a thread, two of each 16, all of which exist."""
        self.code, self.em, self.places, self.mask = code, code.em, places, mask
        dims = places.attention.dims
        self.is_boolean = str(mask.element) == BOOLEAN
        self._step = places.step(mask, dims.key)
        self._by_key = mask.offset.factor(dims.key).static != 0
        self._rows = [places.address(mask, places.row(r)) for r in (rows[:1] if is_same_for_rows(places.attention) else rows)]

    def shows(self, key: ir.Value) -> ir.Value:
        """Whether rows see a key, of which all of them see the same ones (:func:`is_same_for_rows`)."""
        return self.shows_by(self.value(self.em.add(self._rows[0], self.em.mul(key, self._step))))

    def read(self, first: ir.Value, count: int, last: ir.Value | None) -> list[list[ir.Value]]:
        """The mask of each 16 rows for ``count`` keys, four values for each eight; no key behind the last one is read.

        Args:
            first: the thread's first key, an index.
            count: keys of a warp.
            last: the last key that there is, None where all are there.
        """
        em, found = self.em, dict[tuple[int, int], ir.Value]()
        columns = [8 * i + j for i in range(count // 8) for j in range(2)] if self._by_key else [0]
        for column in columns:
            key = em.add(first, em.number(column))
            if last is not None:
                key = em.op("arith.minui", [key, last], em.index)
            moved = em.mul(key, self._step)
            for i, row in enumerate(self._rows):
                found[i, column] = self.value(em.add(row, moved))

        def value(strip: int, i: int) -> ir.Value:
            row = HALVES * strip + i % 4 // 2 if len(self._rows) > 1 else 0
            return found[row, 8 * (i // 4) + i % 2 if self._by_key else 0]

        strips = max(1, len(self._rows) // HALVES)
        return [[value(strip, i) for i in range(count // 2)] for strip in range(strips)]

    def value(self, address: ir.Value) -> ir.Value:
        """That of an element: whether it is true, or a number in f32."""
        em, element, i64 = self.em, self.mask.element, self.em.integer(64)
        size = element_bytes_of(element)
        access = {"alignment": ir.IntegerAttr.get(i64, size), "ordering": ir.IntegerAttr.get(i64, 0)}
        loaded = em.op("llvm.load", [self.code.global_pointer(address)], element, access)
        if self.is_boolean:
            return em.compare("ne", loaded, em.constant(0, element))
        return loaded if size == 4 else em.op("arith.extf", [loaded], em.f32)

    def is_shown(self, values: Sequence[Sequence[ir.Value]]) -> ir.Value:
        """Whether any row of the warp sees any of the keys."""
        em, shown = self.em, None
        for value in dict.fromkeys(v for strip in values for v in strip):
            seen = self.shows_by(value)
            shown = seen if shown is None else em.op("arith.ori", [shown, seen], em.i1)
        assert shown is not None
        return self.code.vote("any", shown)

    def shows_by(self, value: ir.Value) -> ir.Value:
        """Whether a key is seen where the mask has this value."""
        if self.is_boolean:
            return value
        em = self.em
        other = {"predicate": ir.IntegerAttr.get(em.integer(64), 13)}  # une: of a NaN it is true
        return em.op("arith.cmpf", [value, em.constant(-math.inf, em.f32)], em.i1, other)

    def is_plain(self, value: ir.Value) -> ir.Value:
        """Whether scores stay what they are where the mask has this value."""
        if self.is_boolean:
            return value
        em = self.em
        return em.op("arith.cmpf", [value, em.constant(0.0, em.f32)], em.i1, {"predicate": em.float_predicate("oeq")})

    def applied(self, scores: Sequence[ir.Value], values: Sequence[ir.Value], scale: ir.Value) -> list[ir.Value]:
        """Scores times the scale, with the mask."""
        em = self.em
        if not self.is_boolean:
            return [em.op("math.fma", [s, scale, m], em.f32) for s, m in zip(scores, values, strict=True)]
        return self.chosen([em.op("arith.mulf", [s, scale], em.f32) for s in scores], values)

    def chosen(self, scores: Sequence[ir.Value], values: Sequence[ir.Value]) -> list[ir.Value]:
        """Scores where the mask is true, else -inf."""
        em, hidden = self.em, self.em.constant(-math.inf, self.em.f32)
        return [em.op("arith.select", [m, s, hidden], em.f32) for s, m in zip(scores, values, strict=True)]
