"""Checks of values that kernels make themselves: the host need not wait for the values, so that launches can be recorded.

Before::

    call @kernel_0(%indices, %size, %fine)          // fill %fine with 1; %fine &= indices[i] in [-size, size), for all i
    %v = memref.load %fine[] : memref<i8>
    %ok = arith.cmpi ne, %v, %c0
    call @relax_check(%ok, %c3) {relax.deferrable}

after::

    call @kernel_0(%indices, %size, %fine)          // one launch: a thread for each i, which compares, and notes a failure

The first check that fails leaves its number, counted from 1, in the device's status word (:mod:`.status_call`). The call goes
on to its end: what follows a deferrable check touches no memory outside of its buffers, whatever the values. Where the
condition is computed in another way, a kernel of one thread computes it from the values, in the place of the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of
from ...dialect.functions import body_of, functions, name_of
from ...dialect.reports import report
from ...dialect.reports.kernels import KernelSection
from ...dialect.traversal import clone_with, erase_unused, free_values, nested_operations, operations
from ..cpu.lower_checks import CHECK
from ..kernels.emit.emitter import Emitter
from ..kernels.emit.memory import Memory, Point
from ..kernels.structure.as_generic import as_generic
from ..lowering_pass import LoweringPass
from ..marks import DEFERRABLE, DEVICE, HOST
from .kernels.device_code import DeviceCode
from .kernels.device_memory import DeviceMemory
from .kernels.host_code import HostCode
from .kernels.nest_code import NestCode, is_plain, read
from .kernels.points import delinearized
from .separate_devices import copied
from .status_call import status_word

__all__ = ["DeferChecks", "defer_checks"]

# Threads of a block: those of a small operation (kernels/general.py), for a check is one.
_THREADS = 128

# What leaves the elements of buffers as they are.
_KEEPS = ("arith.", "memref.load", "memref.dim")

_MONOTONIC = 2  # LLVM's atomic ordering: no other memory is ordered by it


@dataclass(frozen=True)
class DeferChecks(LoweringPass):
    """Turns checks of values into work of the device."""

    name: ClassVar[str] = "relax-defer-checks"
    dialects: ClassVar[tuple[str, ...]] = ("gpu", "nvvm")

    def run(self, op: ir.Operation) -> None:
        defer_checks(op)


def defer_checks(module: ir.Operation) -> None:
    """Rewrites every deferrable check of a device function that depends on elements of buffers; in place."""
    for function in functions(module):
        if DEVICE not in function.attributes:
            continue
        done = dict[ir.Value, list[ir.Operation]]()
        for op in [op for op in nested_operations(function.operation) if _is_deferrable(op)]:
            condition, needed = op.operands[0], _computed_from(op)
            if condition in done:  # of the same condition, the first check is the one that fails
                op.erase()
            elif needed and _defer(op, needed, function, module):
                done[condition] = needed
                op.erase()
        for needed in done.values():
            erase_unused(needed)


def _is_deferrable(op: ir.Operation) -> bool:
    return op.name == "func.call" and callee_of(op) == CHECK and DEFERRABLE in op.attributes


def _defer(check: ir.Operation, needed: Sequence[ir.Operation], function: func.FuncOp, module: ir.Operation) -> bool:
    """Has a kernel make a check, if it can; whether it does."""
    loads = [op for op in needed if op.name == "memref.load"]
    if not loads or any(HOST in op.attributes for op in loads):
        return False
    number = ir.IntegerAttr(check.operands[1].owner.attributes["value"]).value
    if not _by_points(check, needed, number, module):
        if not _is_still_there(check, needed):
            return False
        _by_one_thread(check, needed, number, HostCode(function, module), module)
    return True


def _computed_from(check: ir.Operation) -> list[ir.Operation] | None:
    """The operations of the check's block that its condition is computed from, in order; None where one is no arithmetic."""
    found, pending = set[ir.Operation](), [check.operands[0]]
    while pending:
        value = pending.pop()
        if isinstance(value, ir.BlockArgument) or not value.owner.name.startswith(("arith.", "memref.load", "memref.dim")):
            if value.type == ir.IntegerType.get_signless(1, check.context):
                return None
            continue
        op = value.owner.operation
        if op not in found:
            found.add(op)
            pending += op.operands
    return [op for op in operations(check.block) if op in found]


# -- a thread for each value -----------------------------------------------------------------------------------------------


def _by_points(check: ir.Operation, needed: Sequence[ir.Operation], number: int, module: ir.Operation) -> bool:
    """Makes the kernel that combines what is found of all values note it instead; False where there is no such kernel."""
    (load, *more) = [op for op in needed if op.name == "memref.load"]
    if more or not _is_nonzero(check.operands[0], load):
        return False
    call = _only_writer(load)
    if call is None or not all(map(_is_deferrable, _users(check.operands[0]))):
        return False
    position = list(call.operands).index(load.operands[0])
    shared = next(f for f in functions(module) if name_of(f) == callee_of(call))
    as_generic(module, [shared])
    if _conjunction(shared, position) is None:
        return False
    function = _of_its_own(call, shared, module)
    work = _conjunction(function, position)
    assert work is not None
    code = HostCode(function, module)
    _launch_points(code, work[-1], number, module)
    for op in work:
        op.erase()
    report.change(KernelSection, lambda section: section.with_plans({name_of(shared): "check"}))
    return True


