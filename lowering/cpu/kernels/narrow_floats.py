"""Expands truncations of f32 to bf16 into integer arithmetic, for processors that have no instruction for them.

Before::

    %y = arith.truncf %x : vector<16xf32> to vector<16xbf16>

After: the upper half of ``bits(x) + 0x7FFF + (bit 16 of x)``, halves to even; a NaN keeps its upper half and becomes quiet.
LLVM would call ``__truncsfbf2`` once per element instead, a function that not every C runtime has.
"""

from __future__ import annotations

from ....dialect.bindings import ir
from ....dialect.functions import body_of, functions
from ...target import Target
from .emitter import Emitter

__all__ = ["expand_truncations"]

_NATIVE = ("+avx512bf16", "+avxneconvert", "+bf16")


def expand_truncations(module: ir.Operation, target: Target) -> None:
    """Replaces the operations in place, in every function; none on a target that has them."""
    if any(feature in target.features.split(",") for feature in _NATIVE):
        return
    for function in functions(module):
        block, found = body_of(function), _found(function.operation)
        if block is None or not found:
            continue
        emitter = Emitter(block)
        for operation in found:
            with emitter.before(operation):
                result = _truncated(emitter, operation)
            operation.results[0].replace_all_uses_with(result)
            operation.erase()


def _found(function: ir.Operation) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "arith.truncf":
            source, result = (_element(v.type) for v in (operation.operands[0], operation.results[0]))
            if isinstance(result, ir.BF16Type) and isinstance(source, ir.F32Type):
                found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _truncated(em: Emitter, operation: ir.Operation) -> ir.Value:
    (x,), result = operation.operands, operation.results[0].type
    width = result.shape[0] if isinstance(result, ir.VectorType) else 0
    i32, i16, truth = (em.vector(width, t) if width else t for t in (em.i32, em.integer(16), em.i1))

    def number(value: int) -> ir.Value:
        return em.constant(value, i32)

    bits = em.op("arith.bitcast", [x], i32)
    upper = em.op("arith.shrui", [bits, number(16)], i32)
    odd = em.op("arith.andi", [upper, number(1)], i32)
    rounded = em.op("arith.shrui", [em.add(em.add(bits, number(0x7FFF)), odd), number(16)], i32)
    is_nan = em.op("arith.cmpf", [x, x], truth, {"predicate": em.float_predicate("uno")})
    chosen = em.op("arith.select", [is_nan, em.op("arith.ori", [upper, number(0x40)], i32), rounded], i32)
    return em.op("arith.bitcast", [em.op("arith.trunci", [chosen], i16)], result)
