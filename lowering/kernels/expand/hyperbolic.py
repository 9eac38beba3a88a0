"""Hyperbolic functions of f32 and their inverses on vectors. Each function takes the operands and builds the result.

Near 0 they are ``x + x**3 * p(x**2)``, where nothing cancels; the sign is put on last, and with it that of a zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from .exponentials import half_exp, log
from .float_math import FloatMath

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

_LN2 = 0.693147180559945309
# From here on x * x + 1 and x * x - 1 are x * x in f32, whose root is x.
_FAR = 4096.0

# Minimax polynomials, highest power first. tanh: Eigen, both times 256 so that no product is subnormal unless x is. The others
# are fitted here, relative to their function: sinh up to 1 within 6e-11, asinh up to 0.75 and acosh up to 1.5 within 1.2e-9,
# atanh up to 0.5 within 1.5e-9.
_TANH_TOP = (
    -7.06756730220429e-14, 5.12048103635141e-11, -2.20279590966716e-08, 1.31130805513501e-05, 3.80344923438026e-03,
    1.63139053792112e-01, 1.25274228708297e+00,
)  # fmt: skip
_TANH_BOTTOM = (3.06754149034757e-04, 3.03448846557834e-02, 5.80719265904384e-01, 1.25274244749923e00)
_TANH_LIMIT = 7.90531110763549805
_SINH = (2.817439735736116e-06, 1.983606634894386e-04, 8.333350531756878e-03, 1.666666716337204e-01)
_ASINH = (
    -0.002990826964378357, 0.0104684354737401, -0.019713589921593666, 0.02977447398006916, -0.04456590488553047,
    0.07499529421329498, -0.16666656732559204,
)  # fmt: skip
_ACOSH = (
    -0.00041400251211598516, 0.0017609717324376106, -0.005548233166337013, 0.01874665729701519, -0.08333321660757065, 1.0,
)  # fmt: skip
_ATANH = (
    0.17719632387161255, 0.05098561942577362, 0.11833957582712173, 0.14221487939357758, 0.20002587139606476,
    0.33333298563957214,
)  # fmt: skip


def tanh(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """A quotient of polynomials, without an exp."""
    x = f.clamp(operands[0], -_TANH_LIMIT, _TANH_LIMIT)
    s = f.mul(x, x)
    return f.op("arith.divf", f.mul(x, f.polynomial(s, _TANH_TOP)), f.polynomial(s, _TANH_BOTTOM))


def _odd(f: FloatMath, x: ir.Value, factors: Sequence[float]) -> ir.Value:
    """``x + x**3 * p(x**2)``."""
    s = f.mul(x, x)
    return f.fma(f.mul(x, s), f.polynomial(s, factors), x)


def sinh(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``exp(x) / 2 - 1 / (2 * exp(x))`` from 1 on."""
    a = f.absolute(operands[0])
    half = half_exp(f, a)
    far = f.sub(half, f.div(f.number(0.25), half))
    return f.with_sign(f.select(f.compare("olt", a, f.number(1.0)), _odd(f, a, _SINH), far), operands[0])


def cosh(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``exp(x) / 2 + 1 / (2 * exp(x))``."""
    half = half_exp(f, f.absolute(operands[0]))
    return f.add(half, f.div(f.number(0.25), half))


def asinh(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``log(x + sqrt(x**2 + 1))`` from 0.75 on."""
    a = f.absolute(operands[0])
    far = _log_of_sum(f, a, f.sqrt(f.fma(a, a, f.number(1.0))))
    return f.with_sign(f.select(f.compare("olt", a, f.number(0.75)), _odd(f, a, _ASINH), far), operands[0])


def acosh(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``log(x + sqrt(x**2 - 1))`` from 1.5 on; below 1 the root is of a negative number."""
    (x,) = operands
    above = f.sub(x, f.number(1.0))
    near = f.mul(f.sqrt(f.add(above, above)), f.polynomial(above, _ACOSH))
    far = _log_of_sum(f, x, f.sqrt(f.fma(x, x, f.number(-1.0))))
    return f.select(f.compare("olt", above, f.number(0.5)), near, far)


def _log_of_sum(f: FloatMath, x: ir.Value, root: ir.Value) -> ir.Value:
    """``log(x + root)``, where root is all but x if that is large: then it is ``log(x) + log(2)``, and overflows nowhere."""
    near = f.compare("olt", x, f.number(_FAR))
    y = log(f, [f.select(near, f.add(x, root), x)])
    return f.select(near, y, f.add(y, f.number(_LN2)))


def atanh(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """``log((1 + x) / (1 - x)) / 2`` from 0.5 on; beyond 1 the logarithm is of a negative number."""
    a, one = f.absolute(operands[0]), f.number(1.0)
    far = f.mul(log(f, [f.div(f.add(one, a), f.sub(one, a))]), f.number(0.5))
    return f.with_sign(f.select(f.compare("olt", a, f.number(0.5)), _odd(f, a, _ATANH), far), operands[0])
