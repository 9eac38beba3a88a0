"""The mask of a block's rows for warpgroups: tiles that it hides are passed over, others are read while products run.

What a thread has of a tile's mask while it waits are *held* registers: of numbers one for each score, of truth values a bit.
There is one code for all tiles, as warpgroups' products do not go across branches that others go: of a tile that all
rows see all of (:data:`.mask_tiles.WHOLE`), held are ones or zeros, and nothing is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .....dialect.bindings import ir
from ..products.warpgroup_code import WarpgroupCode
from .mask import MaskCode, Visible
from .mask_tiles import HIDDEN, WHOLE, MaskTiles
from .places import AttentionPlaces
from .plan import AttentionTile

__all__ = ["WarpgroupMask"]

# Of a register.
_BITS = 32


class WarpgroupMask:
    """Builds with the mask of a block.

    Attributes:
        is_added: whether it is numbers, which scores must have been scaled for.
    """

    def __init__(
        self, code: WarpgroupCode, places: AttentionPlaces, tile: AttentionTile, first_row: ir.Value, shown: ir.Value
    ):  # fmt: skip
        """For the rows from one on; ``shown`` is the address of the bytes of all tiles (:mod:`.mask_tiles`)."""
        self.code, self.em, self.places, self.tile = code, code.em, places, tile
        row_tile = code.em.op("arith.divui", [first_row, code.em.number(tile.rows)], code.em.index)
        self._shown = code.em.add(shown, MaskTiles(places.attention, tile).first(places, row_tile))

    # -- tiles -----------------------------------------------------------------------------------------------------

    def first_shown(self, count: ir.Value) -> ir.Value:
        """The first tile of which a row sees something, ``count`` where there is none."""
        em = self.em

        def look(number: ir.Value, found: list[ir.Value]) -> list[ir.Value]:
            tile = em.sub(em.sub(count, number), em.number(1))
            return [em.op("arith.select", [self._says(tile, "ne", HIDDEN), tile, *found], em.index)]

        return em.loop(em.number(0), count, 1, look, [count])[0]

    def if_shown(
        self, tile: ir.Value, build: Callable[[], Sequence[ir.Value]], carried: Sequence[ir.Value]
    ) -> Sequence[ir.Value]:
        """What is built for a tile if a row sees some of it; else what is carried stays."""
        return self.em.when(self._says(tile, "ne", HIDDEN), build, lambda: carried, [v.type for v in carried])

    def _says(self, tile: ir.Value, predicate: str, value: int) -> ir.Value:
        """What the byte of a tile says."""
        em, i64, byte = self.em, self.em.integer(64), self.em.integer(8)
        access = {"alignment": ir.IntegerAttr.get(i64, 1), "ordering": ir.IntegerAttr.get(i64, 0)}
        found = em.op("llvm.load", [self.code.global_pointer(em.add(self._shown, tile))], byte, access)
        return em.compare(predicate, found, em.constant(value, byte))

    # -- values ----------------------------------------------------------------------------------------------------

    def of_rows(self, rows: Sequence[ir.Value], end: ir.Value, full: ir.Value) -> None:
        """Says a thread's two rows, behind which key there are no more, and from which tile on not all rows see all keys."""
        mask = self.places.attention.mask
        assert mask is not None
        self.rows, self.mask, self._end, self._full = rows, MaskCode(self.code, self.places, mask, rows), end, full

    def held(self, tile: ir.Value, first: ir.Value, visible: Visible) -> list[ir.Value]:
        """What a thread holds of a tile, from its first key on; what is not visible is hidden, too."""
        em, code, count = self.em, self.code, self.tile.keys // 2
        is_whole = em.op("arith.andi", [em.compare("ult", tile, self._full), self._says(tile, "eq", WHOLE)], em.i1)
        words = [code.number(-1)] * (count // _BITS)
        nothing = words if self.mask.is_boolean else [em.constant(0.0, em.f32)] * count

        def read() -> list[ir.Value]:
            (values,) = self.mask.read(first, self.tile.keys, em.sub(self._end, em.number(1)))
            seen = [visible.sees(code, i) for i in range(count)]
            if self.mask.is_boolean:
                return self._packed([em.op("arith.andi", [v, s], em.i1) for v, s in zip(values, seen, strict=True)])
            hidden = em.constant(-math.inf, em.f32)
            return [em.op("arith.select", [s, v, hidden], em.f32) for v, s in zip(values, seen, strict=True)]

        return em.when(is_whole, lambda: nothing, read, [v.type for v in nothing])

    def applied(self, scores: Sequence[ir.Value], held: Sequence[ir.Value], scale: ir.Value) -> list[ir.Value]:
        """Scores with what is held; those that a number is added to are multiplied by the scale."""
        if self.mask.is_boolean:
            return self.mask.chosen(scores, [self._bit_of(held, i) for i in range(len(scores))])
        return self.mask.applied(scores, held, scale)

    def _packed(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        em, found = self.em, list[ir.Value]()
        for start in range(0, len(values), _BITS):
            word = self.code.number(0)
            for i, value in enumerate(values[start : start + _BITS]):
                word = em.op("arith.select", [value, em.op("arith.ori", [word, self._bit(i)], em.i32), word], em.i32)
            found.append(word)
        return found

    def _bit_of(self, words: Sequence[ir.Value], number: int) -> ir.Value:
        em = self.em
        bit = em.op("arith.andi", [words[number // _BITS], self._bit(number % _BITS)], em.i32)
        return em.compare("ne", bit, self.code.number(0))

    def _bit(self, number: int) -> ir.Value:
        return self.code.number(1 << number if number < _BITS - 1 else -(1 << number))
