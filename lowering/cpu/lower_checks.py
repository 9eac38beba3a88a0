"""Run-time checks in control-flow form: a failed ``relax_check`` leaves the function with a negative status.

Before::

    call @relax_check(%ok, %c2) : (i1, i64) -> ()
    ...rest

after::

    cf.cond_br %ok, ^rest, ^failed(%c2 : i64)
  ^failed(%i: i64):
    return -(i + 1)
  ^rest:
    ...rest
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.functions import functions, name_of
from ..lowering_pass import LoweringPass

__all__ = ["CHECK", "LowerChecks", "lower_checks"]

CHECK = "relax_check"


@dataclass(frozen=True)
class LowerChecks(LoweringPass):
    """Makes failed run-time checks leave their function."""

    name: ClassVar[str] = "relax-lower-checks"

    def run(self, op: ir.Operation) -> None:
        lower_checks(op)


def lower_checks(module: ir.Operation) -> None:
    """Replaces every call of ``@relax_check`` in functions that return an i64 status; in place."""
    for function in functions(module):
        if name_of(function) == CHECK:
            function.operation.erase()
            continue
        if not function.type.results:  # a kernel, whose walk would take longest: it has no status to return
            continue
        calls: list[ir.Operation] = []

        def visit(op: ir.Operation, calls: list[ir.Operation] = calls) -> ir.WalkResult:
            if op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == CHECK:
                calls.append(op)
            return ir.WalkResult.ADVANCE

        function.operation.walk(visit)
        for call in calls:
            _branch(call)


def _branch(call: ir.Operation) -> None:
    i64 = ir.IntegerType.get_signless(64, call.context)
    block = call.block
    with call.location:
        rest = block.create_after()
        failed = block.create_after(i64)
    following = [op.operation for op in block.operations]
    start = next(i for i, op in enumerate(following) if op == call)
    for op in following[start + 1 :]:
        rest.append(op)
    with ir.InsertionPoint(failed), call.location:
        minus_one = ir.Operation.create("arith.constant", [i64], attributes={"value": ir.IntegerAttr.get(i64, -1)}).result
        status = ir.Operation.create("arith.subi", [i64], [minus_one, failed.arguments[0]]).result
        ir.Operation.create("func.return", [], [status])
    with ir.InsertionPoint(call), call.location:
        segments = ir.DenseI32ArrayAttr.get([1, 0, 1])
        ir.Operation.create(
            "cf.cond_br", [], [call.operands[0], call.operands[1]], successors=[rest, failed],
            attributes={"operandSegmentSizes": segments},
        )  # fmt: skip
    call.erase()
