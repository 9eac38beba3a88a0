"""torch ops that pool over windows, in one to three dimensions, all as pooling in two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import is_integer
from ...dialect.op import EffectOp
from ...dialect.symbolic import Dim, Expr, same
from ..convolutions import ConvParams, convolve
from ..emit import (
    cast,
    concat,
    emit,
    float_table,
    full,
    info_of,
    integer,
    multiply_all,
    permute,
    reshape,
    sequence,
    size_value,
    slice_axis,
    squeeze,
    table,
    unrounded,
    unsqueeze,
)  # fmt: skip
from ..torch_op import TorchOp, handles
from ..windows import PoolWindow, Windows, adaptive_windows, largest_and_places, spatial_sizes, windows
from .convolution import several

_RANKS = {"1": 1, "2": 2, "3": 3}


def _spatial(op: TorchOp) -> int:
    return next(rank for text, rank in _RANKS.items() if f"pool{text}d" in op.key)


@handles(*(f"aten.max_pool{n}d{how}" for n in "123" for how in ("", "_with_indices")))
def _max_pool(op: TorchOp) -> list[ir.Value | None]:
    dilation, ceil_mode = several(op.number(4, 1), _spatial(op)), bool(op.number(5, False))
    if len(op.results) > 1 and op.is_used(1):
        return _max_pool_places(op, dilation, ceil_mode)
    result = _pool(op, ops.MaxPool2D, dilation, ceil_mode=ceil_mode)
    return [result, None][: len(op.results)]


def _max_pool_places(op: TorchOp, dilation: list[int], ceil_mode: bool) -> list[ir.Value | None]:
    sizes = info_of(op.tensor(0)).shape[-_spatial(op) :]
    along: list[Windows | ir.Value] = []
    for size, w in zip(sizes, _windows_of(op, dilation), strict=True):
        if not size:
            raise RelaxError(f"expected max pooling whose places are used over what is there, got {info_of(op.tensor(0))}")
        along.append(windows(size, replace(w, ceil_mode=ceil_mode)))
    return largest_and_places(op.tensor(0), along)


@handles("aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward")
def _max_pool_backward(op: TorchOp) -> ir.Value:
    """What comes back of each window is added where its largest element is."""
    spatial, shape = _spatial(op), info_of(op.tensor(1)).shape
    total, outer = multiply_all(shape[-spatial:]), shape[:-spatial]
    given = [reshape(op.tensor(i), (*outer, multiply_all(info_of(op.tensor(i)).shape[-spatial:]))) for i in (0, 7)]
    nothing = full(0, op.dtype, (*outer, total))
    return reshape(emit(ops.ScatterElements, nothing, given[1], given[0], axis=len(outer), reduction="add"), shape)


@handles("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def _avg_pool(op: TorchOp) -> ir.Value:
    """With its own divisor: the sum over the window, which is the mean times the window's size, divided by that."""
    spatial, divisor = _spatial(op), op.number(6)
    ceil_mode, padded = bool(op.number(4, False)), bool(op.number(5, True))
    if is_integer(op.dtype):
        return _mean_of_integers(op, ceil_mode, padded)
    result = _pool(op, ops.AvgPool2D, None, ceil_mode=ceil_mode, count_include_pad=padded or divisor is not None)
    if divisor is None:
        return result
    if not ceil_mode:
        return emit(ops.Multiply, result, full(math.prod(several(op.number(1), spatial)) / divisor, op.dtype))
    for i, factors in enumerate(_window_sizes(op)):
        shape = [len(factors) if j == i else 1 for j in range(spatial)]
        result = emit(ops.Multiply, result, reshape(float_table(factors / (1 if i else divisor), op.dtype), shape))
    return result


def _mean_of_integers(op: TorchOp, ceil_mode: bool, padded: bool) -> ir.Value:
    """The sum over a window, which is a convolution by ones, over how many elements it has, towards zero."""
    x, spatial = op.tensor(0), _spatial(op)
    sizes = spatial_sizes(x, spatial, "average pooling of integers")
    along, lead = _windows_of(op, [1] * spatial), info_of(x).shape[:-spatial]
    begins = [
        np.arange(replace(w, ceil_mode=ceil_mode).count(n)) * w.stride - w.before for n, w in zip(sizes, along, strict=True)
    ]
    pads = [(w.before, int(b[-1]) + w.size - n) for n, w, b in zip(sizes, along, begins, strict=True)]
    ones = full(1, op.dtype, (1, 1, *(w.size for w in along)))
    flat = reshape(x, (multiply_all(lead), 1, *sizes))
    total = convolve(flat, ones, ConvParams([w.stride for w in along], pads, [1] * spatial))
    total = reshape(total, (*lead, *map(len, begins)))
    counts = np.ones([1] * spatial, np.int64)
    for axis, (n, w, b) in enumerate(zip(sizes, along, begins, strict=True)):
        pad = w.before if padded else 0
        inside = np.minimum(b + w.size, n + pad) - np.maximum(b, -pad)
        counts = counts * inside.reshape([-1 if i == axis else 1 for i in range(spatial)])
    divisor = op.number(6)
    whole = cast(table(counts if divisor is None else np.full_like(counts, divisor), integer()), op.dtype)
    return emit(ops.Multiply, emit(ops.Sign, total), emit(ops.FloorDivide, emit(ops.Abs, total), whole))


