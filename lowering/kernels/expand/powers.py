"""Powers of f32 by exponentials and logarithms of f64: ``exp(b * log(|a|))`` loses six bits, of which f64 has 29 more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....dialect.bindings import ir
from .doubles import double_exp, double_log
from .float_math import FloatMath
from .integral import constant_number

__all__ = ["double_powf", "powf"]

_WHOLE = (-2.0, -1.0, 1.0, 2.0, 3.0, 4.0)


def powf(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    """``a ** b``, correctly rounded but for results within 1e-6 units of the middle between two numbers.

    Products or a root for some constant exponents; what else C's ``pow`` says of zeros, infinities and NaN. None, for libm,
    where f64 is slow.
    """
    base, exponent = operands
    number = constant_number(exponent)
    if number == 0.0:
        return f.number(1.0)
    if number == 0.5:  # unlike sqrt, infinite for minus infinity and +0 for -0
        root = f.op("math.sqrt", f.add(base, f.number(0.0)))
        return f.select(f.compare("oeq", base, f.number(-math.inf)), f.number(math.inf), root)
    if number in _WHOLE:
        return _product(f, base, int(number))
    if not f.target.has_fast_doubles:
        return None
    a, b = (_widened(f, operand) for operand in operands)
    d = FloatMath(f.emitter, a.owner, f.target)
    return f.emitter.op("arith.truncf", [_power(d, a, b, number)], f.kind)


def double_powf(d: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    """The same of f64 where the base was f32 and the result becomes f32, as PyTorch computes it; else None.

    What rounds to f32 later needs no more than :func:`powf`.
    """
    base, exponent = operands
    if not (d.target.has_fast_doubles and _is_single(base) and _becomes_single(d.operation.results[0])):
        return None
    return _power(d, base, exponent, constant_number(exponent))


def _is_single(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name == "arith.extf"


def _becomes_single(value: ir.Value) -> bool:
    return all(use.owner.operation.name == "arith.truncf" for use in value.uses)


def _product(f: FloatMath, base: ir.Value, count: int) -> ir.Value:
    result = base
    for _ in range(abs(count) - 1):
        result = f.mul(result, base)
    return f.op("arith.divf", f.number(1.0), result) if count < 0 else result


def _power(d: FloatMath, base: ir.Value, exponent: ir.Value, number: float | None) -> ir.Value:
    """``|base| ** exponent`` by the logarithm, and the sign; ``number`` is an exponent that is a constant."""
    number = number if number is not None and math.isfinite(number) else None
    logarithm = double_log(d, [d.absolute(base)])
    power = d.mul(exponent, logarithm)
    if number is not None:
        return _signed(d, double_exp(d, [power]), base, number)
    # 1 and -1 to the power of infinity are 1.
    finite = d.mul(d.clamp(exponent, -1.0, 1.0), logarithm)
    power = d.select(d.compare("oeq", logarithm, d.number(0.0)), finite, power)
    one = d.number(1.0)
    is_one = d.either(d.compare("oeq", base, one), d.compare("oeq", exponent, d.number(0.0)))
    return d.select(is_one, one, _signed_by(d, double_exp(d, [power]), base, exponent))


def _widened(f: FloatMath, x: ir.Value) -> ir.Value:
    wide = ir.F64Type.get(f.emitter.context)
    return f.emitter.op("arith.extf", [x], f.emitter.vector(f.width, wide) if f.width else wide)


def _signed(f: FloatMath, size: ir.Value, base: ir.Value, number: float) -> ir.Value:
    """A power with the sign of the base where its exponent is odd; a negative number has no powers but whole ones."""
    if number.is_integer():
        return f.with_sign(size, base) if number % 2 else size
    return f.select(_is_negative(f, base), f.number(math.nan), size)


def _signed_by(f: FloatMath, size: ir.Value, base: ir.Value, exponent: ir.Value) -> ir.Value:
    """The same by exponents that are no constants; infinite ones are even."""
    half = f.mul(exponent, f.number(0.5))
    is_whole, is_even = (f.compare("oeq", f.op("math.floor", x), x) for x in (exponent, half))
    is_odd = f.both(is_whole, f.emitter.invert(is_even))
    signed = f.select(is_odd, f.with_sign(size, base), size)
    return f.select(f.both(_is_negative(f, base), f.emitter.invert(is_whole)), f.number(math.nan), signed)


def _is_negative(f: FloatMath, base: ir.Value) -> ir.Value:
    """Whether it is a negative number: neither -0 nor an infinity."""
    return f.both(f.compare("olt", base, f.number(0.0)), f.compare("ogt", base, f.number(-math.inf)))
