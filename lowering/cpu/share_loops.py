"""Kernels' own loops and tensors: threads share loops with independent iterations, and what these work in is on the stack.

Before::

    func.func private @attention_0(...) attributes {relax.kernel, relax.stack} {
      scf.for %i = %c0 to %n step %c1 {
        %scores = memref.alloc() : memref<384x32xf32>
        ...
      } {relax.shared = [...]}

after::

      omp.parallel if(%enough) {
        %scores = memref.alloca() : memref<384x32xf32>
        omp.wsloop { omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
          ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ...dialect.bindings import ir
from ...dialect.functions import body_of, functions
from ..kernels.emit.emitter import Emitter, LoopWork
from ..lowering_pass import LoweringPass
from ..marks import SHARED, STACK
from ..set_target import target_of
from ..target import Target

__all__ = ["ShareLoops", "share_loops"]

# Multiplications of a matrix product that count as one element operation of work.
_PER_STEP = 4


@dataclass(frozen=True)
class ShareLoops(LoweringPass):
    """Lets threads share loops, and puts what these work in on the stack."""

    name: ClassVar[str] = "relax-share-loops"
    dialects: ClassVar[tuple[str, ...]] = ("omp",)

    def run(self, op: ir.Operation) -> None:
        share_loops(op, target_of(op))


def share_loops(module: ir.Operation, target: Target) -> None:
    """Rewrites loops and allocations of every kernel on buffers that has tensors on the stack; in place.

    A loop that was simplified away, as it has one iteration, is not missed: its work is that of inner loops then.
    """
    for function in functions(module):
        block = body_of(function)
        if STACK not in function.attributes or block is None:
            continue
        emitter = Emitter(block, target.openmp)
        for loop in _found(function.operation, lambda op: op.name == "scf.for" and SHARED in op.attributes):
            _share(loop, emitter, _work(loop, block, emitter))
        _to_stack(function.operation, emitter)
        del function.attributes[STACK]


def _found(root: ir.Operation, wanted: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _share(loop: ir.Operation, emitter: Emitter, work: LoopWork) -> None:
    lower, upper, _ = loop.operands
    inside = loop.regions[0].blocks[0]

    def body(index: ir.Value) -> None:
        _to_stack(loop, emitter)
        inside.arguments[0].replace_all_uses_with(index)
        for op in [o.operation for o in inside.operations][:-1]:
            emitter.block.append(op)

    with emitter.before(loop):
        emitter.shared(lower, upper, 1, body, work)
    loop.erase()


def _to_stack(root: ir.Operation, emitter: Emitter) -> None:
    """Moves buffers of constant size; others are left, and refused later."""
    for op in _found(root, lambda op: op.name == "memref.alloc" and not len(op.operands)):
        op.results[0].replace_all_uses_with(emitter.on_stack(op.results[0].type))
        op.erase()


def _work(loop: ir.Operation, block: ir.Block, emitter: Emitter) -> LoopWork:
    """What the loop's attribute says of the function's arguments."""
    numbers = list(ir.DenseI64ArrayAttr(loop.attributes[SHARED]))
    amount, sizes = 1, list[ir.Value]()
    for argument, axis in zip(numbers[::2], numbers[1::2], strict=True):
        buffer = block.arguments[argument]
        type_ = ir.MemRefType(buffer.type)
        if type_.is_dynamic_dim(axis):
            with emitter.before(loop):
                sizes.append(emitter.op("memref.dim", [buffer, emitter.number(axis)], emitter.index))
        else:
            amount *= type_.shape[axis]
    return LoopWork(max(1, amount // _PER_STEP), tuple(sizes))
