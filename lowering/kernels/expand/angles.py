"""Sines, tangents and their inverses of f32 as polynomials on vectors; each takes the operands and builds the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialect.bindings import ir
from .float_math import FloatMath

__all__ = ["acos", "asin", "atan", "atan2", "cos", "sin", "tan"]

# pi / 2 in parts, so that an integer times the first ones is exact (Cody and Waite), and the argument up to which they suffice;
# larger ones go to libm. Products that are rounded before they are subtracted need parts of few bits: 11, for integers of 13.
_HALF_PI, _LIMIT = (1.57079601, 3.13916473e-07, 5.39030253e-15), 1e5
_HALF_PI_WITHOUT_FMA = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)
_LIMIT_WITHOUT_FMA = 1e4
# pi / 2 rounded, and what that left out.
_HALF_PI_HIGH, _HALF_PI_LOW = 1.57079637, -4.37113883e-8

# Minimax polynomials, highest power first. sin, cos: N. Juffa. The others are fitted here, relative to their function: tan up
# to pi / 4 within 1.5e-9, asin up to 0.5 within 3e-10, atan up to 1 within 4e-10.
_SIN = (2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1, 1.0)
_COS = (2.44331571e-5, -1.38873162e-3, 4.16666456e-2, -0.5, 1.0)
_TAN = (
    0.004413777031004429, 9.746423529577442e-06, 0.010902167297899723, 0.02125505544245243, 0.0540655218064785,
    0.13332609832286835, 0.3333335220813751,
)  # fmt: skip
_ASIN = (
    0.037565186619758606, 0.014402614906430244, 0.03181760758161545, 0.04451572149991989, 0.07500510662794113,
    0.16666659712791443,
)  # fmt: skip
_ATAN = (
    0.0011348783737048507, -0.007422637660056353, 0.022760340943932533, -0.044946447014808655, 0.0675957202911377,
    -0.08818848431110382, 0.11060244590044022, -0.14280131459236145, 0.1999969333410263, -0.333333283662796,
)  # fmt: skip


def sin(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Sine."""
    return _reduced(f, operands[0], lambda r, n: _quadrants(f, r, n, 0))


def cos(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Cosine."""
    return _reduced(f, operands[0], lambda r, n: _quadrants(f, r, n, 1))


def tan(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Tangent: a polynomial, or minus its reciprocal."""
    return _reduced(f, operands[0], lambda r, n: _slope(f, r, n))


def _reduced(f: FloatMath, x: ir.Value, function: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """A function of ``x - n * pi / 2`` and of n, when all lanes are small enough for that, else libm."""
    em, has_fma = f.emitter, f.target.has_fma
    fits = f.compare("ole", f.absolute(x), f.number(_LIMIT if has_fma else _LIMIT_WITHOUT_FMA))
    if isinstance(f.kind, ir.VectorType):
        fits = em.reduce("and", fits)

    def polynomial() -> list[ir.Value]:
        n, integer = f.rounded(x, 0.636619772367581343)
        r = x
        for part in _HALF_PI if has_fma else _HALF_PI_WITHOUT_FMA:
            r = f.fma(n, f.number(-part), r)
        return [function(r, integer)]

    return em.when(fits, polynomial, lambda: [em.clone(f.operation, [x], f.kind)], [f.kind])[0]


def _quadrants(f: FloatMath, r: ir.Value, integer: ir.Value, quadrant: int) -> ir.Value:
    s = f.mul(r, r)
    sine = f.mul(f.polynomial(s, _SIN), r)
    cosine = f.polynomial(s, _COS)
    turn = f.op("arith.addi", integer, f.count(quadrant))
    y = f.select(_is_odd(f, turn), cosine, sine)
    sign = f.op("arith.shli", f.op("arith.andi", turn, f.count(2)), f.count(30))
    return f.from_bits(f.op("arith.xori", f.bits(y), sign))


def _slope(f: FloatMath, r: ir.Value, integer: ir.Value) -> ir.Value:
    s = f.mul(r, r)
    y = f.fma(f.mul(r, s), f.polynomial(s, _TAN), r)
    return f.select(_is_odd(f, integer), f.div(f.number(-1.0), y), y)


def _is_odd(f: FloatMath, integer: ir.Value) -> ir.Value:
    return f.emitter.op("arith.trunci", [integer], f.truth)


def asin(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Arc sine; NaN beyond 1."""
    near, y = _arc(f, operands[0])
    far = f.add(f.fma(y, f.number(-2.0), f.number(_HALF_PI_HIGH)), f.number(_HALF_PI_LOW))
    return f.with_sign(f.select(near, y, far), operands[0])


def acos(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Arc cosine; NaN beyond 1."""
    (x,) = operands
    near, y = _arc(f, x)
    low = f.number(_HALF_PI_LOW)
    middle = f.add(f.sub(f.number(_HALF_PI_HIGH), f.with_sign(y, x)), low)
    twice = f.add(y, y)
    left = f.add(f.sub(f.number(2 * _HALF_PI_HIGH), twice), f.add(low, low))
    return f.select(near, middle, f.select(f.compare("olt", x, f.number(0.0)), left, twice))


def _arc(f: FloatMath, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether ``a = |x|`` is at most 1/2, and asin of a, or else of ``sqrt((1 - a) / 2)``: NaN where x is beyond 1."""
    a = f.absolute(x)
    near = f.compare("ole", a, f.number(0.5))
    rest = f.fma(a, f.number(-0.5), f.number(0.5))
    s = f.select(near, f.mul(a, a), rest)
    z = f.select(near, a, f.sqrt(rest))
    return near, f.fma(f.mul(z, s), f.polynomial(s, _ASIN), z)


def atan(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """That of ``1 / x`` is the rest to ``pi / 2``."""
    a, one = f.absolute(operands[0]), f.number(1.0)
    far = f.compare("ogt", a, one)
    return f.with_sign(_slope_angle(f, f.select(far, f.div(one, a), a), far), operands[0])


def atan2(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """The angle of the smaller of both over the larger one, from the nearest axis on.

    Of equal ones, which may be 0 or infinite, it is known what that is.
    """
    y, x = operands
    up, across = f.absolute(y), f.absolute(x)
    far = f.compare("ogt", up, across)
    larger, smaller = f.select(far, up, across), f.select(far, across, up)
    none = f.compare("oeq", larger, f.number(0.0))
    same = f.select(none, f.number(0.0), f.number(1.0))
    slope = f.select(f.compare("oeq", larger, smaller), same, f.div(smaller, larger))
    angle = _slope_angle(f, slope, far)
    behind = f.add(f.sub(f.number(2 * _HALF_PI_HIGH), angle), f.number(2 * _HALF_PI_LOW))
    is_behind = f.compare("olt", f.with_sign(f.number(1.0), x), f.number(0.0))
    return f.with_sign(f.select(is_behind, behind, angle), y)


def _slope_angle(f: FloatMath, z: ir.Value, far: ir.Value) -> ir.Value:
    """The arc tangent of a slope up to 1, or the rest to ``pi / 2``."""
    s = f.mul(z, z)
    y = f.fma(f.mul(z, s), f.polynomial(s, _ATAN), z)
    rest = f.add(f.sub(f.number(_HALF_PI_HIGH), y), f.number(_HALF_PI_LOW))
    return f.select(far, rest, y)
