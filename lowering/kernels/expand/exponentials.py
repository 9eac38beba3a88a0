"""Exponentials and logarithms of f32 as polynomials on vectors. Each function takes the operands and builds the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialect.bindings import ir
from ...marks import NOT_POSITIVE, VANISHING
from .doubles import double_exp, double_log
from .float_math import FloatMath

__all__ = ["double_expm1", "double_log1p", "exp", "exp2", "expm1", "half_exp", "log", "log1p", "log2", "log10"]

_LOG2_E = 1.44269504088896341
# Below this exp is 0, above 89 it is infinite.
_EXP_LOW = -104.5
# Below this weights are 0: they are 2**-115 there, and products of them with what is not smaller than 2**-11 normal numbers.
_WEIGHT_LOW = -80.0
# Where exp of f64 is finite and more than 0, and its difference from 1 is not -1 for long.
_DOUBLE_ENDS = 700.0
# So many doublings keep the smallest exp of what is not positive a normal number.
_DECAY_BIAS = 24
# ln 2 in parts, so that a small integer times the first part is exact (Cody and Waite).
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4

# Minimax polynomials, highest power first. exp: fitted here, `1 + r + r * r * p(r)` is off by 3e-9; log: Cephes (Moshier).
_EXP = (1.3814540579915047e-3, 8.36874544620514e-3, 4.166838899254799e-2, 0.1666652113199234, 0.4999999403953552)
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


def _exp_rest(f: FloatMath, x: ir.Value, n: ir.Value) -> ir.Value:
    """``x - n * ln 2``."""
    return f.fma(n, f.number(-_LN2_LOW), f.fma(n, f.number(-_LN2_HIGH), x))


def _exp_scaled(f: FloatMath, r: ir.Value, n: ir.Value, bits: ir.Value) -> ir.Value:
    """``exp(r) * 2**n``, given an i32 of which the low bits are n with a bias."""
    p = f.polynomial(r, (*_EXP, 1.0, 1.0))
    if f.has_scalef:
        return f.scalef(p, n)
    s, t = f.powers_of_two(bits)
    return f.mul(f.mul(p, s), t)


def exp(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``e ** x``."""
    if VANISHING in f.operation.attributes:
        return _weight(f, operands[0])
    if NOT_POSITIVE in f.operation.attributes:
        return _decay(f, operands[0])
    x = f.clamp(operands[0], _EXP_LOW, 89.0)
    n, bits = f.biased(x, _LOG2_E, 254)
    return _exp_scaled(f, _exp_rest(f, x, n), n, bits)


def _decay(f: FloatMath, x: ir.Value) -> ir.Value:
    """``e ** x`` for x <= 0.

    ``scalef`` is not to round what is 0 to 0, for which Intel's processors take as long as for subnormal numbers: a softmax of
    2048 x 512 elements, half of them masked, takes 0.66 instead of 2.9 ms, others as long as before (Cascade Lake).
    """
    low = f.number(_EXP_LOW)
    is_gone = f.compare("ogt", low, x)
    x = f.select(is_gone, low, x)
    n, bits = f.biased(x, _LOG2_E, 127 + _DECAY_BIAS)
    p = f.polynomial(_exp_rest(f, x, n), (*_EXP, 1.0, 1.0))
    if f.has_scalef:
        return f.select(is_gone, f.number(0.0), f.scalef(p, n))
    # One factor, 2**24 too large, is neither infinite nor subnormal; it is 0 of what is gone.
    return f.mul(f.mul(p, f.power_of_two(bits)), f.number(2.0**-_DECAY_BIAS))


def _weight(f: FloatMath, x: ir.Value) -> ir.Value:
    """``e ** x`` for x <= 0, without a subnormal number, or 0: what is small never is computed."""
    low = f.number(_WEIGHT_LOW)
    is_gone = f.compare("ogt", low, x)
    x = f.select(is_gone, low, x)
    n, bits = f.biased(x, _LOG2_E, 127)
    p = f.polynomial(_exp_rest(f, x, n), (*_EXP, 1.0, 1.0))
    return f.select(is_gone, f.number(0.0), f.scalef(p, n) if f.has_scalef else f.mul(p, f.power_of_two(bits)))


def half_exp(f: FloatMath, x: ir.Value) -> ir.Value:
    """``exp(x) / 2`` for x >= 0: it overflows only where the half does."""
    limit = f.number(90.0)
    x = f.select(f.compare("olt", limit, x), limit, x)
    n, bits = f.biased(x, _LOG2_E, 253)
    p = f.polynomial(_exp_rest(f, x, n), (*_EXP, 1.0, 1.0))
    if f.has_scalef:
        return f.scalef(p, f.sub(n, f.number(1.0)))
    s, t = f.powers_of_two(bits)
    return f.mul(f.mul(p, s), t)


