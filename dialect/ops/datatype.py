"""Conversion between dtypes."""

from __future__ import annotations

from .. import attributes
from ..errors import RelaxError
from ..inference import is_float, is_integer
from ..op import Attrs, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo

__all__ = ["AsType"]


class AsType(Op, name="astype"):
    """Converts every element.

    To a float: rounds to nearest even. Float to integer: truncates; NaN and what the integer cannot hold have no defined
    result. Integer to integer: wraps. To ``i1``: ``x != 0``, so NaN is true. From ``i1``: 0 or 1.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"dtype": attributes.dtype()}

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        result = operands[0].with_(dtype=attrs["dtype"])
        if not (is_float(result.dtype) or is_integer(result.dtype)):
            raise RelaxError(f"expected an integer or floating-point dtype, got {result.dtype}")
        return result
