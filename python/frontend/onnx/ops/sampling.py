"""ONNX operators that read images between their elements: GridSample, RoiAlign, and Col2Im, which writes windows back."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.dtypes import numpy_dtype
from ....dialect.errors import RelaxError
from ...emit import cast, emit, full, info_of, integer, multiply_all, reshape, sequence, slice_axis, squeeze, unsqueeze
from ..node import Node, handles
from ..values import known_value, require_places


@handles("GridSample")
def _grid_sample(node: Node) -> ir.Value:
    """``x[n, c, spatial...]`` at ``grid[n, out..., spatial]``, whose last coordinate is of the last dimension.

    Source: https://onnx.ai/onnx/operators/onnx__GridSample.html.
    """
    x, grid = node.tensor(0), node.tensor(1)
    count = node.rank(0) - 2
    sizes = [node.size(0, i + 2) for i in range(count)]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.attribute("mode", "linear"), node.attribute("mode", "linear"))
    border, corners = node.attribute("padding_mode", "zeros"), bool(node.attribute("align_corners", 0))
    if border not in ("zeros", "border", "reflection") or mode not in ("linear", "nearest", "cubic"):
        raise RelaxError(f"expected known mode and padding_mode, got '{mode}' and '{border}'")
    wide = ir.F64Type.get() if info_of(grid).dtype == ir.F64Type.get() else ir.F32Type.get()
    grid = cast(grid, wide)
    last = info_of(grid).rank - 1
    places: list[ir.Value] = []
    for i, size in enumerate(sizes):
        coordinate = squeeze(slice_axis(grid, last, count - 1 - i, count - i), last)
        places.append(_place(coordinate, size, corners))
    if mode != "cubic":  # cubic limits each neighbour on its own
        places = [_limited(p, s, border, corners) for p, s in zip(places, sizes, strict=True)]
    return _interpolated(x, places, sizes, mode, border, corners)


def _place(coordinate: ir.Value, size: Any, corners: bool) -> ir.Value:
    """From -1 ... 1 to elements: the ends are the outer elements' centers, or their outer edges."""
    dtype = info_of(coordinate).dtype
    half = emit(ops.Divide, emit(ops.Add, coordinate, full(1, dtype)), full(2, dtype))
    if corners:
        return emit(ops.Multiply, half, full(size - 1, dtype))
    return emit(ops.Subtract, emit(ops.Multiply, half, full(size, dtype)), full(0.5, dtype))


def _limited(place: ir.Value, size: Any, border: str, corners: bool) -> ir.Value:
    dtype = info_of(place).dtype
    if border == "zeros":
        return place
    low, high = full(0, dtype), full(size - 1, dtype)
    if border == "reflection":
        place = _reflected(place, size, corners)
    return emit(ops.Minimum, emit(ops.Maximum, place, low), high)


def _reflected(place: ir.Value, size: Any, corners: bool) -> ir.Value:
    """Back and forth between the ends."""
    dtype = info_of(place).dtype
    low, span = (full(0, dtype), full(size - 1, dtype)) if corners else (full(-0.5, dtype), full(size, dtype))
    distance = emit(ops.Abs, emit(ops.Subtract, place, low))
    safe = emit(ops.Maximum, span, full(1, dtype)) if corners else span
    turns = emit(ops.Floor, emit(ops.Divide, distance, safe))
    rest = emit(ops.Subtract, distance, emit(ops.Multiply, turns, safe))
    odd = emit(ops.Equal, emit(ops.Mod, turns, full(2, dtype)), full(1, dtype))
    return emit(ops.Add, emit(ops.Where, odd, emit(ops.Subtract, span, rest), rest), low)


