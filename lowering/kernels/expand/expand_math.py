"""Expands exp, log, tanh, erf, sin and their kin on f32 scalars and vectors into polynomials.

Maxima and minima that keep NaN, too: of equal zeros they take either, for which LLVM's code needs five instructions, not three.
And numbers that are quantized are rounded and converted at once, or stay floats (:mod:`.integral`).

Before::

    %y = math.exp %x : vector<16xf32>

After: about 15 fused multiply-adds and bit operations instead of 16 calls of ``expf``.

Errors are below 4 units in the last place (tanh: 4.5, erf: 6) where measured against 80 bits over the whole range. NaN stays
NaN, infinities and zeros of both signs give what C's functions give. The expansions rely on no fast-math flag and none is set.
Of f64, exp, log, log1p and expm1 are expanded; the others become calls of libm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ....dialect.bindings import ir
from ...lowering_pass import LoweringPass
from ...marks import NUMBER_FIRST
from ...set_target import target_of
from ..emit.emitter import Emitter
from ..function_bodies import function_bodies
from .angles import acos, asin, atan, atan2, cos, sin, tan
from .doubles import double_exp, double_log
from .exponentials import double_expm1, double_log1p, exp, exp2, expm1, log, log1p, log2, log10
from .float_math import FloatMath
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from .instructions import Instructions
from .integral import constant_number, distance_in_floats, rounded_at_once
from .powers import double_powf, powf

__all__ = ["EXPANDED", "ExpandMath", "expand_math"]

# Minimax polynomials of Eigen, highest power first.
_ERF_TOP = (
    0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084,
)  # fmt: skip
_ERF_BOTTOM = (
    -1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667,
    0.11098505178285362, 0.49746925110067538, 1.0,
)  # fmt: skip
_ERF_LIMIT = 3.832506856900711
# Quotients below have no fraction of less than half, so that a rounded one is off by one at most.
_QUOTIENT_LIMIT = 2.0**22

_Expansion = Callable[[FloatMath, Sequence[ir.Value]], ir.Value | None]


@dataclass(frozen=True)
class ExpandMath(LoweringPass):
    """Computes functions that processors have no instruction for."""

    name: ClassVar[str] = "relax-expand-math"

    def run(self, op: ir.Operation) -> None:
        expand_math(op, target_of(op))


def expand_math(module: ir.Operation, target: Instructions) -> None:
    """Replaces the operations in place, in every function; those without an expansion stay and become calls of libm."""
    for function, block in function_bodies(module):
        found = _found(function)
        if not found:
            continue
        emitter = Emitter(block)
        for operation in found:
            _expand(operation, emitter, target)


def _found(function: ir.Operation) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _EXPANSIONS and _expansion(operation) is not None:  # few are: kernels have thousands
            found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    # What reads integers as the floats that they were comes before these are no such floats any more.
    return sorted(found, key=lambda operation: operation.name in _TO_INTEGERS)


def _expansion(operation: ir.Operation) -> _Expansion | None:
    if operation.name not in _EXPANSIONS:
        return None
    kind = (operation.operands if operation.name in _TO_INTEGERS else operation.results)[0].type
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    if isinstance(element, ir.F64Type):
        return _ON_F64.get(operation.name)
    return _EXPANSIONS[operation.name] if isinstance(element, ir.F32Type) else None


def _expand(operation: ir.Operation, emitter: Emitter, target: Instructions) -> None:
    function = _expansion(operation)
    assert function is not None
    with emitter.before(operation):
        result = function(FloatMath(emitter, operation, target), list(operation.operands))
    if result is not None:
        operation.results[0].replace_all_uses_with(result)
        operation.erase()


def _erf(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    """A quotient: three times as fast as the two polynomials and the exp that would be right to one unit."""
    x = f.clamp(operands[0], -_ERF_LIMIT, _ERF_LIMIT)
    s = f.mul(x, x)
    y = f.div(f.mul(x, f.polynomial(s, _ERF_TOP)), f.polynomial(s, _ERF_BOTTOM))
    # With more roundings it is a little beyond 1 at its ends, and 1 + erf of the other sign.
    return y if f.target.has_fma else f.clamp(y, -1.0, 1.0)


def _rsqrt(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value:
    return f.op("arith.divf", f.number(1.0), f.op("math.sqrt", operands[0]))


def _remainder(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    """``x - trunc(x / y) * y`` in one rounding, which is exact where the quotient of all lanes is small; else libm.

    A quotient just below a whole number may have been rounded to it: then the difference has the other sign, and y too much
    was taken off.
    """
    x, y = operands
    if not f.target.has_fma:
        return None
    em, zero = f.emitter, f.number(0.0)
    quotient = f.div(x, y)
    small = f.compare("olt", f.absolute(quotient), f.number(_QUOTIENT_LIMIT))
    fits = em.op("arith.andi", [small, f.compare("olt", f.absolute(y), f.number(float("inf")))], f.truth)
    if isinstance(f.kind, ir.VectorType):
        fits = em.reduce("and", fits)

    def exact() -> list[ir.Value]:
        whole = f.op("math.trunc", quotient)
        rest = f.mul(f.fma(f.op("arith.negf", whole), y, x), f.with_sign(f.number(1.0), x))
        rest = f.select(f.compare("olt", rest, zero), f.add(rest, f.absolute(y)), rest)
        return [f.with_sign(rest, x)]

    return em.when(fits, exact, lambda: [em.clone(f.operation, [x, y], f.kind)], [f.kind])[0]


def _maximum(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    return _extreme(f, operands, "ogt")


def _minimum(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    return _extreme(f, operands, "olt")


def _extreme(f: FloatMath, operands: Sequence[ir.Value], predicate: str) -> ir.Value | None:
    """One vmaxps, which gives its second operand where one is NaN. Where the first is NaN, a choice behind it gives NaN.

    That NaN is a constant. If both choices could give the operand, LLVM would merge them into two comparisons without vmaxps.
    The second operand is what a reduction has found so far, so that it waits for no comparison.
    """
    if f.target.has_extremes:
        return None
    b, a = operands
    if constant_number(b) is not None:
        a, b = b, a
    best, known = f.select(f.compare(predicate, a, b), a, b), constant_number(a)
    is_number = known is not None and known == known
    return best if is_number else f.select(f.compare("uno", a, a), f.number(float("nan")), best)


def _larger(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    return _passing_over(f, operands, "ogt")


def _smaller(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    return _passing_over(f, operands, "olt")


def _passing_over(f: FloatMath, operands: Sequence[ir.Value], predicate: str) -> ir.Value | None:
    """One vmaxps or vminps, which gives its second operand where one is NaN."""
    number, other = operands
    return f.select(f.compare(predicate, other, number), other, number) if NUMBER_FIRST in f.operation.attributes else None


_EXPANSIONS: dict[str, _Expansion] = {
    "math.acos": acos,
    "math.acosh": acosh,
    "math.asin": asin,
    "math.asinh": asinh,
    "math.atan": atan,
    "math.atan2": atan2,
    "math.atanh": atanh,
    "math.cos": cos,
    "math.cosh": cosh,
    "math.erf": _erf,
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.log": log,
    "math.log10": log10,
    "math.log1p": log1p,
    "math.log2": log2,
    "math.powf": powf,
    "math.rsqrt": _rsqrt,
    "math.sin": sin,
    "math.sinh": sinh,
    "math.tan": tan,
    "math.tanh": tanh,
    "arith.maximumf": _maximum,
    "arith.minimumf": _minimum,
    "arith.maxnumf": _larger,
    "arith.minnumf": _smaller,
    "arith.sitofp": distance_in_floats,
    "arith.fptosi": rounded_at_once,
    "arith.fptoui": rounded_at_once,
    "arith.remf": _remainder,
}

_TO_INTEGERS = ("arith.fptosi", "arith.fptoui")

_ON_F64: dict[str, _Expansion] = {
    "math.exp": double_exp, "math.expm1": double_expm1, "math.log": double_log, "math.log1p": double_log1p,
    "math.powf": double_powf,
}  # fmt: skip

EXPANDED = frozenset(name for name in _EXPANSIONS if name.startswith("math."))
"""The operations that become long chains of arithmetic."""
