"""What relax values were made by: for frontends that meet one op written out as several."""

from __future__ import annotations

import numpy as np

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.elements import to_numpy
from ..dialect.inference import is_float
from ..dialect.op import Op, attrs_of
from .emit import info_of

__all__ = ["made_by", "number_of", "without_cast"]


def made_by(value: ir.Value, op_class: type[Op]) -> ir.Operation | None:
    """The operation that makes a value, if it is of that kind."""
    owner = value.owner
    return owner.operation if isinstance(owner, op_class) else None


def number_of(x: ir.Value) -> float | None:
    """The one number that a tensor of floats holds, where the module says it."""
    if not is_float(info_of(x).dtype):
        return None
    filled = made_by(x, ops.Full)
    if filled is not None:
        return float(attrs_of(filled)["value"])
    constant = made_by(x, ops.Constant)
    if constant is None or info_of(x).rank:
        return None
    return float(np.asarray(to_numpy(attrs_of(constant)["value"])).astype(np.float64))


def without_cast(x: ir.Value) -> ir.Value:
    """``x`` before it became f32, or before it became narrower again."""
    cast_op = made_by(x, ops.AsType)
    if cast_op is None:
        return x
    source = cast_op.operands[0]
    kinds = info_of(x).dtype, info_of(source).dtype
    return source if all(is_float(k) for k in kinds) and ir.F32Type.get() in kinds else x
