"""Branches around products of which a mask keeps no row.

Before, with a mask of one flag for each row::

    %0 = "relax.matmul"(%x, %w) : (tensor<?x64xf32>, tensor<64x32xf32>) -> tensor<?x32xf32>
    %1 = "relax.where"(%mask, %0, %y) : (tensor<?x1xi1>, tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>

after::

    %any = ...                                                      // whether a flag of %mask is set
    %1 = scf.if %any -> tensor<?x32xf32> {
      %0 = "relax.matmul"(%x, %w)
      %2 = "relax.where"(%mask, %0, %y)
      scf.yield %2
    } else {
      scf.yield %y
    }

So an expert that no token chose computes nothing, and its weights are not read. What is computed for the product alone goes
with it; what a call can fail in stays where it is. Products with something else than weights stay: scores of attention are
masked, too, and there is a kernel for the whole of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..dialect import op_costs
from ..dialect.analysis.known_sizes import KnownSizes, known_sizes
from ..dialect.analysis.weight_flow import FlowRules, WeightFlow
from ..dialect.bindings import func, ir
from ..dialect.functions import body_of, functions, num_input
from ..dialect.op import Op, op_class
from ..dialect.ops import AsType, Full, NotEqual, Sum, Where
from ..dialect.struct_info import TensorInfo
from ..dialect.traversal import nested_operations
from .keep_checks import may_fail
from .lowering_pass import LoweringPass

__all__ = ["SkipMaskedProducts"]

#: What is worth a branch.
_PRODUCTS = (op_costs.PRODUCT, op_costs.CONVOLUTION, op_costs.PACKED_CONVOLUTION)


@dataclass(frozen=True)
class SkipMaskedProducts(LoweringPass):
    """Branches around products with weights of which a mask keeps no row."""

    name: ClassVar[str] = "relax-skip-masked-products"

    def run(self, op: ir.Operation) -> None:
        rules = FlowRules.of(op)
        for function in functions(op):
            if body_of(function) is not None and num_input(function) is not None:
                _skip_in(function, rules)


def _skip_in(function: func.FuncOp, rules: FlowRules) -> None:
    choices = [w for w in map(_view, nested_operations(function.operation)) if isinstance(w, Where)]
    choices = [w for w in choices if _keeps_rows(w) and not _is_skipped(w)]
    if not choices:
        return
    flow, sizes = rules.flow(function), known_sizes(function)
    for choice in choices:
        alone = _only_for(choice, sizes)
        if any(_is_product(op, flow) for op in alone):
            _branch_around(choice, alone)


def _view(op: ir.Operation) -> ir.OpView:
    return op.opview


def _keeps_rows(choice: Where) -> bool:
    """Whether rows come from the first value or the second as a whole, and both have the result's size."""
    condition, first, second = (TensorInfo.of(v) for v in choice.operation.operands)
    result = TensorInfo.of(choice.result)
    return condition.rank > 0 and condition.shape[-1] == 1 and first.shape == second.shape == result.shape


def _is_skipped(choice: Where) -> bool:
    """Whether it is in a branch for its own mask already."""
    parent = choice.operation.parent
    if parent is None or parent.name != "scf.if":
        return False
    value = parent.operation.operands[0]
    while value != choice.condition:
        if isinstance(value.owner, ir.Block) or not len(value.owner.operation.operands):
            return False
        value = value.owner.operation.operands[0]
    return True


def _is_product(op: ir.Operation, flow: WeightFlow) -> bool:
    cls = op_class(op.opview)
    return cls is not None and cls.cost in _PRODUCTS and any(map(flow.comes_from_weights, list(op.operands)[1:]))


def _only_for(choice: Where, sizes: KnownSizes) -> list[ir.Operation]:
    """What is computed for the first value alone, in the order of the program."""
    block, outside = choice.operation.block, {choice.condition, choice.y}
    alone, found, pending = {choice.operation}, list[ir.Operation](), [choice.x]
    while pending:
        value = pending.pop()
        if isinstance(value.owner, ir.Block):
            continue
        op = value.owner.operation
        if op in alone or op.block != block or not isinstance(op.opview, Op) or may_fail(op, sizes):
            continue
        if any(r in outside for r in op.results) or any(user not in alone for user in _users(op)):
            continue
        alone.add(op)
        found.append(op)
        pending += op.operands
    return found[::-1]


def _users(op: ir.Operation) -> Iterator[ir.Operation]:
    return (use.owner.operation for result in op.results for use in result.uses)


def _branch_around(choice: Where, alone: list[ir.Operation]) -> None:
    """Moves the operations, and the choice behind them, into a branch."""
    with ir.InsertionPoint(choice), choice.location:
        branch = ir.Operation.create("scf.if", [choice.result.type], [_is_any(choice.condition)], regions=2)
        then, otherwise = (region.blocks.append() for region in branch.regions)
        choice.result.replace_all_uses_with(branch.results[0])
        with ir.InsertionPoint(then):
            end = ir.Operation.create("scf.yield", [], [choice.result])
        with ir.InsertionPoint(otherwise):
            ir.Operation.create("scf.yield", [], [choice.y])
    for op in (*alone, choice.operation):
        op.move_before(end)


def _is_any(flags: ir.Value) -> ir.Value:
    """Whether one of them is true, as ``i1``; of none, no."""
    count = ir.IntegerType.get_signless(64)
    total = Sum.create(AsType.create(flags, dtype=count).result).result
    some = NotEqual.create(total, Full.create(value=0, result_types=[total.type]).result).result
    return ir.Operation.create("tensor.extract", [TensorInfo.of(some).dtype], [some]).result
