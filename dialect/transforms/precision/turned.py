"""Integers with another sign: what half of their range more, or less, makes of them, as ops at the insertion point."""

from __future__ import annotations

from ...bindings import ir
from ...ops import AsType, BitwiseXor, Full
from ...struct_info import TensorInfo

__all__ = ["turned"]


def turned(value: ir.Value) -> ir.Value:
    """Signed integers as unsigned ones that are more by half of their range, or back: the highest bit the other way round."""
    dtype = _dtype(value)
    if dtype.is_unsigned and dtype.width == 8:
        return AsType.create(_flipped(value), dtype=ir.IntegerType.get_signless(8)).result
    return _flipped(AsType.create(value, dtype=ir.IntegerType.get_unsigned(dtype.width)).result)


def _flipped(value: ir.Value) -> ir.Value:
    dtype = _dtype(value)
    half = Full.create(value=1 << (dtype.width - 1), result_types=[ir.RankedTensorType.get([], dtype)]).result
    return BitwiseXor.create(value, half).result


def _dtype(value: ir.Value) -> ir.IntegerType:
    return ir.IntegerType(TensorInfo.of(value).dtype)
