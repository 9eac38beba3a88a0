"""Tensors made from no tensor. Where no operand gives the shape, the result type does, symbols included."""

from __future__ import annotations

from .. import attributes, dim_ties, op_costs
from ..errors import RelaxError
from ..inference import require_held, require_known, require_number, require_rank
from ..op import Attrs, Op, Operand, Result, SymbolicOp, Tensor
from ..size_relations import require_at_most, require_same
from ..struct_info import TensorInfo
from ..symbolic import Expr, dim_text

__all__ = ["Arange", "Constant", "Full", "ShapeValue", "Tril", "Triu"]


class Constant(Op, name="constant"):
    """A tensor written in the IR. For small tables and scalars; weights are arguments."""

    result: Result[Tensor]
    attrs = {"value": attributes.elements()}
    cost = op_costs.FREE

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        return TensorInfo.of(attrs["value"].type)


class Full(SymbolicOp, name="full"):
    """A tensor of the result's type, every element ``value``."""

    result: Result[Tensor]
    attrs = {"value": attributes.scalar()}
    cost = op_costs.MOVES
    ties = dim_ties.EVERYWHERE

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> None:
        require_known(results[0])
        require_held(attrs["value"], results[0].dtype)


class Arange(SymbolicOp, name="arange"):
    """``start, start + step, ...`` before ``end``: each an integer or symbolic expression, a symbolic step is positive.

    The result type gives length and dtype. Values are computed in i64 and converted as :class:`AsType` does.
    """

    result: Result[Tensor]
    attrs = {"start": attributes.dims(), "end": attributes.dims(), "step": attributes.dims()}
    cost = op_costs.MOVES

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> list[TensorInfo] | None:
        (result,) = results
        require_rank(result, 1, "result")
        require_number(result, "result")
        start, end, step = (_one(name, attrs[name]) for name in ("start", "end", "step"))
        if step == 0:
            raise RelaxError("expected a step other than 0")
        if not isinstance(step, int):
            require_at_most(1, step, f"expected a positive step, got {dim_text(step)}")
        length = _steps(end - start, step) if not isinstance(step, int) or step > 0 else _steps(start - end, -step)
        require_same(length, result.shape[0], f"expected a result of {length} elements, got tensor<{result}>")
        # Where the type leaves the length open there may be none, which no expression says.
        return None if isinstance(length, Expr) else [result.with_(shape=[length])]


def _steps(distance: int | Expr, step: int | Expr) -> int | Expr:
    length = (distance + step - 1) // step
    return max(length, 0) if isinstance(length, int) else length


class ShapeValue(SymbolicOp, name="shape_value"):
    """A scalar tensor with the value of a symbolic expression; the result type gives the dtype."""

    result: Result[Tensor]
    attrs = {"value": attributes.dims()}
    cost = op_costs.MOVES

    @staticmethod
    def check(operands: list[TensorInfo], results: list[TensorInfo], attrs: Attrs) -> None:
        require_rank(results[0], 0, "result")
        require_number(results[0], "result")
        _one("value", attrs["value"])


def _one(name: str, dims: list[int | Expr]) -> int | Expr:
    if len(dims) != 1:
        raise RelaxError(f"expected one expression for attribute '{name}', got {len(dims)}")
    return dims[0]


class _Triangle(Op):
    """Base: keeps one triangle of the last two dimensions; diagonal ``k`` is above the main one when positive."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"k": attributes.integer(default=0)}
    cost = op_costs.MOVES
    ties = dim_ties.MATRICES

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        if operands[0].rank < 2:
            raise RelaxError(f"expected an operand of rank 2 or more, got {operands[0].rank}")
        return operands[0]


class Tril(_Triangle, name="tril"):
    """The lower triangle up to diagonal ``k``; zero above."""


class Triu(_Triangle, name="triu"):
    """The upper triangle from diagonal ``k``; zero below."""
