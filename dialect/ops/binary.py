"""Elementwise functions of two tensors, with NumPy broadcasting; both have one dtype."""

from __future__ import annotations

from ..inference import boolean, broadcast_shapes, require_integer, require_number, require_same_dtype
from ..op import Attrs, Narrow, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo

__all__ = [
    "Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Divide", "Equal", "FloorDivide", "Fmod", "Greater", "GreaterEqual",
    "LeftShift", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "LogicalXor", "Maximum", "Minimum", "Mod", "Multiply",
    "NotEqual", "Power", "RightShift", "Subtract",
]  # fmt: skip


class _Binary(Op):
    """Base: broadcast shape, the operands' dtype."""

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    result: Result[Tensor]
    elementwise = True

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return _broadcast(operands)


class _Arithmetic(_Binary):
    """Base: like :class:`_Binary`, not for truth values. Integers wrap; narrow floats compute in f32 and round once."""

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_number(operands[0])
        return _broadcast(operands)


class _Shift(_Arithmetic):
    """Base: like :class:`_Arithmetic`, integers only."""

    may_fail_on_integers = True

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_integer(operands[0])
        return _Arithmetic.infer(operands, attrs)


class _Bitwise(_Binary):
    """Base: like :class:`_Binary`, integers and truth values only."""

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_integer(operands[0])
        return _broadcast(operands)


class _Comparison(Op):
    """Base: broadcast shape, boolean."""

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    result: Result[Tensor]
    elementwise = True

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return _broadcast(operands).with_(dtype=boolean())


def _broadcast(operands: list[TensorInfo]) -> TensorInfo:
    lhs, rhs = operands
    require_same_dtype(lhs, rhs)
    return lhs.with_(shape=broadcast_shapes(lhs.shape, rhs.shape))


class Add(_Arithmetic, name="add"):
    """``lhs + rhs``."""

    narrow = Narrow.FOLLOWS


class Subtract(_Arithmetic, name="subtract"):
    """``lhs - rhs``."""

    narrow = Narrow.FOLLOWS


class Multiply(_Arithmetic, name="multiply"):
    """``lhs * rhs``."""

    narrow = Narrow.FOLLOWS


class Divide(_Arithmetic, name="divide"):
    """``lhs / rhs``; integers truncate towards zero, as in C, and a divisor of 0 gives 0."""

    may_fail_on_integers = True
    narrow = Narrow.FOLLOWS


class FloorDivide(_Arithmetic, name="floor_divide"):
    """``floor(lhs / rhs)``; an integer divisor of 0 gives 0.

    Of floats, as in torch and Python, the quotient that goes with :class:`Mod`, rounded: that of an infinity is NaN, and
    ``6.0 / 0.1``, which divides to 60.0, gives 59.0, because 0.1 is a little more than a tenth.
    """

    may_fail_on_integers = True


class Fmod(_Arithmetic, name="fmod"):
    """Remainder of :class:`Divide` truncated: it has the sign of ``lhs``; exact for floats, an integer divisor of 0 gives 0."""


class Mod(_Arithmetic, name="mod"):
    """Remainder of :class:`FloorDivide`: it has the sign of ``rhs``; an integer divisor of 0 gives 0.

    Of floats, a remainder of zero has the sign of ``lhs``, as in torch (that of ``rhs`` in Python and NumPy).
    """

    may_fail_on_integers = True


class Power(_Arithmetic, name="power"):
    """``lhs ** rhs``. Integers: a negative exponent truncates towards zero, so only 1 and -1 give other than 0."""

    may_fail_on_integers = True


class Maximum(_Binary, name="maximum"):
    """The larger element; NaN if either is NaN, either of two zeros."""

    narrow = Narrow.FOLLOWS


class Minimum(_Binary, name="minimum"):
    """The smaller element; NaN if either is NaN, either of two zeros."""

    narrow = Narrow.FOLLOWS


class BitwiseAnd(_Bitwise, name="bitwise_and"):
    """``lhs & rhs``."""


class BitwiseOr(_Bitwise, name="bitwise_or"):
    """``lhs | rhs``."""


class BitwiseXor(_Bitwise, name="bitwise_xor"):
    """``lhs ^ rhs``."""


class LeftShift(_Shift, name="left_shift"):
    """``lhs << rhs``; a shift that is not from 0 to below the width gives 0, as in torch."""


class RightShift(_Shift, name="right_shift"):
    """``lhs >> rhs``, keeping the sign; a shift that is not from 0 to below the width leaves the sign alone, as in torch."""


class Equal(_Comparison, name="equal"):
    """``lhs == rhs``; false when either is NaN."""


class NotEqual(_Comparison, name="not_equal"):
    """``lhs != rhs``; true when either is NaN."""


class Less(_Comparison, name="less"):
    """``lhs < rhs``; false when either is NaN."""


class LessEqual(_Comparison, name="less_equal"):
    """``lhs <= rhs``; false when either is NaN."""


class Greater(_Comparison, name="greater"):
    """``lhs > rhs``; false when either is NaN."""


class GreaterEqual(_Comparison, name="greater_equal"):
    """``lhs >= rhs``; false when either is NaN."""


class LogicalAnd(_Comparison, name="logical_and"):
    """True where both elements are non-zero."""


class LogicalOr(_Comparison, name="logical_or"):
    """True where an element is non-zero."""


class LogicalXor(_Comparison, name="logical_xor"):
    """True where exactly one element is non-zero."""
