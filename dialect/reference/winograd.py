"""Convolutions by Winograd's minimal filtering, in NumPy."""

from __future__ import annotations

import numpy as np

from ..packed_layout import PackedLayout
from ..winograd import OF_IMAGE, OF_RESULT, OF_TAPS, PLACES, RESULTS, TAPS, TILE
from .nn import _padded
from .numeric import Array, convert, matmul, wide
from .packed import unpacked
from .registry import reference

__all__: list[str] = []


@reference
def winograd_conv2d(x: Array, weight: Array, *, layout: PackedLayout, channels: int, padding: list[int]) -> Array:
    values = wide(x)
    filters = unpacked(wide(weight), layout, channels).reshape(PLACES, -1, channels)
    n, h, w, c = values.shape
    top, left, bottom, right = padding
    height, width = h + top + bottom - TAPS + 1, w + left + right - TAPS + 1
    down, across = -(-height // RESULTS), -(-width // RESULTS)
    ends = [bottom + RESULTS * down - height, right + RESULTS * across - width]
    image = _padded(values.transpose(0, 3, 1, 2), [top, left], ends, 0)
    windows = np.lib.stride_tricks.sliding_window_view(image, (TILE, TILE), axis=(2, 3))[:, :, ::RESULTS, ::RESULTS]
    of_image, of_result = (np.asarray(m, values.dtype) for m in (OF_IMAGE, OF_RESULT))
    tiles = np.einsum("iy,ncdayx,jx->ijndac", of_image, windows, of_image).reshape(PLACES, n * down * across, c)
    sums = matmul(tiles, filters).reshape(TILE, TILE, n, down, across, channels)
    results = np.einsum("ri,ijndao,sj->ndraso", of_result, sums, of_result)
    _sum_windows(results, windows, filters)
    whole = results.reshape(n, RESULTS * down, RESULTS * across, channels)
    return convert(whole[:, :height, :width], x.dtype)


def _sum_windows(results: Array, windows: Array, filters: Array) -> None:
    """Results of tiles with elements that are infinite or NaN, in place: each is the sum of its own window.

    Args:
        results: ``[n, down, 2, across, 2, channels]``.
        windows: tiles ``[n, c, down, across, 4, 4]``.
        filters: ``[16, c, channels]``, of which the taps come back.
    """
    found = ~np.isfinite(windows).all(axis=(1, 4, 5))
    if not found.any():
        return
    of_taps = np.asarray(OF_TAPS, filters.dtype)
    taps = np.einsum("yi,ijco,xj->yxco", of_taps, filters.reshape(TILE, TILE, *filters.shape[1:]), of_taps)
    tiles = np.moveaxis(windows, 1, -1)[found]
    own = np.lib.stride_tricks.sliding_window_view(tiles, (TAPS, TAPS), axis=(1, 2))
    results.transpose(0, 1, 3, 2, 4, 5)[found] = np.einsum("brscyx,yxco->brso", own, taps)