def exp2(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """The integer part is exact, so only the fraction meets a rounded ln 2."""
    x = f.clamp(operands[0], -151.0, 129.0)
    n, bits = f.biased(x, 1.0, 254)
    return _exp_scaled(f, f.mul(f.sub(x, n), f.number(0.693147180559945309)), n, bits)


def expm1(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``2**n * q + (2**n - 1)``: exact cancellation for small x; for large x that would overflow, exp is the same."""
    x = f.clamp(operands[0], _EXP_LOW, 89.0)
    n, bits = f.biased(x, _LOG2_E, 254)
    r = _exp_rest(f, x, n)
    q = f.fma(f.polynomial(r, _EXP), f.mul(r, r), r)
    s, t = f.powers_of_two(bits)
    scale = f.mul(s, t)
    small = f.fma(q, scale, f.sub(scale, f.number(1.0)))
    y = f.select(f.compare("ogt", n, f.number(30.0)), f.mul(f.fma(q, s, s), t), small)
    return f.with_sign(y, operands[0])


def _log_parts(f: FloatMath, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """e, r, y with ``x == 2**e * (1 + r)`` and ``log(1 + r) == r + y``; meaningless unless x is positive and finite."""
    tiny = f.compare("olt", x, f.number(1.1754943508222875e-38))
    scaled = f.select(tiny, f.mul(x, f.number(8388608.0)), x)  # subnormal numbers get an exponent
    bits = f.bits(scaled)
    # The mantissa from sqrt(1/2) to sqrt(2): 0x3F3504F3 is sqrt(1/2).
    exponent = f.op("arith.shrsi", f.op("arith.subi", bits, f.count(0x3F3504F3)), f.count(23))
    mantissa = f.from_bits(f.op("arith.subi", bits, f.op("arith.shli", exponent, f.count(23))))
    r = f.sub(mantissa, f.number(1.0))
    e = f.emitter.op("arith.sitofp", [exponent], f.kind)
    e = f.select(tiny, f.sub(e, f.number(23.0)), e)
    z = f.mul(r, r)
    y = f.fma(z, f.number(-0.5), f.mul(f.polynomial(r, _LOG), f.mul(r, z)))
    return e, r, y


def _log_edges(f: FloatMath, x: ir.Value, y: ir.Value) -> ir.Value:
    """y, but infinity and NaN as they are, 0 to minus infinity, less to NaN."""
    y = f.select(f.compare("olt", x, f.number(float("inf"))), y, f.add(x, x))
    y = f.select(f.compare("oeq", x, f.number(0.0)), f.number(float("-inf")), y)
    return f.select(f.compare("olt", x, f.number(0.0)), f.number(float("nan")), y)


def log(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Natural logarithm."""
    e, r, y = _log_parts(f, operands[0])
    y = f.fma(e, f.number(_LN2_LOW), y)
    return _log_edges(f, operands[0], f.fma(e, f.number(_LN2_HIGH), f.add(r, y)))


def log2(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``e + log(1 + r) * log2(e)``: exact for powers of two."""
    e, r, y = _log_parts(f, operands[0])
    return _log_edges(f, operands[0], f.fma(f.add(r, y), f.number(_LOG2_E), e))


def log10(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``log(x) * log10(e)``."""
    return f.mul(log(f, operands), f.number(0.434294481903251828))


def double_expm1(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Of f64, by its ``exp`` and ``log``: ``(u - 1) * x / log(u)`` with ``u = exp(x)`` rounded, whose rounding cancels (Kahan).

    MLIR has no better than ``exp(x) - 1``.
    """
    (x,) = operands
    u, one = double_exp(f, [x]), f.number(1.0)
    less = f.sub(u, one)
    y = f.mul(less, f.div(x, double_log(f, [u])))
    # The quotient is 0 / 0 near 0, and infinite or NaN beyond both ends.
    y = f.select(f.compare("olt", f.absolute(x), f.number(_DOUBLE_ENDS)), y, less)
    return f.select(f.compare("oeq", u, one), x, y)


def double_log1p(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """Of f64, by its ``log``. MLIR has no better than ``log(1 + x)``."""
    return _compensated(f, operands[0], lambda u: double_log(f, [u]))


def log1p(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``log(1 + x)`` by :func:`log`."""
    return _compensated(f, operands[0], lambda u: log(f, [u]))


def _compensated(f: FloatMath, x: ir.Value, logarithm: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """``log(u) * x / (u - 1)`` with ``u = 1 + x`` rounded: the rounding of u cancels (Kahan)."""
    one = f.number(1.0)
    u = f.add(x, one)
    y = f.mul(logarithm(u), f.div(x, f.sub(u, one)))
    y = f.select(f.compare("olt", u, f.number(float("inf"))), y, u)
    return f.select(f.compare("oeq", u, one), x, y)
