"""Memory whose size only the run time knows: a size that overflows, or that there is no memory for, is a failed check.

Before::

    %b = memref.alloc(%n) : memref<?x64xf32>

after::

    %low, %high = arith.mulsi_extended %bytes, %n
    %fits = 0 <= %n and %high == 0 and 0 <= %low
    call @relax_check(%fits, %c9223372036854775807)
    %b = memref.alloc(%n) : memref<?x64xf32>
    %there = the address of %b is not 0
    call @relax_check(%there, %c9223372036854775807)

Without it, code would write to the few bytes that are left of an overflow, or to address 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.functions import functions
from ...dialect.struct_info import element_bytes
from ..lowering_pass import LoweringPass
from .lower_checks import CHECK

__all__ = ["CheckAllocations", "check_allocations"]

# The status of a call that got no memory is the least number there is.
_NO_MEMORY = 2**63 - 1

_ADDRESS = "memref.extract_aligned_pointer_as_index"


@dataclass(frozen=True)
class CheckAllocations(LoweringPass):
    """Checks that there is memory for what the run time allocates."""

    name: ClassVar[str] = "relax-check-allocations"

    def run(self, op: ir.Operation) -> None:
        check_allocations(op)


def check_allocations(module: ir.Operation) -> None:
    """Checks the allocations of every function that returns a status; in place."""
    for function in functions(module):
        if list(function.type.results) != [ir.IntegerType.get_signless(64, module.context)]:
            continue
        found: list[ir.Operation] = []

        def visit(op: ir.Operation, found: list[ir.Operation] = found) -> ir.WalkResult:
            if op.name == "memref.alloc" and not _is_checked(op):
                found.append(op)
            return ir.WalkResult.ADVANCE

        function.operation.walk(visit)
        for op in found:
            _check_allocation(op)


def _is_checked(op: ir.Operation) -> bool:
    """Whether something asks for the address of a buffer, as its check does."""
    return any(use.owner.name == _ADDRESS for use in op.results[0].uses)


def _check_allocation(op: ir.Operation) -> None:
    type_ = ir.MemRefType(op.results[0].type)
    static = math.prod(d for d in type_.shape if d != ir.ShapedType.get_dynamic_size()) * element_bytes(type_.element_type)
    with ir.InsertionPoint(op), op.location:
        i64 = ir.IntegerType.get_signless(64)
        total, fits = _i64(static), None
        for size in op.operands:
            length = ir.Operation.create("arith.index_cast", [i64], [size]).result
            low, high = ir.Operation.create("arith.mulsi_extended", [i64, i64], [total, length]).results
            # Neither factor is negative: then the product is not, and all of it is in the low half.
            good = (_compare("sge", length), _compare("eq", high), _compare("sge", low))
            fits = _both(*good) if fits is None else _both(fits, *good)
            total = low
        if fits is not None:
            _call_check(fits)
    following = op.block.operations[list(op.block.operations).index(op.opview) + 1]
    with ir.InsertionPoint(following), op.location:
        where = ir.Operation.create(_ADDRESS, [ir.IndexType.get()], [op.results[0]]).result
        there = ir.Operation.create("arith.index_cast", [i64], [where]).result
        _call_check(_compare("ne", there))


def _i64(value: int) -> ir.Value:
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    return ir.Operation.create("arith.constant", [attribute.type], attributes={"value": attribute}).result


def _compare(predicate: str, value: ir.Value) -> ir.Value:
    """Whether a number is so, compared with 0."""
    number = ("eq", "ne", "slt", "sle", "sgt", "sge").index(predicate)
    attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
    return ir.Operation.create("arith.cmpi", [ir.IntegerType.get_signless(1)], [value, _i64(0)], attributes).result


def _both(first: ir.Value, *others: ir.Value) -> ir.Value:
    for other in others:
        first = ir.Operation.create("arith.andi", [first.type], [first, other]).result
    return first


def _call_check(condition: ir.Value) -> None:
    callee = {"callee": ir.FlatSymbolRefAttr.get(CHECK)}
    ir.Operation.create("func.call", [], [condition, _i64(_NO_MEMORY)], attributes=callee)
