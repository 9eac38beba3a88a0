"""Expands what makes bf16 into integer arithmetic, for processors that have no instruction for it.

Before::

    %y = arith.truncf %x : vector<16xf32> to vector<16xbf16>

After: the upper half of ``bits(x) + 0x7FFF + (bit 16 of x)``, halves to even; a NaN keeps its upper half and becomes quiet.
LLVM would call ``__truncsfbf2`` once per element instead, a function that not every C runtime has. The same happens to integers
that become bf16, which go through f32 here, and to selections, which are of integers here.
"""

from __future__ import annotations

from collections.abc import Callable

from ....dialect.bindings import ir
from ....dialect.functions import body_of, functions
from ...target import Target
from .emitter import Emitter

__all__ = ["expand_bf16"]

_NATIVE = ("+avx512bf16", "+avxneconvert", "+bf16")


def expand_bf16(module: ir.Operation, target: Target) -> None:
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
                result = _EXPANSIONS[operation.name](emitter, operation)
            operation.results[0].replace_all_uses_with(result)
            operation.erase()


def _found(function: ir.Operation) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _EXPANSIONS and isinstance(_element(operation.results[0].type), ir.BF16Type):
            source = _element(operation.operands[0].type)
            if operation.name != "arith.truncf" or isinstance(source, ir.F32Type):
                found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _like(em: Emitter, kind: ir.Type, element: ir.Type) -> ir.Type:
    """A type of that element and the other's shape."""
    return ir.VectorType.get(kind.shape, element, loc=em.location) if isinstance(kind, ir.VectorType) else element


def _truncated(em: Emitter, operation: ir.Operation) -> ir.Value:
    return _rounded(em, operation.operands[0], operation.results[0].type)


def _converted(em: Emitter, operation: ir.Operation) -> ir.Value:
    result = operation.results[0].type
    return _rounded(em, em.op(operation.name, list(operation.operands), _like(em, result, em.f32)), result)


def _selected(em: Emitter, operation: ir.Operation) -> ir.Value:
    result = operation.results[0].type
    bits = _like(em, result, em.integer(16))
    condition, *values = operation.operands
    chosen = em.op("arith.select", [condition, *(em.op("arith.bitcast", [v], bits) for v in values)], bits)
    return em.op("arith.bitcast", [chosen], result)


def _rounded(em: Emitter, x: ir.Value, result: ir.Type) -> ir.Value:
    i32, i16, truth = (_like(em, result, t) for t in (em.i32, em.integer(16), em.i1))

    def number(value: int) -> ir.Value:
        return em.constant(value, i32)

    bits = em.op("arith.bitcast", [x], i32)
    upper = em.op("arith.shrui", [bits, number(16)], i32)
    odd = em.op("arith.andi", [upper, number(1)], i32)
    rounded = em.op("arith.shrui", [em.add(em.add(bits, number(0x7FFF)), odd), number(16)], i32)
    is_nan = em.op("arith.cmpf", [x, x], truth, {"predicate": em.float_predicate("uno")})
    chosen = em.op("arith.select", [is_nan, em.op("arith.ori", [upper, number(0x40)], i32), rounded], i32)
    return em.op("arith.bitcast", [em.op("arith.trunci", [chosen], i16)], result)


_EXPANSIONS: dict[str, Callable[[Emitter, ir.Operation], ir.Value]] = {
    "arith.truncf": _truncated,
    "arith.sitofp": _converted,
    "arith.uitofp": _converted,
    "arith.select": _selected,
}
