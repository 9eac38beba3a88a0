"""Conversion between dtypes."""

from __future__ import annotations

from .. import attributes
from ..op import Attrs, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo

__all__ = ["AsType"]


class AsType(Op, name="astype"):
    """Converts every element: float to float rounds to nearest even, float to integer truncates, anything to ``i1`` is ``!= 0``."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"dtype": attributes.dtype()}

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return operands[0].with_(dtype=attrs["dtype"])
