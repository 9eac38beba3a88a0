"""Which words of a weight an integer of a body is taken from, by the mark on the operation that takes it out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.packed_layout import NIBBLES, PLANES, Word
from ...marks import WORD
from ..emit.linear_index import Atom, FloorDivision, Linear
from .nest import Operand
from .sample import Sample

__all__ = ["PackedInteger", "packed_integer", "steps_of_element"]

# Eight different integers, and other ones.
_SAMPLE, _HIGH = 0x1FD96A2C, 0x6B3C5A91


@dataclass(frozen=True)
class PackedInteger:
    """An integer of a step, out of words.

    Attributes:
        low: the word that has its four lowest bits; where, ``NIBBLES.places(rows)`` says by the place of step k among eight.
        high: the word that has the others, None where there are none.
        bits: how many these are; they are at ``PLANES[bits].places(8)``.
        rows: how many steps a shift and a mask give at once.
    """

    low: ir.Value
    high: ir.Value | None = None
    bits: int = 0
    rows: int = 1


def packed_integer(integer: ir.Value, operands: Sequence[Operand], k: int) -> PackedInteger | None:
    """The words of an integer of step k; None where it is in none.

    Raises:
        RelaxError: an operation is marked that does not take integers out of words like that, at its location.
    """
    if isinstance(integer, ir.BlockArgument) or WORD not in integer.owner.attributes:
        return None
    op = integer.owner.operation
    rows, words = _words(op)
    sources = [o for o in operands if _depends(integer, o.argument)]
    if len(sources) != len(words):
        expected = "one word" if len(words) == 1 else f"{len(words)} words"
        raise RelaxError(f"expected integers of {expected}, got those of {len(sources)}", op.location)
    for source, word in zip(sources, words, strict=True):
        if source.argument.type != ir.IntegerType.get_signless(word.width, op.context):
            raise RelaxError(f"expected a word of i{word.width}, got {source.argument.type}", op.location)
    if words[0] != NIBBLES or not all(_is_read_by(s, k, w.count) for s, w in zip(sources, words, strict=True)):
        return None
    _check(integer, sources, k, rows, words)
    if len(words) == 1:
        return PackedInteger(sources[0].argument, rows=rows)
    return PackedInteger(*_arguments(sources), words[1].bits)


def steps_of_element(source: Operand, k: int) -> int:
    """How many steps of k an element of an operand has, where the next ones are its neighbour's; 0 where they are not.

    An integer as wide as a word is taken for one where so many steps read the same.
    """
    along = [(atom, value.static) for atom, value in source.offset.terms if _is_along(atom, k)]
    if along == [(k, 1)]:
        return 1
    return NIBBLES.count if along == [(FloorDivision(Linear.dim(k), NIBBLES.count), 1)] else 0


def _is_along(atom: Atom, k: int) -> bool:
    return atom == k if isinstance(atom, int) else k in atom.inner.dims()


def _words(op: ir.Operation) -> tuple[int, list[Word]]:
    """Those of a mark: the word of four bits, and that of the high bits; before them how many rows of the first come out."""
    attribute = op.attributes[WORD]
    text = ir.StringAttr(attribute).value if isinstance(attribute, ir.StringAttr) else ""
    match = re.fullmatch(r"(?:rows ([248]), )?(.*)", text, re.DOTALL)
    assert match is not None
    parts = match[2].split("+")
    words = [word for word in map(Word.parse, parts) if word is not None]
    are_planes = len(words) == 2 and words[1] in PLANES.values() and match[1] is None
    if len(words) != len(parts) or not (len(words) == 1 or are_planes):
        raise RelaxError(f'expected {WORD} such as "{NIBBLES}", got {attribute}', op.location)
    return int(match[1] or 1), words


def _arguments(sources: Sequence[Operand]) -> tuple[ir.Value, ir.Value]:
    low, high = sources
    return low.argument, high.argument


def _depends(value: ir.Value, argument: ir.Value) -> bool:
    if isinstance(value, ir.BlockArgument):
        return value == argument
    return any(_depends(v, argument) for v in value.owner.operands)


def _is_read_by(source: Operand, k: int, count: int) -> bool:
    """Whether so many steps of k read one word, and the next ones another."""
    along = [atom for atom, _ in source.offset.terms if _is_along(atom, k)]
    return [(a.inner, a.divisor) for a in along if not isinstance(a, int)] == [(Linear.dim(k), count)] and len(along) == 1


def _check(integer: ir.Value, sources: Sequence[Operand], k: int, rows: int, words: Sequence[Word]) -> None:
    """Raises RelaxError where the integer of a step is not the one at its place."""
    given = {s.argument: sample for s, sample in zip(sources, (_SAMPLE, _HIGH), strict=False)}
    for step in range(words[-1].count):
        place = NIBBLES.places(rows)[step % NIBBLES.count]
        wanted = _SAMPLE >> place & (1 << NIBBLES.bits) - 1
        if len(words) == 2:
            high = words[1].places(NIBBLES.count)[step]
            wanted |= (_HIGH >> high & (1 << words[1].bits) - 1) << NIBBLES.bits
        found = Sample(dict(given), {k: step}).of(integer)
        if found != wanted:
            at = f"the integer at bit {place} of a word"
            raise RelaxError(f"expected step {step} to take {at}, {wanted}, got {found}", integer.owner.location)
