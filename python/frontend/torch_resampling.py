"""Linear resampling of images, along those axes alone whose sizes change: PyTorch copies along the others.

PyTorch's own decompositions add neighbours times 0 there, which are no numbers where the neighbours are none, or infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

__all__ = ["linear_resampling"]

_BY_AXES = {
    1: torch.ops.aten.upsample_linear1d.vec,
    2: torch.ops.aten.upsample_bilinear2d.vec,
    3: torch.ops.aten.upsample_trilinear3d.vec,
}


def linear_resampling(table: Mapping[Any, Callable[..., torch.Tensor]]) -> dict[Any, Callable[..., torch.Tensor]]:
    """Decompositions of the operators that resample linearly, made of the given ones."""
    return {op: _Resampling(axes, table) for axes, op in _BY_AXES.items() if op in table}


class _Resampling:
    """The decomposition of the operator for so many axes; those of fewer axes are in the table, too."""

    def __init__(self, axes: int, table: Mapping[Any, Callable[..., torch.Tensor]]):
        self._axes, self._table = axes, table

    def __call__(
        self, x: torch.Tensor, size: Sequence[Any] | None, align_corners: bool, factors: Sequence[float] | None = None
    ) -> torch.Tensor:
        sizes = size if size is not None else [_scaled(n, f) for n, f in zip(x.shape[2:], factors or (), strict=True)]
        changed = [i for i, n in enumerate(sizes) if not statically_known_true(x.shape[2 + i] == n)]
        if len(changed) == self._axes:
            return self._table[_BY_AXES[self._axes]](x, size, align_corners, factors)
        if not changed:
            return x.clone()
        order = [0, 1, *(2 + i for i in range(self._axes) if i not in changed), *(2 + i for i in changed)]
        moved = x.permute(order)
        kept = moved.shape[1 : x.dim() - len(changed)]
        images = moved.reshape(x.shape[0], math.prod(kept), *moved.shape[x.dim() - len(changed) :])
        wanted = None if size is None else [size[i] for i in changed]
        given = None if factors is None else [factors[i] for i in changed]
        resampled = self._table[_BY_AXES[len(changed)]](images, wanted, align_corners, given)
        back = sorted(range(x.dim()), key=order.__getitem__)
        return resampled.reshape(x.shape[0], *kept, *resampled.shape[2:]).permute(back).contiguous()


def _scaled(size: Any, factor: float) -> Any:
    """As ``aten`` computes the size of a result by a factor."""
    return torch.sym_int(size * factor)
