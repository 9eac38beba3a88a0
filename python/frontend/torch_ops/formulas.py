"""Arithmetic on f64 for formulas of special functions: tensors and numbers in, tensors out."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.op import EffectOp
from ..emit import cast, emit, full
from ..torch_op import TorchOp

__all__ = ["Number", "add", "chebyshev", "div", "is_", "mul", "operand", "polynomial", "quotient", "sub", "value", "where"]

#: A tensor of f64, or a number.
Number = ir.Value | float


def operand(op: TorchOp) -> ir.Value:
    """The first operand in f64, rounded as the result's dtype has it."""
    return cast(cast(op.tensor(0), op.dtype), ir.F64Type.get())


def value(x: Number) -> ir.Value:
    """A number as a tensor without dimensions."""
    return x if isinstance(x, ir.Value) else full(x, ir.F64Type.get())


def add(x: Number, y: Number) -> ir.Value:
    """A sum."""
    return emit(ops.Add, value(x), value(y))


def sub(x: Number, y: Number) -> ir.Value:
    """A difference."""
    return emit(ops.Subtract, value(x), value(y))


def mul(x: Number, y: Number) -> ir.Value:
    """A product."""
    return emit(ops.Multiply, value(x), value(y))


def div(x: Number, y: Number) -> ir.Value:
    """A quotient."""
    return emit(ops.Divide, value(x), value(y))


def is_(comparison: type[EffectOp], x: ir.Value, y: float) -> ir.Value:
    """A comparison with a number."""
    return emit(comparison, x, value(y))


def where(condition: ir.Value, x: Number, y: Number) -> ir.Value:
    """What is chosen of two by a condition."""
    return emit(ops.Where, condition, value(x), value(y))


def polynomial(factors: Sequence[float], x: ir.Value) -> ir.Value:
    """Horner's rule, highest power first."""
    result = value(factors[0])
    for factor in factors[1:]:
        result = add(mul(result, x), factor)
    return result


def quotient(both: tuple[Sequence[float], Sequence[float]], x: ir.Value) -> ir.Value:
    """A quotient of two polynomials of ``x``."""
    return div(polynomial(both[0], x), polynomial(both[1], x))


def chebyshev(factors: Sequence[float], x: ir.Value) -> ir.Value:
    """Of Chebyshev polynomials of ``x / 2``, highest first, half of the last: Clenshaw's rule, as Cephes' chbevl has it."""
    before, last, result = value(0.0), value(0.0), value(factors[0])
    for factor in factors[1:]:
        before, last = last, result
        result = add(sub(mul(x, last), before), factor)
    return mul(sub(result, before), 0.5)
