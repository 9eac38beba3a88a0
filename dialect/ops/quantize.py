"""Affine quantization, per tensor or per channel: ``real = (stored - zero_point) * scale``."""

from __future__ import annotations

from .. import attributes
from ..errors import RelaxError
from ..inference import normalize_axis, require_float, require_integer, require_number, shape_text
from ..op import Attrs, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo
from ..symbolic import same

__all__ = ["Dequantize", "Quantize"]


def _check_parameters(x: TensorInfo, scale: TensorInfo, zero_point: TensorInfo, axis: int) -> None:
    require_float(scale, "scale")
    require_integer(zero_point, "zero point")
    require_number(zero_point, "zero point")
    channels = [x.shape[normalize_axis(axis, x.rank)]] if x.rank else []
    for info, what in ((scale, "scale"), (zero_point, "zero point")):
        if info.rank and (info.rank > len(channels) or not same(info.shape[0], channels[0])):
            raise RelaxError(f"expected a {what} of shape [] or {shape_text(channels)}, got {shape_text(info.shape)}")


class Quantize(Op, name="quantize"):
    """``clip(round(x / scale) + zero_point)`` to the range of ``dtype``; halves round to even.

    Scale and zero point are scalars, or one per channel of ``axis``. Computed in f32, in f64 when an operand is f64; a NaN has
    no defined result.
    """

    x: Operand[Tensor]
    scale: Operand[Tensor]
    zero_point: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1), "dtype": attributes.dtype()}

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, scale, zero_point = operands
        require_float(x)
        _check_parameters(x, scale, zero_point, attrs["axis"])
        result = x.with_(dtype=attrs["dtype"])
        require_integer(result, "dtype")
        require_number(result, "dtype")
        return result


class Dequantize(Op, name="dequantize"):
    """``(x - zero_point) * scale`` in the scale's dtype. Scale and zero point are scalars, or one per channel of ``axis``.

    The difference is exact, the product is in f32 (f64 for an f64 scale) and rounded once.
    """

    x: Operand[Tensor]
    scale: Operand[Tensor]
    zero_point: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1)}

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, scale, zero_point = operands
        require_integer(x)
        require_number(x)
        _check_parameters(x, scale, zero_point, attrs["axis"])
        return x.with_(dtype=scale.dtype)
