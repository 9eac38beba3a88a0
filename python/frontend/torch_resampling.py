"""Linear resampling of images, along those axes alone whose sizes change: PyTorch copies along the others.

PyTorch's own decompositions add neighbours times 0 there, which are no numbers where the neighbours are none, or infinite; and
they divide sizes as numbers, which symbolic ones cannot be. Along an axis whose size is known to stay an infinity stays one; in
eager PyTorch, which adds it times 0, it becomes no number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from .torch_resampled_bytes import cubic, resampled_bytes, resampled_floats, triangle

__all__ = ["cubic_resampling", "linear_resampling", "scaled_size"]

#: A factor with such a denominator, a power of 2, times a size is exact in double precision: no rounding before it is cut off.
_MOST_PARTS = 1 << 16

_BY_AXES = {
    1: torch.ops.aten.upsample_linear1d.vec,
    2: torch.ops.aten.upsample_bilinear2d.vec,
    3: torch.ops.aten.upsample_trilinear3d.vec,
}


def linear_resampling(table: Mapping[Any, Callable[..., torch.Tensor]]) -> dict[Any, Callable[..., torch.Tensor]]:
    """Decompositions of the operators that resample linearly, made of the given ones."""
    return {op: _Resampling(axes, table) for axes, op in _BY_AXES.items() if op in table}


def cubic_resampling(table: Mapping[Any, Callable[..., torch.Tensor]]) -> dict[Any, Callable[..., torch.Tensor]]:
    """The decomposition of cubic resampling, the given one but for bytes, and for sizes that a call tells."""
    operator = torch.ops.aten.upsample_bicubic2d.vec
    if operator not in table:
        return {}

    def resampled(
        x: torch.Tensor, size: Sequence[Any] | None, align_corners: bool, factors: Sequence[float] | None = None
    ) -> torch.Tensor:
        sizes = _sizes(x, size, factors)
        if x.dtype == torch.uint8:
            return resampled_bytes(x, sizes, align_corners, factors, 2, cubic(-0.75))
        if any(isinstance(n, torch.SymInt) for n in (*x.shape[2:], *sizes)):
            return resampled_floats(x, sizes, align_corners, factors, 2, cubic(-0.75))
        return table[operator](x, size, align_corners, factors)

    return {operator: resampled}


def _sizes(x: torch.Tensor, size: Sequence[Any] | None, factors: Sequence[float] | None) -> list[Any]:
    """The sizes of a result that are given, or follow from factors."""
    return list(size) if size is not None else [scaled_size(n, f) for n, f in zip(x.shape[2:], factors or (), strict=True)]


class _Resampling:
    """The decomposition of the operator for so many axes; those of fewer axes are in the table, too."""

    def __init__(self, axes: int, table: Mapping[Any, Callable[..., torch.Tensor]]):
        self._axes, self._table = axes, table

    def __call__(
        self, x: torch.Tensor, size: Sequence[Any] | None, align_corners: bool, factors: Sequence[float] | None = None
    ) -> torch.Tensor:
        sizes = _sizes(x, size, factors)
        changed = [i for i, n in enumerate(sizes) if not statically_known_true(x.shape[2 + i] == n)]
        if not changed:
            return x.clone()
        if x.dtype == torch.uint8 and self._axes == 2:
            return resampled_bytes(x, sizes, align_corners, factors, 1, triangle)
        if any(isinstance(n, torch.SymInt) for i in changed for n in (x.shape[2 + i], sizes[i])):
            return _one_by_one(x, {2 + i: (sizes[i], factors[i] if factors else None) for i in changed}, align_corners)
        if len(changed) == self._axes:
            return self._table[_BY_AXES[self._axes]](x, size, align_corners, factors)
        order = [0, 1, *(2 + i for i in range(self._axes) if i not in changed), *(2 + i for i in changed)]
        moved = x.permute(order)
        kept = moved.shape[1 : x.dim() - len(changed)]
        images = moved.reshape(x.shape[0], math.prod(kept), *moved.shape[x.dim() - len(changed) :])
        wanted = None if size is None else [size[i] for i in changed]
        given = None if factors is None else [factors[i] for i in changed]
        resampled = self._table[_BY_AXES[len(changed)]](images, wanted, align_corners, given)
        back = sorted(range(x.dim()), key=order.__getitem__)
        return resampled.reshape(x.shape[0], *kept, *resampled.shape[2:]).permute(back).contiguous()


def scaled_size(size: Any, factor: float) -> Any:
    """As ``aten`` computes the size of a result by a factor; by a sum of few powers of 2 in whole numbers, as symbols can."""
    times, by = float(factor).as_integer_ratio()
    return size * times // by if by <= _MOST_PARTS else torch.sym_int(size * factor)


def _one_by_one(x: torch.Tensor, wanted: Mapping[int, tuple[Any, float | None]], align_corners: bool) -> torch.Tensor:
    """Along each axis to a size by a factor, computed in single precision at least."""
    y = x if x.dtype == torch.float64 else x.to(torch.float32)
    for axis, (size, factor) in wanted.items():
        y = _along(y, axis, size, factor, align_corners)
    return y.to(x.dtype) if x.is_floating_point() else y.round().to(x.dtype)


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
        source = ((places + 0.5) * step - 0.5).clamp(min=0)
    is_copy = before == after
    low = torch.where(is_copy, places, torch.minimum(source.to(torch.int64), before - 1))
    high = torch.where(is_copy, places, torch.minimum(low + 1, before - 1))
    share = torch.where(is_copy, 0, (source - low).clamp(0, 1)).to(x.dtype).reshape(-1, *[1] * (x.dim() - axis - 1))
    return x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share
