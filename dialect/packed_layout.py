"""How a matrix of weights ``[k, n]`` is in memory where kernels read it: one description for all who write or read it.

Columns are in panels, one panel after the other. A layout is written in this form and in no other::

    tile 16                          [ceil(n / 16), k, 16]
    tile 16, rows 2                  [ceil(n / 16), ceil(k / 2), 16, 2]: two rows of a column are neighbours
    tile 16, u4x8                    [ceil(n / 16), ceil(k / 8), 16]: eight unsigned integers of four bits are a word
    tile 16, rows 4, u4x8            the same shape: of each word a shift and a mask give four neighbouring rows
    tile 16, rows 8, u2x16           [ceil(n / 16), ceil(k / 16), 16]: sixteen of two bits, or u1x32, which are the high bits of
                                     integers whose low ones are in words u4x8: of eight rows they are as far apart
    tile 16, rows 4, offset 128      integers are 128 more than those of the matrix

Beyond row ``k`` and column ``n`` are zeros, of the integers as they were before an offset. Imports no MLIR.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import floordiv
from typing import Any

from .errors import RelaxError
from .symbolic import Dim

__all__ = ["EXAMPLE", "NARROWEST", "NIBBLES", "PLANES", "PackedLayout", "Word"]

_TEXT = re.compile(r"tile (\d+)(?:, rows (\d+))?(?:, u(\d+)x(\d+))?(?:, offset (-?\d+))?")
#: What a text looks like, for messages.
EXAMPLE = "'tile 16, rows 4, u4x8, offset 8'"


@dataclass(frozen=True)
class Word:
    """``count`` unsigned integers of so many bits in an unsigned integer."""

    bits: int
    count: int

    @staticmethod
    def parse(text: str) -> Word | None:
        """The word of a text, ``u4x8``; None for any other that :meth:`__str__` does not give."""
        match = re.fullmatch(r"u([1-9]\d*)x([1-9]\d*)", text)
        return Word(*map(int, match.groups())) if match else None

    @property
    def width(self) -> int:
        """Bits of the word."""
        return self.bits * self.count

    def places(self, rows: int = 1) -> list[int]:
        """The lowest bit of each integer, in the order of their rows, where so many rows come out at once.

        The ``rows`` that a shift and a mask give are as far from each other as they can be; the next ones are beside them. With
        one row, and with as many as there are, they are in order.
        """
        return [self.width // rows * j + self.bits * s for s in range(self.count // rows) for j in range(rows)]

    def mask(self, rows: int) -> int:
        """The bits of the first integers that come out at once."""
        return sum((1 << self.bits) - 1 << place for place in self.places(rows)[:rows])

    def __str__(self) -> str:
        return f"u{self.bits}x{self.count}"


#: Four-bit integers in a word as wide as an f32: a mask gives a vector of integers to convert.
NIBBLES = Word(4, 8)

#: The narrowest panels that are a vector of some target's: a quarter of a line of f32.
NARROWEST = 4

#: What integers of five and six bits have beside the lowest four, by how many bits that are.
PLANES = {1: Word(1, 32), 2: Word(2, 16)}


@dataclass(frozen=True)
class PackedLayout:
    """How a packed matrix is in memory. Raises RelaxError for numbers that make no layout.

    Attributes:
        tile: columns of a panel.
        rows: rows of a column that are neighbours, for instructions that sum their products.
        word: what integers are put together in; they are neighbours in there.
        offset: by how much integers are more than those of the matrix, or less; so are their zero points.
    """

    tile: int
    rows: int = 1
    word: Word | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        for name, value in (("tile", self.tile), ("number of rows", self.rows)):
            if value < 1:
                raise RelaxError(f"expected a positive {name}, got {value}")
        if self.word is not None and self.word not in (NIBBLES, *PLANES.values()):
            raise RelaxError(f"expected words {NIBBLES}, {', '.join(map(str, PLANES.values()))}, got {self.word}")
        if self.word in PLANES.values() and self.rows != NIBBLES.count:
            raise RelaxError(f"expected {NIBBLES.count} rows with words {self.word}, got {self.rows}")
        if self.word is not None and self.word.count % self.rows:
            raise RelaxError(f"expected rows that divide a word of {self.word.count} integers, got {self.rows}")

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def parse(text: str) -> PackedLayout:
        """The layout of a text. Raises RelaxError for any that :meth:`__str__` does not give."""
        match = _TEXT.fullmatch(text)
        tile, rows, bits, count, offset = (int(part or 0) for part in match.groups()) if match else (0, 0, 0, 0, 0)
        layout = PackedLayout(tile, rows or 1, Word(bits, count) if count else None, offset) if match else None
        if layout is None or str(layout) != text:
            raise RelaxError(f"expected a packed layout such as {EXAMPLE}, got '{text}'")
        return layout

    def __str__(self) -> str:
        parts = [f"tile {self.tile}", f"rows {self.rows}" if self.rows > 1 else "", str(self.word or "")]
        return ", ".join(part for part in (*parts, f"offset {self.offset}" if self.offset else "") if part)

    @property
    def high_bits(self) -> Word | None:
        """The word, where it is one of high bits alone."""
        return self.word if self.word in PLANES.values() else None

    @property
    def step(self) -> int:
        """How many rows of the matrix a row of a panel holds."""
        return self.rows if self.word is None else self.word.count

    @property
    def rank(self) -> int:
        """Dimensions of a packed matrix."""
        return 3 + self.has_neighbours

    @property
    def has_neighbours(self) -> bool:
        """Whether neighbouring rows are a dimension of their own."""
        return self.word is None and self.rows > 1

    def depth(self, k: Dim) -> Dim:
        """How many rows panels have."""
        return k if self.step == 1 or k is None else (k + self.step - 1) // self.step

    def panels(self, n: Dim) -> Dim:
        """How many panels there are."""
        return None if n is None else (n + self.tile - 1) // self.tile

    def filled_by(self, columns: int) -> PackedLayout:
        """The same with the widest panels, halved as often as it takes, that so many columns fill."""
        tile = self.tile
        while columns % tile:
            tile = tile // 2 if tile % 2 == 0 else 1
        return replace(self, tile=tile)

    def shape(self, k: Dim, n: Dim) -> list[Dim]:
        """The shape of a packed matrix ``[k, n]``."""
        return [self.panels(n), self.depth(k), self.tile, *([self.rows] if self.has_neighbours else [])]

    def place(self, k: Any, n: Any, divided: Callable[[Any, int], Any] = floordiv) -> list[Any]:
        """Where the element of a row and a column is, or its word; ``divided`` is how their kind is divided, rounding down."""
        row = k if self.step == 1 else divided(k, self.step)
        return [divided(n, self.tile), row, n % self.tile, *([k % self.rows] if self.has_neighbours else [])]

    @staticmethod
    def offset_of(bits: int) -> int:
        """By how much unsigned integers of so many bits are more than the signed ones that they stand for."""
        return 1 << (bits - 1)
