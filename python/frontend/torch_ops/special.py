"""Special functions of torch that are no op of relax, as formulas of f64; results of narrower floats are rounded once."""

from __future__ import annotations

import math

from ...dialect import ops
from ...dialect.bindings import ir
from ..emit import cast, emit
from ..torch_op import TorchOp, handles
from .formulas import add, div, is_, mul, operand, polynomial, quotient, sub, value, where

# Quotients of polynomials for erfc, highest power first. W. J. Cody, Rational Chebyshev approximations for the error function,
# Mathematics of Computation 23 (1969), as in https://www.netlib.org/specfun/erf: up to 0.46875, up to 4, and beyond.
_NEAR = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1, 2.98635138197400131e2,
     8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)  # fmt: skip
_FAR = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)  # fmt: skip

#: (-1)^k (zeta(k) - 1) / k from k = 29 to 2, then 1 less Euler's constant: log gamma(2 + z) / z for z from -1/2 to 1/2.
_AROUND_TWO = (
    -6.4229645638381e-11, 1.330476437424449e-10, -2.7595228851242334e-10, 5.731367241678862e-10, -1.1921401405860912e-09,
    2.4836745438024785e-09, -5.183475041970047e-09, 1.0838659214896955e-08, -2.2711094608943164e-08, 4.7698101693639804e-08,
    -1.0043224823968099e-07, 2.1207184805554665e-07, -4.492469198764566e-07, 9.55141213040742e-07, -2.039215753801366e-06,
    4.374866789907488e-06, -9.439488275268397e-06, 2.050721277567069e-05, -4.492623673813314e-05, 9.945751278180853e-05,
    -0.00022315475845357939, 0.0005096695247430425, -0.001192753911703261, 0.0028905103307415234, -0.007385551028673986,
    0.020580808427784546, -0.0673523010531981, 0.3224670334241132, 0.42278433509846713,
)  # fmt: skip

#: Bernoulli numbers B(2k) / (2k (2k - 1)) from k = 8 to 1: Stirling's series.
_STIRLING = (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)

#: B(2k) / 2k from k = 8 to 1: the series of digamma.
_DIGAMMA = (-3617 / 8160, 1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)

#: Quotients for what erfinv begins with, highest power first: of the square up to 0.7, beyond of ``sqrt(-log((1 - y) / 2))``.
_INVERSE_NEAR = (
    (-0.140543331, 0.914624893, -1.645349621, 0.886226899),
    (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0),
)
_INVERSE_FAR = ((1.641345311, 3.429567803, -1.624906493, -1.970840454), (1.637067800, 3.543889200, 1.0))


@handles("aten.erfc")
def _erfc(op: TorchOp) -> ir.Value:
    """Within 0.51 units in the last place of f32 and narrower floats, 5 of f64 (measured against mpmath)."""
    x = operand(op)
    size = emit(ops.Abs, x)
    tail = mul(bell_of(emit(ops.Clip, size, min=0.0, max=30.0)), scaled_tail(size))
    tail = where(is_(ops.Less, x, 0.0), sub(2.0, tail), tail)
    return cast(where(is_(ops.LessEqual, size, 0.46875), sub(1.0, erf_near(x)), tail), op.dtype)


@handles("aten.erfinv")
def _erfinv(op: TorchOp) -> ir.Value:
    """Infinite at 1 and -1, NaN beyond.

    A first value as Matlab's erfinv and torch have it, and of Halley's steps two for f64, else one, in which what is left is
    computed of ``1 - |y|`` where that is less. Within 0.51 units in the last place of f32 and narrower floats, 4 of f64
    (measured against mpmath).
    """
    y = operand(op)
    size = emit(ops.Abs, y)
    left = sub(1.0, emit(ops.Minimum, size, value(1 - 2.0**-53)))
    near = mul(size, quotient(_INVERSE_NEAR, emit(ops.Square, emit(ops.Minimum, size, value(0.7)))))
    far = quotient(_INVERSE_FAR, emit(ops.Sqrt, sub(math.log(2), emit(ops.Log, left))))
    x = where(is_(ops.LessEqual, size, 0.7), near, far)
    for _ in range(2 if isinstance(op.dtype, ir.F64Type) else 1):
        x = _nearer(x, size, left)
    x = where(is_(ops.Less, size, 1.0), x, where(is_(ops.Equal, size, 1.0), math.inf, math.nan))
    signed = where(is_(ops.Less, y, 0.0), sub(0.0, x), x)
    return cast(where(is_(ops.Equal, y, 0.0), y, signed), op.dtype)


def _nearer(x: ir.Value, y: ir.Value, left: ir.Value) -> ir.Value:
    """Halley's step to where erf is ``y``, of which ``left`` is left to 1, from 0 on."""
    bell = bell_of(x)
    near, tail = sub(erf_near(x), y), sub(left, mul(bell, scaled_tail(x)))
    off = mul(where(is_(ops.LessEqual, x, 0.46875), near, tail), math.sqrt(math.pi) / 2)
    step = div(off, bell)
    return sub(x, div(step, add(1.0, mul(x, step))))


def erf_near(x: ir.Value) -> ir.Value:
    """``erf(x)`` up to 0.46875."""
    return mul(x, quotient(_NEAR, emit(ops.Square, x)))


def scaled_tail(x: ir.Value) -> ir.Value:
    """``erfc(x) * exp(x * x)`` from 0.46875 on."""
    middle = quotient(_MIDDLE, emit(ops.Clip, x, min=0.0, max=4.0))
    return where(is_(ops.LessEqual, x, 4.0), middle, _far_tail(x))