def _window_sizes(op: TorchOp) -> Iterator[np.ndarray[Any, Any]]:
    """How long windows are in each dimension: with ceil_mode the last one may end behind the padding, which does not count."""
    sizes = spatial_sizes(op.tensor(0), _spatial(op), "average pooling with its own divisor and ceil_mode")
    for size, w in zip(sizes, _windows_of(op, [1] * len(sizes)), strict=True):
        begins = np.arange(replace(w, ceil_mode=True).count(size)) * w.stride - w.before
        yield np.minimum(begins + w.size, size + w.after) - begins


def _pool(op: TorchOp, op_class: type[EffectOp], dilation: list[int] | None, **attrs: Any) -> ir.Value:
    """PoolWindow by window over the last two dimensions, then over the third from the end: largest and mean are separable."""
    x, spatial = op.tensor(0), _spatial(op)
    along, has_dilation = _windows_of(op, dilation or [1] * spatial), dilation is not None
    if attrs["ceil_mode"]:
        along = [_inside(w, size) for w, size in zip(along, info_of(x).shape[-spatial:], strict=True)]
    batched = info_of(x).rank == spatial + 2
    x = x if batched else unsqueeze(x, 0)
    if spatial == 1:
        x = squeeze(_pool_plane(unsqueeze(x, 2), op_class, [PoolWindow(), *along], has_dilation, attrs), 2)
    elif spatial == 2:
        x = _pool_plane(x, op_class, along, has_dilation, attrs)
    else:
        x = _pool_depth(x, op_class, along, has_dilation, attrs)
    return x if batched else squeeze(x, 0)


