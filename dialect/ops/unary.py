"""Elementwise functions of one tensor."""

from __future__ import annotations

from .. import attributes
from ..inference import boolean, require_float, require_held, require_integer, require_number
from ..op import Attrs, Narrow, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo

__all__ = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Clip", "Cos", "Cosh", "Erf", "Exp",
    "Exp2", "Expm1", "Floor", "IsFinite", "IsInf", "IsNan", "Log", "Log1p", "Log2", "Log10", "LogicalNot", "Negative",
    "Reciprocal", "Round", "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh", "Trunc",
]  # fmt: skip


class _Unary(Op):
    """Base: the result has the operand's shape and dtype."""

    x: Operand[Tensor]
    result: Result[Tensor]
    elementwise = True

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return operands[0]


class _NumberUnary(_Unary):
    """Base: like :class:`_Unary`, not for truth values; integers wrap."""

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_number(operands[0])
        return operands[0]


class _FloatUnary(_Unary):
    """Base: like :class:`_Unary`, floating point only. Floats narrower than f32 compute in f32 and round once."""

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_float(operands[0])
        return operands[0]


class _Predicate(Op):
    """Base: a truth value per element of a floating-point tensor."""

    x: Operand[Tensor]
    result: Result[Tensor]
    elementwise = True

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_float(operands[0])
        return operands[0].with_(dtype=boolean())


class Abs(_NumberUnary, name="abs"):
    """Absolute value."""

    narrow = Narrow.FOLLOWS


class Negative(_NumberUnary, name="negative"):
    """``-x``."""

    narrow = Narrow.FOLLOWS


class Sign(_NumberUnary, name="sign"):
    """-1, 0 or 1 by the sign; 0 of a NaN, as in torch (NumPy keeps it), and of zeros of either sign."""


class Square(_NumberUnary, name="square"):
    """``x * x``."""


class Clip(_NumberUnary, name="clip"):
    """``minimum(maximum(x, min), max)``; an absent limit does not limit, what equals one stays as it is, as does a NaN."""

    attrs = {"min": attributes.scalar(default=None), "max": attributes.scalar(default=None)}
    narrow = Narrow.FOLLOWS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        require_number(x)
        for name in ("min", "max"):
            if attrs[name] is not None:
                require_held(attrs[name], x.dtype, name)
        return x


class BitwiseNot(_Unary, name="bitwise_not"):
    """Inverts every bit of an integer."""

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_integer(operands[0])
        return operands[0]


class LogicalNot(Op, name="logical_not"):
    """True where the element is zero."""

    x: Operand[Tensor]
    result: Result[Tensor]
    elementwise = True

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return operands[0].with_(dtype=boolean())


class Ceil(_FloatUnary, name="ceil"):
    """Rounds towards plus infinity."""


class Floor(_FloatUnary, name="floor"):
    """Rounds towards minus infinity."""


class Round(_FloatUnary, name="round"):
    """Rounds to the nearest integer, halves to even."""


class Trunc(_FloatUnary, name="trunc"):
    """Rounds towards zero."""


class Acos(_FloatUnary, name="acos"):
    """Arc cosine in radians, from 0 to pi; NaN beyond 1."""


class Acosh(_FloatUnary, name="acosh"):
    """Inverse hyperbolic cosine; NaN below 1."""


class Asin(_FloatUnary, name="asin"):
    """Arc sine in radians; NaN beyond 1."""


class Asinh(_FloatUnary, name="asinh"):
    """Inverse hyperbolic sine."""


class Atan(_FloatUnary, name="atan"):
    """Arc tangent in radians."""


class Atanh(_FloatUnary, name="atanh"):
    """Inverse hyperbolic tangent; infinite at 1 and -1, NaN beyond."""


class Cos(_FloatUnary, name="cos"):
    """Cosine of an angle in radians."""


class Cosh(_FloatUnary, name="cosh"):
    """Hyperbolic cosine."""


class Sin(_FloatUnary, name="sin"):
    """Sine of an angle in radians."""


class Sinh(_FloatUnary, name="sinh"):
    """Hyperbolic sine."""


class Tan(_FloatUnary, name="tan"):
    """Tangent of an angle in radians."""


class Erf(_FloatUnary, name="erf"):
    """Gauss error function."""


class Exp(_FloatUnary, name="exp"):
    """``e ** x``."""


class Exp2(_FloatUnary, name="exp2"):
    """``2 ** x``."""


class Expm1(_FloatUnary, name="expm1"):
    """``e ** x - 1``, which keeps the digits of small numbers."""


class Log(_FloatUnary, name="log"):
    """Natural logarithm."""


class Log10(_FloatUnary, name="log10"):
    """Logarithm to base 10."""


class Log1p(_FloatUnary, name="log1p"):
    """``log(1 + x)``, which keeps the digits of small numbers."""


class Log2(_FloatUnary, name="log2"):
    """Logarithm to base 2, exact for powers of two."""


class Reciprocal(_FloatUnary, name="reciprocal"):
    """``1 / x``."""


class Rsqrt(_FloatUnary, name="rsqrt"):
    """``1 / sqrt(x)``."""


class Sigmoid(_FloatUnary, name="sigmoid"):
    """``1 / (1 + exp(-x))``."""

    narrow = Narrow.FOLLOWS


class Sqrt(_FloatUnary, name="sqrt"):
    """Square root."""


class Tanh(_FloatUnary, name="tanh"):
    """Hyperbolic tangent."""

    narrow = Narrow.FOLLOWS


class IsFinite(_Predicate, name="isfinite"):
    """True where the element is neither infinite nor NaN."""


class IsInf(_Predicate, name="isinf"):
    """True where the element is plus or minus infinity."""


class IsNan(_Predicate, name="isnan"):
    """True where the element is not a number."""
