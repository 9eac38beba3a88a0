"""Expands conversions from and to bf16 into integer arithmetic, for processors that have no instruction for it.

Before::

    %x = arith.extf %b : vector<16xbf16> to vector<16xf32>
    %y = arith.truncf %z : vector<16xf32> to vector<16xbf16>

After: ``%x`` has the bits of ``%b`` as its upper half, and ``%y`` is the upper half of ``bits(z) + 0x7FFF + (bit 16 of z)``; a
NaN keeps its upper half and becomes quiet. LLVM would call ``__truncsfbf2`` once per element, a function that some C runtimes
lack: also to select, and even to compare what was extended, because it prefers the narrow type. Integers go through f32.
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
        if operation.name in _EXPANSIONS:
            source, result = (_element(v.type) for v in (operation.operands[0], operation.results[0]))
            narrow, wide = (source, result) if operation.name == "arith.extf" else (result, source)
            known = operation.name != "arith.truncf" or isinstance(wide, ir.F32Type)
            if known and isinstance(narrow, ir.BF16Type):
                found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _like(em: Emitter, kind: ir.Type, element: ir.Type) -> ir.Type:
    """A type of that element and the other's shape."""
    return ir.VectorType.get(kind.shape, element, loc=em.location) if isinstance(kind, ir.VectorType) else element


def _extended(em: Emitter, operation: ir.Operation) -> ir.Value:
    x, result = operation.operands[0], operation.results[0].type
    i32, i16, f32 = (_like(em, result, t) for t in (em.i32, em.integer(16), em.f32))
    bits = em.op("arith.extui", [em.op("arith.bitcast", [x], i16)], i32)
    wide = em.op("arith.bitcast", [em.op("arith.shli", [bits, em.constant(16, i32)], i32)], f32)
    return wide if result == f32 else em.op("arith.extf", [wide], result)


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
    "arith.extf": _extended,
    "arith.truncf": _truncated,
    "arith.sitofp": _converted,
    "arith.uitofp": _converted,
    "arith.select": _selected,
}
