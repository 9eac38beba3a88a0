"""Where rows of images begin is added up in front of the loop over channels, once for rows that begin alike."""

import re

import relaxir as rx
from support.emulation import generated

_ADDED_UP = re.compile(r'call i64 asm "", "=r,0"')


def starts(width: int) -> int:
    """How many sums the code of a convolution with strides has in front of its loops, of images of a width."""
    b = rx.Builder()
    with b.function("main"):
        x, w = b.input("x", (1, 16, 8, width), "f32"), b.weight("w", (32, 16, 1, 1), "f32")
        b.output(y=b.conv2d(x, w, strides=[2, 2]))
    return len(_ADDED_UP.findall(generated(b.build(), "x86-64-v3")))


def test_rows_of_a_tile_share_where_they_begin() -> None:
    assert starts(8) == 4, (
        "of the rows of a tile, which are rows of the image, and of the panel, for tiles of six and four rows"
    )


def test_rows_of_a_tile_that_crosses_rows_of_the_image_begin_apart() -> None:
    assert starts(14) > 2
