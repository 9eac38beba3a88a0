"""Affine quantization, per tensor, channel or block, computed in f32 (f64 when an operand is f64)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..packed_layout import NIBBLES, PackedLayout, Word
from .nn import _convolved
from .numeric import Array, convert, integer_range, is_float, wide_dtype
from .packed import in_words, out_of_words, unpacked
from .registry import reference

__all__: list[str] = []


def _repeated(parameter: Array, x: Array, axis: int) -> Array:
    """A scale or zero point as something that broadcasts to the operand."""
    if not parameter.ndim:
        return parameter
    if parameter.shape == (x.shape[axis],):
        return parameter.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    for i, (blocks, size) in enumerate(zip(parameter.shape, x.shape, strict=True)):
        if blocks not in (1, size):
            parameter = np.repeat(parameter, size // blocks, i)
    return parameter


def _float_dtype(*arrays: Array) -> np.dtype[Any]:
    return np.dtype(np.float64 if any(a.dtype == np.float64 for a in arrays) else np.float32)


@reference
def quantize(x: Array, scale: Array, zero_point: Array, *, axis: int, dtype: np.dtype[Any]) -> Array:
    float_dtype = _float_dtype(x, scale)
    step = _repeated(convert(scale, float_dtype), x, axis)
    offset = _repeated(convert(zero_point, float_dtype), x, axis)
    values = np.asarray(np.rint(convert(x, float_dtype) / step) + offset, np.float64)
    low, high = integer_range(dtype)
    inside = (values > low) & (values < high)
    stored = wide_dtype(dtype)
    limited = np.where(values >= high, np.asarray(high, stored), np.asarray(low, stored))
    return convert(np.where(inside, np.where(inside, values, 0).astype(stored), limited), dtype)


@reference
def dequantize(x: Array, scale: Array, zero_point: Array, *, axis: int, out_dtype: np.dtype[Any] | None = None) -> Array:
    float_dtype, result = _float_dtype(scale), scale.dtype if out_dtype is None else out_dtype
    step = _repeated(convert(scale, float_dtype), x, axis)
    if is_float(zero_point.dtype):
        return convert(convert(x, float_dtype) * step - _repeated(convert(zero_point, float_dtype), x, axis), result)
    offset = _repeated(convert(zero_point, np.dtype(np.int64)), x, axis)
    distance = convert(x, np.dtype(np.int64)) - offset
    return convert(distance.astype(float_dtype) * step, result)


@reference
def look_up(codes: Array, table: Array) -> Array:
    return np.take(table, convert(codes, np.dtype(np.uint8)))


@reference
def pack_nibbles(x: Array, *, axis: int, dtype: np.dtype[Any], layout: PackedLayout | None = None) -> Array:
    return in_words(convert(x, np.dtype(np.uint8)).astype(dtype), *_word(dtype, layout), axis=axis)


@reference
def unpack_nibbles(x: Array, *, axis: int, dtype: np.dtype[Any], size: int, layout: PackedLayout | None = None) -> Array:
    values = np.moveaxis(out_of_words(x, *_word(x.dtype, layout), axis=axis), axis, -1)[..., :size]
    return convert(np.moveaxis(values, -1, axis), dtype)


@reference
def unpack_planes(low: Array, high: Array, *, layout: PackedLayout, size: int) -> Array:
    assert layout.word is not None
    nibbles, more = out_of_words(low, NIBBLES, 1, axis=1), out_of_words(high, layout.word, layout.rows, axis=1)
    return np.ascontiguousarray(nibbles[:, :size] | more[:, :size] << NIBBLES.bits).astype(np.uint8)


def _word(dtype: np.dtype[Any], layout: PackedLayout | None) -> tuple[Word, int]:
    """How four-bit integers, or a layout's high bits, are in words of a dtype, and how many rows come out of one at once."""
    if layout is not None and layout.high_bits is not None:
        return layout.high_bits, layout.rows
    return Word(NIBBLES.bits, dtype.itemsize * 8 // NIBBLES.bits), 1 if layout is None else layout.rows


@reference
def quantized_matmul(
    x: Array,
    x_scale: Array,
    x_sum: Array,
    weight: Array,
    scale: Array,
    zero: Array,
    *,
    layout: PackedLayout,
    n: int,
    out_dtype: np.dtype[Any] | None,
    parts: bool = False,
) -> Array:
    k, groups = x.shape[-1], scale.shape[1]
    # Integers of an f64 are exact as far as sums of 65536 products of bytes go.
    left = x.astype(np.float64).reshape(-1, groups, k // groups).swapaxes(0, 1)
    right = unpacked(weight, layout, n).astype(np.float64).reshape(groups, k // groups, n)
    sums = (left @ right).swapaxes(0, 1)
    steps, shift = (_by_group(a, scale, n) for a in (scale, zero))
    sums -= x_sum.astype(np.float64).reshape(-1, groups, 1) * shift
    factors = x_scale.reshape(-1, x_scale.shape[-1], 1) * steps.astype(np.float32)
    total = np.sum(sums.astype(np.float32) * factors, axis=1, dtype=np.float32).reshape(*x.shape[:-1], n)
    if parts:
        total = np.add.reduce(total, axis=0, keepdims=True)[0]
    return convert(total, out_dtype or x_scale.dtype)


@reference
def quantized_grouped_matmul(
    x: Array, x_scale: Array, x_sum: Array, weight: Array, scale: Array, zero: Array, ends: Array, *, layout: PackedLayout,
    n: int, out_dtype: np.dtype[Any] | None, parts: bool = False,
) -> Array:  # fmt: skip
    every = quantized_matmul(x, x_scale, x_sum, weight, scale, zero, layout=layout, n=n, out_dtype=out_dtype, parts=parts)
    columns = n // len(ends)
    found = np.zeros((len(every), columns), every.dtype)
    ends = np.clip(ends, 0, len(every))
    for group, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        found[begin:end] += every[begin:end, group * columns :][:, :columns]
    return found


def _by_group(parameter: Array, like: Array, n: int) -> Array:
    """A parameter ``[panels, groups, tile]``, or one for all, as ``[groups, n]``."""
    panels, groups, tile = like.shape
    every = np.broadcast_to(convert(parameter, np.dtype(np.float64)), like.shape)
    return every.swapaxes(0, 1).reshape(groups, panels * tile)[:, :n]


@reference
def quantized_conv2d(
    x: Array, weight: Array, zero: Array, *, strides: list[int], padding: list[int], dilation: list[int], groups: int,
    data_layout: str = "NCHW", kernel_layout: str = "OIHW",
) -> Array:  # fmt: skip
    """Sums of so few products of integers of eight bits are exact in f64."""
    left, right = (convert(factor, np.dtype(np.float64)) for factor in (x, weight))
    sums = _convolved(left, right, int(zero), strides, padding, dilation, groups, (data_layout, kernel_layout))
    return convert(sums, np.dtype(np.int32))


@reference
def packed_quantized_conv2d(
    x: Array, weight: Array, zero: Array, *, layout: PackedLayout, channels: int, kernel_size: list[int],
    strides: list[int], padding: list[int], dilation: list[int], groups: int,
) -> Array:  # fmt: skip
    filters = unpacked(weight, layout, channels).reshape(*kernel_size, -1, channels)
    some = np.full((*x.shape[:-1], filters.shape[2] * groups - x.shape[-1]), zero, x.dtype)
    return quantized_conv2d(
        np.concatenate([x, some], -1), filters, zero, strides=strides, padding=padding, dilation=dilation, groups=groups,
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
