"""Conversion between dtypes, of numbers and of bits."""

from __future__ import annotations

from .. import attributes, op_costs
from ..bindings import ir
from ..errors import RelaxError
from ..inference import is_float, is_integer
from ..op import Attrs, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo

__all__ = ["AsType", "Bitcast"]


class AsType(Op, name="astype"):
    """Converts every element.

    To a float: rounds to nearest even; what is too large is infinite, in f8E4M3FN NaN. Processors with instructions for bf16
    may make zeros of what is below its normal numbers. f8E8M0FNU has powers of two, of two that are as near the greater one,
    and NaN for what is not above 0. Integer to integer: wraps. To ``i1``: ``x != 0``, so NaN is true. From ``i1``: 0 or 1.

    Float to integer: truncates to an ``i32``, or an ``i64`` for dtypes of 64 bits, ``ui32`` and ``ui8``; NaN and what that
    cannot hold to its least value. Fewer bits are its lowest ones. That is what torch does on x86: -1.0 is 255 as ``ui8``.
    ``ui64`` holds what it can.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"dtype": attributes.dtype()}
    elementwise = True
    cost = op_costs.MOVES
    grows = "x"

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        result = operands[0].with_(dtype=attrs["dtype"])
        if not (is_float(result.dtype) or is_integer(result.dtype)):
            raise RelaxError(f"expected an integer or floating-point dtype, got {result.dtype}")
        return result


class Bitcast(Op, name="bitcast"):
    """Every element's bits as another dtype of 8, 16, 32 or 64 bits; the dtype has as many as that of ``x``."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"dtype": attributes.dtype()}
    elementwise = True
    cost = op_costs.MOVES

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        result = operands[0].with_(dtype=attrs["dtype"])
        before, after = _bytes(operands[0].dtype), _bytes(result.dtype)
        if before != after:
            raise RelaxError(f"expected a dtype of as many bits as {operands[0].dtype}, got {result.dtype}")
        return result


def _bytes(dtype: ir.Type) -> int:
    """Raises RelaxError for what has no whole bytes: of others nothing says what the rest of a byte is."""
    if not (is_float(dtype) or is_integer(dtype)) or dtype.width % 8:
        raise RelaxError(f"expected a dtype of 8, 16, 32 or 64 bits, got {dtype}")
    return dtype.width // 8
