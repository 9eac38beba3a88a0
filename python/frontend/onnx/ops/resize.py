"""ONNX's Resize and Upsample: along each axis a few neighbours of each new place, with weights that are known at import."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.dtypes import numpy_dtype
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ...emit import cast, emit, full, info_of
from ..node import Node, handles
from ..values import known_value, require_places

_Array = np.ndarray[Any, Any]


@handles("Upsample")
def _upsample(node: Node) -> ir.Value:
    scales = node.attribute("scales") or node.numbers(1)
    x = node.tensor(0)
    for axis, scale in enumerate(scales):
        if scale == 1:
            continue
        size = node.known_size(0, axis)
        x = _resized(x, axis, _Axis(node, size, math.floor(size * scale), scale, 0, 1, "asymmetric", "floor"))
    return x


@handles("Resize")
def _resize(node: Node) -> ir.Value:
    """Before operator set 11 the nearest place is the next lower one, where a dimension shrinks the next higher one.

    Source: https://onnx.ai/onnx/operators/onnx__Resize.html.
    """
    rank = node.rank(0)
    axes = node.axes(node.attribute("axes"), rank)
    first = 1 if node.version < 11 else 2  # where the scales are; before, there was no region
    how = node.attribute("coordinate_transformation_mode", "half_pixel" if first == 2 else "asymmetric")
    changed = _changed(node, first, axes, how)
    sizes = [node.known_size(0, axes[i]) for i in changed]
    wanted, scales = _wanted(node, first, sizes, changed)
    region = node.numbers(1) if first == 2 and node.has(1) and _crops(node) else [0.0] * len(axes) + [1.0] * len(axes)
    x = node.tensor(0)
    plain = node.attribute("nearest_mode", "round_prefer_floor")
    nearest = [plain if first == 2 else "ceil" if s < 1 else "floor" for s in scales]
    count = len(axes)
    dtype = info_of(x).dtype
    is_whole = not is_float(dtype) and node.attribute("mode", "nearest") != "nearest"
    x = cast(x, ir.F32Type.get()) if is_whole else x
    for at, size, new, scale, mode in zip(changed, sizes, wanted, scales, nearest, strict=True):
        along = _Axis(node, size, new, scale, region[at], region[at + count], how, mode)
        x = _resized(x, axes[at], along)
    return cast(emit(ops.Round, x), dtype) if is_whole else x


def _crops(node: Node) -> bool:
    return node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"


def _changed(node: Node, first: int, axes: list[int], how: str) -> list[int]:
    """Which of the axes change, by their place among them: one whose size is a symbol, as of a batch, may stay as it is."""
    given = node.numbers(first + 1) if node.has(first + 1) else []
    everywhere = list(range(len(axes)))
    if _crops(node) or how == "tf_half_pixel_for_nn" or node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        return everywhere
    stays = node.operand(0).shape if given else [1] * node.rank(0)
    numbers = given or node.numbers(first)
    return [i for i in everywhere if isinstance(node.operand(0).shape[axes[i]], int) or numbers[i] != stays[axes[i]]]


def _wanted(node: Node, first: int, sizes: list[int], changed: list[int]) -> tuple[list[int], list[Any]]:
    """The new sizes, and the scales, along each axis; those that are given are of f32, and places then, too, as elsewhere."""
    if node.has(first + 1) and node.numbers(first + 1):
        given = node.numbers(first + 1)
        wanted = [int(given[i]) for i in changed]
        policy = node.attribute("keep_aspect_ratio_policy", "stretch")
        if policy == "stretch":
            return wanted, [w / s for w, s in zip(wanted, sizes, strict=True)]
        choose: Callable[[list[float]], float] = min if policy == "not_larger" else max
        scale = choose([w / s for w, s in zip(wanted, sizes, strict=True)])
        return [math.floor(scale * s + 0.5) for s in sizes], [scale] * len(sizes)
    given = node.numbers(first)
    scales = [np.float32(given[i]) for i in changed]
    return [math.floor(float(s) * n) for s, n in zip(scales, sizes, strict=True)], scales


class _Axis:
    """One axis: where each new place lies among the old ones.

    Attributes:
        size, wanted: old and new number of places.
        places: the new ones, as fractions of old ones.
        outside: which of them are outside of the tensor, where that matters.
    """

    def __init__(
        self, node: Node, size: int, wanted: int, scale: float, start: float, end: float, how: str, nearest: str
    ):  # fmt: skip
        self.node, self.size, self.wanted, self.scale, self.nearest = node, size, wanted, scale, nearest
        require_places(max(size, wanted))
        x = np.arange(wanted, dtype=np.float32 if np.result_type(scale) == np.float32 else np.float64)
        self.outside: _Array | None = None
        if how == "align_corners":
            exact = scale * size  # a fraction, where scales are given
            self.places = x * (size - 1) / (exact - 1) if exact != 1 else x * 0
        elif how == "asymmetric":
            self.places = x / scale
        elif how == "tf_crop_and_resize":
            step = (end - start) * (size - 1) / (wanted - 1) if wanted > 1 else 0
            self.places = start * (size - 1) + x * step if wanted > 1 else x + 0.5 * (start + end) * (size - 1)
            self.outside = (self.places < 0) | (self.places > size - 1)
        elif how == "pytorch_half_pixel":
            self.places = (x + 0.5) / scale - 0.5 if wanted > 1 else x * 0 - 0.5
        elif how == "half_pixel_symmetric":
            exact = scale * size
            offset = size / 2 * (1 - wanted / exact) if exact else 0
            self.places = offset + (x + 0.5) / scale - 0.5
        elif how in ("half_pixel", "tf_half_pixel_for_nn"):
            self.places = (x + 0.5) / scale - (0.5 if how == "half_pixel" else 0)
        else:
            raise RelaxError(f"expected a known coordinate_transformation_mode, got '{how}'")

    @property
    def is_same(self) -> bool:
        return self.wanted == self.size and self.outside is None and np.array_equal(self.places, np.arange(self.size))

    def nearest_places(self) -> _Array:
        """For each new place one old one."""
        rounding: dict[str, Callable[[_Array], _Array]] = {
            "round_prefer_floor": lambda x: np.ceil(x - 0.5),
            "round_prefer_ceil": lambda x: np.floor(x + 0.5),
            "floor": np.floor,
            "ceil": np.ceil,
        }
        if self.nearest not in rounding:
            raise RelaxError(f"expected a known nearest_mode, got '{self.nearest}'")
        return np.clip(rounding[self.nearest](self.places), 0, self.size - 1).astype(np.int64)

    def taps(self, mode: str) -> tuple[_Array, _Array]:
        """``[taps, wanted]``: old places, and their weights."""
        exact = self.places.astype(np.float64)
        floor = np.floor(exact)
        ratio = exact - floor
        narrow = min(float(self.scale), 1.0) if self.node.attribute("antialias", 0) else 1.0
        reach = 1 if mode == "linear" else 2
        begin = math.floor(-reach / narrow) + 1
        offsets = np.arange(begin, 2 - begin)
        distance = np.abs((offsets[:, None] - ratio[None, :]) * narrow)
        weights = np.clip(1 - distance, 0, 1) if mode == "linear" else self._cubic(distance)
        if narrow != 1.0:
            weights = weights / weights.sum(0)
        places = (floor[None, :] + offsets[:, None]).astype(np.int64)
        if self.node.attribute("exclude_outside", 0):
            weights = np.where((places < 0) | (places >= self.size), 0, weights)
            weights = weights / weights.sum(0)
        return np.clip(places, 0, self.size - 1), weights

    def _cubic(self, d: _Array) -> _Array:
        """Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981."""
        a = self.node.attribute("cubic_coeff_a", -0.75)
        inner = ((a + 2) * d - (a + 3)) * d * d + 1
        outer = a * (((d - 5) * d + 8) * d - 4)
        return np.where(d <= 1, inner, np.where(d < 2, outer, 0))


def _resized(x: ir.Value, axis: int, along: _Axis) -> ir.Value:
    if along.is_same:
        return x
    mode = along.node.attribute("mode", "nearest")
    if mode == "nearest":
        result = emit(ops.Take, x, known_value("places", along.nearest_places()).value, axis=axis)
    elif mode in ("linear", "bilinear", "cubic"):
        result = _blended(x, axis, *along.taps("cubic" if mode == "cubic" else "linear"))
    else:
        raise RelaxError(f"expected mode to be nearest, linear or cubic, got '{mode}'")
    if along.outside is None or not along.outside.any():
        return result
    shape = [-1 if a == axis else 1 for a in range(info_of(x).rank)]
    outside = known_value("outside", along.outside.reshape(shape)).value
    value = full(along.node.attribute("extrapolation_value", 0.0), info_of(x).dtype)
    return emit(ops.Where, outside, value, result)


def _blended(x: ir.Value, axis: int, places: _Array, weights: _Array) -> ir.Value:
    """The sum over taps; taps without weight are left out."""
    dtype = info_of(x).dtype
    shape = [-1 if a == axis else 1 for a in range(info_of(x).rank)]
    total: ir.Value | None = None
    for place, weight in zip(places, weights, strict=True):
        if not weight.any():
            continue
        factor = known_value("weights", weight.astype(numpy_dtype(dtype)).reshape(shape)).value
        part = emit(ops.Multiply, emit(ops.Take, x, known_value("places", place).value, axis=axis), factor)
        total = part if total is None else emit(ops.Add, total, part)
    assert total is not None
    return total
