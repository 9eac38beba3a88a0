"""Operations that a GPU has instructions for, as LLVM's intrinsics: MLIR would call functions of the device library.

Before::

    %y = math.sqrt %x : f32

after::

    %y = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32

A call by name, because MLIR's pass for GPUs refuses ``llvm.intr.sqrt`` itself.
"""

from __future__ import annotations

from ...dialect.bindings import ir
from ..kernels.emit.emitter import Emitter
from ..kernels.function_bodies import function_bodies

__all__ = ["to_intrinsics"]

_INTRINSICS = {
    "arith.maxnumf": "llvm.maxnum",
    "arith.minnumf": "llvm.minnum",
    "math.absf": "llvm.fabs",
    "math.ceil": "llvm.ceil",
    "math.copysign": "llvm.copysign",
    "math.floor": "llvm.floor",
    "math.fma": "llvm.fma",
    "math.roundeven": "llvm.roundeven",
    "math.sqrt": "llvm.sqrt",
    "math.trunc": "llvm.trunc",
}


def to_intrinsics(module: ir.Operation) -> None:
    """Replaces the operations in place, in every function, on scalars and vectors of one dimension."""
    for function, block in function_bodies(module):
        found = _found(function)
        if not found:
            continue
        emitter = Emitter(block)
        for operation in found:
            with emitter.before(operation):
                kind = operation.results[0].type
                result = emitter.intrinsic(_INTRINSICS[operation.name], list(operation.operands), kind)
            operation.results[0].replace_all_uses_with(result)
            operation.erase()


def _found(function: ir.Operation) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _INTRINSICS and _is_flat(operation.results[0].type):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _is_flat(kind: ir.Type) -> bool:
    return not isinstance(kind, ir.VectorType) or kind.rank == 1
