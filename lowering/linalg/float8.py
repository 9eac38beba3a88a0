"""Eight-bit floats as bits in an ``i8``: decoding to f32 and encoding from f32, by integer arithmetic.

Source: OCP 8-bit Floating Point Specification, revision 1.0; behaviour at the edges as ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from .scalar import Scalar, constant, emit, select

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


def _format(dtype: ir.Type) -> _Format:
    found = _FORMATS.get(str(dtype))
    if found is None:
        raise RelaxError(f"expected one of the 8-bit floats {', '.join(_FORMATS)}, got {dtype}")
    return found


def decode(bits: Scalar, dtype: ir.Type) -> Scalar:
    """The f32 that the bits of an 8-bit float mean."""
    form = _format(dtype)
    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
    wide = Scalar(emit("arith.extui", i32, bits.value))
    magnitude = wide & 0x7F
    # The exponent's difference in bias is a factor, which treats subnormal numbers right too.
    small = Scalar(emit("arith.bitcast", f32, (magnitude << (23 - form.mantissa)).value))
    scaled = Scalar(emit("arith.bitcast", i32, (small * 2.0 ** (127 - form.bias)).value))
    special = (magnitude << (23 - form.mantissa)) | 0x7F800000
    value = select(magnitude.compare("ge", form.special), special, scaled)
    return Scalar(emit("arith.bitcast", f32, (value | ((wide & 0x80) << 24)).value))


def encode(x: Scalar, dtype: ir.Type) -> ir.Value:
    """The bits of the nearest 8-bit float, halves to even; too large is NaN (f8E4M3FN) or infinite (f8E5M2)."""
    form = _format(dtype)
    f32, i32, i8 = ir.F32Type.get(), ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(8)
    bits = Scalar(emit("arith.bitcast", i32, x.value))
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