def _inside(window: PoolWindow, size: Dim) -> PoolWindow:
    """A window without what is behind the padding wherever it begins, as ceil_mode allows: it is the only one then."""
    if not isinstance(size, int):
        return window
    whole = size + window.before + window.after
    if not whole < window.reach < whole + window.stride:
        return window
    return replace(window, size=(whole - 1) // window.dilation + 1, stride=whole)


def _windows_of(op: TorchOp, dilation: list[int]) -> list[PoolWindow]:
    size = several(op.number(1), _spatial(op))
    strides = size if op.number(2, []) == [] else several(op.number(2), _spatial(op))
    padding = several(op.number(3, 0), _spatial(op))
    return [PoolWindow(n, stride, pad, pad, d) for n, stride, pad, d in zip(size, strides, padding, dilation, strict=True)]


def _pool_plane(
    x: ir.Value, op_class: type[EffectOp], along: list[PoolWindow], has_dilation: bool, attrs: dict[str, Any]
) -> ir.Value:
    vertical, horizontal = along
    pads = [vertical.before, horizontal.before, vertical.after, horizontal.after]
    more = {"dilation": [w.dilation for w in along]} if has_dilation else {}
    sizes, strides = [w.size for w in along], [w.stride for w in along]
    return emit(op_class, x, pool_size=sizes, strides=strides, padding=pads, **more, **attrs)


def _pool_depth(
    x: ir.Value, op_class: type[EffectOp], along: list[PoolWindow], has_dilation: bool, attrs: dict[str, Any]
) -> ir.Value:
    in_planes = _by_planes(x, lambda planes: _pool_plane(planes, op_class, along[1:], has_dilation, attrs))
    return _along_depth(
        in_planes, lambda columns: _pool_plane(columns, op_class, [along[0], PoolWindow()], has_dilation, attrs)
    )


def _by_planes(x: ir.Value, pool: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """A volume with each plane pooled: [batch, channels, depth, height, width]."""
    batch, channels, depth, height, width = info_of(x).shape
    pooled = pool(reshape(x, (batch, multiply_all([channels, depth]), height, width)))
    return reshape(pooled, (batch, channels, depth, *info_of(pooled).shape[2:]))


def _along_depth(x: ir.Value, pool: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """A volume pooled along its depth, given as an image of depth times all that is in a plane."""
    batch, channels, depth, rows, columns = info_of(x).shape
    pooled = pool(reshape(x, (batch, channels, depth, multiply_all([rows, columns]))))
    return reshape(pooled, (batch, channels, info_of(pooled).shape[2], rows, columns))


def _counts(op: TorchOp, spatial: int) -> list[Dim]:
    """How many windows there are along each dimension; as many as elements where nothing is said."""
    given: Any = op.number(1)
    counts = list(given) if isinstance(given, list) else [given]
    counts = counts * spatial if len(counts) == 1 else counts
    sizes = info_of(op.tensor(0)).shape[-spatial:]
    return [size if count is None else count for size, count in zip(sizes, counts, strict=True)]


def _means(x: ir.Value, counts: Sequence[Dim]) -> ir.Value:
    """Means of windows along the last dimensions, whose numbers are symbolic: products with what each window takes."""
    dtype, rank = info_of(x).dtype, info_of(x).rank
    for axis, count in enumerate(counts, rank - len(counts)):
        size = info_of(x).shape[axis]
        if same(size, count):
            continue
        order = [*(a for a in range(rank) if a != axis), axis]
        shares = cast(_shares(size, count), unrounded(dtype) or dtype)
        means = emit(ops.MatMul, cast(permute(x, order), info_of(shares).dtype), shares)
        x = permute(means, [order.index(a) for a in range(rank)])
    return cast(x, dtype)


def _shares(size: Dim, count: Dim) -> ir.Value:
    """What each window along a dimension takes of each element, ``[size, count]`` of f64."""
    number, sizes, counts = sequence(0, count), size_value(size), size_value(count)
    one, place = full(1, integer()), unsqueeze(sequence(0, size), 1)
    first = emit(ops.FloorDivide, emit(ops.Multiply, number, sizes), counts)
    behind = emit(ops.Multiply, emit(ops.Add, number, one), sizes)
    behind = emit(ops.FloorDivide, emit(ops.Subtract, emit(ops.Add, behind, counts), one), counts)
    inside = emit(ops.LogicalAnd, emit(ops.GreaterEqual, place, first), emit(ops.Less, place, behind))
    length = cast(emit(ops.Subtract, behind, first), ir.F64Type.get())
    return emit(ops.Divide, cast(inside, ir.F64Type.get()), length)


@handles("aten.adaptive_avg_pool3d", "aten._adaptive_avg_pool3d")
def _adaptive_avg_pool_volume(op: TorchOp) -> ir.Value:
    """The mean of a window is that of the means along each of its dimensions."""
    x, counts = op.tensor(0), _counts(op, 3)
    if not all(isinstance(c, int) for c in counts):
        return _means(x, counts)
    depth, *plane = several(counts, 3)
    batched = info_of(x).rank == 5
    x = _by_planes(x if batched else unsqueeze(x, 0), lambda p: emit(ops.AdaptiveAvgPool2D, p, output_size=plane))
    size = [depth, math.prod(plane)]
    x = _along_depth(x, lambda c: emit(ops.AdaptiveAvgPool2D, c, output_size=size))
    return x if batched else squeeze(x, 0)


@handles("aten.adaptive_avg_pool2d", "aten._adaptive_avg_pool2d")
def _adaptive_avg_pool(op: TorchOp) -> ir.Value:
    x, counts = op.tensor(0), _counts(op, 2)
    if not all(isinstance(c, int) for c in counts):
        return _means(x, counts)
    batched = info_of(x).rank == 4
    x = x if batched else unsqueeze(x, 0)
    result = emit(ops.AdaptiveAvgPool2D, x, output_size=several(counts, 2))
    return result if batched else squeeze(result, 0)


@handles("aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def _adaptive_max_pool(op: TorchOp) -> list[ir.Value | None]:
    """Each dimension as the windows along it, and the largest of each."""
    x, spatial = op.tensor(0), _spatial(op)
    counts = several(op.number(1), spatial)
    if op.is_used(1):
        sizes = spatial_sizes(x, spatial, "adaptive max pooling whose places are used")
        return largest_and_places(x, [adaptive_windows(*both) for both in zip(sizes, counts, strict=True)])
    for axis, count in enumerate(counts, info_of(x).rank - spatial):
        x = _largest_along(x, axis, count)
    return [x, None]


def _largest_along(x: ir.Value, axis: int, count: int) -> ir.Value:
    """The largest element of each window along a dimension; of a symbolic size, window by window."""
    size = info_of(x).shape[axis]
    if count == 1:
        return emit(ops.Max, x, axis=[axis], keepdims=True)
    if isinstance(size, int) and size:
        places = table(adaptive_windows(size, count), integer())
        return emit(ops.Max, emit(ops.Take, x, places, axis=axis), axis=[axis + 1])
    if not isinstance(size, Expr):
        raise RelaxError(f"expected adaptive max pooling of something whose sizes are known or symbolic, got {info_of(x)}")
    bounds = [(size * i // count, (size * (i + 1) + count - 1) // count) for i in range(count)]
    return concat([emit(ops.Max, slice_axis(x, axis, *both), axis=[axis], keepdims=True) for both in bounds], axis)
