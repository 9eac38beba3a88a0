"""The matrices of Winograd's minimal filtering ``F(2x2, 3x3)``: four results of a 3x3 filter by 16 products instead of 36.

For a tile of 4x4 elements ``d`` and a filter ``g``::

    results[2, 2] = A^T ((G g G^T) * (B^T d B)) A

Elements of tiles are added and subtracted, four to one; those of filters are, and are halved. Sums over channels are taken
between, by 16 matrix products.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), section 4.1.
"""

from __future__ import annotations

__all__ = ["MOST_CHANNELS", "OF_FILTER", "OF_IMAGE", "OF_RESULT", "OF_TAPS", "PLACES", "RESULTS", "TAPS", "TILE"]

#: Elements of a tile along an axis, results of it, and taps of a filter.
TILE, RESULTS, TAPS = 4, 2, 3
#: Elements of a tile: so many products there are.
PLACES = TILE * TILE

#: Of more channels, few transformed tiles are more than a stack is for: of 2048, eight of them are 1 MiB.
MOST_CHANNELS = 2048

#: ``B^T``: of elements along an axis.
OF_IMAGE = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
#: ``G``: of taps along an axis.
OF_FILTER = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
#: A left inverse of ``G``: the taps of what it made.
OF_TAPS = ((1, 0, 0, 0), (0, 1, -1, 0), (0, 0, 0, 1))
#: ``A^T``: of sums of products along an axis.
OF_RESULT = ((1, 1, 1, 0), (0, 1, -1, -1))
