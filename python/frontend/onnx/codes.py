"""Element types of ONNX that relax has not: floats of four bits, FNUZ floats of eight, scales, and integers of two bits.

A model takes and gives them as their codes in bytes: of integers of two bits the numbers in ``i8`` and ``ui8``, of floats the
bits in ``ui8``. Casts, and operators that quantize, know what they stand for; others refuse them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...weights.onnx_codes import coded_dtype
from ..emit import bitcast, cast, emit, full, info_of, integer, table

__all__ = ["FLOATS", "code_dtype", "decoded", "encoded", "limited"]


@dataclass(frozen=True)
class _Float:
    """A float of few bits.

    Attributes:
        mantissa, bias: of its numbers.
        largest: the code of the largest number.
        sign: the bit of what is negative.
        nan: the code of what is no number, or of what stands for it.
        has_negative_zero: whether a number that is rounded to zero keeps its sign.
    """

    mantissa: int
    bias: int
    largest: int
    sign: int
    nan: int
    has_negative_zero: bool


#: Source: https://onnx.ai/onnx/technical/float8.html, float4.html. Floats of four bits have nothing that is no number: ONNX's
#: own conversion, ml_dtypes, makes it negative zero.
FLOATS: dict[int, _Float] = {
    TensorProto.FLOAT8E4M3FNUZ: _Float(3, 8, 0x7F, 0x80, 0x80, has_negative_zero=False),
    TensorProto.FLOAT8E5M2FNUZ: _Float(2, 16, 0x7F, 0x80, 0x80, has_negative_zero=False),
    TensorProto.FLOAT4E2M1: _Float(1, 1, 0x7, 0x8, 0x8, has_negative_zero=True),
}
_INTEGERS: dict[int, tuple[int, int]] = {TensorProto.INT2: (-2, 1), TensorProto.UINT2: (0, 3)}
_SCALE = TensorProto.FLOAT8E8M0


def code_dtype(element: int) -> ir.Type:
    """The dtype of its codes."""
    return integer(8) if element == TensorProto.INT2 else ir.IntegerType.get_unsigned(8)


def decoded(codes: ir.Value, element: int, dtype: ir.Type) -> ir.Value:
    """What codes stand for."""
    if element in _INTEGERS:
        return cast(codes, dtype)
    every = np.arange(16 if element == TensorProto.FLOAT4E2M1 else 256, dtype=np.uint8)
    numbers = every.view(coded_dtype(element)).astype(np.float32)
    return cast(emit(ops.Take, table(numbers, ir.F32Type.get()), cast(codes, integer()), axis=0), dtype)


def encoded(x: ir.Value, element: int, saturate: bool = True, rounding: str = "up") -> ir.Value:
    """The codes of the nearest numbers, halves to even.

    Args:
        saturate: whether what is too large becomes the largest number, and not what is no number; of four bits it always does.
        rounding: of scales, ``up``, ``down`` or ``nearest``.
    """
    if element in _INTEGERS:
        return _wrapped(x, element)
    # Of f64 the bits of f32 are not enough: two roundings are not one.
    x = x if isinstance(info_of(x).dtype, ir.F64Type) else cast(x, ir.F32Type.get())
    return _exponents(x, saturate, rounding) if element == _SCALE else _rounded(x, FLOATS[element], saturate)


def limited(x: ir.Value, element: int) -> ir.Value:
    """Integers in the range of one of two bits."""
    low, high = _INTEGERS[element]
    return emit(ops.Clip, x, min=float(low), max=float(high))


def _wrapped(x: ir.Value, element: int) -> ir.Value:
    """Integers of two bits have the last two bits of what they are made of."""
    low, _ = _INTEGERS[element]
    wide = emit(ops.Subtract, cast(x, integer()), full(low, integer()))
    wide = emit(ops.Add, emit(ops.Mod, wide, full(4, integer())), full(low, integer()))
    return cast(wide, code_dtype(element))


def _rounded(x: ir.Value, form: _Float, saturate: bool) -> ir.Value:
    """A number is so many steps of the last place that its exponent has; steps and exponent side by side are the code."""
    bits, places, bias, whole = _bits(x)
    absolute = emit(ops.BitwiseAnd, bits, full((1 << places.width) - 1, whole))
    exponent = emit(ops.Subtract, emit(ops.RightShift, absolute, full(places.mantissa, whole)), full(bias, whole))
    exponent = emit(ops.Maximum, exponent, full(1 - form.bias, whole))
    step = emit(ops.LeftShift, emit(ops.Subtract, full(form.mantissa + bias, whole), exponent), full(places.mantissa, whole))
    steps = emit(ops.Round, emit(ops.Multiply, emit(ops.Abs, x), bitcast(step, info_of(x).dtype)))
    base = emit(ops.LeftShift, emit(ops.Add, exponent, full(form.bias - 1, whole)), full(form.mantissa, whole))
    code = emit(ops.Add, cast(steps, whole), base)
    beyond = form.largest if saturate or form.has_negative_zero else form.nan
    too_large = emit(ops.GreaterEqual, emit(ops.Abs, x), full(_edge(form), info_of(x).dtype))
    code = emit(ops.Where, too_large, full(beyond, whole), code)
    is_signed = emit(ops.Less, bits, full(0, whole))
    if not form.has_negative_zero:
        is_signed = emit(ops.LogicalAnd, is_signed, emit(ops.NotEqual, code, full(0, whole)))
    code = emit(ops.Where, is_signed, emit(ops.BitwiseOr, code, full(form.sign, whole)), code)
    code = emit(ops.Where, emit(ops.IsNan, x), full(form.nan, whole), code)
    return cast(code, ir.IntegerType.get_unsigned(8))


@dataclass(frozen=True)
class _Places:
    """Bits of a float but for the sign, and those of its mantissa."""

    width: int
    mantissa: int


def _bits(x: ir.Value) -> tuple[ir.Value, _Places, int, ir.Type]:
    """The bits of floats as integers, where they are, the bias of exponents, and the integers' dtype."""
    if isinstance(info_of(x).dtype, ir.F64Type):
        return bitcast(x, integer()), _Places(63, 52), 1023, integer()
    return bitcast(x, integer(32)), _Places(31, 23), 127, integer(32)


