"""Elementwise functions of two tensors, with NumPy broadcasting; both have one dtype."""

from __future__ import annotations

from ..inference import boolean, broadcast_shapes, require_integer, require_same_dtype
from ..op import Attrs, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo

__all__ = [
    "Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Divide", "Equal", "FloorDivide", "Greater", "GreaterEqual", "LeftShift",
    "Less", "LessEqual", "LogicalAnd", "LogicalOr", "LogicalXor", "Maximum", "Minimum", "Mod", "Multiply", "NotEqual",
    "Power", "RightShift", "Subtract",
]  # fmt: skip


class _Binary(Op):
    """Base: broadcast shape, the operands' dtype."""

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    result: Result[Tensor]

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return _broadcast(operands)


class _IntegerBinary(_Binary):
    """Base: like :class:`_Binary`, integers only."""

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        require_integer(operands[0])
        return _broadcast(operands)


class _Comparison(Op):
    """Base: broadcast shape, boolean."""

    lhs: Operand[Tensor]
    rhs: Operand[Tensor]
    result: Result[Tensor]

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return _broadcast(operands).with_(dtype=boolean())


def _broadcast(operands: list[TensorInfo]) -> TensorInfo:
    lhs, rhs = operands
    require_same_dtype(lhs, rhs)
    return lhs.with_(shape=broadcast_shapes(lhs.shape, rhs.shape))


class Add(_Binary, name="add"):
    """``lhs + rhs``."""


class Subtract(_Binary, name="subtract"):
    """``lhs - rhs``."""


class Multiply(_Binary, name="multiply"):
    """``lhs * rhs``."""


class Divide(_Binary, name="divide"):
    """``lhs / rhs``; integers truncate towards zero, as in C."""


class FloorDivide(_Binary, name="floor_divide"):
    """``floor(lhs / rhs)``."""


class Mod(_Binary, name="mod"):
    """Remainder of :class:`FloorDivide`: it has the sign of ``rhs``."""


class Power(_Binary, name="power"):
    """``lhs ** rhs``."""


class Maximum(_Binary, name="maximum"):
    """The larger element; NaN if either is NaN."""


class Minimum(_Binary, name="minimum"):
    """The smaller element; NaN if either is NaN."""


class BitwiseAnd(_IntegerBinary, name="bitwise_and"):
    """``lhs & rhs``."""


class BitwiseOr(_IntegerBinary, name="bitwise_or"):
    """``lhs | rhs``."""


class BitwiseXor(_IntegerBinary, name="bitwise_xor"):
    """``lhs ^ rhs``."""


class LeftShift(_IntegerBinary, name="left_shift"):
    """``lhs << rhs``; the shift is below the width."""


class RightShift(_IntegerBinary, name="right_shift"):
    """``lhs >> rhs``, arithmetic; the shift is below the width."""


class Equal(_Comparison, name="equal"):
    """``lhs == rhs``."""


class NotEqual(_Comparison, name="not_equal"):
    """``lhs != rhs``."""


class Less(_Comparison, name="less"):
    """``lhs < rhs``, signed."""


class LessEqual(_Comparison, name="less_equal"):
    """``lhs <= rhs``, signed."""


class Greater(_Comparison, name="greater"):
    """``lhs > rhs``, signed."""


class GreaterEqual(_Comparison, name="greater_equal"):
    """``lhs >= rhs``, signed."""


class LogicalAnd(_Comparison, name="logical_and"):
    """True where both elements are non-zero."""


class LogicalOr(_Comparison, name="logical_or"):
    """True where an element is non-zero."""


class LogicalXor(_Comparison, name="logical_xor"):
    """True where exactly one element is non-zero."""
