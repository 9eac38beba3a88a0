"""Convolutions in one to three dimensions, transposed or not, all as convolutions in two, for operators of all frontends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

import numpy as np

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import is_integer
from ..dialect.symbolic import Dim
from .emit import cast, concat, emit, info_of, multiply_all, permute, reshape, slice_axis, squeeze, unrounded, unsqueeze

__all__ = ["ConvParams", "Pads", "convolve", "convolve_transposed", "pad_axis"]

#: Elements before and after each dimension.
Pads = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class ConvParams:
    """How a convolution goes through its input, a number or a pair for each dimension.

    Attributes:
        strides, dilation: of the kernel; of a transposed convolution strides are those of the result.
        padding: zeros around the input; of a transposed convolution what is taken away around the result.
        groups: of channels.
        out_dtype: what sums of floats are rounded to, where that is not the input's.
        output_padding: of a transposed convolution, what the result has more at its ends.
    """

    strides: Sequence[int]
    padding: Pads
    dilation: Sequence[int]
    groups: int = 1
    out_dtype: ir.Type | None = None
    output_padding: Sequence[int] = ()

    def inner(self) -> ConvParams:
        """The same in all dimensions but the first."""
        return replace(self, strides=self.strides[1:], padding=self.padding[1:], dilation=self.dilation[1:])

    def outer(self) -> ConvParams:
        """The same behind a first dimension in which nothing moves."""
        return replace(self, strides=[1, *self.strides], padding=[(0, 0), *self.padding], dilation=[1, *self.dilation])


def convolve(x: ir.Value, weight: ir.Value, how: ConvParams) -> ir.Value:
    """A convolution in one dimension is one in two over a single row."""
    spatial = len(how.strides)
    if spatial == 3:
        return _convolve_planes(x, weight, how)
    if spatial == 1:
        return squeeze(convolve(unsqueeze(x, 2), unsqueeze(weight, 2), how.outer()), 2)
    if is_integer(info_of(x).dtype):
        return _convolve_integers(x, weight, how)
    (top, bottom), (left, right) = how.padding
    pads, strides, dilation = [top, left, bottom, right], list(how.strides), list(how.dilation)
    return emit(
        ops.Conv2D, x, weight, strides=strides, padding=pads, dilation=dilation, groups=how.groups, out_dtype=how.out_dtype
    )


def _convolve_integers(x: ir.Value, weight: ir.Value, how: ConvParams) -> ir.Value:
    """A product of matrices, exact or wrapped: of what the kernel sees, ``[batch, group, fewer * kernel, places]``."""
    strides, dilation, groups = how.strides, how.dilation, how.groups
    for axis, amounts in enumerate(how.padding, start=2):
        x = pad_axis(x, axis, amounts)
    outputs, fewer, *kernel = _known(weight)
    batch = info_of(x).shape[0]
    sizes = [size for size in info_of(x).shape[2:] if size is not None]
    if len(sizes) != len(kernel):
        raise RelaxError("expected a convolution over dimensions whose sizes are known or symbolic")
    places = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(sizes, kernel, strides, dilation, strict=True)]
    parts: list[ir.Value] = []
    for offsets in np.ndindex(*kernel):
        part = x
        for axis, offset in enumerate(offsets):
            part = _every(part, axis + 2, offset * dilation[axis], places[axis], strides[axis])
        parts.append(unsqueeze(part, 2))
    count = multiply_all(places)
    seen = reshape(concat(parts, 2), (batch, groups, fewer * len(parts), count))
    rows = reshape(weight, (groups, outputs // groups, fewer * len(parts)))
    return reshape(emit(ops.MatMul, rows, seen), (batch, outputs, *places))


def _convolve_planes(x: ir.Value, weight: ir.Value, how: ConvParams) -> ir.Value:
    """In three dimensions: the planes that the kernel sees become channels, the places in depth further images."""
    depth, dilation = info_of(x).shape[2], how.dilation[0]
    outputs, fewer, planes, *kernel = _known(weight)
    if depth is None:
        raise RelaxError("expected a convolution of planes whose number is known or symbolic")
    places = (depth + sum(how.padding[0]) - dilation * (planes - 1) - 1) // how.strides[0] + 1
    if how.groups > 1 and not is_integer(info_of(x).dtype):
        return _sum_planes(x, weight, how, places)
    x = pad_axis(x, 2, how.padding[0])
    batch, channels, _, height, width = info_of(x).shape
    parts = [_every(x, 2, k * dilation, places, how.strides[0]) for k in range(planes)]
    seen = permute(concat([unsqueeze(p, 2) for p in parts], 2), [0, 3, 1, 2, 4, 5])
    images = reshape(seen, (multiply_all([batch, places]), multiply_all([channels, planes]), height, width))
    flat = reshape(weight, (outputs, fewer * planes, *kernel))
    result = convolve(images, flat, how.inner())
    *_, rows, columns = info_of(result).shape
    return permute(reshape(result, (batch, places, outputs, rows, columns)), [0, 2, 1, 3, 4])


def _sum_planes(x: ir.Value, weight: ir.Value, how: ConvParams, places: Dim) -> ir.Value:
    """With groups of few channels: the sum of convolutions by the planes of the kernel, in the order that these are fast in.

    X3D's block of 108 channels of 8 x 20 x 20, Zen 5, one thread: 0.12 of the time of planes as channels.
    """
    outputs, fewer, planes, *kernel = _known(weight)
    x, dtype, inner = permute(x, [0, 2, 3, 4, 1]), info_of(x).dtype, how.inner()
    x, filters = pad_axis(x, 1, how.padding[0]), permute(weight, [2, 3, 4, 1, 0])
    batch, _, *image = info_of(x).shape
    (top, bottom), (left, right) = inner.padding
    parts = [
        emit(
            ops.Conv2D,
            reshape(_every(x, 1, k * how.dilation[0], places, how.strides[0]), (multiply_all([batch, places]), *image)),
            reshape(slice_axis(filters, 0, k, k + 1), (*kernel, fewer, outputs)),
            strides=list(inner.strides), padding=[top, left, bottom, right], dilation=list(inner.dilation), groups=how.groups,
            data_layout="NHWC", kernel_layout="HWIO", out_dtype=unrounded(dtype),
        )
        for k in range(planes)
    ]  # fmt: skip
    total = reduce(lambda a, b: emit(ops.Add, a, b), parts)
    _, rows, columns, _ = info_of(total).shape
    result = permute(reshape(total, (batch, places, rows, columns, outputs)), [0, 4, 1, 2, 3])
    return cast(result, how.out_dtype or dtype)


def _every(x: ir.Value, axis: int, begin: int, count: Dim, stride: int) -> ir.Value:
    assert count is not None
    return slice_axis(x, axis, begin, begin + (count - 1) * stride + 1, stride)


def convolve_transposed(x: ir.Value, weight: ir.Value, how: ConvParams) -> ir.Value:
    """A convolution over the input with zeros between its elements, by the kernel from its other end.

    Without dilation it multiplies none of these zeros: places that leave the same remainder of the strides are a convolution of
    the input itself, see :func:`_in_phases`.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html
    """
    kernel = _known(weight)[2:]
    if max(how.strides) > 1 and max(how.dilation) == 1:
        return _in_phases(x, weight, how)
    pads: list[tuple[int, int]] = []
    along = zip(kernel, how.strides, how.padding, how.dilation, how.output_padding, strict=True)
    for axis, (size, stride, (before, after), dilation, extra) in enumerate(along, start=2):
        x, reach = _spread(x, axis, stride), dilation * (size - 1)
        ends = reach - before, reach - after + extra
        x = pad_axis(x, axis, (min(ends[0], 0), min(ends[1], 0)))
        pads.append((max(ends[0], 0), max(ends[1], 0)))
    return convolve(x, _turned(weight, how.groups), replace(how, strides=[1] * len(kernel), padding=pads))


def _in_phases(x: ir.Value, weight: ir.Value, how: ConvParams) -> ir.Value:
    """Elements ``stride * q + r`` are sums of ``x[q - j] * weight[stride * j + r]``: every ``r`` is a filter of its own.

    Results of these filters come side by side, as in a sub-pixel convolution. U-Net, whose kernels are as large as its strides,
    Zen 5, one thread: 0.87 of the time.

    Source: https://arxiv.org/abs/1609.07009
    """
    strides, groups = how.strides, how.groups
    inputs, outputs, *kernel = _known(weight)
    axes, steps = range(len(kernel)), [-(-size // stride) for size, stride in zip(kernel, strides, strict=True)]
    for axis, size in enumerate(kernel):
        weight = pad_axis(weight, axis + 2, (0, steps[axis] * strides[axis] - size))
    split = reshape(weight, (inputs, outputs, *(d for pair in zip(steps, strides, strict=True) for d in pair)))
    apart = permute(split, [0, 1, *(3 + 2 * a for a in axes), *(2 + 2 * a for a in axes)])
    filters = _turned(reshape(apart, (inputs, outputs * prod(strides), *steps)), groups)
    ones = [1] * len(kernel)
    phases = convolve(x, filters, replace(how, strides=ones, padding=[(n - 1, n - 1) for n in steps]))
    batch, _, *places = info_of(phases).shape
    every = reshape(phases, (batch, groups * outputs, *strides, *places))
    turns = permute(every, [0, 1, *(a for axis in axes for a in (2 + len(kernel) + axis, 2 + axis))])
    whole = [multiply_all(pair) for pair in zip(places, strides, strict=True)]
    result = reshape(turns, (batch, groups * outputs, *whole))
    for axis in axes:  # a whole result has strides * (size - 1 + steps) places
        less = steps[axis] * strides[axis] - kernel[axis] - how.output_padding[axis]
        before, after = how.padding[axis]
        result = pad_axis(result, axis + 2, (-before, -after - less))
    return result


def _spread(x: ir.Value, axis: int, stride: int) -> ir.Value:
    """``stride - 1`` zeros between neighbours."""
    size = info_of(x).shape[axis]
    if stride == 1:
        return x
    if size is None:
        raise RelaxError("expected a transposed convolution over dimensions whose sizes are known or symbolic")
    apart = pad_axis(unsqueeze(x, axis + 1), axis + 1, (0, stride - 1))
    shape = info_of(x).shape
    joined = reshape(apart, (*shape[:axis], size * stride, *shape[axis + 1 :]))
    return slice_axis(joined, axis, 0, size * stride - (stride - 1))


def _turned(weight: ir.Value, groups: int) -> ir.Value:
    """``[in, out / groups, ...]`` as ``[out, in / groups, ...]``, from the other end in every dimension."""
    inputs, outputs, *kernel = _known(weight)
    axes = range(len(kernel))
    split = reshape(weight, (groups, inputs // groups, outputs, *kernel))
    turned = reshape(permute(split, [0, 2, 1, *(a + 3 for a in axes)]), (groups * outputs, inputs // groups, *kernel))
    for axis in axes:
        turned = turned if kernel[axis] == 1 else emit(ops.Flip, turned, axis=axis + 2)
    return turned


def _known(weight: ir.Value) -> list[int]:
    shape = [d for d in info_of(weight).shape if isinstance(d, int)]
    if len(shape) != info_of(weight).rank:
        raise RelaxError(f"expected a kernel of known size, got {info_of(weight)}")
    return shape


def pad_axis(x: ir.Value, axis: int, amounts: tuple[int, int], value: float = 0.0) -> ir.Value:
    """A number, zeros by default, before and after; a negative amount takes away."""
    size = info_of(x).shape[axis]
    low, high = amounts
    if low < 0 or high < 0:
        if size is None:
            raise RelaxError("expected to crop a dimension whose size is known or symbolic")
        x = slice_axis(x, axis, max(-low, 0), size + min(high, 0))
    before, after = [0] * info_of(x).rank, [0] * info_of(x).rank
    before[axis], after[axis] = max(low, 0), max(high, 0)
    return emit(ops.Pad, x, before=before, after=after, value=value) if before[axis] or after[axis] else x
