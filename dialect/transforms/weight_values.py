"""Which values of a function come from weights: what passes may move to preparation, seen before lifting decides."""

from __future__ import annotations

from collections.abc import Sequence

from ..bindings import func, ir
from ..functions import body_of, num_input
from ..op import Op, op_class
from ..ops import StopLiftParams

__all__ = ["WeightValues"]


class WeightValues:
    """Values computed from weights and constants, as far as the ops of the function's block have been entered."""

    def __init__(self, weights: Sequence[ir.Value]):
        self._derived = set(weights)
        self._constant: set[ir.Value] = set()

    @staticmethod
    def of(function: func.FuncOp) -> WeightValues | None:
        """Before the first op; None for a function that has no body, or does not say what its weights are."""
        block, inputs = body_of(function), num_input(function)
        return None if block is None or inputs is None else WeightValues(list(block.arguments)[inputs:])

    def enter(self, op: ir.OpView) -> bool:
        """Enters an op's results; whether they come from weights. What ``relax.stop_lift_params`` returns does not."""
        cls = op_class(op)
        if op.operation.name != "arith.constant" and (cls is None or not issubclass(cls, Op) or cls is StopLiftParams):
            return False
        operands = list(op.operands)
        if not all(v in self._derived or v in self._constant for v in operands):
            return False
        derived = any(v in self._derived for v in operands)
        (self._derived if derived else self._constant).update(op.results)
        return derived

    def replace(self, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
        """Forgets values that are about to be erased (another may get their address); what takes their place is like them."""
        if self._derived.issuperset(old):
            self._derived.update(new)
        self._derived.difference_update(old)
        self._constant.difference_update(old)

    def __contains__(self, value: ir.Value) -> bool:
        return value in self._derived
