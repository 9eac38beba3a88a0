"""How many bits the integers of a value have, by the ops that made it: bytes that were put together from fewer bits."""

from __future__ import annotations

from typing import Any

from ..bindings import ir
from ..ops import (
    AsType,
    BitwiseAnd,
    BitwiseOr,
    Concat,
    Constant,
    Full,
    LeftShift,
    PackWeight,
    PermuteDims,
    Reshape,
    RightShift,
    StridedSlice,
    Take,
)
from ..struct_info import TensorInfo

__all__ = ["bits_of", "number_of"]

#: What only moves elements of its first operand, or puts zeros beside them.
_MOVES = (PackWeight, PermuteDims, Reshape, StridedSlice, Take)


def bits_of(value: ir.Value) -> int:
    """Bits of the largest integer that an unsigned value may have; its width where nothing says less, 0 of other types."""
    dtype = TensorInfo.of(value).dtype
    if not isinstance(dtype, ir.IntegerType) or not dtype.is_unsigned:
        return 0
    found = dtype.width if isinstance(value.owner, ir.Block) else _of_result(value.owner.opview)
    return min(dtype.width, found) if found is not None else dtype.width


def _of_result(op: Any) -> int | None:
    if isinstance(op, _MOVES):
        return bits_of(op.operands[0])
    if isinstance(op, AsType):
        return bits_of(op.x) or None
    if isinstance(op, Concat):
        return max(bits_of(op.lhs), bits_of(op.rhs))
    if isinstance(op, BitwiseOr):
        return max(map(bits_of, op.operands))
    if isinstance(op, BitwiseAnd):
        return min(map(bits_of, op.operands))
    known = number_of(op.operands[1]) if isinstance(op, LeftShift | RightShift) else None
    if known is not None:
        return max(0, bits_of(op.operands[0]) + (known if isinstance(op, LeftShift) else -known))
    if isinstance(op, Constant | Full):
        return _largest(op)
    return None


def number_of(value: ir.Value) -> int | None:
    """The number that all elements are."""
    if isinstance(value.owner, ir.Block):
        return None
    op: Any = value.owner.opview
    if isinstance(op, Full):
        return int(op.value)
    is_splat = isinstance(op, Constant) and op.value.is_splat
    return ir.IntegerAttr(op.value.get_splat_value()).value if is_splat else None


def _largest(op: Constant | Full) -> int | None:
    known = number_of(op.result)
    return None if known is None or known < 0 else known.bit_length()
