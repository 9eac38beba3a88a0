"""Small ops on weights that passes emit at the insertion point, and attributes of ops that take another's place."""

from __future__ import annotations

from typing import Any

from ..bindings import ir
from ..op import attrs_of
from ..ops import AsType, ExpandDims
from ..struct_info import TensorInfo

__all__ = ["cast", "compute_dtype", "given_attr", "insert_axes", "single_use"]


def compute_dtype(*dtypes: ir.Type) -> ir.Type:
    """The float dtype that weight math is done in: f64 when one of them is, else f32."""
    return next((d for d in dtypes if isinstance(d, ir.F64Type)), ir.F32Type.get())


def cast(value: ir.Value, dtype: ir.Type) -> ir.Value:
    """The value in a dtype; itself when that is its own."""
    return value if TensorInfo.of(value).dtype == dtype else AsType.create(value, dtype=dtype).result


def insert_axes(value: ir.Value, axes: list[int], rank: int) -> ir.Value:
    """A tensor with dimensions of size one inserted, so that its own are ``axes`` (ascending) of that many."""
    inserted = [i for i in range(rank) if i not in axes]
    return ExpandDims.create(value, axis=inserted).result if inserted else value


def single_use(value: ir.Value) -> ir.OpView | None:
    """The only op that reads a value, and reads it once; None when there are more or none."""
    uses = list(value.uses)
    return uses[0].owner if len(uses) == 1 else None


def given_attr(op: ir.Operation | ir.OpView, name: str) -> Any:
    """The value of a declared attribute; None where it is left out, which ``create`` then leaves out as well."""
    return attrs_of(op)[name] if name in op.attributes else None
