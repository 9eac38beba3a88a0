"""Calls of functions of other libraries; :mod:`..extern_functions` says what these are in C."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from .. import attributes
from ..bindings import ext
from ..errors import RelaxError
from ..extern_functions import SYMBOL, dl_type
from ..inference import is_float, require_known, require_rank
from ..op import Attrs, Operand, Result, SymbolicOp, Tensor
from ..struct_info import TensorInfo

__all__ = ["CallExtern"]

# Each is a group of its own, as IRDL gives all of one group one type: text lists which ones are there. vLLM's operators take
# 20 tensors at most.
_OPERANDS = 24
_RESULTS = 12


def _optional_fields(prefix: str, kind: Any, count: int) -> dict[str, Any]:
    """Annotations of ``count`` optional operands or results (``kind``), each of a type of its own: ``x0``, ``x1``, ..."""
    return {f"{prefix}{i}": kind[Tensor] | None for i in range(count)}


class CallExtern(SymbolicOp, name="call_extern"):
    """What the C function ``symbol`` of ``library`` writes, for what it reads.

    It is pure: nothing else is read or written. The result types give shapes and dtypes. ``arguments`` are numbers and strings
    that follow the tensors; each that is ``unit`` is the number in an operand without dimensions, of which these are the last
    ones, in order. Where ``library`` is empty, the process has the function. ``version`` is of what the function
    computes: it is part of the fingerprint of weights that it prepares.
    """

    __annotations__ = _optional_fields("x", Operand, _OPERANDS) | _optional_fields("y", Result, _RESULTS)
    attrs = {
        "symbol": attributes.string(),
        "library": attributes.string(default=""),
        "arguments": attributes.values(default=()),
        "version": attributes.string(default=""),
    }
    may_fail = True

    @classmethod
    def _generate_operand_properties(cls, operands: Sequence[ext.OperandDef]) -> None:
        """None: which there are says the op itself."""

    @classmethod
    def _generate_result_properties(cls, results: Sequence[ext.ResultDef]) -> None:
        """None, as well."""

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> None:
        if not SYMBOL.fullmatch(attrs["symbol"]):
            raise RelaxError(f"expected the name of a C function, got '{attrs['symbol']}'")
        scalars = list(attrs["arguments"]).count(...)
        if scalars > len(operands):
            raise RelaxError(f"expected an operand for each of {scalars} arguments that are unit, got {len(operands)}")
        for info in operands[len(operands) - scalars :]:
            require_rank(info, 0, "argument")
            if is_float(info.dtype) and str(info.dtype) not in ("f32", "f64"):
                raise RelaxError(f"expected an integer, f32 or f64 as argument, got {info.dtype}")
        if not results:
            raise RelaxError("expected at least one result, got none")
        for info in chain(operands, results):
            dl_type(info.dtype)
        for info in results:
            require_known(info)
