"""ONNX operators that pool over windows."""

from __future__ import annotations

import math

import numpy as np

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.dtypes import numpy_dtype
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ...convolutions import pad_axis
from ...emit import cast, emit, full, info_of, integer, multiply_all, neutral, reshape, unsqueeze, wide
from ..node import Node, handles
from ..values import known_value, require_places
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

    def known_pads(self, i: int) -> tuple[int, int]:
        before, after = self.pads[i]
        if not isinstance(before, int) or not isinstance(after, int):
            raise RelaxError("expected padding of dimensions of known size")
        return before, after

    def places(self, size: int, i: int) -> np.ndarray:
        """``[windows, kernel]``: the places of each window, counted from the first of the dimension itself."""
        (before, after), stride = self.known_pads(i), self.strides[i]
        reach = self.dilation[i] * (self.kernel[i] - 1) + 1
        span = size + before + after - reach
        if span < 0:
            raise RelaxError(f"expected a window of at most {size + before + after}, got {reach}")
        count = (-(-span // stride) if self.ceil else span // stride) + 1
        if self.ceil and (count - 1) * stride >= size + before:
            count -= 1
        require_places(count * self.kernel[i])
        return np.arange(count)[:, None] * stride + np.arange(self.kernel[i])[None, :] * self.dilation[i] - before


def _gathered(x: ir.Value, windows: _Windows, fill: float) -> ir.Value:
    """``x[n, c, windows 0, kernel 0, windows 1, kernel 1, ...]``, with ``fill`` outside."""
    for i in range(len(windows.kernel)):
        axis = 2 + 2 * i
        size = info_of(x).shape[axis]
        if not isinstance(size, int):
            raise RelaxError("expected windows over dimensions of known size")
        places = windows.places(size, i)
        before, after = max(-int(places.min(initial=0)), 0), max(int(places.max(initial=0)) - size + 1, 0)
        if before or after:
            amounts = [[n if a == axis else 0 for a in range(info_of(x).rank)] for n in (before, after)]
            x = emit(ops.Pad, x, before=amounts[0], after=amounts[1], value=fill)
        x = emit(ops.Take, x, known_value("places", places + before).value, axis=axis)
    return x


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
    if _is_plane(windows) and not node.wants(1):
        return [_pooled(x, windows, ops.MaxPool2D, neutral("max", dtype))]
    gathered = _gathered(x, windows, neutral("max", dtype))
    result = emit(ops.Max, gathered, axis=_kernel_axes(windows))
    return [result, _positions(node, windows, gathered) if node.wants(1) else None]


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


def _positions(node: Node, windows: _Windows, gathered: ir.Value) -> ir.Value:
    """Where the first largest element of each window is, counted in the whole tensor, rows first or columns first."""
    n, c, *sizes = (node.known_size(0, i) for i in range(node.rank(0)))
    count = len(sizes)
    order = list(range(count)) if not node.attribute("storage_order", 0) else list(range(count))[::-1]
    strides = [0] * count
    step = 1
    for i in reversed(order):
        strides[i] = step
        step *= sizes[i]
    places = [windows.places(size, i) for i, size in enumerate(sizes)]
    table = np.zeros([1] * 0, np.int64)
    for i, place in enumerate(places):
        shape = [1] * (2 * count)
        shape[2 * i], shape[2 * i + 1] = place.shape
        table = table + (place * strides[i]).reshape(shape)
    axes = [2 * i for i in range(count)] + [2 * i + 1 for i in range(count)]
    outs = [len(p) for p in places]
    rows = np.transpose(table, axes).reshape(1, 1, *outs, -1)
    rank = info_of(gathered).rank
    last = permute_windows(gathered, count, rank)
    flat = reshape(last, (n, c, *outs, math.prod(windows.kernel)))
    found = emit(ops.ArgMax, flat, axis=2 + count, keepdims=True)
    wide = emit(ops.BroadcastTo, known_value("places", rows).value, result_types=[info_of(flat).with_(dtype=integer()).type])
    place = emit(ops.Squeeze, emit(ops.GatherElements, wide, found, axis=2 + count), axis=[2 + count])
    images = np.arange(n * c, dtype=np.int64).reshape(n, c, *[1] * count) * math.prod(sizes)
    return emit(ops.Add, place, known_value("images", images).value)


def permute_windows(x: ir.Value, count: int, rank: int) -> ir.Value:
    """All places within windows behind all windows."""
    axes = [0, 1, *(2 + 2 * i for i in range(count)), *(3 + 2 * i for i in range(count))]
    return emit(ops.PermuteDims, x, axes=axes)


@handles("AveragePool")
def _average_pool(node: Node) -> ir.Value:
    windows, x = _Windows(node, node.rank(0)), node.tensor(0)
    is_padded = bool(node.attribute("count_include_pad", 0))
    if _is_plane(windows) and is_float(node.dtype()):
        return _mean(x, windows, is_padded)
    total = emit(ops.Sum, _gathered(x, windows, 0), axis=_kernel_axes(windows))
    counts = np.ones((), np.float64)
    for i in range(len(windows.kernel)):
        size = node.known_size(0, i + 2)
        before, after = windows.known_pads(i) if is_padded else (0, 0)
        places = windows.places(size, i)
        inside = ((places >= -before) & (places < size + after)).sum(1)
        counts = np.multiply.outer(counts, inside)
    divisor = known_value("counts", counts.astype(numpy_dtype(node.dtype()))).value
    return emit(ops.Divide, total, divisor)


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
    shape = [node.known_size(0, i) for i in range(2)]
    for i, (k, s) in enumerate(zip(kernel, strides, strict=True)):
        shape.append((node.known_size(0, i + 2) - 1) * s + k - pads[i] - pads[i + len(kernel)])
    count = math.prod(shape)
    flat = full(0, node.dtype(), (count,))
    elements = reshape(node.tensor(0), (multiply_all(node.operand(0).shape),))
    places = reshape(node.tensor(1), (multiply_all(node.operand(1).shape),))
    result = reshape(emit(ops.ScatterElements, flat, places, elements, axis=0, wrap_negative_indices=False), shape)
    wanted = node.numbers(2) if node.has(2) else shape
    for axis, (size, had) in enumerate(zip(wanted, shape, strict=True)):
        result = pad_axis(result, axis, (0, size - had))
    return result
