"""Expands conversions from and to bf16 and f16 into 32-bit arithmetic, for processors that have no instruction for them.

Before::

    %x = arith.extf %b : vector<16xbf16> to vector<16xf32>
    %y = arith.truncf %z : vector<16xf32> to vector<16xbf16>

After: ``%x`` has the bits of ``%b`` as its upper half, and ``%y`` is the upper half of ``bits(z) + 0x7FFF + (bit 16 of z)``; a
NaN keeps its upper half and becomes quiet. An f16 is shifted to where f32 has its exponent, and scaled by the difference of the
biases. LLVM would call ``__truncsfbf2`` or ``__extendhfsf2`` once per element, functions that some C runtimes lack: also to
select, and even to compare what was extended, because it prefers the narrow type. Integers and f64 go through f32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ....dialect.bindings import ir
from ...lowering_pass import LoweringPass
from ...set_target import target_of
from ..emit.emitter import Emitter
from ..function_bodies import function_bodies
from .instructions import Instructions

__all__ = ["ExpandNarrowFloats", "expand_narrow_floats"]


@dataclass(frozen=True)
class ExpandNarrowFloats(LoweringPass):
    """Converts narrow floats by integer operations where a processor has no instruction for it."""

    name: ClassVar[str] = "relax-expand-narrow-floats"

    def run(self, op: ir.Operation) -> None:
        expand_narrow_floats(op, target_of(op))


def expand_narrow_floats(module: ir.Operation, target: Instructions) -> None:
    """Replaces the operations on types that the target cannot convert; in place, in every function."""
    kinds = (*(() if target.has_bf16 else (ir.BF16Type,)), *(() if target.has_f16 else (ir.F16Type,)))
    if not kinds:
        return
    for function, block in function_bodies(module):
        found = _found(function, kinds)
        if not found:
            continue
        emitter = Emitter(block)
        for operation in found:
            with emitter.before(operation):
                result = _EXPANSIONS[operation.name](emitter, operation)
            operation.results[0].replace_all_uses_with(result)
            operation.erase()


def _found(function: ir.Operation, kinds: tuple[type[ir.Type], ...]) -> list[ir.Operation]:
    found = list[ir.Operation]()

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _EXPANSIONS and isinstance(_element(_narrow(operation).type), kinds):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _narrow(operation: ir.Operation) -> ir.Value:
    return operation.operands[0] if operation.name == "arith.extf" else operation.results[0]


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _like(em: Emitter, kind: ir.Type, element: ir.Type) -> ir.Type:
    """A type of that element and the other's shape."""
    return ir.VectorType.get(kind.shape, element, loc=em.location) if isinstance(kind, ir.VectorType) else element


def _extended(em: Emitter, operation: ir.Operation) -> ir.Value:
    x, result = operation.operands[0], operation.results[0].type
    i32, i16, f32 = (_like(em, result, t) for t in (em.i32, em.integer(16), em.f32))
    bits = em.op("arith.extui", [em.op("arith.bitcast", [x], i16)], i32)
    if isinstance(_element(x.type), ir.F16Type):
        wide = _extended_f16(em, bits, f32)
    else:
        wide = em.op("arith.bitcast", [em.op("arith.shli", [bits, em.constant(16, i32)], i32)], f32)
    return wide if result == f32 else em.op("arith.extf", [wide], result)


def _extended_f16(em: Emitter, bits: ir.Value, f32: ir.Type) -> ir.Value:
    bit = _Bits(em, bits.type)
    magnitude = bit("shli", bit("andi", bits, 0x7FFF), 13)
    scaled = em.op("arith.mulf", [em.op("arith.bitcast", [magnitude], f32), em.constant(2.0**112, f32)], f32)
    # Infinities and NaNs have all bits of the exponent set, which scaling does not give.
    is_finite = em.compare("ult", magnitude, bit.number(0x0F800000))
    special = bit("ori", magnitude, 0x7F800000)
    value = em.op("arith.select", [is_finite, em.op("arith.bitcast", [scaled], bits.type), special], bits.type)
    sign = bit("shli", bit("andi", bits, 0x8000), 16)
    return em.op("arith.bitcast", [em.op("arith.ori", [value, sign], bits.type)], f32)


def _truncated(em: Emitter, operation: ir.Operation) -> ir.Value:
    x, result = operation.operands[0], operation.results[0].type
    f32 = _like(em, result, em.f32)
    return _rounded(em, x if x.type == f32 else em.op("arith.truncf", [x], f32), result)


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
    i32, i16 = (_like(em, result, t) for t in (em.i32, em.integer(16)))
    bits = em.op("arith.bitcast", [x], i32)
    rounded = _rounded_f16(em, bits, x.type) if isinstance(_element(result), ir.F16Type) else _rounded_bf16(em, bits)
    return em.op("arith.bitcast", [em.op("arith.trunci", [rounded], i16)], result)


def _rounded_bf16(em: Emitter, bits: ir.Value) -> ir.Value:
    bit = _Bits(em, bits.type)
    upper = bit("shrui", bits, 16)
    rounded = bit("shrui", em.add(em.add(bits, bit.number(0x7FFF)), bit("andi", upper, 1)), 16)
    is_nan = em.compare("ugt", bit("andi", bits, 0x7FFFFFFF), bit.number(0x7F800000))
    return em.op("arith.select", [is_nan, bit("ori", upper, 0x40), rounded], bits.type)


def _rounded_f16(em: Emitter, bits: ir.Value, f32: ir.Type) -> ir.Value:
    bit = _Bits(em, bits.type)
    magnitude = bit("andi", bits, 0x7FFFFFFF)
    odd = bit("andi", bit("shrui", magnitude, 13), 1)
    normal = bit("shrui", em.add(em.add(magnitude, bit.number(0xFFF - (112 << 23))), odd), 13)
    # An addition of 0.5 rounds at the last bit of a number below the normal ones.
    half = bit.number(126 << 23)
    sum_ = em.op("arith.addf", [em.op("arith.bitcast", [v], f32) for v in (magnitude, half)], f32)
    small = em.sub(em.op("arith.bitcast", [sum_], bits.type), half)
    finite = em.op("arith.select", [em.compare("ult", magnitude, bit.number(113 << 23)), small, normal], bits.type)
    nan = bit("ori", bit("andi", bit("shrui", magnitude, 13), 0x3FF), 0x7E00)
    is_nan = em.compare("ugt", magnitude, bit.number(0x7F800000))
    special = em.op("arith.select", [is_nan, nan, bit.number(0x7C00)], bits.type)
    value = em.op("arith.select", [em.compare("ult", magnitude, bit.number(143 << 23)), finite, special], bits.type)
    return em.op("arith.ori", [value, bit("andi", bit("shrui", bits, 16), 0x8000)], bits.type)


class _Bits:
    """Integer operations with constants."""

    def __init__(self, emitter: Emitter, kind: ir.Type):
        self._emitter, self._kind = emitter, kind

    def number(self, value: int) -> ir.Value:
        return self._emitter.constant(value, self._kind)

    def __call__(self, name: str, x: ir.Value, constant: int) -> ir.Value:
        return self._emitter.op(f"arith.{name}", [x, self.number(constant)], self._kind)


_EXPANSIONS: dict[str, Callable[[Emitter, ir.Operation], ir.Value]] = {
    "arith.extf": _extended,
    "arith.truncf": _truncated,
    "arith.sitofp": _converted,
    "arith.uitofp": _converted,
    "arith.select": _selected,
}
