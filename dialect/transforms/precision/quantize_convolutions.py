"""Convolves integers where a convolution reads dequantized ones: exact sums of these, and a scale per channel for the sums.

As PyTorch and ONNX Runtime quantize models. Before::

    %x = "relax.dequantize"(%q, %s, 3) : (tensor<1x8x9x9xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x8x9x9xf32>
    %w = "relax.dequantize"(%v, %t, 0) {axis = 0 : i64} : (tensor<16x8x3x3xi8>, tensor<16xf32>, tensor<i8>) -> ...
    %y = "relax.conv2d"(%x, %w) {padding = array<i64: 1, 1, 1, 1>}

after::

    %0 = "relax.quantized_conv2d"(%q, %v, 3) {padding = array<i64: 1, 1, 1, 1>}     // in i32
    %1 = ...                                       // -3 times the sum of each filter: tensor<16x1x1xi32>
    %2 = ...                                       // %s * %t: tensor<16x1x1xf32>
    %y = "relax.multiply"("relax.astype"("relax.add"(%0, %1)) {dtype = f32}, %2)

The sum is exact, up to the rounding of an i32 to f32, and then rounded by one product; in f32 each product and sum was. What
quantizes the result, and what is computed in between, stays as it is: kernels take it in behind the sum. Filters' zero points
must be known to be 0, or 128 of unsigned ones, whose highest bit is turned. Where the target's instruction takes the image with
another sign, that is turned, too, in what quantizes it.

What comes from weights alone lifting moves to preparation. Convolutions of other operands stay, as do all on targets whose
kernels read weights as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from ...analysis.integer_bits import number_of
from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import func, ir
from ...functions import functions, name_of, num_input
from ...inference import is_float, normalize_axis
from ...op import attrs_of
from ...ops import Add, AsType, Conv2D, Dequantize, Full, Multiply, Negative, QuantizedConv2D, Sum
from ...ops.quantize import LONGEST_GROUP
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...reports import report
from ...reports.convolutions import KeptConvolution, QuantizedConvolutions
from ...struct_info import TensorInfo
from ...weight_layouts import WeightLayouts
from ..emit import cast
from ..packing.block_movement import reshaped
from .turned import turned

__all__ = ["QuantizeConvolutions"]

# How much larger unsigned bytes are than signed ones with the same bits below the highest.
_HALF = 128


@dataclass(frozen=True)
class QuantizeConvolutions(Pass):
    """Rewrites convolutions of dequantized operands, in functions that have ``relax.num_input``."""

    name: ClassVar[str] = "relax-quantize-convolutions"
    rounding: ClassVar[float] = 1e-5  # sums are exact and scaled once, where each product and sum was rounded to f32

    def run(self, op: ir.Operation) -> None:
        layouts, rules = WeightLayouts.of(op), FlowRules.of(op)
        for function in functions(op) if layouts.panels else ():
            if num_input(function) is not None:
                _Function(function, layouts, rules.flow(function)).rewrite()


@dataclass(frozen=True)
class _Image:
    """Integers, the one that stands for 0, and the scale of all of them."""

    x: ir.Value
    zero: ir.Value
    scale: ir.Value


@dataclass
class _Function:
    """One function; ``images`` are those with another sign than they had, by what they were."""

    function: func.FuncOp
    layouts: WeightLayouts
    flow: WeightFlow
    integer: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    kept: list[KeptConvolution] = field(default_factory=list[KeptConvolution])
    images: dict[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])

    def rewrite(self) -> None:
        walk(self.function, self.patterns())
        if self.integer or self.kept:
            report.add(QuantizedConvolutions(name_of(self.function), tuple(self.integer), tuple(self.kept)))

    def patterns(self) -> Patterns:
        return [(Conv2D, self._convolve_integers)]

    def _convolve_integers(self, op: Conv2D, rewriter: Rewriter) -> bool:
        image, filters = op.x.owner, op.weight.owner
        if not isinstance(image, Dequantize) or not isinstance(filters, Dequantize):
            return False
        reason, sources = self._refusal(op, image, filters), self.flow.sources(op.weight)
        if reason is not None:
            self.kept.append(KeptConvolution(sources, reason))
            return False
        self.integer.append(sources)
        rewriter.discard(image, filters)
        with rewriter.before(op):
            return rewriter.replace(op, self._product(op, self._image(image), filters))

    def _refusal(self, op: Conv2D, image: Dequantize, filters: Dequantize) -> str | None:
        """Why a convolution stays as it is."""
        x, weight, result = (TensorInfo.of(v) for v in (image.x, filters.x, op.result))
        if str(result.dtype) != "f32" or any(str(TensorInfo.of(v.result).dtype) != "f32" for v in (image, filters)):
            return f"it is computed in {result.dtype}"
        if any(str(info.dtype) not in ("i8", "ui8") for info in (x, weight)):
            return f"its operands are {x.dtype} and {weight.dtype}"
        if not self.flow.once_from_weights(filters.x):
            return "the filters are computed when the model runs"
        if TensorInfo.of(image.scale).rank or TensorInfo.of(image.zero_point).rank:
            return "the image has several scales or zero points"
        if TensorInfo.of(image.zero_point).dtype != x.dtype:
            return f"the image's zero point is {TensorInfo.of(image.zero_point)}"
        if number_of_integer(filters.zero_point) != (_HALF if _is_unsigned(filters.x) else 0):
            return "zero points of its filters are not known to be in the middle"
        outputs = op.kernel_layout.index("O")
        if TensorInfo.of(filters.scale).rank > 1 or not (
            TensorInfo.of(filters.scale).rank == 0 or normalize_axis(filters.axis, weight.rank) == outputs
        ):
            return "its filters have several scales each"
        if None in weight.shape or not prod(d for d in weight.shape if isinstance(d, int)) > 0:
            return f"its filters are {weight}"
        if prod(_sizes(filters.x)) // _sizes(filters.x)[outputs] > LONGEST_GROUP:
            return "sums of its products may not fit 32 bits"
        return None

    def _image(self, image: Dequantize) -> _Image:
        """The integers with the sign that the target's instruction takes; of pairs it takes any."""
        unsigned, rows = _is_unsigned(image.x), self.layouts.int8_rows
        if rows != 4 or unsigned == self.layouts.int8_unsigned:
            return _Image(image.x, image.zero_point, image.scale)
        if image.x not in self.images:
            with ir.InsertionPoint(image), image.location:
                self.images[image.x] = turned(image.x)
        return _Image(self.images[image.x], _turned_zero(image.zero_point), image.scale)

    def _product(self, op: Conv2D, image: _Image, filters: Dequantize) -> ir.Operation:
        weight = turned(filters.x) if _is_unsigned(filters.x) else filters.x
        attrs = {key: value for key, value in attrs_of(op).items() if key in op.attributes and key in QuantizedConv2D.attrs}
        sums = QuantizedConv2D.create(image.x, weight, image.zero, **attrs).result
        shape = [-1 if letter == "C" else 1 for letter in op.data_layout[1:]]
        if number_of_integer(image.zero) != 0:
            sums = Add.create(sums, _per_channel(_offsets(op, weight, image.zero), shape)).result
        scale = Multiply.create(cast(filters.scale, ir.F32Type.get()), cast(image.scale, ir.F32Type.get())).result
        scale = _per_channel(scale, shape) if TensorInfo.of(scale).rank else scale
        return Multiply.create(AsType.create(sums, dtype=ir.F32Type.get()).result, scale)


