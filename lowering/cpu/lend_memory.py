"""What kernels work in: buffers that no template has put into registers or on the stack become arguments, of a caller's.

Before::

    func.func @main(...) { ... call @kernel_0(%x, %out) ... }
    func.func private @kernel_0(%x: memref<?x64xf32>, %out: memref<?x64xf32>) {
      %n = memref.dim %x, %c0
      %own = memref.alloc(%n) : memref<?x64xf32>
      ...

after::

    func.func @main(...) { ... %m = memref.dim %x, %c0; %own = memref.alloc(%m); call @kernel_0(%x, %out, %own) ... }
    func.func private @kernel_0(%x: memref<?x64xf32>, %out: memref<?x64xf32>, %own: memref<?x64xf32>) {
      ...

What is inside of a loop of the kernel, or has a size that is computed there, is freed at the end of that block instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import func, ir
from ...dialect.call_graph import callee_of, calls_in
from ...dialect.functions import body_of, functions, name_of, update_type
from ...dialect.traversal import clone_with, operations
from ..lowering_pass import LoweringPass
from ..marks import KERNEL

__all__ = ["LendMemory", "lend_memory"]

#: Ops that sizes are computed by: they have no effects and no regions.
_SIZES = ("arith.", "affine.", "memref.dim")


@dataclass(frozen=True)
class LendMemory(LoweringPass):
    """Lets callers of kernels allocate what these work in."""

    name: ClassVar[str] = "relax-lend-memory"

    def run(self, op: ir.Operation) -> None:
        lend_memory(op)


def lend_memory(module: ir.Operation) -> None:
    """Moves what kernels allocate to their callers, in place. Kernels call no other kernels."""
    own = {name_of(f): allocations for f in functions(module) if KERNEL in f.attributes and (allocations := _allocations(f))}
    if not own:
        return
    calls: dict[str, list[ir.Operation]] = {name: [] for name in own}
    for function in functions(module):
        for op in calls_in(function.operation) if KERNEL not in function.attributes else ():
            if callee_of(op) in calls:
                calls[callee_of(op)].append(op)
    with module.context, ir.Location.unknown():
        for function in [f for f in functions(module) if name_of(f) in own]:
            _lend(function, own[name_of(function)], calls[name_of(function)])


def _allocations(function: func.FuncOp) -> list[ir.Operation]:
    if body_of(function) is None:
        return []
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.alloc":
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _lend(function: func.FuncOp, allocations: list[ir.Operation], calls: list[ir.Operation]) -> None:
    block = body_of(function)
    assert block is not None
    sizes = [_size_ops(op, block) if op.block == block else None for op in allocations]
    lent = [[*needed, op] for op, needed in zip(allocations, sizes, strict=True) if needed is not None]
    for op, needed in zip(allocations, sizes, strict=True):
        if needed is None:
            _free_at_end(op)
    for call in calls:
        _call_with(call, list(block.arguments), lent)
    for *_, op in lent:
        op.results[0].replace_all_uses_with(block.add_argument(op.results[0].type, op.location))
        op.erase()
    update_type(function)
    if "arg_attrs" in function.attributes:
        del function.attributes["arg_attrs"]


def _call_with(call: ir.Operation, arguments: list[ir.Value], lent: list[list[ir.Operation]]) -> None:
    """Calls with buffers more, which are allocated in front of the call."""
    at, added = ir.InsertionPoint(call), list[ir.Value]()
    for needed in lent:
        mapping: dict[ir.Value, ir.Value] = dict(zip(arguments, call.operands, strict=True))
        added += [clone_with(op, mapping, at).results[0] for op in needed][-1:]
    attributes = {name: call.attributes[name] for name in call.attributes}
    with at, call.location:
        new = ir.Operation.create("func.call", [r.type for r in call.results], [*call.operands, *added], attributes)
    for old, result in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    call.erase()


def _size_ops(op: ir.Operation, block: ir.Block) -> list[ir.Operation] | None:
    """What computes the operands from the kernel's arguments, in order; None when something else does."""
    wanted, found = set(op.operands), list[ir.Operation]()
    for other in reversed(operations(block)):
        if not any(result in wanted for result in other.results):
            continue
        if not other.name.startswith(_SIZES):
            return None
        wanted.update(other.operands)
        found.append(other)
    return found[::-1]


def _free_at_end(op: ir.Operation) -> None:
    with ir.InsertionPoint(operations(op.block)[-1]), op.location:
        ir.Operation.create("memref.dealloc", [], [op.results[0]])
