"""ONNX's Resize and Upsample: along each axis a few neighbours of each new place, with weights that are known at import.

Those of an axis whose size a call tells are computed: :mod:`.open_resize`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ....dialect.symbolic import Expr
from ...emit import cast, emit, full, info_of
from ..node import Node, handles
from ..values import known_value, require_places
from .open_resize import OpenAxis, along_axis, scaled_size

_Array = np.ndarray[Any, Any]


@handles("Upsample")
def _upsample(node: Node) -> ir.Value:
    scales = node.attribute("scales") or node.numbers(1)
    x = node.tensor(0)
    for axis, scale in enumerate(scales):
        if scale == 1:
            continue
        size = node.size(0, axis)
        x = _resized(x, axis, _along(node, size, scaled_size(size, scale), scale, (0, 1), "asymmetric", "floor"))
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
    region = node.numbers(1) if first == 2 and node.has(1) and _crops(node) else [0.0] * len(axes) + [1.0] * len(axes)
    changed = _changed(node, first, axes, how, region)
    sizes = [node.size(0, axes[i]) for i in changed]
    wanted, scales = _wanted(node, first, sizes, changed)
    x = node.tensor(0)
    plain = node.attribute("nearest_mode", "round_prefer_floor")
    nearest = [plain if first == 2 else "ceil" if s is not None and s < 1 else "floor" for s in scales]
    count = len(axes)
    dtype = info_of(x).dtype
    is_whole = not is_float(dtype) and node.attribute("mode", "nearest") != "nearest"
    x = cast(x, ir.F32Type.get()) if is_whole else x
    for at, size, new, scale, mode in zip(changed, sizes, wanted, scales, nearest, strict=True):
        along = _along(node, size, new, scale, (region[at], region[at + count]), how, mode)
        x = _resized(x, axes[at], along)
    return cast(emit(ops.Round, x), dtype) if is_whole else x


def _crops(node: Node) -> bool:
    return node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"


def _changed(node: Node, first: int, axes: list[int], how: str, region: list[float]) -> list[int]:
    """Which of the axes change, by their place among them: one whose size is a symbol, as of a batch, may stay as it is."""
    given = node.numbers(first + 1) if node.has(first + 1) else []
    everywhere = list(range(len(axes)))
    if how == "tf_half_pixel_for_nn" or node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        return everywhere
    stays = node.operand(0).shape if given else [1] * node.rank(0)
    numbers = given or node.numbers(first)
    cropped = [(region[i], region[i + len(axes)]) != (0.0, 1.0) for i in everywhere]
    return [
        i for i in everywhere if isinstance(node.operand(0).shape[axes[i]], int) or cropped[i] or numbers[i] != stays[axes[i]]
    ]


def _wanted(node: Node, first: int, sizes: list[int | Expr], changed: list[int]) -> tuple[list[int | Expr], list[Any]]:
    """The new sizes, and the scales, along each axis; those that are given are of f32, and places then, too, as elsewhere.

    A scale is None where it is the quotient of sizes that are not known.
    """
    if not (node.has(first + 1) and node.numbers(first + 1)):
        given = node.numbers(first)
        scales = [np.float32(given[i]) for i in changed]
        return [scaled_size(n, float(s)) for s, n in zip(scales, sizes, strict=True)], scales
    given = node.numbers(first + 1)
    wanted = [given[i] if isinstance(given[i], Expr) else int(given[i]) for i in changed]
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return wanted, [
            w / s if isinstance(w, int) and isinstance(s, int) else None for w, s in zip(wanted, sizes, strict=True)
        ]
    known = [(w, s) for w, s in zip(wanted, sizes, strict=True) if isinstance(w, int) and isinstance(s, int)]
    if len(known) != len(sizes):
        raise RelaxError(f"expected sizes that are known where keep_aspect_ratio_policy is '{policy}', got {sizes} to {wanted}")
    choose: Callable[[list[float]], float] = min if policy == "not_larger" else max
    scale = choose([w / s for w, s in known])
    return [math.floor(scale * s + 0.5) for _, s in known], [scale] * len(known)


def _along(
    node: Node, size: int | Expr, wanted: int | Expr, scale: float | None, region: tuple[float, float], how: str, nearest: str
) -> _Axis | OpenAxis:
    """How places lie along an axis."""
    if isinstance(size, int) and isinstance(wanted, int) and scale is not None:
        return _Axis(node, size, wanted, scale, *region, how, nearest)
    return OpenAxis(node, size, wanted, scale, region, how, nearest)


class _Axis:
    """One axis: where each new place lies among the old ones.

    Attributes:
        size, wanted: old and new number of places.
        places: the new ones, as fractions of old ones.
    """

    def __init__(
        self, node: Node, size: int, wanted: int, scale: float, start: float, end: float, how: str, nearest: str
    ):  # fmt: skip
        self.node, self.size, self.wanted, self.scale, self.nearest = node, size, wanted, scale, nearest
        require_places(max(size, wanted))
        x = np.arange(wanted, dtype=np.float32 if np.result_type(scale) == np.float32 else np.float64)
        self._outside: _Array | None = None
        if how == "align_corners":
            self.places = x * (size - 1) / max(wanted - 1, 1)
        elif how == "asymmetric":
            self.places = x / scale
        elif how == "tf_crop_and_resize":
            step = (end - start) * (size - 1) / (wanted - 1) if wanted > 1 else 0
            self.places = start * (size - 1) + x * step if wanted > 1 else x + 0.5 * (start + end) * (size - 1)
            self._outside = (self.places < 0) | (self.places > size - 1)
        elif how == "pytorch_half_pixel":
            self.places = (x + 0.5) / scale - 0.5 if wanted > 1 else x * 0
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
        return self.wanted == self.size and self._outside is None and np.array_equal(self.places, np.arange(self.size))

    def outside(self) -> ir.Value | None:
        """Which new places are outside of the tensor, where that matters."""
        return None if self._outside is None or not self._outside.any() else known_value("outside", self._outside).value

    def nearest_places(self) -> ir.Value:
        """For each new place one old one."""
        rounding: dict[str, Callable[[_Array], _Array]] = {
            "round_prefer_floor": lambda x: np.ceil(x - 0.5),
            "round_prefer_ceil": lambda x: np.floor(x + 0.5),
            "floor": np.floor,
            "ceil": np.ceil,
        }
        if self.nearest not in rounding:
            raise RelaxError(f"expected a known nearest_mode, got '{self.nearest}'")
        return known_value("places", np.clip(rounding[self.nearest](self.places), 0, self.size - 1).astype(np.int64)).value

    def taps(self, mode: str) -> list[tuple[ir.Value, ir.Value]]:
        """Old places, and their weights; those without weight are left out."""
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
        rows = np.clip(places, 0, self.size - 1)
        seen = [(r, w) for r, w in zip(rows, weights, strict=True) if w.any()]
        return [(known_value("places", r).value, known_value("weights", w).value) for r, w in seen]

    def _cubic(self, d: _Array) -> _Array:
        """Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981."""
        a = self.node.attribute("cubic_coeff_a", -0.75)
        inner = ((a + 2) * d - (a + 3)) * d * d + 1
        outer = a * (((d - 5) * d + 8) * d - 4)
        return np.where(d <= 1, inner, np.where(d < 2, outer, 0))


def _resized(x: ir.Value, axis: int, along: _Axis | OpenAxis) -> ir.Value:
    if along.is_same:
        return x
    mode, info = along.node.attribute("mode", "nearest"), info_of(x)
    if mode == "nearest":
        result = emit(ops.Take, x, along.nearest_places(), axis=axis)
    elif mode in ("linear", "bilinear", "cubic"):
        result = _blended(x, axis, along.taps("cubic" if mode == "cubic" else "linear"))
    else:
        raise RelaxError(f"expected mode to be nearest, linear or cubic, got '{mode}'")
    outside = along.outside()
    if outside is None:
        return result
    value = full(along.node.attribute("extrapolation_value", 0.0), info.dtype)
    return emit(ops.Where, along_axis(outside, axis, info.rank), value, result)


def _blended(x: ir.Value, axis: int, taps: Iterable[tuple[ir.Value, ir.Value]]) -> ir.Value:
    """The sum over taps."""
    total: ir.Value | None = None
    for place, weights in taps:
        factor = cast(along_axis(weights, axis, info_of(x).rank), info_of(x).dtype)
        part = emit(ops.Multiply, emit(ops.Take, x, place, axis=axis), factor)
        total = part if total is None else emit(ops.Add, total, part)
    assert total is not None
    return total
