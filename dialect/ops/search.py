"""Selection by condition or by extreme value."""

from __future__ import annotations

from .. import attributes, image_rules, op_costs
from ..bindings import ir
from ..errors import RelaxError
from ..inference import boolean, broadcast_shapes, normalize_axis, require_same_dtype
from ..op import Attrs, Narrow, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo

__all__ = ["ArgMax", "ArgMin", "ArgSort", "Where"]


class Where(Op, name="where"):
    """``x`` where the condition is true, else ``y``; all three broadcast."""

    condition: Operand[Tensor]
    x: Operand[Tensor]
    y: Operand[Tensor]
    result: Result[Tensor]
    elementwise = True
    narrow = Narrow.FOLLOWS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        condition, x, y = operands
        if condition.dtype != boolean():
            raise RelaxError(f"expected an i1 condition, got {condition.dtype}")
        require_same_dtype(x, y)
        return x.with_(shape=broadcast_shapes(condition.shape, x.shape, y.shape))


class _ArgReduce(Op):
    """Base: one index per row, as i64."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(), "keepdims": attributes.boolean(default=False)}
    cost = op_costs.REDUCES

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        axis = normalize_axis(attrs["axis"], x.rank)
        kept = [1] if attrs["keepdims"] else []
        return x.with_(shape=[*x.shape[:axis], *kept, *x.shape[axis + 1 :]], dtype=ir.IntegerType.get_signless(64))


class ArgMax(_ArgReduce, name="argmax"):
    """Index of the largest element along an axis; the first of equals, a NaN before any number. 0 for no elements."""


class ArgMin(_ArgReduce, name="argmin"):
    """Index of the smallest element along an axis; the first of equals, a NaN before any number. 0 for no elements."""


class ArgSort(Op, name="argsort"):
    """Positions along an axis, as i64, in the order that sorts: equals stay in theirs, a NaN is above all numbers."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(), "descending": attributes.boolean(default=False)}
    image = image_rules.AXIS

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        normalize_axis(attrs["axis"], x.rank)
        return x.with_(dtype=ir.IntegerType.get_signless(64))