def _interpolated(x: ir.Value, places: list[ir.Value], sizes: list[Any], mode: str, border: str, corners: bool) -> ir.Value:
    """The sum over neighbours of weight times element."""
    dtype = info_of(places[0]).dtype
    taps: list[list[tuple[ir.Value, ir.Value | None]]] = []
    for place in places:
        if mode == "nearest":
            taps.append([(emit(ops.Round, place), None)])
            continue
        floor = emit(ops.Floor, place)
        ratio = emit(ops.Subtract, place, floor)
        offsets = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
        weights = _linear(ratio) if mode == "linear" else _cubic(ratio)
        taps.append([(emit(ops.Add, floor, full(o, dtype)), w) for o, w in zip(offsets, weights, strict=True)])
    total: ir.Value | None = None
    flat = _channels_last(x)
    for corner in itertools.product(*taps):
        part = _element(flat, [p for p, _ in corner], sizes, border, corners)
        for _, weight in corner:
            if weight is not None:
                part = emit(ops.Multiply, part, unsqueeze(cast(weight, info_of(x).dtype), info_of(weight).rank))
        total = part if total is None else emit(ops.Add, total, part)
    assert total is not None
    rank = info_of(total).rank
    return emit(ops.PermuteDims, total, axes=[0, rank - 1, *range(1, rank - 1)])


def _channels_last(x: ir.Value) -> ir.Value:
    rank = info_of(x).rank
    return emit(ops.PermuteDims, x, axes=[0, *range(2, rank), 1])


def _linear(ratio: ir.Value) -> list[ir.Value]:
    return [emit(ops.Subtract, full(1, info_of(ratio).dtype), ratio), ratio]


def _cubic(t: ir.Value) -> list[ir.Value]:
    """Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981, with a = -0.75."""
    dtype, a = info_of(t).dtype, -0.75

    def polynomial(d: ir.Value, *factors: float) -> ir.Value:
        result = full(factors[0], dtype)
        for factor in factors[1:]:
            result = emit(ops.Add, emit(ops.Multiply, result, d), full(factor, dtype))
        return result

    rest = emit(ops.Subtract, full(1, dtype), t)
    inner, outer = (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)
    beyond = [emit(ops.Add, d, full(1, dtype)) for d in (t, rest)]
    return [polynomial(beyond[0], *outer), polynomial(t, *inner), polynomial(rest, *inner), polynomial(beyond[1], *outer)]


def _element(x: ir.Value, place: list[ir.Value], sizes: list[Any], border: str, corners: bool) -> ir.Value:
    """``x[n, place..., :]``; zeros outside, or the element that the border's rule names."""
    i64 = integer()
    index: list[ir.Value] = []
    inside: ir.Value | None = None
    for p, size in zip(place, sizes, strict=True):
        dtype = info_of(p).dtype
        top = full(size - 1, dtype)
        if border == "zeros":
            within = emit(ops.LogicalAnd, emit(ops.GreaterEqual, p, full(0, dtype)), emit(ops.LessEqual, p, top))
            inside = within if inside is None else emit(ops.LogicalAnd, inside, within)
        else:
            p = _limited(p, size, border, corners)
        # A NaN is nowhere: the first element is read, and for zeros not taken.
        p = emit(ops.Where, emit(ops.IsNan, p), full(0, dtype), p)
        index.append(cast(emit(ops.Minimum, emit(ops.Maximum, p, full(0, dtype)), top), i64))
    rank = info_of(index[0]).rank
    stacked = index[0] if len(index) == 0 else None
    parts = [unsqueeze(i, rank) for i in index]
    stacked = parts[0]
    for part in parts[1:]:
        stacked = emit(ops.Concat, stacked, part, axis=rank)
    found = emit(ops.GatherND, x, stacked, batch_dims=1)
    if inside is None:
        return found
    return emit(ops.Where, unsqueeze(inside, rank), found, full(0, info_of(x).dtype))