def _offsets(op: Conv2D, weight: ir.Value, zero: ir.Value) -> ir.Value:
    """What a zero point of the image adds to the sums of each channel, negative."""
    i32 = ir.IntegerType.get_signless(32)
    axes = [i for i, letter in enumerate(op.kernel_layout) if letter != "O"]
    filters = Sum.create(AsType.create(weight, dtype=i32).result, axis=axes).result
    known = number_of_integer(zero)
    number = Negative.create(AsType.create(zero, dtype=i32).result).result if known is None else _number(-known, i32)
    return Multiply.create(filters, number).result


def _turned_zero(zero: ir.Value) -> ir.Value:
    known, dtype = number_of_integer(zero), TensorInfo.of(zero).dtype
    if known is None:
        return turned(zero)
    unsigned = ir.IntegerType(dtype).is_unsigned
    other = ir.IntegerType.get_signless(8) if unsigned else ir.IntegerType.get_unsigned(8)
    return _number(known - _HALF if unsigned else known + _HALF, other)


def _number(number: int, dtype: ir.Type) -> ir.Value:
    return Full.create(value=number, result_types=[ir.RankedTensorType.get([], dtype)]).result


def _per_channel(value: ir.Value, shape: list[int]) -> ir.Value:
    """A vector with an element per channel, as it is broadcast to an image."""
    size = _sizes(value)[0]
    return reshaped(value, [size if d == -1 else d for d in shape])


def number_of_integer(value: ir.Value) -> int | None:
    """The integer that all elements are; None where that is not known."""
    return None if is_float(TensorInfo.of(value).dtype) else number_of(value)


def _is_unsigned(value: ir.Value) -> bool:
    return ir.IntegerType(TensorInfo.of(value).dtype).is_unsigned


def _sizes(value: ir.Value) -> list[int]:
    return [d for d in TensorInfo.of(value).shape if isinstance(d, int)]
