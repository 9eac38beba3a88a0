"""Which values of a function come from weights: what passes may move to preparation, seen before lifting decides."""

from __future__ import annotations

from collections.abc import Sequence

from ..bindings import func, ir
from ..functions import body_of, full_argument_names, num_input
from ..op import Op
from ..ops import StopLiftParams
from ..traversal import nested_operations

__all__ = ["WeightValues", "is_weight_math", "known_values", "source_names"]


def is_weight_math(op: ir.Operation, known: set[ir.Value]) -> bool:
    """Whether an op is a constant, or computes on weights and constants alone and may be lifted."""
    if op.name == "arith.constant":
        return True
    return isinstance(op.opview, Op) and op.name != StopLiftParams.OPERATION_NAME and all(v in known for v in op.operands)


def known_values(function: func.FuncOp) -> set[ir.Value]:
    """The weights of a function, its constants, and what pure relax ops compute from those; nested regions included."""
    block, inputs = body_of(function), num_input(function)
    known: set[ir.Value] = set()
    if block is None:
        return known
    if inputs is not None:
        known.update(list(block.arguments)[inputs:])
    for op in nested_operations(function.operation):
        if is_weight_math(op, known):
            known.update(op.results)
    return known


def source_names(value: ir.Value, function: func.FuncOp) -> tuple[str, ...]:
    """Names of the raw weights behind a value."""
    names, seen, pending = full_argument_names(function), dict[ir.Value, str](), [value]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        owner = value.owner
        if isinstance(owner, ir.Block):
            number = ir.BlockArgument(value).arg_number
            seen[value] = names[number]
        else:
            seen[value] = ""
            pending += reversed(list(owner.operands))
    return tuple(name for name in seen.values() if name)


class WeightValues:
    """Values computed from at least one weight, as far as the ops of the function's block have been entered."""

    def __init__(self, weights: Sequence[ir.Value]):
        self._derived, self._known = set(weights), set(weights)

    @staticmethod
    def of(function: func.FuncOp) -> WeightValues | None:
        """Before the first op; None for a function that has no body, or does not say what its weights are."""
        block, inputs = body_of(function), num_input(function)
        return None if block is None or inputs is None else WeightValues(list(block.arguments)[inputs:])

    def enter(self, op: ir.OpView) -> bool:
        """Enters an op's results; whether they come from weights. What ``relax.stop_lift_params`` returns does not."""
        if not is_weight_math(op.operation, self._known):
            return False
        self._known.update(op.results)
        derived = any(v in self._derived for v in op.operands)
        if derived:
            self._derived.update(op.results)
        return derived

    def replace(self, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
        """Forgets values that are about to be erased (another may get their address); what takes their place is like them."""
        if self._derived.issuperset(old):
            self._derived.update(new)
            self._known.update(new)
        self._derived.difference_update(old)
        self._known.difference_update(old)

    def __contains__(self, value: ir.Value) -> bool:
        return value in self._derived
