"""Functions of the normal distribution that are no op of relax, as formulas of f64; narrower floats are rounded once."""

from __future__ import annotations

import math

from ...dialect import ops
from ...dialect.bindings import ir
from ..emit import cast, emit
from ..torch_op import TorchOp, handles
from .formulas import add, div, is_, mul, operand, quotient, sub, where
from .special import bell_of, erf_near, scaled_tail

# Quotients of polynomials for what ndtri is beside its main term, highest power first: of the square of what 1/2 is off, and of
# ``1 / z`` for ``z = sqrt(-2 log p)`` up to 8 and beyond. S. L. Moshier, Cephes Math Library, ndtri.c, as in
# https://github.com/pytorch/pytorch, aten/src/ATen/native/Math.h.
_CENTRAL = (
    (-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968, -1.2391658386738125),
    (1.0, 1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937, 200.26021238006066,
     -82.03722561683334, 15.90562251262117, -1.1833162112133),
)  # fmt: skip
_OUTER = (
    (4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008, 14.684956192885803,
     2.1866330685079025, -0.1402560791713545, -0.03504246268278482, -0.0008574567851546854),
    (1.0, 15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075, 2.504649462083094,
     -0.14218292285478779, -0.03808064076915783, -0.0009332594808954574),
)  # fmt: skip
_FARTHEST = (
    (3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755, 0.20148538954917908,
     0.012371663481782003, 0.00030158155350823543, 2.6580697468673755e-06, 6.239745391849833e-09),
    (1.0, 6.02427039364742, 3.6798356385616087, 1.3770209948908132, 0.21623699359449663, 0.013420400608854318,
     0.00032801446468212774, 2.8924786474538068e-06, 6.790194080099813e-09),
)  # fmt: skip

#: exp(-2)
_OUTSIDE = 0.13533528323661269189


@handles("aten.special_erfcx")
def _erfcx(op: TorchOp) -> ir.Value:
    """Within 0.51 units in the last place of f32 and narrower floats, 4 of f64 (measured against mpmath, as below)."""
    return cast(_scaled(operand(op)), op.dtype)


def _scaled(x: ir.Value) -> ir.Value:
    """``exp(x * x) * erfc(x)``."""
    size = emit(ops.Abs, x)
    grown = bell_of(emit(ops.Clip, size, min=0.0, max=30.0), 1.0)
    above = scaled_tail(size)
    below = sub(mul(2.0, grown), above)
    near = mul(sub(1.0, erf_near(x)), grown)
    return where(is_(ops.LessEqual, size, 0.46875), near, where(is_(ops.Less, x, 0.0), below, above))


@handles("aten.special_log_ndtr")
def _log_ndtr(op: TorchOp) -> ir.Value:
    """Of the scaled function where there is little left, as torch has it; else of what is left to 1.

    Within 0.51 units in the last place of f32 and narrower floats; of f64, ``2 + x * x`` above 0: ``x / sqrt(2)`` is
    rounded.
    """
    x = operand(op)
    turned = mul(x, -math.sqrt(0.5))
    low = sub(emit(ops.Log, mul(_scaled(turned), 0.5)), emit(ops.Square, turned))
    size = emit(ops.Abs, turned)
    beyond = mul(bell_of(emit(ops.Clip, size, min=0.0, max=30.0)), scaled_tail(size))
    beyond = where(is_(ops.LessEqual, size, 0.46875), sub(1.0, erf_near(size)), beyond)
    beyond = where(is_(ops.Less, x, 0.0), sub(2.0, beyond), beyond)
    return cast(where(is_(ops.Less, x, -1.0), low, emit(ops.Log1p, mul(beyond, -0.5))), op.dtype)


@handles("aten.special_ndtri")
def _ndtri(op: TorchOp) -> ir.Value:
    """Infinite at 0 and 1, NaN beyond.

    Within 0.51 units in the last place of f32 and narrower floats, 4 of f64.
    """
    p = operand(op)
    is_high = is_(ops.Greater, p, 1 - _OUTSIDE)
    y = where(is_high, sub(1.0, p), p)
    off = sub(y, 0.5)
    square = emit(ops.Square, off)
    central = mul(add(off, mul(off, mul(square, quotient(_CENTRAL, square)))), math.sqrt(2 * math.pi))
    z = emit(ops.Sqrt, mul(emit(ops.Log, y), -2.0))
    small = emit(ops.Reciprocal, z)
    less = mul(small, where(is_(ops.Less, z, 8.0), quotient(_OUTER, small), quotient(_FARTHEST, small)))
    outer = sub(sub(z, div(emit(ops.Log, z), z)), less)
    outer = where(is_high, outer, sub(0.0, outer))
    found = where(is_(ops.Greater, y, _OUTSIDE), central, outer)
    found = where(is_(ops.Equal, p, 0.0), -math.inf, where(is_(ops.Equal, p, 1.0), math.inf, found))
    return cast(found, op.dtype)
