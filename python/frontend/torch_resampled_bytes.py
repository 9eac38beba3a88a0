"""Resampling of images by neighbours and their weights: of bytes as PyTorch computes it in whole numbers, to the last bit of
its results, and of floats between sizes that a call tells.

Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/cpu/UpSampleKernel.cpp: weights are 16-bit numbers
(_compute_index_ranges_int16_weights), each axis is rounded to bytes, the last one first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

__all__ = [
    "as_it_lies",
    "by_gain",
    "cubic",
    "in_order",
    "resampled_bytes",
    "resampled_floats",
    "step_between",
    "summed_bytes",
    "summed_floats",
    "triangle",
]

#: Bits of a weight at most, and what a weight is less than.
_BITS, _CODES = 22, 1 << 15

#: Places of a sum that are taken one by one.
_MOST_TAKEN = 16

Weight = Callable[[torch.Tensor], torch.Tensor]


def triangle(x: torch.Tensor) -> torch.Tensor:
    """The weight of a neighbour at some distance, of two."""
    return (1 - x).clamp(min=0)


def cubic(by: float) -> Weight:
    """The weight of a neighbour at some distance, of four: Keys', with the slope at 1."""

    def weight(x: torch.Tensor) -> torch.Tensor:
        near, far = ((by + 2) * x - (by + 3)) * x * x + 1, ((by * x - 5 * by) * x + 8 * by) * x - 4 * by
        return torch.where(x < 1, near, torch.where(x < 2, far, 0))

    return weight


def resampled_bytes(
    x: torch.Tensor, sizes: Sequence[Any], corners: bool, factors: Sequence[float] | None, half: int, weight: Weight
) -> torch.Tensor:
    """Images of bytes [n, c, h, w] in other sizes, by so many neighbours to either side and their weights."""
    for axis in (3, 2):
        before, size = x.shape[axis], sizes[axis - 2]
        step = step_between(before, size, factors[axis - 2] if factors else None, corners, torch.float64)
        x = summed_bytes(x, axis, *_neighbours(before, size, step, half, weight, corners))
    return x


def resampled_floats(
    x: torch.Tensor, sizes: Sequence[Any], corners: bool, factors: Sequence[float] | None, half: int, weight: Weight
) -> torch.Tensor:
    """As :func:`resampled_bytes`, of floats, summed in single precision at least, axes in the order that reads least.

    Along an axis that stays neighbours are added times 0, as PyTorch does: beside what is no number there is none.
    """
    y, first = as_it_lies(x if x.dtype == torch.float64 else x.to(torch.float32))
    for i in sorted(range(2), key=lambda i: by_gain(i, x.shape[2 + i], sizes[i])):
        factor = factors[i] if factors else None
        step = step_between(x.shape[2 + i], sizes[i], factor, corners, torch.float64)
        places, weights = _neighbours(x.shape[2 + i], sizes[i], step, half, weight, corners)
        y = summed_floats(y, first + i, places, weights)
    return in_order(y, first).to(x.dtype)


def as_it_lies(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    """An image with its channels last where they lie so in memory, as behind a linear layer; and its first axis of places.

    SegFormer resizes such: its channels in front of the places, that takes 1.4 of the time.
    """
    if x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
        return x.permute(0, 2, 3, 1), 1
    return x, 2


def in_order(x: torch.Tensor, first: int) -> torch.Tensor:
    """What :func:`as_it_lies` gave, with its channels in front of the places."""
    return x if first == 2 else x.permute(0, 3, 1, 2)


def by_gain(axis: int, before: Any, after: Any) -> tuple[bool, int]:
    """A key that sorts axes: those that shrink come first; of those that grow the last one, whose elements are read apart."""
    grows = not statically_known_true(after < before)
    return grows, -axis if grows else axis


def summed_floats(
    x: torch.Tensor, axis: int, places: torch.Tensor, weights: torch.Tensor, inside: torch.Tensor | None = None
) -> torch.Tensor:
    """Weighted sums along an axis; few places are taken one by one, so that images stay such, and rows are read as they lie.

    Args:
        x: floats.
        axis: of the places.
        places, weights: [size, n].
        inside: which places count, all by default.
    """
    shape, count = [-1, *[1] * (x.dim() - axis - 1)], places.shape[1]
    if not isinstance(count, int) or count > _MOST_TAKEN:
        picked = x.index_select(axis, places.reshape(-1)).unflatten(axis, places.shape)
        picked = picked if inside is None else torch.where(inside.reshape(*places.shape, *shape[1:]), picked, 0)
        return (picked * weights.to(x.dtype).reshape(*places.shape, *shape[1:])).sum(axis + 1)
    taken = [x.index_select(axis, places[:, k]) for k in range(count)]
    if inside is not None:
        taken = [torch.where(inside[:, k].reshape(shape), t, 0) for k, t in enumerate(taken)]
    return reduce(torch.add, [t * weights[:, k].to(x.dtype).reshape(shape) for k, t in enumerate(taken)])


def _neighbours(
    before: Any, size: Any, step: torch.Tensor, half: int, weight: Weight, corners: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Places [size, 2 * half] around each result, and their weights in double precision, those behind an edge at the edge.

    Args:
        before: the size of the operand.
        size: that of the result.
        step: how far apart neighbours of the result are, of the operand's.
        half: how many places there are to either side.
        weight: by distance.
        corners: whether the first and the last places are those of the operand.
    """
    index = torch.arange(size, dtype=torch.float64)
    source = index * step if corners else (index + 0.5) * step - 0.5
    source = source.clamp(min=0) if half == 1 else source
    low = source.floor()
    offsets = torch.arange(1 - half, half + 1)
    places = (low.to(torch.int64)[:, None] + offsets).clamp(min=0).clamp(max=before - 1)
    weights = weight((offsets - (source - low)[:, None]).abs())
    same = places[:, :, None] == places[:, None, :]
    is_first = ~(same & (torch.arange(2 * half)[:, None] > torch.arange(2 * half))).any(2)
    return places, torch.where(is_first, torch.where(same, weights[:, None, :], 0).sum(2), 0)


def step_between(before: Any, after: Any, factor: float | None, align_corners: bool, dtype: torch.dtype) -> torch.Tensor:
    """How far apart neighbours of the result are, of the operand's."""
    if factor is not None and not align_corners:
        return torch.full((), 1 / factor, dtype=dtype)
    old, new = (torch.full((), n, dtype=torch.int64) for n in (before, after))
    if not align_corners:
        return old.to(dtype) / new.to(dtype)
    return torch.where(new > 1, (old - 1).to(dtype) / (new - 1).clamp(min=1).to(dtype), 0)


def summed_bytes(x: torch.Tensor, axis: int, places: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Sums of bytes along one axis.

    Args:
        x: bytes.
        axis: of the places.
        places: [size, n], inside of the operand.
        weights: [size, n] in double precision.
    """
    powers = torch.cumprod(torch.full((_BITS,), 2, dtype=torch.int64), 0)
    scale = torch.where(0.5 + weights.max() * powers < _CODES, 2, 1).prod()
    codes = (weights * scale + torch.where(weights < 0, -0.5, 0.5)).to(torch.int32)
    picked = x.index_select(axis, places.reshape(-1)).unflatten(axis, places.shape).to(torch.int32)
    total = (picked * codes.reshape(*places.shape, *[1] * (x.dim() - axis - 1))).sum(axis + 1, dtype=torch.int32)
    whole = scale.to(torch.int32)
    return torch.div(total + whole // 2, whole, rounding_mode="floor").clamp(0, 255).to(torch.uint8)
