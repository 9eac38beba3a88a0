"""torch ops that pool over windows, in one to three dimensions, all as pooling in two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.op import EffectOp
from ..emit import emit, full, info_of, integer, multiply_all, reshape, squeeze, unsqueeze
from ..torch_op import TorchOp, handles
from .convolution import several
from .creation import table

_RANKS = {"1": 1, "2": 2, "3": 3}


@dataclass(frozen=True)
class _Window:
    """A window along one dimension; one element when nothing is said."""

    size: int = 1
    stride: int = 1
    pad: int = 0
    dilation: int = 1


def _spatial(op: TorchOp) -> int:
    return next(rank for text, rank in _RANKS.items() if f"pool{text}d" in op.key)


@handles("aten.max_pool1d", *(f"aten.max_pool{n}d{how}" for n in "23" for how in ("", "_with_indices")))
def _max_pool(op: TorchOp) -> list[ir.Value | None]:
    dilation = several(op.number(4, 1), _spatial(op))
    result = _pool(op, ops.MaxPool2D, dilation, ceil_mode=bool(op.number(5, False)))
    return [result, None][: len(op.results)]


@handles("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def _avg_pool(op: TorchOp) -> ir.Value:
    """With its own divisor: the sum over the window, which is the mean times the window's size, divided by that."""
    spatial, divisor = _spatial(op), op.number(6)
    ceil_mode, padded = bool(op.number(4, False)), bool(op.number(5, True))
    if divisor is not None and ceil_mode:
        raise RelaxError("expected average pooling with its own divisor without ceil_mode")
    result = _pool(op, ops.AvgPool2D, None, ceil_mode=ceil_mode, count_include_pad=padded or divisor is not None)
    if divisor is None:
        return result
    factor = math.prod(several(op.number(1), spatial)) / divisor
    return emit(ops.Multiply, result, full(factor, op.dtype))


def _pool(op: TorchOp, op_class: type[EffectOp], dilation: list[int] | None, **attrs: Any) -> ir.Value:
    """Window by window over the last two dimensions, then over the third from the end: largest and mean are separable."""
    x, spatial = op.tensor(0), _spatial(op)
    size = several(op.number(1), spatial)
    strides = size if op.number(2, []) == [] else several(op.number(2), spatial)
    padding = several(op.number(3, 0), spatial)
    windows = [_Window(*w) for w in zip(size, strides, padding, dilation or [1] * spatial, strict=True)]
    has_dilation = dilation is not None
    batched = info_of(x).rank == spatial + 2
    x = x if batched else unsqueeze(x, 0)
    if spatial == 1:
        x = squeeze(_pool_plane(unsqueeze(x, 2), op_class, [_Window(), *windows], has_dilation, attrs), 2)
    elif spatial == 2:
        x = _pool_plane(x, op_class, windows, has_dilation, attrs)
    else:
        x = _pool_depth(x, op_class, windows, has_dilation, attrs)
    return x if batched else squeeze(x, 0)


def _pool_plane(
    x: ir.Value, op_class: type[EffectOp], windows: list[_Window], has_dilation: bool, attrs: dict[str, Any]
) -> ir.Value:
    vertical, horizontal = windows
    pads = [vertical.pad, horizontal.pad] * 2
    more = {"dilation": [w.dilation for w in windows]} if has_dilation else {}
    sizes, strides = [w.size for w in windows], [w.stride for w in windows]
    return emit(op_class, x, pool_size=sizes, strides=strides, padding=pads, **more, **attrs)


def _pool_depth(
    x: ir.Value, op_class: type[EffectOp], windows: list[_Window], has_dilation: bool, attrs: dict[str, Any]
) -> ir.Value:
    batch, channels, depth, height, width = info_of(x).shape
    planes = reshape(x, (batch, multiply_all([channels, depth]), height, width))
    pooled = _pool_plane(planes, op_class, windows[1:], has_dilation, attrs)
    *_, rows, columns = info_of(pooled).shape
    columns_of_depth = reshape(pooled, (batch, channels, depth, multiply_all([rows, columns])))
    result = _pool_plane(columns_of_depth, op_class, [windows[0], _Window()], has_dilation, attrs)
    return reshape(result, (batch, channels, info_of(result).shape[2], rows, columns))


@handles("aten.adaptive_avg_pool2d", "aten._adaptive_avg_pool2d")
def _adaptive_avg_pool(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    batched = info_of(x).rank == 4
    x = x if batched else unsqueeze(x, 0)
    result = emit(ops.AdaptiveAvgPool2D, x, output_size=several(op.number(1), 2))
    return result if batched else squeeze(result, 0)


@handles("aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def _adaptive_max_pool(op: TorchOp) -> list[ir.Value | None]:
    """Each dimension as the windows along it, and the largest of each; a shorter window has its last element again."""
    x, spatial = op.tensor(0), _spatial(op)
    for i, wanted in enumerate(several(op.number(1), spatial)):
        axis = info_of(x).rank - spatial + i
        size = info_of(x).shape[axis]
        if not isinstance(size, int) or not size:
            raise RelaxError(f"expected adaptive pooling over a dimension of known size, got {size}")
        places = table(_windows(size, wanted), integer())
        x = emit(ops.Max, emit(ops.Take, x, places, axis=axis), axis=[axis + 1])
    return [x, None]


def _windows(size: int, count: int) -> np.ndarray[Any, Any]:
    """Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/AdaptivePooling.h, start_index and end_index."""
    begins = [i * size // count for i in range(count)]
    ends = [-(-(i + 1) * size // count) for i in range(count)]
    longest = max((e - b for b, e in zip(begins, ends, strict=True)), default=1)
    rows = [[min(b + i, e - 1) for i in range(longest)] for b, e in zip(begins, ends, strict=True)]
    return np.array(rows, np.int64).reshape(count, longest)
