"""Images of two and three dimensions sampled at places of a grid, by operators that the import knows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

__all__ = ["grid_sampling"]

_aten = torch.ops.aten

_BILINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1


def grid_sampling() -> dict[Any, Callable[..., torch.Tensor]]:
    """The decomposition by operator."""
    return {_aten.grid_sampler_2d.default: _sampled_plane, _aten.grid_sampler_3d.default: _sampled}


def _sampled_plane(x: torch.Tensor, grid: torch.Tensor, mode: int, padding: int, corners: bool) -> torch.Tensor:
    """Of two dimensions. torch's own decomposition, which knows bicubic sampling, too, names elements by all indices, which
    takes twelve times as long (64 channels of 128 by 128 elements).
    """
    known = mode in (_BILINEAR, _NEAREST)
    return (_sampled if known else decomposition_table[_aten.grid_sampler_2d.default])(x, grid, mode, padding, corners)


def _sampled(x: torch.Tensor, grid: torch.Tensor, mode: int, padding: int, corners: bool) -> torch.Tensor:
    """``[n, c, d, h, w]`` at ``[n, od, oh, ow, 3]`` places, each of x, y and z from -1 to 1: ``[n, c, od, oh, ow]``.

    In f32 for narrower floats, which do not tell places apart. Places that are no numbers give 0, as torch's decomposition of
    two dimensions does.
    """
    if x.dtype in (torch.bfloat16, torch.float16):
        return _sampled(x.float(), grid.float(), mode, padding, corners).to(x.dtype)
    if mode not in (_BILINEAR, _NEAREST):
        raise NotImplementedError(f"expected bilinear or nearest sampling, got mode {mode}")
    sizes = x.shape[:1:-1]
    places = [_place(grid[..., i], size, padding, corners) for i, size in enumerate(sizes)]
    if mode == _NEAREST:
        return _at(x, [p.round() for p in places], torch.ones_like(places[0]))
    low = [p.floor() for p in places]
    far = [place - below for place, below in zip(places, low, strict=True)]
    total = None
    for steps in itertools.product((0, 1), repeat=len(sizes)):
        weight = torch.ones_like(places[0])
        for step, distance in zip(steps, far, strict=True):
            weight = weight * (distance if step else 1 - distance)
        part = _at(x, [below + step for below, step in zip(low, steps, strict=True)], weight)
        total = part if total is None else total + part
    assert total is not None
    return total


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


def _place(x: torch.Tensor, size: Any, padding: int, corners: bool) -> torch.Tensor:
    """Places from -1 to 1 as places of elements, kept inside or reflected at the borders as the padding says."""
    place = x * (size * 0.5 - 0.5 if corners else size * 0.5) + (size * 0.5 - 0.5)
    if padding == _ZEROS:
        return place
    if padding != _BORDER:
        place = _reflected(place, 0.0 if corners else -0.5, size - 1.0 if corners else size * 1.0)
    return place.clamp(0, size - 1)


def _reflected(place: torch.Tensor, low: float, span: Any) -> torch.Tensor:
    """Places reflected at ``low`` and ``low + span`` until they are between."""
    if span == 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    rest, turns = torch.fmod(distance, span), (distance / span).floor()
    return torch.where(torch.fmod(turns, 2) == 0, rest + low, span + low - rest)
