"""Images of two and three dimensions sampled at places of a grid, by operators that the import knows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["grid_sampling"]

_aten = torch.ops.aten

_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
_ZEROS, _BORDER = 0, 1

#: Of the cubic convolution (Keys, 1981), as torch has it.
_CUBIC = -0.75


def grid_sampling() -> dict[Any, Callable[..., torch.Tensor]]:
    """The decomposition by operator.

    torch's own of two dimensions names elements by all indices, which takes twelve times as long (64 channels of 128 by 128
    elements), and reflects at sizes that are open as if they were not one.
    """
    return {_aten.grid_sampler_2d.default: _sampled, _aten.grid_sampler_3d.default: _sampled}


def _sampled(x: torch.Tensor, grid: torch.Tensor, mode: int, padding: int, corners: bool) -> torch.Tensor:
    """``[n, c, d, h, w]`` at ``[n, od, oh, ow, 3]`` places, each of x, y and z from -1 to 1: ``[n, c, od, oh, ow]``.

    In f32 for narrower floats, which do not tell places apart. Places that are no numbers give 0, as torch's decomposition of
    two dimensions does.
    """
    if x.dtype in (torch.bfloat16, torch.float16):
        return _sampled(x.float(), grid.float(), mode, padding, corners).to(x.dtype)
    sizes = x.shape[:1:-1]

    def padded(places: list[torch.Tensor]) -> list[torch.Tensor]:
        return [_padded(place, size, padding, corners) for place, size in zip(places, sizes, strict=True)]

    places = [_place(grid[..., i], size, corners) for i, size in enumerate(sizes)]
    if mode == _BICUBIC:
        return _weighted(x, places, {step: _cubic_weight(step) for step in (-1, 0, 1, 2)}, padded)
    places = padded(places)
    if mode == _NEAREST:
        return _at(x, [p.round() for p in places], torch.ones_like(places[0]))
    return _weighted(x, places, {0: lambda distance: 1 - distance, 1: lambda distance: distance}, lambda taken: taken)


def _weighted(
    x: torch.Tensor,
    places: list[torch.Tensor],
    weights: dict[int, Callable[[torch.Tensor], torch.Tensor]],
    padded: Callable[[list[torch.Tensor]], list[torch.Tensor]],
) -> torch.Tensor:
    """The sum of elements around places, by steps from the one below, times what these weigh at a distance from that one."""
    low = [p.floor() for p in places]
    far = [place - below for place, below in zip(places, low, strict=True)]
    total = None
    for steps in itertools.product(weights, repeat=len(places)):
        weight = torch.ones_like(places[0])
        for step, distance in zip(steps, far, strict=True):
            weight = weight * weights[step](distance)
        part = _at(x, padded([below + step for below, step in zip(low, steps, strict=True)]), weight)
        total = part if total is None else total + part
    assert total is not None
    return total


def _cubic_weight(step: int) -> Callable[[torch.Tensor], torch.Tensor]:
    a = _CUBIC

    def weight(distance: torch.Tensor) -> torch.Tensor:
        t = distance - step if step <= 0 else step - distance
        if step in (0, 1):
            return ((a + 2) * t - (a + 3)) * t * t + 1
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return weight


def _at(x: torch.Tensor, places: list[torch.Tensor], weight: torch.Tensor) -> torch.Tensor:
    """The elements at whole places times a weight; 0 outside."""
    n, c, *sizes = x.shape
    inside = torch.ones_like(weight, dtype=torch.bool)
    for place, size in zip(places, sizes[::-1], strict=True):
        inside = inside & (place >= 0) & (place < size)
    index: Any = 0
    for place, size in zip(places[::-1], sizes, strict=True):
        index = index * size + torch.where(inside, place, 0).to(torch.int64)
    index = index.reshape(n, 1, -1).expand(n, c, -1)
    found = x.reshape(n, c, -1).gather(2, index).reshape(n, c, *weight.shape[1:])
    return found * torch.where(inside, weight, 0).unsqueeze(1)


def _place(x: torch.Tensor, size: Any, corners: bool) -> torch.Tensor:
    """Places from -1 to 1 as places of elements."""
    return x * (size * 0.5 - 0.5 if corners else size * 0.5) + (size * 0.5 - 0.5)


def _padded(place: torch.Tensor, size: Any, padding: int, corners: bool) -> torch.Tensor:
    """Places kept inside or reflected at the borders as the padding says."""
    if padding == _ZEROS:
        return place
    if padding != _BORDER:
        # One element has no span; what is reflected at one of 1 is put to its place.
        place = _reflected(place, 0.0 if corners else -0.5, torch.sym_max(size - 1, 1) if corners else size)
    return place.clamp(0, size - 1)


def _reflected(place: torch.Tensor, low: float, span: Any) -> torch.Tensor:
    """Places reflected at ``low`` and ``low + span`` until they are between."""
    distance = (place - low).abs()
    rest, turns = torch.fmod(distance, span), (distance / span).floor()
    return torch.where(torch.fmod(turns, 2) == 0, rest + low, span + low - rest)
