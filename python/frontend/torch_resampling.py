"""Resampling of images by neighbours, axis by axis: rows are read as they lie, and a filter's neighbours once for each axis.

Linear resampling leaves axes whose sizes stay, as PyTorch does. Beside infinities and what is no number PyTorch's vector code
adds neighbours times 0 along them, as its own decompositions do: results are no numbers there, and ours are copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .torch_resampled_bytes import as_it_lies, by_gain, cubic, in_order, resampled_bytes, resampled_floats, triangle

__all__ = ["cubic_resampling", "linear_resampling", "scaled_size"]

#: A factor with such a denominator, a power of 2, times a size is exact in double precision: no rounding before it is cut off.
_MOST_PARTS = 1 << 16

_LINEAR = (
    torch.ops.aten.upsample_linear1d.vec,
    torch.ops.aten.upsample_bilinear2d.vec,
    torch.ops.aten.upsample_trilinear3d.vec,
)


def linear_resampling() -> dict[Any, Callable[..., torch.Tensor]]:
    """Decompositions of the operators that resample linearly."""
    return {op: _linear for op in _LINEAR}


def cubic_resampling() -> dict[Any, Callable[..., torch.Tensor]]:
    """The decomposition of cubic resampling."""
    return {torch.ops.aten.upsample_bicubic2d.vec: _cubic}


def _cubic(
    x: torch.Tensor, size: Sequence[Any] | None, align_corners: bool, factors: Sequence[float] | None = None
) -> torch.Tensor:
    resampled = resampled_bytes if x.dtype == torch.uint8 else resampled_floats
    return resampled(x, _sizes(x, size, factors), align_corners, factors, 2, cubic(-0.75))


def _linear(
    x: torch.Tensor, size: Sequence[Any] | None, align_corners: bool, factors: Sequence[float] | None = None
) -> torch.Tensor:
    """Axis by axis: rows of images are read as they lie then, and nothing is read for each pair of neighbours."""
    sizes = _sizes(x, size, factors)
    changed = [i for i, n in enumerate(sizes) if not statically_known_true(x.shape[2 + i] == n)]
    if not changed:
        return x.clone()
    if x.dtype == torch.uint8 and len(sizes) == 2:
        return resampled_bytes(x, sizes, align_corners, factors, 1, triangle)
    y, first = as_it_lies(x if x.dtype == torch.float64 else x.to(torch.float32))
    for i in sorted(changed, key=lambda i: by_gain(i, x.shape[2 + i], sizes[i])):
        y = _along(y, first + i, sizes[i], factors[i] if factors else None, align_corners)
    y = in_order(y, first)
    return y.to(x.dtype) if x.is_floating_point() else y.round().to(x.dtype)


def _sizes(x: torch.Tensor, size: Sequence[Any] | None, factors: Sequence[float] | None) -> list[Any]:
    """The sizes of a result that are given, or follow from factors."""
    return list(size) if size is not None else [scaled_size(n, f) for n, f in zip(x.shape[2:], factors or (), strict=True)]


def scaled_size(size: Any, factor: float) -> Any:
    """As ``aten`` computes the size of a result by a factor; by a sum of few powers of 2 in whole numbers, as symbols can."""
    times, by = float(factor).as_integer_ratio()
    return size * times // by if by <= _MOST_PARTS else torch.sym_int(size * factor)


def _along(x: torch.Tensor, axis: int, size: Any, factor: float | None, align_corners: bool) -> torch.Tensor:
    """Along one axis; where it turns out that its size stays, each is its own neighbour.

    Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/UpSample.h, compute_source_index_and_lambda.
    """
    before, after = (torch.full((), n, dtype=torch.int64) for n in (x.shape[axis], size))
    places = torch.arange(size)
    if align_corners:
        steps = (after - 1).clamp(min=1)
        source = places * torch.where(after > 1, (before - 1).to(x.dtype) / steps.to(x.dtype), 0)
    else:
        step = before.to(x.dtype) / after.to(x.dtype) if factor is None else 1 / factor
        source = ((places.to(x.dtype) + 0.5) * step - 0.5).clamp(min=0)
    is_copy = before == after
    low = torch.where(is_copy, places, torch.minimum(source.to(torch.int64), before - 1))
    high = torch.where(is_copy, places, torch.minimum(low + 1, before - 1))
    share = torch.where(is_copy, 0, (source - low).clamp(0, 1)).to(x.dtype).reshape(-1, *[1] * (x.dim() - axis - 1))
    return x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share
