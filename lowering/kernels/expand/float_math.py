"""Builds arithmetic on floats, scalars or vectors: what the expansions of functions are made of."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from ..emit.emitter import Emitter
from .instructions import Instructions

__all__ = ["FloatMath"]

# Adding 1.5 * 2**23 rounds a small float to an integer, found in the low bits of the sum. fptosi of a NaN would be poison.
_ROUND = 12582912.0
_ROUND_BITS = 0x4B400000
# The widest form of scalef wants to be told how to round: as the processor is set to.
_LANES_512, _CURRENT_ROUNDING = 16, 4


class FloatMath:
    """Arithmetic on values of one type: f32, f64 or a vector of these. What rounds, and powers of two, are those of f32."""

    def __init__(self, emitter: Emitter, operation: ir.Operation, target: Instructions):
        self.emitter, self.operation, self.target = emitter, operation, target
        self.kind = operation.results[0].type
        self.width = width = self.kind.shape[0] if isinstance(self.kind, ir.VectorType) else 0
        element = self.kind.element_type if width else self.kind
        integer = emitter.integer(64) if isinstance(element, ir.F64Type) else emitter.i32
        self.integer = emitter.vector(width, integer) if width else integer
        self.truth = emitter.vector(width, emitter.i1) if width else emitter.i1

    def number(self, value: float) -> ir.Value:
        return self.emitter.constant(value, self.kind)

    def count(self, value: int) -> ir.Value:
        return self.emitter.constant(value, self.integer)

    def op(self, name: str, *operands: ir.Value) -> ir.Value:
        return self.emitter.op(name, operands, operands[0].type)

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.addf", a, b)

    def sub(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.subf", a, b)

    def mul(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.mulf", a, b)

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self.op("math.fma", a, b, c)

    def div(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.divf", a, b)

    def sqrt(self, a: ir.Value) -> ir.Value:
        return self.op("math.sqrt", a)

    def polynomial(self, x: ir.Value, factors: Sequence[float]) -> ir.Value:
        """Horner's rule, highest power first."""
        total = self.number(factors[0])
        for factor in factors[1:]:
            total = self.fma(total, x, self.number(factor))
        return total

    def bits(self, x: ir.Value) -> ir.Value:
        return self.emitter.op("arith.bitcast", [x], self.integer)

    def from_bits(self, x: ir.Value) -> ir.Value:
        return self.emitter.op("arith.bitcast", [x], self.kind)

    def compare(self, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.emitter.op("arith.cmpf", [a, b], self.truth, {"predicate": self.emitter.float_predicate(predicate)})

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.emitter.op("arith.select", [condition, a, b], a.type)

    def both(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.andi", a, b)

    def either(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.op("arith.ori", a, b)

    def clamp(self, x: ir.Value, low: float, high: float) -> ir.Value:
        """Between two numbers; NaN stays NaN (this operand order is one vmaxps, one vminps)."""
        bottom, top = self.number(low), self.number(high)
        x = self.select(self.compare("ogt", bottom, x), bottom, x)
        return self.select(self.compare("olt", top, x), top, x)

    def with_sign(self, x: ir.Value, sign: ir.Value) -> ir.Value:
        """``x`` with the sign of another value: that of a zero, too."""
        return self.op("math.copysign", x, sign)

    def absolute(self, x: ir.Value) -> ir.Value:
        return self.op("math.absf", x)

    def rounded(self, x: ir.Value, factor: float) -> tuple[ir.Value, ir.Value]:
        """``x * factor`` to the nearest integer, as f32 and as i32; it must be below 2**22."""
        n, bits = self.biased(x, factor, 0)
        return n, self.op("arith.subi", bits, self.count(_ROUND_BITS))

    def biased(self, x: ir.Value, factor: float, bias: int) -> tuple[ir.Value, ir.Value]:
        """``n = x * factor`` to the nearest integer, and an i32 of which the low bits are ``n + bias``."""
        shift = self.number(_ROUND + bias)
        total = self.fma(x, self.number(factor), shift)
        return self.sub(total, shift), self.bits(total)

    def power_of_two(self, exponent: ir.Value) -> ir.Value:
        """``2 ** e`` of an i32 whose low 9 bits are ``e + 127``, at least 0; it is 0 when they are."""
        return self.from_bits(self.op("arith.shli", exponent, self.count(23)))

    def powers_of_two(self, exponent: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Two numbers whose product is ``2 ** n``, given an i32 of which the low bits are ``n + 254``: neither overflows."""
        half = self.op("arith.shrui", exponent, self.count(1))
        return self.power_of_two(half), self.power_of_two(self.op("arith.subi", exponent, half))

    @property
    def has_scalef(self) -> bool:
        """Whether an instruction multiplies by powers of two, in these vectors."""
        return self.target.has_scalef and self.width % 4 == 0 and self.width > 0

    def scalef(self, x: ir.Value, n: ir.Value) -> ir.Value:
        """``x * 2 ** n``, rounded once, by that instruction; on Zen 4 it leaves the multipliers alone."""
        em, lanes = self.emitter, min(self.width, self.target.lanes())
        name, kind = f"llvm.x86.avx512.mask.scalef.ps.{32 * lanes}", em.vector(lanes, em.f32)
        all_lanes = em.constant(-1, em.integer(max(8, lanes)))
        rounding = [em.constant(_CURRENT_ROUNDING, em.i32)] if lanes == _LANES_512 else []
        parts = [[em.lanes(v, at, lanes) for v in (x, n)] for at in range(0, self.width, lanes)]
        return em.joined([em.intrinsic(name, [p, q, p, all_lanes, *rounding], kind) for p, q in parts])
