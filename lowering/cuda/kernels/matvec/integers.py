"""Small integers of a word as floats without a conversion, of which a multiprocessor starts a quarter as many as of other work.

Bits of an integer q in those of 2^23, at place p of its fraction, are the float ``2^23 + q * 2^p``; times ``2^-p`` and less
``2^(23-p) + zero`` it is ``q - zero``: one logical operation and one fused multiply-add, which round nothing. Half a word is
moved down first, as the fraction has 23 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.emitter import Emitter
from .stream import ScaledIntegers

__all__ = ["IntegerFloats"]

_FRACTION = 23
# The bits of the float 2^23.
_BASE = 0x4B000000
_HALF = 16
# The table of (a & b) | c for lop3.
_AND_OR = 0xEA


class IntegerFloats:
    """Builds the floats of one factor."""

    def __init__(self, em: Emitter, integers: ScaledIntegers):
        self.em, self.integers = em, integers
        # A sign becomes the highest bit of an unsigned integer, which is so much more.
        self._offset = 1 << (integers.bits - 1) if integers.is_signed else 0
        self._places = range(0, _HALF, integers.bits)

    def words(self, loaded: ir.Value) -> list[ir.Value]:
        """What is loaded as words of 32 bits, of unsigned integers."""
        em, kind = self.em, ir.VectorType(loaded.type)
        count = kind.shape[0] * kind.element_type.width // 32
        wide = em.vector(count, em.i32)
        words = loaded if loaded.type == wide else em.op("vector.bitcast", [loaded], wide)
        signs = sum(self._offset << place for place in range(0, 32, self.integers.bits))
        return [self._unsigned(em.lane(words, i), signs) for i in range(count)]

    def _unsigned(self, word: ir.Value, signs: int) -> ir.Value:
        return self._binary("xori", word, signs) if signs else word

    def _binary(self, name: str, word: ir.Value, number: int) -> ir.Value:
        signed = number - (1 << 32) if number >> 31 else number
        return self.em.op(f"arith.{name}", [word, self.em.constant(signed, self.em.i32)], self.em.i32)

    def _in_base(self, word: ir.Value, mask: int) -> ir.Value:
        """``(word & mask) | base``: as one instruction, which the assembler makes two of where LLVM writes it (ptxas 13.0)."""
        em = self.em
        attributes = {
            "asm_string": ir.StringAttr.get(f"lop3.b32 $0, $1, {mask}, {_BASE}, {_AND_OR};", em.context),
            "constraints": ir.StringAttr.get("=r,r", em.context),
            "asm_dialect": ir.IntegerAttr.get(em.integer(64), 0),
        }
        return em.op("llvm.inline_asm", [word], em.i32, attributes)

    def taken(self, zero: ir.Value | None) -> list[ir.Value]:
        """What is added to an integer's float, by its place in half a word; ``zero`` is a float."""
        em = self.em
        found = list[ir.Value]()
        for place in self._places:
            constant = em.constant(-float((1 << (_FRACTION - place)) + self._offset), em.f32)
            found.append(constant if zero is None else em.op("arith.subf", [constant, zero], em.f32))
        return found

    def floats(self, words: Sequence[ir.Value], first: int, count: int, taken: Sequence[ir.Value]) -> list[ir.Value]:
        """So many integers from one on, less their zero point."""
        em, bits, per_half = self.em, self.integers.bits, len(self._places)
        halves = dict[int, ir.Value]()
        found = list[ir.Value]()
        for number in range(first, first + count):
            half, at = divmod(number, per_half)
            if half not in halves:
                word = words[half // 2]
                halves[half] = self._binary("shrui", word, _HALF) if half % 2 else word
            place = self._places[at]
            shifted = em.op("arith.bitcast", [self._in_base(halves[half], (1 << bits) - 1 << place)], em.f32)
            found.append(em.op("math.fma", [shifted, em.constant(2.0**-place, em.f32), taken[at]], em.f32))
        return found