def _is_nonzero(condition: ir.Value, load: ir.Operation) -> bool:
    owner = condition.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.cmpi" or owner.operands[0] != load.results[0]:
        return False
    if len(_users(load.results[0])) != 1:
        return False
    right = owner.operands[1].owner
    is_zero = not isinstance(right, ir.Block) and right.name == "arith.constant" and not _constant(right)
    return ir.IntegerAttr(owner.attributes["predicate"]).value == 1 and is_zero


def _constant(op: ir.Operation | ir.OpView) -> int:
    return ir.IntegerAttr(op.attributes["value"]).value


def _only_writer(load: ir.Operation) -> ir.Operation | None:
    """The call that is all that uses a buffer, but for its allocation and the read of its one element."""
    buffer = load.operands[0]
    if ir.MemRefType(buffer.type).rank or isinstance(buffer, ir.BlockArgument) or buffer.owner.name != "memref.alloc":
        return None
    users = _users(buffer)
    calls = [op for op in users if op.name == "func.call"]
    others = [op for op in users if op.name != "func.call" and op.name != "memref.dealloc" and op != load]
    return calls[0] if len(calls) == 1 and not others else None


def _users(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


def _of_its_own(call: ir.Operation, function: func.FuncOp, module: ir.Operation) -> func.FuncOp:
    """A kernel function that nothing but one call uses: the given one, or a copy."""
    calls = [op for op in nested_operations(module) if op.name == "func.call" and callee_of(op) == name_of(function)]
    if len(calls) == 1:
        return function
    copy = copied(function, {name_of(f) for f in functions(module)}, "check")
    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(name_of(copy), module.context)
    return copy


def _conjunction(function: func.FuncOp, position: int) -> list[ir.Operation] | None:
    """All that a kernel function does with memory, where that is: fill a number with 1, combine it with others by ``and``."""
    block = body_of(function)
    if block is None:
        return None
    work = [op for op in operations(block)[:-1] if not op.name.startswith("arith.")]
    result = block.arguments[position]
    if len(work) != 2 or not all(is_plain(op) and list(op.operands)[-1] == result for op in work):
        return None
    combined = operations(work[1].regions[0].blocks[0])[-1].operands[0].owner
    accumulator = list(work[1].regions[0].blocks[0].arguments)[-1]
    uses = _users(accumulator)
    is_and = not isinstance(combined, ir.Block) and combined.name == "arith.andi" and uses == [combined.operation]
    return work if is_and else None


def _launch_points(code: HostCode, op: ir.Operation, number: int, module: ir.Operation) -> None:
    """A launch with a thread for each point of a reduction: what it combines its result with is 0 where the check fails."""
    with code.em.before(op):
        word, memory = status_word(code.em, module), Memory(code.em)
        total = _product(code.em, [memory.size(extent) for extent in read(op, memory).extents.values()])
        blocks = code.em.op("arith.ceildivui", [total, code.em.number(_THREADS)], code.em.index)
        code.launch([blocks], [_THREADS], lambda device: _points(device, op, word, number))


def _points(device: DeviceCode, op: ir.Operation, word: ir.Value, number: int) -> None:
    em, memory = device.em, DeviceMemory(device, [list(op.operands)[-1]])
    nest = read(op, memory)
    memory.prepare(nest.sizes())
    extents = [memory.size(extent) for extent in nest.extents.values()]
    place = em.add(em.mul(device.block(), em.number(_THREADS)), device.thread())

    def point() -> None:
        indices = dict(zip(nest.extents, delinearized(em, place, extents), strict=True))
        output = nest.outputs[0].argument
        one = em.constant(1, output.type)
        (found,) = NestCode(em, nest, memory).values(Point(indices), {output: one})
        _note(device, em.compare("eq", found, em.constant(0, output.type)), word, number)

    em.only_when(em.compare("ult", place, _product(em, extents)), point)


def _product(em: Emitter, values: Sequence[ir.Value]) -> ir.Value:
    total = em.number(1)
    for value in values:
        total = em.mul(total, value)
    return total


# -- one thread ------------------------------------------------------------------------------------------------------------


def _is_still_there(check: ir.Operation, needed: Sequence[ir.Operation]) -> bool:
    """Whether nothing between the first read and the check may write to, or free, what is read."""
    ops = operations(check.block)
    first = min(ops.index(op) for op in needed if op.name == "memref.load")
    between = ops[first : ops.index(check)]
    return all(op.name.startswith(_KEEPS) or (op.name == "func.call" and callee_of(op) == CHECK) for op in between)


def _by_one_thread(
    check: ir.Operation, needed: Sequence[ir.Operation], number: int, code: HostCode, module: ir.Operation
) -> None:  # fmt: skip
    """Computes the condition of the check by a kernel of one thread."""
    with code.em.before(check):
        word = status_word(code.em, module)

        def body(device: DeviceCode) -> None:
            for op in needed:
                for value in free_values(op):
                    device.value(value)
                clone_with(op, device.known, device.em.point)
            good = device.known[check.operands[0]]
            _note(device, device.em.invert(good), word, number)

        code.launch([1], [1], body, "check")


def _note(device: DeviceCode, failed: ir.Value, word: ir.Value, number: int) -> None:
    """Leaves the check's number in the status word where it fails, and none has before."""
    em = device.em
    i64, place = em.integer(64), device.value(word)
    kind = ir.Type.parse("!llvm.struct<(i64, i1)>", em.context)
    relaxed = ir.IntegerAttr.get(i64, _MONOTONIC)
    orders = {"success_ordering": relaxed, "failure_ordering": relaxed}
    operands = [place, em.constant(0, i64), em.constant(number + 1, i64)]
    em.only_when(failed, lambda: em.op("llvm.cmpxchg", operands, kind, orders))
