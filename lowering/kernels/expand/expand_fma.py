"""Splits fused multiply-adds in two for processors without an instruction for them: LLVM would call ``fmaf`` for each lane.

Before::

    %y = vector.fma %a, %b, %c : vector<4xf32>

after::

    %0 = arith.mulf %a, %b : vector<4xf32>
    %y = arith.addf %0, %c : vector<4xf32>
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....dialect.bindings import ir
from ...lowering_pass import LoweringPass
from ...set_target import target_of
from ..emit.emitter import Emitter
from ..function_bodies import function_bodies
from .instructions import Instructions

__all__ = ["ExpandFma", "expand_fma"]


@dataclass(frozen=True)
class ExpandFma(LoweringPass):
    """Takes fused multiply-adds apart where a processor has none."""

    name: ClassVar[str] = "relax-expand-fma"

    def run(self, op: ir.Operation) -> None:
        expand_fma(op, target_of(op))


def expand_fma(module: ir.Operation, target: Instructions) -> None:
    """Replaces the operations in place, in every function; none on a target that has the instruction."""
    if target.has_fma:
        return
    for function, block in function_bodies(module):
        found = _found(function)
        if not found:
            continue
        emitter = Emitter(block)
        for operation in found:
            a, b, c = operation.operands
            with emitter.before(operation):
                result = emitter.op("arith.addf", [emitter.op("arith.mulf", [a, b], c.type), c], c.type)
            operation.results[0].replace_all_uses_with(result)
            operation.erase()


def _found(function: ir.Operation) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in ("vector.fma", "math.fma"):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found
