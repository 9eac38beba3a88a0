"""Kernels' own loops: threads share those with independent iterations, and what an iteration works in is on the stack.

Before::

    func.func private @attention_0(...) attributes {relax.kernel, relax.shared = [...]} {
      scf.for %i = %c0 to %n step %c1 {
        %scores = memref.alloc() : memref<384x32xf32>
        ...

after::

      omp.parallel if(%enough) {
        %scores = memref.alloca() : memref<384x32xf32>
        omp.wsloop { omp.loop_nest (%i) : index = (%c0) to (%n) step (%c1) {
          ...
"""

from __future__ import annotations

from ...dialect.bindings import func, ir
from ...dialect.functions import body_of, functions
from ..linalg.kernel import KERNEL, SHARED
from ..target import Target
from .kernels.emitter import Emitter, Work

__all__ = ["share_loops"]

# Multiplications of a matrix product that count as one element operation of work.
_PER_STEP = 4


def share_loops(module: ir.Operation, target: Target) -> None:
    """Rewrites the outermost loops of every kernel on buffers, in place."""
    for function in functions(module):
        block = body_of(function)
        loops = _outermost_loops(function) if KERNEL in function.attributes and block is not None else []
        if not loops or block is None:
            continue
        emitter = Emitter(block, target.openmp and SHARED in function.attributes)
        for loop in loops:
            _rebuild(loop, emitter, function)


def _outermost_loops(function: func.FuncOp) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name != "scf.for":
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.SKIP

    function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _rebuild(loop: ir.Operation, emitter: Emitter, function: func.FuncOp) -> None:
    lower, upper, _ = loop.operands
    inside = loop.regions[0].blocks[0]

    def body(index: ir.Value) -> None:
        _to_stack(loop, emitter)
        inside.arguments[0].replace_all_uses_with(index)
        for op in [o.operation for o in inside.operations][:-1]:
            emitter.block.append(op)

    with emitter.before(loop):
        if SHARED in function.attributes:
            emitter.shared(lower, upper, 1, body, _work(function, emitter))
        else:
            emitter.each(lower, upper, 1, body)
    loop.erase()


def _to_stack(loop: ir.Operation, emitter: Emitter) -> None:
    """Buffers of constant size that the loop allocates; others are left, and refused later."""
    allocations: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "memref.alloc" and not len(op.operands):
            allocations.append(op)
        return ir.WalkResult.ADVANCE

    loop.walk(visit)
    for op in allocations:
        op.results[0].replace_all_uses_with(emitter.on_stack(op.results[0].type))
        op.erase()


def _work(function: func.FuncOp, emitter: Emitter) -> Work:
    numbers = list(ir.DenseI64ArrayAttr(function.attributes[SHARED]))
    block = body_of(function)
    assert block is not None
    amount, sizes = 1, list[ir.Value]()
    for argument, axis in zip(numbers[::2], numbers[1::2], strict=True):
        buffer = block.arguments[argument]
        type_ = ir.MemRefType(buffer.type)
        if type_.is_dynamic_dim(axis):
            sizes.append(emitter.op("memref.dim", [buffer, emitter.number(axis)], emitter.index))
        else:
            amount *= type_.shape[axis]
    return Work(max(1, amount // _PER_STEP), tuple(sizes))
