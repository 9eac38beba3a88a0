"""Ops that say something about a value without computing on it."""

from __future__ import annotations

from typing import Any

from .. import attributes, op_costs
from ..bindings import ir
from ..errors import RelaxError
from ..op import Attrs, DefiningOp, EffectOp, Operand, Result, SymbolicOp, Tensor
from ..size_relations import known_first
from ..struct_info import TensorInfo, same_info
from .creation import _one
from .unary import _Unary

__all__ = ["Keep", "MatchCast", "PrimValue", "StopLiftParams"]


class Keep(EffectOp, name="keep"):
    """Keeps what makes a value, which nothing may read, until its run-time checks are made; computes nothing.

    ``relax-keep-checks`` writes it, so that calls which fail in an op go on to fail where its result goes unread.
    """

    x: Operand[Any]
    cost = op_costs.FREE


class MatchCast(DefiningOp, name="match_cast"):
    """The operand under the result's type, checked at run time; symbols that are new there are defined by it.

    The type must not contradict the operand's: same rank and dtype, equal where both are constant.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    cost = op_costs.FREE
    may_fail = True

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> list[TensorInfo]:
        (x,), (result,) = operands, results
        constant = [d if isinstance(d, int) else None for d in x.shape]
        wanted = [d if isinstance(d, int) else None for d in result.shape]
        if not same_info(x.with_(shape=constant), result.with_(shape=wanted)):
            raise RelaxError(f"expected a type that tensor<{x}> can have, got tensor<{result}>")
        return [result.with_(shape=[known_first(w, g) for w, g in zip(result.shape, x.shape, strict=True)])]


class PrimValue(SymbolicOp, name="prim_value"):
    """The value of a symbolic expression as an ``index``, for the bounds of loops and, compared, for conditions."""

    result: Result[ir.IndexType]
    attrs = {"value": attributes.dims()}

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo | None], attrs: Attrs) -> None:
        _one("value", attrs["value"])


class StopLiftParams(_Unary, name="stop_lift_params"):
    """The operand, unchanged: a barrier, what is computed from it stays in inference."""

    elementwise = False
    cost = op_costs.FREE
