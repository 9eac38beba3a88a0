"""Packed layouts: texts, sizes, where elements are, and what the reference makes of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from relaxir.dialect.errors import RelaxError
from relaxir.dialect.packed_layout import NIBBLES, PLANES, PackedLayout, Word
from relaxir.dialect.reference.packed import in_words, out_of_words, packed, unpacked

LAYOUTS = {
    "tile 16": PackedLayout(16),
    "tile 3, rows 2": PackedLayout(3, 2),
    "tile 16, u4x8": PackedLayout(16, word=NIBBLES),
    "tile 16, rows 4, u4x8, offset 8": PackedLayout(16, 4, NIBBLES, 8),
    "tile 16, rows 8, u2x16": PackedLayout(16, 8, PLANES[2]),
    "tile 32, rows 2, offset -128": PackedLayout(32, 2, offset=-128),
}


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_layout_has_one_text(text: str) -> None:
    assert str(LAYOUTS[text]) == text
    assert PackedLayout.parse(text) == LAYOUTS[text]


@pytest.mark.parametrize(
    "text",
    ["", "16", "tile", "tile 016", "tile -1", "tile 16,rows 2", "tile 16, rows 1", "rows 2, tile 16", "tile 16, offset 0",
     "tile 16, ", "tile 16 ", "tile 16, u4x8, rows 2"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(RelaxError, match=re.escape(f"u4x8, offset 8', got '{text}'")):
        PackedLayout.parse(text)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: PackedLayout.parse("tile 0"), "expected a positive tile, got 0"),
        (lambda: PackedLayout(8, 0), "expected a positive number of rows, got 0"),
        (lambda: PackedLayout.parse("tile 8, u4x2"), "expected words u4x8, u1x32, u2x16, got u4x2"),
        (lambda: PackedLayout.parse("tile 8, rows 4, u2x16"), "expected 8 rows with words u2x16, got 4"),
        (lambda: PackedLayout(8, 3, NIBBLES), "expected rows that divide a word of 8 integers, got 3"),
    ],
)
def test_numbers_that_make_no_layout(made, message: str) -> None:
    with pytest.raises(RelaxError, match=f"^{message}$"):
        made()


def test_integers_of_a_word() -> None:
    """With one row, and with all, they are in order; else those that come out at once are far from each other."""
    assert NIBBLES.places() == NIBBLES.places(8) == [0, 4, 8, 12, 16, 20, 24, 28]
    assert NIBBLES.places(4) == [0, 8, 16, 24, 4, 12, 20, 28]
    assert NIBBLES.places(2) == [0, 16, 4, 20, 8, 24, 12, 28]
    assert [NIBBLES.mask(rows) for rows in (1, 2, 4, 8)] == [0xF, 0xF000F, 0xF0F0F0F, 0xFFFFFFFF]
    assert Word(4, 16).width == 64


@pytest.mark.parametrize("layout", [PackedLayout(4), PackedLayout(4, 2), PackedLayout(8, 3), PackedLayout(1)], ids=str)
def test_elements_are_where_the_layout_says(layout: PackedLayout) -> None:
    x = np.arange(1, 36, dtype=np.float32).reshape(5, 7)
    made = packed(x, layout)
    assert list(made.shape) == layout.shape(5, 7)
    assert made.ndim == layout.rank
    for (k, n), value in np.ndenumerate(x):
        assert made[tuple(layout.place(k, n))] == value
    assert np.count_nonzero(made) == x.size
    np.testing.assert_array_equal(unpacked(made, layout, 7)[:5], x)


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
def test_words(rows: int) -> None:
    integers = np.random.default_rng(rows).integers(0, 16, (2, 11, 3)).astype(np.uint32)
    words = in_words(integers, NIBBLES, rows, axis=1)
    assert words.shape == (2, 2, 3)
    back = out_of_words(words, NIBBLES, rows, axis=1)
    np.testing.assert_array_equal(back[:, :11], integers)
    assert not back[:, 11:].any()
    at_once = words[:, 0] & NIBBLES.mask(rows)
    for i, place in enumerate(NIBBLES.places(rows)[:rows]):
        np.testing.assert_array_equal(at_once >> place & 15, integers[:, i])


def test_unknown_sizes() -> None:
    assert PackedLayout(8, 2).shape(None, None) == [None, None, 8, 2]
    assert PackedLayout(8, word=NIBBLES).shape(20, None) == [None, 3, 8]