def _far_tail(size: ir.Value) -> ir.Value:
    """The same from 4 on; where its square is more than f64 holds, only the first term is there."""
    small = emit(ops.Reciprocal, emit(ops.Square, emit(ops.Clip, size, min=4.0, max=1e100)))
    rest = sub(1 / math.sqrt(math.pi), mul(small, quotient(_FAR, small)))
    return div(rest, emit(ops.Maximum, size, value(4.0)))


def bell_of(x: ir.Value, sign: float = -1.0) -> ir.Value:
    """``exp(-x * x)``, or ``exp(x * x)``, by sixteenths, whose squares are exact, and what is left."""
    coarse = mul(emit(ops.Trunc, mul(x, 16.0)), 1 / 16)
    rest = mul(sub(x, coarse), add(x, coarse))
    return mul(emit(ops.Exp, mul(emit(ops.Square, coarse), sign)), emit(ops.Exp, mul(rest, sign)))


@handles("aten.lgamma")
def _lgamma(op: TorchOp) -> ir.Value:
    """The logarithm of the magnitude of gamma; below -1/2 by gamma(x) gamma(-x) = -pi / (x sin(pi x)).

    Within 0.51 units in the last place of f32 and narrower floats, 6 of f64 above -1/2 (measured against mpmath); below,
    the error is that of the larger term, so that close to a root few digits of f64 are right.
    """
    x = operand(op)
    size = emit(ops.Abs, x)
    near = _near_zero(x)
    above = where(is_(ops.Less, size, 8.5), _up_to_eight(emit(ops.Clip, size, min=0.5, max=8.5)), _stirling(size))
    turns = sub(size, emit(ops.Round, size))
    sine = emit(ops.Abs, emit(ops.Sin, mul(turns, math.pi)))
    below = sub(sub(math.log(math.pi), emit(ops.Log, mul(size, sine))), above)
    far = where(is_(ops.Greater, x, 0.0), above, where(is_(ops.Equal, turns, 0.0), math.inf, below))
    far = where(emit(ops.IsInf, x), math.inf, far)
    return cast(where(is_(ops.Less, size, 0.5), near, far), op.dtype)


def _near_zero(x: ir.Value) -> ir.Value:
    """From -1/2 to 1/2: gamma(x) = gamma(2 + x) / ((1 + x) x)."""
    z = emit(ops.Clip, x, min=-0.5, max=0.5)
    return sub(sub(mul(z, polynomial(_AROUND_TWO, z)), emit(ops.Log1p, z)), emit(ops.Log, emit(ops.Abs, z)))


def _up_to_eight(x: ir.Value) -> ir.Value:
    """From 1/2 to 8.5: gamma close to 2 times the factors between; close to 1, gamma(1 + z) = gamma(2 + z) / (1 + z)."""
    steps = emit(ops.Clip, sub(emit(ops.Round, x), 2.0), min=0.0, max=6.0)
    is_low = is_(ops.Less, x, 1.5)
    z = where(is_low, sub(x, 1.0), sub(sub(x, 2.0), steps))
    factors = where(is_(ops.GreaterEqual, steps, 1.0), sub(x, 1.0), 1.0)
    for k in range(2, 7):
        factors = mul(factors, where(is_(ops.GreaterEqual, steps, float(k)), sub(x, float(k)), 1.0))
    more = where(is_low, sub(0.0, emit(ops.Log1p, z)), emit(ops.Log, factors))
    return add(mul(z, polynomial(_AROUND_TWO, z)), more)


def _stirling(x: ir.Value) -> ir.Value:
    x = emit(ops.Maximum, x, value(8.0))
    part = emit(ops.Reciprocal, x)
    small = mul(part, polynomial(_STIRLING, emit(ops.Square, part)))
    main = mul(sub(x, 0.5), sub(emit(ops.Log, x), 1.0))
    return add(add(main, 0.5 * math.log(2 * math.pi) - 0.5), small)


@handles("aten.digamma")
def _digamma(op: TorchOp) -> ir.Value:
    """Ten steps up, then the asymptotic series; below 0 by reflection. At 0 infinite, at other poles NaN, as torch has it.

    Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/Math.h, calc_digamma. Within 0.51 units in the last place
    of f32 and narrower floats; of f64, 4e-15 times the result or 1, if that is larger (measured against mpmath).
    """
    x = operand(op)
    is_low = is_(ops.Less, x, 0.0)
    up = _digamma_above_zero(where(is_low, sub(1.0, x), x))
    turns = sub(x, emit(ops.Round, x))
    reflected = sub(up, div(math.pi, emit(ops.Tan, mul(turns, math.pi))))
    reflected = where(is_(ops.Equal, turns, 0.0), math.nan, reflected)
    at_zero = sub(0.0, emit(ops.Reciprocal, x))
    return cast(where(is_(ops.Equal, x, 0.0), at_zero, where(is_low, reflected, up)), op.dtype)


def _digamma_above_zero(x: ir.Value) -> ir.Value:
    is_small = is_(ops.Less, x, 10.0)
    below = where(is_small, x, 1.0)
    sums = emit(ops.Reciprocal, add(below, 9.0))
    for k in range(8, -1, -1):  # smallest first
        sums = add(sums, emit(ops.Reciprocal, add(below, float(k)) if k else below))
    y = where(is_small, add(x, 10.0), x)
    part = emit(ops.Reciprocal, y)
    square = emit(ops.Square, part)
    series = add(mul(square, polynomial(_DIGAMMA, square)), mul(part, 0.5))
    return sub(sub(emit(ops.Log, y), series), where(is_small, sums, 0.0))