@handles("Col2Im")
def _col_to_im(node: Node) -> ir.Value:
    """Windows ``[n, c * kernel, windows]`` added up at their places. Source: https://onnx.ai/onnx/operators/onnx__Col2Im.html."""
    image, block = ([int(n) for n in node.numbers(i)] for i in (1, 2))
    count = len(image)
    strides, dilation = (node.attribute(k, [1] * count) for k in ("strides", "dilations"))
    pads = node.attribute("pads", [0] * (2 * count))
    whole = [s + pads[i] + pads[i + count] for i, s in enumerate(image)]
    places = np.zeros((), np.int64)
    for i in range(count):
        windows = (whole[i] - dilation[i] * (block[i] - 1) - 1) // strides[i] + 1
        require_places(places.size * block[i] * max(windows, 0))
        along = np.arange(block[i])[:, None] * dilation[i] + np.arange(windows)[None, :] * strides[i]
        shape = [1] * (2 * count)
        shape[i], shape[count + i] = along.shape
        places = places + along.reshape(shape) * math.prod(whole[i + 1 :])
    table = places.reshape(-1).astype(np.int64)
    n, depth = node.operand(0).shape[:2]
    channels = depth // math.prod(block) if depth is not None else None
    rows = multiply_all([n, channels])
    columns = reshape(node.tensor(0), (rows, table.size))
    index = emit(ops.BroadcastTo, known_value("places", table).value,
                 result_types=[info_of(columns).with_(dtype=integer()).type])  # fmt: skip
    start = full(0, node.dtype(), (rows, math.prod(whole)))
    result = emit(ops.ScatterElements, start, index, columns, axis=1, reduction="add")
    result = reshape(result, (n, channels, *whole))
    for i, size in enumerate(image):
        result = slice_axis(result, i + 2, pads[i], pads[i] + size)
    return result


@handles("RoiAlign")
def _roi_align(node: Node) -> ir.Value:
    """``x[n, c, h, w]`` between its elements in regions ``[r, 4]``, averaged: two products with matrices of weights.

    Source: https://onnx.ai/onnx/operators/onnx__RoiAlign.html.
    """
    samples, mode = node.attribute("sampling_ratio", 0), node.attribute("mode", "avg")
    if samples < 1 or mode != "avg":
        raise RelaxError(f"expected averages of a number of samples, got mode '{mode}' and sampling_ratio {samples}")
    x, dtype = node.tensor(0), node.dtype()
    corners = emit(ops.Multiply, cast(node.tensor(1), dtype), full(node.attribute("spatial_scale", 1.0), dtype))
    is_old = node.version < 16 or node.attribute("coordinate_transformation_mode", "half_pixel") == "output_half_pixel"
    corners = corners if is_old else emit(ops.Subtract, corners, full(0.5, dtype))
    left, top, right, bottom = (slice_axis(corners, 1, i, i + 1) for i in range(4))
    rows = _sampled(top, bottom, node.size(0, 2), node.attribute("output_height", 1), samples, is_old)
    columns = _sampled(left, right, node.size(0, 3), node.attribute("output_width", 1), samples, is_old)
    images = emit(ops.Take, x, node.tensor(2), axis=0)
    narrow = emit(ops.MatMul, images, unsqueeze(emit(ops.PermuteDims, columns, axes=[0, 2, 1]), 1))
    return emit(ops.MatMul, unsqueeze(rows, 1), narrow)


def _sampled(start: ir.Value, end: ir.Value, size: Any, count: int, samples: int, is_old: bool) -> ir.Value:
    """``[r, count, size]``: how much each element counts in each bin of the regions between start and end ``[r, 1]``."""
    dtype = info_of(start).dtype
    length = emit(ops.Subtract, end, start)
    length = emit(ops.Maximum, length, full(1, dtype)) if is_old else length
    fractions = (np.arange(count * samples) + 0.5) / (count * samples)
    steps = known_value("fractions", fractions.astype(numpy_dtype(dtype)).reshape(1, -1)).value
    at = emit(ops.Add, start, emit(ops.Multiply, length, steps))
    last = full(size - 1, dtype)
    inside = emit(ops.LogicalAnd, emit(ops.GreaterEqual, at, full(-1, dtype)), emit(ops.LessEqual, at, full(size, dtype)))
    place = unsqueeze(emit(ops.Minimum, emit(ops.Maximum, at, full(0, dtype)), last), 2)
    distance = emit(ops.Abs, emit(ops.Subtract, place, cast(sequence(0, size), dtype)))
    weight = emit(ops.Maximum, emit(ops.Subtract, full(1, dtype), distance), full(0, dtype))
    weight = emit(ops.Where, unsqueeze(inside, 2), weight, full(0, dtype))
    return emit(ops.Mean, reshape(weight, (info_of(at).shape[0], count, samples, size)), axis=[2])
