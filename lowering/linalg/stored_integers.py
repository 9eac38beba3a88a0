"""Integers as memory has them, in elements of their own or several in a word, as numbers of a body."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.packed_layout import Word
from .conversion import convert, load
from .dtypes import is_unsigned
from .scalar import Scalar, emit

__all__ = ["as_integer", "place_in_word", "width_of"]


def as_integer(value: ir.Value, dtype: ir.Type, wide: ir.Type) -> Scalar:
    """A stored integer in a wider type. Four bits are cut out there: processors do not shift vectors of bytes."""
    if width_of(dtype) != 4:
        return Scalar(convert(load(value, dtype), dtype, wide))
    extended = Scalar(emit("arith.extui", wide, value))
    return extended & 15 if is_unsigned(dtype) else (extended << wide.width - 4) >> wide.width - 4


def width_of(dtype: ir.Type) -> int:
    """Bits of an integer; of others, 64."""
    return dtype.width if isinstance(dtype, ir.IntegerType) else 64


def place_in_word(step: Scalar, word: Word, rows: int, wide: ir.Type) -> Scalar:
    """The lowest bit of a step's integer in its word, see :meth:`Word.places`."""
    among = step & (word.count - 1)
    if rows in (1, word.count):
        return Scalar(emit("arith.index_cast", wide, among.value)) << (word.bits.bit_length() - 1)
    bits = (among & (rows - 1)) * (word.width // rows) + (among >> (rows.bit_length() - 1)) * word.bits
    return Scalar(emit("arith.index_cast", wide, bits.value), unsigned=True)
