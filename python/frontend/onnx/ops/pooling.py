"""ONNX operators that pool over windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ....dialect.symbolic import Dim, Expr
from ...convolutions import pad_axis
from ...emit import (
    cast,
    emit,
    full,
    info_of,
    integer,
    multiply_all,
    neutral,
    reshape,
    sequence,
    size_value,
    table,
    unsqueeze,
    wide,
)
from ...padding import padded_by_number
from ...windows import PoolWindow, Windows, largest_and_places
from ...windows import windows as places_of_windows
from ..node import Node, handles
from .convolution import padded_as_open, padding


@handles("GlobalAveragePool", "GlobalMaxPool")
def _global(node: Node) -> ir.Value:
    op_class = ops.Mean if node.key == "GlobalAveragePool" else ops.Max
    return emit(op_class, node.tensor(0), axis=list(range(2, node.rank(0))), keepdims=True)


@handles("GlobalLpPool")
def _global_lp(node: Node) -> ir.Value:
    order = node.attribute("p", 2)
    powers = _power(emit(ops.Abs, cast(node.tensor(0), wide(node.dtype()))), order)
    size = _power(emit(ops.Sum, powers, axis=list(range(2, node.rank(0))), keepdims=True), 1 / order)
    return cast(size, node.dtype())


def _power(x: ir.Value, exponent: float) -> ir.Value:
    if exponent == 1:
        return x
    if exponent in (2, 0.5):
        return emit(ops.Square if exponent == 2 else ops.Sqrt, x)
    return emit(ops.Power, x, full(exponent, info_of(x).dtype))


class _Windows:
    """The windows of a node over the dimensions behind batch and channels.

    Each dimension becomes two: which window, and where in it. A place outside of the tensor, or of the padding that counts, is
    no place; the last window of ``ceil_mode`` has such.
    """

    def __init__(self, node: Node, rank: int):
        self.kernel: list[int] = node.attribute("kernel_shape")
        count = len(self.kernel)
        if rank != count + 2:
            raise RelaxError(f"expected windows of {rank - 2} dimensions, got {self.kernel}")
        self.strides: list[int] = node.attribute("strides", [1] * count)
        self.dilation: list[int] = node.attribute("dilations", [1] * count)
        self.sizes = node.operand(0).shape[2:]
        self.pads = padding(node, self.kernel, self.strides, self.dilation, self.sizes)
        self.ceil = bool(node.attribute("ceil_mode", 0))

    @property
    def are_open(self) -> bool:
        """Whether a call says how many there are."""
        return not all(isinstance(size, int) for size in self.sizes)

    def along(self, i: int, before: int = 0, after: int = 0) -> PoolWindow:
        """Those of one dimension, over so much padding."""
        return PoolWindow(self.kernel[i], self.strides[i], before, after, self.dilation[i], ceil_mode=self.ceil)


def _gathered(x: ir.Value, windows: _Windows, fill: float, padding_fill: float | None = None) -> ir.Value:
    """``x[n, c, windows 0, kernel 0, windows 1, kernel 1, ...]``, with ``fill`` outside, or another number in the padding."""
    inner = fill if padding_fill is None else padding_fill
    x, pads = padded_as_open(x, windows.pads, inner)
    along = [windows.along(i, *both) for i, both in enumerate(pads)]
    counts = [_count(info_of(x).shape[2 + i], window) for i, window in enumerate(along)]
    before, after = ([0, 0, *(p[end] for p in pads)] for end in (0, 1))
    x = emit(ops.Pad, x, before=before, after=after, value=inner)
    for i, (window, count) in enumerate(zip(along, counts, strict=True)):
        axis = 2 + 2 * i
        x = pad_axis(x, axis, (0, window.stride - 1 if window.ceil_mode else 0), fill)
        begins = emit(ops.Multiply, sequence(0, count), full(window.stride, integer()))
        steps = table(np.arange(window.size)[None] * window.dilation, integer())
        x = emit(ops.Take, x, emit(ops.Add, unsqueeze(begins, 1), steps), axis=axis)
    return x


def _count(size: Dim, window: PoolWindow) -> int | Expr:
    if size is None:
        raise RelaxError("expected windows over dimensions of known or symbolic size")
    count = window.count(size)
    if isinstance(count, int) and count < 1:
        raise RelaxError(f"expected a window of at most {size + window.before + window.after}, got {window.reach}")
    return count


def _kernel_axes(windows: _Windows) -> list[int]:
    return [3 + 2 * i for i in range(len(windows.kernel))]


def _is_plane(windows: _Windows) -> bool:
    """Whether an op of our own has these windows: in one or two dimensions.

    The last window of ``ceil_mode`` may be of fewer elements than that op's, which is open where sizes are, too.
    """
    return len(windows.kernel) <= 2 and (windows.are_open or not windows.ceil)


@handles("MaxPool")
def _max_pool(node: Node) -> list[ir.Value | None]:
    windows, x, dtype = _Windows(node, node.rank(0)), node.tensor(0), node.dtype()
    if node.wants(1):
        return _max_pool_places(node, windows)
    if _is_plane(windows):
        return [_pooled(x, windows, ops.MaxPool2D, neutral("max", dtype)), None]
    return [emit(ops.Max, _gathered(x, windows, neutral("max", dtype)), axis=_kernel_axes(windows)), None]


def _max_pool_places(node: Node, windows: _Windows) -> list[ir.Value | None]:
    """The first largest element of each window, counted in the whole tensor, rows first or columns first."""
    along: list[Windows | ir.Value] = []
    for i, (size, pads) in enumerate(zip(windows.sizes, windows.pads, strict=True)):
        before, after = pads
        if size is None or not isinstance(before, int) or not isinstance(after, int):
            raise RelaxError("expected padding that is known where places of largest elements are used")
        along.append(places_of_windows(size, windows.along(i, before, after)))
    result, places = largest_and_places(node.tensor(0), along)
    assert places is not None
    if node.attribute("storage_order", 0):
        places = _columns_first(places, windows.sizes)
    n, c, *_ = node.operand(0).shape
    images = multiply_all([n, c])
    each = emit(ops.Multiply, sequence(0, images), size_value(multiply_all(windows.sizes)))
    return [result, emit(ops.Add, places, reshape(each, (n, c, *[1] * len(windows.sizes))))]


def _columns_first(places: ir.Value, sizes: Sequence[Dim]) -> ir.Value:
    """Places that count with the last dimension first, as those with the first dimension first."""
    total = full(0, integer())
    for i in range(len(sizes)):
        inner, outer = (size_value(multiply_all(part)) for part in (sizes[i + 1 :], sizes[:i]))
        index = emit(ops.Mod, emit(ops.FloorDivide, places, inner), size_value(sizes[i]))
        total = emit(ops.Add, total, emit(ops.Multiply, index, outer))
    return total


def _pooled(x: ir.Value, windows: _Windows, op_class: type, fill: float, **attrs: object) -> ir.Value:
    """In one or two dimensions; one is a row of two. What sizes say of padding is elements of that value."""
    x, pads = padded_as_open(x, windows.pads, fill)
    kernel, strides, dilation, single = windows.kernel, windows.strides, windows.dilation, len(windows.kernel) == 1
    if single:
        x, pads = unsqueeze(x, 2), [(0, 0), *pads]
        kernel, strides, dilation = [1, *kernel], [1, *strides], [1, *dilation]
    (top, bottom), (left, right) = pads
    how = {"pool_size": kernel, "strides": strides, "dilation": dilation, "padding": [top, left, bottom, right]}
    result = emit(op_class, x, **how, ceil_mode=windows.ceil, **attrs)
    return emit(ops.Squeeze, result, axis=[2]) if single else result


@handles("AveragePool")
def _average_pool(node: Node) -> ir.Value:
    windows, x = _Windows(node, node.rank(0)), node.tensor(0)
    is_padded = bool(node.attribute("count_include_pad", 0))
    if _is_plane(windows) and is_float(node.dtype()):
        return _mean(x, windows, is_padded)
    total = emit(ops.Sum, _gathered(x, windows, 0), axis=_kernel_axes(windows))
    ones = full(1, node.dtype(), (1, 1, *windows.sizes))
    counts = emit(ops.Sum, _gathered(ones, windows, 0, 1 if is_padded else 0), axis=_kernel_axes(windows))
    return emit(ops.Divide, total, counts)


def _mean(x: ir.Value, windows: _Windows, is_padded: bool) -> ir.Value:
    """Where padding depends on sizes and does not count, over which part of each window does: the mean of ones."""
    mean = _pooled(x, windows, ops.AvgPool2D, 0, count_include_pad=is_padded)
    if is_padded or all(isinstance(n, int) for pair in windows.pads for n in pair):
        return mean
    ones = full(1, info_of(x).dtype, (1, 1, *info_of(x).shape[2:]))
    return emit(ops.Divide, mean, _pooled(ones, windows, ops.AvgPool2D, 0, count_include_pad=False))


@handles("LpPool")
def _lp_pool(node: Node) -> ir.Value:
    """Over open sizes the sum over a window is its mean, times how many elements it has."""
    windows, order = _Windows(node, node.rank(0)), node.attribute("p", 2)
    dtype = wide(node.dtype())
    powers = _power(emit(ops.Abs, cast(node.tensor(0), dtype)), order)
    if not windows.are_open or not _is_plane(windows) or windows.ceil:
        total = emit(ops.Sum, _gathered(powers, windows, 0), axis=_kernel_axes(windows))
    else:
        mean = _pooled(powers, windows, ops.AvgPool2D, 0, count_include_pad=True)
        total = emit(ops.Multiply, mean, full(math.prod(windows.kernel), dtype))
    return cast(_power(total, 1 / order), node.dtype())


@handles("MaxUnpool")
def _max_unpool(node: Node) -> ir.Value:
    """Each element at the place that its index says, zeros elsewhere."""
    kernel = node.attribute("kernel_shape")
    strides = node.attribute("strides", [1] * len(kernel))
    pads = node.attribute("pads", [0] * (2 * len(kernel)))
    shape = [node.size(0, i) for i in range(2)]
    for i, (k, s) in enumerate(zip(kernel, strides, strict=True)):
        shape.append((node.size(0, i + 2) - 1) * s + k - pads[i] - pads[i + len(kernel)])
    flat = full(0, node.dtype(), (multiply_all(shape),))
    elements = reshape(node.tensor(0), (multiply_all(node.operand(0).shape),))
    places = reshape(node.tensor(1), (multiply_all(node.operand(1).shape),))
    result = reshape(emit(ops.ScatterElements, flat, places, elements, axis=0, wrap_negative_indices=False), shape)
    wanted = node.numbers(2) if node.has(2) else shape
    for axis, (size, had) in enumerate(zip(wanted, shape, strict=True)):
        if size != had:
            result = padded_by_number(result, axis, 0, size - had, 0)
    return result
