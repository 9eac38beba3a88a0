"""One axis that ONNX's Resize changes and whose size a call tells: places and weights as tensors that are computed.

The formulas are those of :mod:`.resize`, which computes them at import where sizes are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.op import EffectOp
from ....dialect.symbolic import Expr
from ...emit import cast, emit, full, info_of, integer, reshape, sequence
from ..node import Node

__all__ = ["OpenAxis", "along_axis", "scaled_size"]

#: What rounds a place to its nearest, and half of a step that is added before.
_ROUNDING: dict[str, tuple[type[EffectOp], float]] = {
    "round_prefer_floor": (ops.Ceil, -0.5),
    "round_prefer_ceil": (ops.Floor, 0.5),
    "floor": (ops.Floor, 0),
    "ceil": (ops.Ceil, 0),
}


def scaled_size(size: int | Expr, scale: float) -> int | Expr:
    """The whole part of a size times a factor: 2.3 in single precision, a little less, makes 46 of 20 all the same.

    Of sizes up to 4096 and factors of up to two decimals, ONNX Runtime, which rounds the product, has another result for 0.1 %;
    without the fraction it would be 1.4 %.
    """
    exact = Fraction(float(scale))
    simple = exact.limit_denominator(_PARTS)
    factor = simple if np.float32(float(simple)) == np.float32(scale) else exact
    return size * factor.numerator // factor.denominator


#: Of a whole, in a factor that people write.
_PARTS = 1000


@dataclass(frozen=True)
class _Numbers:
    """A tensor with operators."""

    value: ir.Value

    def _with(self, op_class: type[EffectOp], other: _Numbers | float | Expr) -> _Numbers:
        right = other.value if isinstance(other, _Numbers) else full(other, info_of(self.value).dtype)
        return _Numbers(emit(op_class, self.value, right))

    def __add__(self, other: _Numbers | float | Expr) -> _Numbers:
        return self._with(ops.Add, other)

    def __sub__(self, other: _Numbers | float | Expr) -> _Numbers:
        return self._with(ops.Subtract, other)

    def __mul__(self, other: _Numbers | float | Expr) -> _Numbers:
        return self._with(ops.Multiply, other)

    def __truediv__(self, other: _Numbers | float | Expr) -> _Numbers:
        return self._with(ops.Divide, other)

    def compare(self, op_class: type[EffectOp], other: _Numbers | float | Expr) -> _Numbers:
        return self._with(op_class, other)

    def clipped(self, low: float, high: _Numbers | float | Expr) -> _Numbers:
        return self._with(ops.Maximum, low)._with(ops.Minimum, high)

    def mapped(self, op_class: type[EffectOp]) -> _Numbers:
        return _Numbers(emit(op_class, self.value))

    def where(self, condition: _Numbers, other: float) -> _Numbers:
        """These numbers where the condition holds, elsewhere the other one."""
        return _Numbers(emit(ops.Where, condition.value, self.value, full(other, info_of(self.value).dtype)))


class OpenAxis:
    """Where each new place of an axis lies among the old ones.

    Attributes:
        node: a Resize.
        scale: that is given; None: it is the quotient of the sizes.
    """

    is_same = False

    def __init__(
        self, node: Node, size: int | Expr, wanted: int | Expr, scale: float | None, region: tuple[float, float], how: str,
        nearest: str,
    ):  # fmt: skip
        self.node, self.scale, self._size, self._wanted, self._nearest = node, scale, size, wanted, nearest
        self._dtype = ir.F32Type.get() if scale is not None else ir.F64Type.get()
        self._places = self._lies(how, *region)
        self._outside = None
        if how == "tf_crop_and_resize":
            last = self._number(size) - 1
            above = self._places.compare(ops.Greater, last)
            self._outside = emit(ops.LogicalOr, self._places.compare(ops.Less, 0).value, above.value)

    def _number(self, value: float | Expr) -> _Numbers:
        return _Numbers(full(value, self._dtype))

    def _lies(self, how: str, start: float, end: float) -> _Numbers:
        """The new places as fractions of old ones."""
        x, size, wanted = (
            _Numbers(sequence(0, self._wanted, 1, self._dtype)),
            self._number(self._size),
            self._number(self._wanted),
        )
        scale = wanted / size if self.scale is None else self._number(self.scale)
        several = wanted.compare(ops.Greater, 1)
        if how == "align_corners":
            return (x * (size - 1) / (wanted - 1)).where(several, 0)
        if how == "asymmetric":
            return x / scale
        if how == "tf_crop_and_resize":
            step = ((size - 1) * (end - start) / (wanted - 1)).where(several, 0)
            middle = (size - 1) * (0.5 * (start + end))
            first = _Numbers(emit(ops.Where, several.value, ((size - 1) * start).value, middle.value))
            return x * step + first
        if how == "half_pixel_symmetric":
            offset = size / 2 * (self._number(1) - wanted / (scale * size))
            return offset + (x + 0.5) / scale - 0.5
        if how == "pytorch_half_pixel":
            return ((x + 0.5) / scale - 0.5).where(several, 0)
        if how in ("half_pixel", "tf_half_pixel_for_nn"):
            return (x + 0.5) / scale - (0.5 if how == "half_pixel" else 0)
        raise RelaxError(f"expected a known coordinate_transformation_mode, got '{how}'")

    def outside(self) -> ir.Value | None:
        """Which new places are outside of the tensor, where that matters."""
        return self._outside

    def nearest_places(self) -> ir.Value:
        """For each new place one old one."""
        if self._nearest not in _ROUNDING:
            raise RelaxError(f"expected a known nearest_mode, got '{self._nearest}'")
        rounding, shift = _ROUNDING[self._nearest]
        return self._clipped((self._places + shift).mapped(rounding))

    def _clipped(self, places: _Numbers) -> ir.Value:
        """Numbers of old places, the first or last one where there is none."""
        return cast(places.clipped(0, self._number(self._size) - 1).value, integer())

    def taps(self, mode: str) -> list[tuple[ir.Value, ir.Value]]:
        """Old places, and their weights."""
        floor = self._places.mapped(ops.Floor)
        ratio, narrow = self._places - floor, self._narrow()
        begin = math.floor(-(1 if mode == "linear" else 2) / narrow) + 1
        places, weights = list[_Numbers](), list[_Numbers]()
        for offset in range(begin, 2 - begin):
            distance = ((ratio - offset) * narrow).mapped(ops.Abs)
            places.append(floor + offset)
            weights.append((self._number(1) - distance).clipped(0, 1) if mode == "linear" else self._cubic(distance))
        excludes = bool(self.node.attribute("exclude_outside", 0))
        if excludes:
            weights = [self._inside(p, w) for p, w in zip(places, weights, strict=True)]
        if excludes or narrow != 1.0:
            total = weights[0]
            for weight in weights[1:]:
                total = total + weight
            weights = [w / total for w in weights]
        return [(self._clipped(p), w.value) for p, w in zip(places, weights, strict=True)]

    def _narrow(self) -> float:
        if not self.node.attribute("antialias", 0):
            return 1.0
        if self.scale is None:
            raise RelaxError(f"expected scales where antialias is set and a size is {self._size}")
        return min(float(self.scale), 1.0)

    def _inside(self, places: _Numbers, weights: _Numbers) -> _Numbers:
        inside = weights.where(places.compare(ops.GreaterEqual, 0), 0)
        return inside.where(places.compare(ops.Less, self._number(self._size)), 0)

    def _cubic(self, d: _Numbers) -> _Numbers:
        """Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981."""
        a = self.node.attribute("cubic_coeff_a", -0.75)
        inner = (d * (a + 2) - (a + 3)) * d * d + 1
        outer = (((d - 5) * d + 8) * d - 4) * a
        far = outer.where(d.compare(ops.Less, 2), 0)
        return _Numbers(emit(ops.Where, d.compare(ops.LessEqual, 1).value, inner.value, far.value))


def along_axis(elements: ir.Value, axis: int, rank: int) -> ir.Value:
    """An element for each place of an axis, under the shape that broadcasts to a tensor of that rank."""
    (count,) = info_of(elements).shape
    return reshape(elements, [count if a == axis else 1 for a in range(rank)])