def _edge(form: _Float) -> float:
    """In the middle between the largest number and what would be next, which has the even code."""
    exponent, steps = divmod(form.largest, 1 << form.mantissa)
    return (steps + (1 << form.mantissa) + 0.5) * 2.0 ** (exponent - form.bias - form.mantissa)


def _exponents(x: ir.Value, saturate: bool, rounding: str) -> ir.Value:
    """A scale is the exponent alone; what is no number, or infinite, has all bits."""
    if rounding not in ("up", "down", "nearest"):
        raise RelaxError(f"expected round_mode to be up, down or nearest, got '{rounding}'")
    whole = integer(32)
    bits = bitcast(cast(x, ir.F32Type.get()), whole)
    exponent = emit(ops.BitwiseAnd, emit(ops.RightShift, bits, full(23, whole)), full(0xFF, whole))
    fraction = emit(ops.BitwiseAnd, bits, full(0x7FFFFF, whole))
    grows = emit(ops.Greater, fraction, full(0, whole))
    if rounding == "nearest":  # the half goes up, but between 0 and the smallest number
        grows = emit(ops.GreaterEqual, fraction, full(0x400000, whole))
        more = emit(ops.Greater, fraction, full(0x400000, whole))
        grows = emit(ops.LogicalAnd, grows, emit(ops.LogicalOr, more, emit(ops.Greater, exponent, full(0, whole))))
    if rounding == "down":
        grows = emit(ops.LogicalAnd, grows, full(False, integer(1)))
    last = 0xFE if saturate else 0xFF
    grows = emit(ops.LogicalAnd, grows, emit(ops.Less, exponent, full(last, whole)))
    return cast(emit(ops.Add, exponent, cast(grows, whole)), ir.IntegerType.get_unsigned(8))
