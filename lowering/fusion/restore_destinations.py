"""Kernels write to their output arguments again: upstream fusion gives a destination that nothing reads a new tensor.

Before::

    func.func private @kernel_0(%a: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {relax.kernel} {
      %e = tensor.empty() : tensor<64xf32>
      %y = linalg.generic {...} ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {...}
      return %y

after::

    func.func private @kernel_0(%a: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {relax.kernel} {
      %y = linalg.generic {...} ins(%a : tensor<64xf32>) outs(%out : tensor<64xf32>) {...}
      return %y

What is inserted into an output argument is made in that part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.functions import body_of, functions, returned_values
from ..lowering_pass import LoweringPass
from ..marks import KERNEL
from .linalg_queries import is_empty, is_fill, owner_name

__all__ = ["RestoreDestinations", "restore_destinations"]


@dataclass(frozen=True)
class RestoreDestinations(LoweringPass):
    """Lets kernels write to their output arguments again."""

    name: ClassVar[str] = "relax-restore-destinations"

    def run(self, op: ir.Operation) -> None:
        restore_destinations(op)


def restore_destinations(module: ir.Operation) -> None:
    """Rewrites every kernel of a module, in place."""
    for function in functions(module):
        block = body_of(function)
        if KERNEL not in function.attributes or block is None:
            continue
        for insertion in _insertions(function):
            _write_in_place(insertion)
        results = returned_values(function)
        outs = list(block.arguments)[len(list(block.arguments)) - len(results) :]
        for value, out in zip(results, outs, strict=True):
            _restore(value, out)


def _restore(value: ir.Value, out: ir.Value) -> None:
    if isinstance(value, ir.BlockArgument) or not value.owner.name.startswith("linalg."):
        return
    op = value.owner.operation
    position = len(op.operands) - len(op.results) + list(op.results).index(value)
    destination = op.operands[position]
    if is_fill(destination):
        op, position = destination.owner.operation, 1
        destination = op.operands[position]
    if is_empty(destination) and destination.type == out.type:
        op.operands[position] = out


def _insertions(function: func.FuncOp) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tensor.insert_slice":
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return found


def _write_in_place(insertion: ir.Operation) -> None:
    """What is made to be inserted into a tensor is made in that part of it."""
    value, whole, *ranges = insertion.operands
    destination = value.owner.operands[len(value.owner.operands) - 1] if owner_name(value).startswith("linalg.") else None
    if destination is None or not is_empty(destination):
        return
    names = ("static_offsets", "static_sizes", "static_strides")
    attributes = {name: insertion.attributes[name] for name in names}
    dynamic = list(ir.DenseI32ArrayAttr(insertion.attributes["operandSegmentSizes"]))[2:]
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, *dynamic])
    at = ir.InsertionPoint(value.owner)
    part = ir.Operation.create(
        "tensor.extract_slice", [destination.type], [whole, *ranges], attributes, loc=insertion.location, ip=at
    )
    value.owner.operands[len(value.owner.operands) - 1] = part.result
