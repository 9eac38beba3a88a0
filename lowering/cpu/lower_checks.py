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

import math

from ...dialect.bindings import ir
from ...dialect.functions import functions, name_of
from ...dialect.struct_info import element_bytes

__all__ = ["CHECK", "check_allocations", "lower_checks"]

CHECK = "relax_check"

# The status of a call that got no memory is the least number there is.
_NO_MEMORY = 2**63 - 1


def check_allocations(module: ir.Operation) -> None:
    """Memory whose size only the run time knows: a size that overflows, or that there is no memory for, is a failed check.

    Without it, code would write to the few bytes that are left of an overflow, or to address 0. In place.
    """
    for function in functions(module):
        if list(function.type.results) != [ir.IntegerType.get_signless(64, module.context)]:
            continue
        found: list[ir.Operation] = []

        def visit(op: ir.Operation, found: list[ir.Operation] = found) -> ir.WalkResult:
            if op.name == "memref.alloc":
                found.append(op)
            return ir.WalkResult.ADVANCE

        function.operation.walk(visit)
        for op in found:
            _check_allocation(op)


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
        where = ir.Operation.create("memref.extract_aligned_pointer_as_index", [ir.IndexType.get()], [op.results[0]]).result
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


def lower_checks(module: ir.Operation) -> None:
    """Replaces every call of ``@relax_check`` in functions that return an i64 status; in place."""
    for function in functions(module):
        if name_of(function) == CHECK:
            function.operation.erase()
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
