"""Exponentials and logarithms of f64 as polynomials on vectors. Each function takes the operands and builds the result.

Source of the logarithm: https://www.netlib.org/fdlibm/e_log.c.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from ....dialect.bindings import ir
from .float_math import FloatMath

__all__ = ["double_exp", "double_log"]

_LOG2_E = 1.4426950408889634
# ln 2 in parts, so that an integer below 2**20 times the first one is exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Below the first exp is 0, above the second infinite.
_ENDS = -746.0, 710.0
# Adding it rounds a small float to an integer, which the low bits of the sum then are; and its bits.
_ROUND = 1.5 * 2.0**52
_FRACTION, _BIAS = 52, 1023
# Taylor's series of exp: what is left out is 4e-18 up to ln 2 / 2. Highest power first.
_EXP = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
_LOG = (
    1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
    2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01,
)  # fmt: skip
_SMALLEST, _TWO_TO_54 = 2.2250738585072014e-308, 2.0**54


def _bits_of(number: float) -> int:
    return struct.unpack("<q", struct.pack("<d", number))[0]


def double_exp(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``e ** x``, within one unit in the last place."""
    x = f.clamp(operands[0], *_ENDS)
    total = f.fma(x, f.number(_LOG2_E), f.number(_ROUND))
    n = f.sub(total, f.number(_ROUND))
    r = f.fma(n, f.number(-_LN2_LOW), f.fma(n, f.number(-_LN2_HIGH), x))
    whole = f.op("arith.subi", f.bits(total), f.count(_bits_of(_ROUND)))
    # Two factors, as their product may be subnormal, or infinite, where neither is. The first is of n / 2 rounded down; AVX2
    # has no shift that keeps signs.
    lifted = f.op("arith.addi", whole, f.count(2 * _BIAS))
    half = f.op("arith.shrui", lifted, f.count(1))
    first, second = (_power_of_two(f, v) for v in (half, f.op("arith.subi", lifted, half)))
    return f.mul(f.mul(f.polynomial(r, _EXP), first), second)


def _power_of_two(f: FloatMath, exponent: ir.Value) -> ir.Value:
    """``2 ** n`` of an i64 that is ``n + 1023``."""
    return f.from_bits(f.op("arith.shli", exponent, f.count(_FRACTION)))


def double_log(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Natural logarithm, within one unit in the last place: of ``2**e * (1 + r)`` by ``s = r / (2 + r)``, in odd powers."""
    (x,) = operands
    tiny = f.compare("olt", x, f.number(_SMALLEST))
    bits = f.bits(f.select(tiny, f.mul(x, f.number(_TWO_TO_54)), x))  # subnormal numbers get an exponent
    # The mantissa from sqrt(1/2) to sqrt(2); what is shifted is not negative.
    lifted = f.op("arith.addi", bits, f.count(_bits_of(1.0) - _bits_of(math.sqrt(0.5))))
    biased = f.op("arith.shrui", lifted, f.count(_FRACTION))
    exponent = f.op("arith.subi", biased, f.count(_BIAS))
    mantissa = f.from_bits(f.op("arith.subi", bits, f.op("arith.shli", exponent, f.count(_FRACTION))))
    e = f.sub(f.from_bits(f.op("arith.addi", exponent, f.count(_bits_of(_ROUND)))), f.number(_ROUND))
    e = f.select(tiny, f.sub(e, f.number(54.0)), e)
    r = f.sub(mantissa, f.number(1.0))
    s = f.div(r, f.add(r, f.number(2.0)))
    z = f.mul(s, s)
    square = f.mul(f.mul(r, r), f.number(0.5))
    rest = f.fma(s, f.add(square, f.mul(z, f.polynomial(z, _LOG))), f.mul(e, f.number(_LN2_LOW)))
    y = f.sub(f.mul(e, f.number(_LN2_HIGH)), f.sub(f.sub(square, rest), r))
    y = f.select(f.compare("olt", x, f.number(math.inf)), y, f.add(x, x))
    y = f.select(f.compare("oeq", x, f.number(0.0)), f.number(-math.inf), y)
    return f.select(f.compare("olt", x, f.number(0.0)), f.number(math.nan), y)
