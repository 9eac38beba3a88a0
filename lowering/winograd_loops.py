"""The loops of a convolution by Winograd's filtering: where its products and its results read, for who emits and who matches.

Products loop over the place in a tile, images, tiles down and across, filters, and the channels that are summed; results over
images, lines, columns and filters, and the place in a tile, which is summed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dialect.bindings import ir
from ..dialect.winograd import RESULTS, TILE

__all__ = ["ACROSS", "CHANNEL", "DOWN", "EACH", "IMAGES", "PLACE", "products_places", "results_places"]

#: Loops of the products.
PLACE, IMAGES, DOWN, ACROSS, CHANNEL, EACH = (0, 1), 2, 3, 4, 5, 6

_Places = Sequence[Sequence[ir.AffineExpr]]


def products_places(tile: int) -> _Places:
    """Of the 16 elements of a tile in the image, row by row, of filters in panels of ``tile`` columns, and of sums."""
    i, j, n, down, across, channel, each = (ir.AffineExpr.get_dim(d) for d in range(7))
    elements = [[n, down * RESULTS + y, across * RESULTS + x, each] for y in range(TILE) for x in range(TILE)]
    panel, lane = ir.AffineExpr.get_floor_div(channel, tile), ir.AffineExpr.get_mod(channel, tile)
    return [*elements, [panel, i, j, each, lane], [i, j, n, down, across, channel]]


def results_places() -> _Places:
    """Of sums, and of results."""
    n, y, x, channel, i, j = (ir.AffineExpr.get_dim(d) for d in range(6))
    floor = ir.AffineExpr.get_floor_div
    return [[i, j, n, floor(y, RESULTS), floor(x, RESULTS), channel], [n, y, x, channel]]
