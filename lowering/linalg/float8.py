"""Eight-bit floats as bits in an ``i8``: decoding to f32 and encoding from f32, by integer arithmetic.

f8E8M0FNU is an exponent alone, a power of two. Sources: OCP 8-bit Floating Point Specification, revision 1.0, and OCP
Microscaling Formats Specification, version 1.0; behaviour at the edges as ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from .scalar import Scalar, constant, emit, maximum, select

__all__ = ["decode", "encode"]


@dataclass(frozen=True)
class _Format:
    """Mantissa bits, exponent bias, the first magnitude that is no finite number, and what an overflow becomes."""

    mantissa: int
    bias: int
    special: int
    overflow: int
    nan: int


_FORMATS = {
    "f8E4M3FN": _Format(mantissa=3, bias=7, special=0x7F, overflow=0x7F, nan=0x7F),
    "f8E5M2": _Format(mantissa=2, bias=15, special=0x7C, overflow=0x7C, nan=0x7E),
}

_EXPONENT = "f8E8M0FNU"

#: The bits of the least power of two in f32, a subnormal number.
_LEAST = 1 << 22


def _format(dtype: ir.Type) -> _Format:
    found = _FORMATS.get(str(dtype))
    if found is None:
        raise RelaxError(f"expected one of the 8-bit floats {', '.join([*_FORMATS, _EXPONENT])}, got {dtype}")
    return found


def decode(bits: Scalar, dtype: ir.Type) -> Scalar:
    """The f32 that the bits of an 8-bit float mean."""
    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
    wide = Scalar(emit("arith.extui", i32, bits.value))
    if str(dtype) == _EXPONENT:
        return Scalar(emit("arith.bitcast", f32, _power_bits(wide).value))
    form = _format(dtype)
    magnitude = wide & 0x7F
    # The exponent's difference in bias is a factor, which treats subnormal numbers right too.
    small = Scalar(emit("arith.bitcast", f32, (magnitude << (23 - form.mantissa)).value))
    scaled = Scalar(emit("arith.bitcast", i32, (small * 2.0 ** (127 - form.bias)).value))
    special = (magnitude << (23 - form.mantissa)) | 0x7F800000
    value = select(magnitude.compare("ge", form.special), special, scaled)
    return Scalar(emit("arith.bitcast", f32, (value | ((wide & 0x80) << 24)).value))


def _power_bits(exponent: Scalar) -> Scalar:
    """Those of ``2 ** (exponent - 127)`` in f32; 0 is subnormal there, and 255 is NaN."""
    power = maximum(exponent << 23, _LEAST)
    return select(exponent.compare("eq", 0xFF), 0x7FC00000, power)


def encode(x: Scalar, dtype: ir.Type) -> ir.Value:
    """The bits of the nearest 8-bit float, halves to even; too large is NaN (f8E4M3FN) or infinite (f8E5M2).

    The nearest power of two, the greater of two, is NaN for 0 and what is negative.
    """
    f32, i32, i8 = ir.F32Type.get(), ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(8)
    bits = Scalar(emit("arith.bitcast", i32, x.value))
    if str(dtype) == _EXPONENT:
        return emit("arith.trunci", i8, _exponent(bits).value)
    form = _format(dtype)
    magnitude = bits & 0x7FFFFFFF
    drop = 23 - form.mantissa
    odd = Scalar((magnitude >> drop).value) & 1
    normal = ((magnitude + ((1 << (drop - 1)) - 1) + odd) >> drop) - ((127 - form.bias) << form.mantissa)
    # Below the least normal number: an addition rounds at the right bit, the sum's low bits are the result.
    unit = constant(f32, 2.0 ** (1 - form.bias - form.mantissa + 23))
    absolute = Scalar(emit("arith.bitcast", f32, magnitude.value))
    sum_bits = Scalar(emit("arith.bitcast", i32, (absolute + unit).value))
    subnormal = sum_bits - Scalar(emit("arith.bitcast", i32, unit.value))
    least = (127 - form.bias + 1) << 23
    result = select(magnitude.compare("lt", least), subnormal, normal)
    result = select(result.compare("ge", form.special), form.overflow, result)
    result = select(magnitude.compare("gt", 0x7F800000), form.nan, result)
    sign = Scalar(bits.value, unsigned=True) >> 24
    return emit("arith.trunci", i8, (result | (sign & 0x80)).value)


def _exponent(bits: Scalar) -> Scalar:
    """The exponent of the nearest power of two to an f32, 255 being NaN."""
    nearest = select(bits.compare("le", _LEAST), 0, (bits + _LEAST) >> 23)
    return select(bits.compare("le", 0) | bits.compare("ge", 0x7F800000), 0xFF, nearest)
