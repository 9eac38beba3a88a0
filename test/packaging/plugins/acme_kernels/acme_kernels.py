"""A kernel template: the negation of a vector becomes a loop of scalars.

Before::

    linalg.generic {...} ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) { ^bb0(%a: f32, %b: f32): arith.negf; linalg.yield }

after::

    scf.for %i = %c0 to %c64 step %c1 { %a = memref.load %x[%i]; %b = arith.negf %a; memref.store %b, %y[%i] }
"""

from __future__ import annotations

from relaxir.extend import Target, arith, dialect_module, func, ir, scf

__all__ = ["TAKEN", "lower_negation"]

memref = dialect_module("memref")

#: The functions that were lowered here.
TAKEN: list[str] = []


def lower_negation(function: func.FuncOp, target: Target) -> bool:
    """Takes functions of one operation, the negation of a vector."""
    block = function.regions[0].blocks[0] if len(function.regions[0].blocks) else None
    found = [op for op in block.operations if op.operation.name == "linalg.generic"] if block is not None else []
    if len(found) != 1 or not _is_negation(found[0]):
        return False
    (op,) = found
    source, destination = op.operands
    with ir.InsertionPoint(op), op.location:
        zero, one = (arith.constant(ir.IndexType.get(), i) for i in (0, 1))
        loop = scf.ForOp(zero, memref.dim(source, zero), one)
        with ir.InsertionPoint(loop.body):
            i = loop.induction_variable
            memref.store(arith.negf(memref.load(source, [i])), destination, [i])
            scf.yield_([])
    op.erase()
    TAKEN.append(function.name.value)
    return True


def _is_negation(op: ir.OpView) -> bool:
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    vectors = all(isinstance(v.type, ir.MemRefType) and v.type.rank == 1 for v in op.operands)
    return names == ["arith.negf", "linalg.yield"] and vectors and len(op.operands) == 2
