"""Antialiased resampling of images: along each axis a sum over the window that the filter of its size covers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .torch_resampled_bytes import by_gain, cubic, step_between, summed_bytes, summed_floats, triangle
from .torch_resampling import scaled_size

__all__ = ["antialiased_resampling"]

_aten = torch.ops.aten


def antialiased_resampling() -> dict[Any, Callable[..., torch.Tensor]]:
    """Decompositions of the operators that resample with a filter as wide as the step."""
    return {op.vec: filter_ for op, filter_ in _FILTERS.items()} | {op.default: f.by_size for op, f in _FILTERS.items()}


class _Filter:
    """The decomposition of one operator.

    Args:
        half: how far the filter reaches to either side, in steps.
        weight: its weights by the distance.
    """

    def __init__(self, half: int, weight: Callable[[torch.Tensor], torch.Tensor]):
        self._half, self._weight = half, weight

    def __call__(
        self, x: torch.Tensor, size: Sequence[Any] | None, align_corners: bool, factors: Sequence[float] | None = None
    ) -> torch.Tensor:
        sizes = size if size is not None else [scaled_size(n, f) for n, f in zip(x.shape[2:], factors or (), strict=True)]
        return self._resampled(x, sizes, align_corners, factors or [None] * len(sizes))

    def by_size(
        self, x: torch.Tensor, size: Sequence[Any], align_corners: bool, height: float | None = None, width: float | None = None
    ) -> torch.Tensor:
        """The overload without lists."""
        return self._resampled(x, size, align_corners, [height, width])

    def _resampled(self, x: torch.Tensor, sizes: Sequence[Any], align_corners: bool, factors: Sequence[Any]) -> torch.Tensor:
        is_exact = x.dtype in (torch.float64, torch.uint8)
        y = x if is_exact else x.to(torch.float32)
        changed = [i for i, n in enumerate(sizes) if not statically_known_true(x.shape[2 + i] == n)]
        if x.dtype == torch.uint8:  # each axis is rounded, the last one first
            changed.reverse()
        else:
            changed.sort(key=lambda i: by_gain(i, x.shape[2 + i], sizes[i]))
        for i in changed:
            y = self._along(y, 2 + i, sizes[i], factors[i], align_corners)
        return y.to(x.dtype) if y is not x else x.clone()

    def _along(self, x: torch.Tensor, axis: int, size: Any, factor: float | None, align_corners: bool) -> torch.Tensor:
        """Along one axis.

        Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/cpu/UpSampleKernel.cpp,
        _compute_indices_min_size_weights_aa.
        """
        before = x.shape[axis]
        dtype = x.dtype if x.is_floating_point() else torch.float64
        step = step_between(before, size, factor, align_corners, dtype)
        wide = step.clamp(min=1)
        center = step * (torch.arange(size, dtype=dtype) + 0.5)
        first = (center - self._half * wide + 0.5).clamp(min=0).to(torch.int64)
        last = (center + self._half * wide + 0.5).to(torch.int64).clamp(max=before)
        places = first[:, None] + torch.arange(self._width(before, size, factor, align_corners))
        is_inside = places < last[:, None]
        weights = self._weight(((places.to(dtype) - center[:, None] + 0.5) / wide).abs())
        weights = torch.where(is_inside, weights, 0)
        weights = weights / weights.sum(1, keepdim=True)
        if x.dtype == torch.uint8:
            return summed_bytes(x, axis, places.clamp(max=before - 1), weights)
        return summed_floats(x, axis, places.clamp(max=before - 1), weights, is_inside)

    def _width(self, before: Any, after: Any, factor: float | None, align_corners: bool) -> Any:
        """The most places of a window."""
        if factor is not None and not align_corners:
            return 2 * math.ceil(self._half * max(1 / factor, 1)) + 1
        over, by = (before - 1, torch.sym_max(after - 1, 1)) if align_corners else (before, after)
        return 2 * torch.sym_max((self._half * over + by - 1) // by, self._half) + 1


_FILTERS: Mapping[Any, _Filter] = {
    _aten._upsample_bilinear2d_aa: _Filter(1, triangle),
    _aten._upsample_bicubic2d_aa: _Filter(2, cubic(-0.5)),
}
