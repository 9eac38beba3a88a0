"""Which word of a weight an integer of a body is taken from, by the mark on the operation that takes it out."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.packed_layout import NIBBLES, Word
from ...marks import WORD
from ..emit.linear_index import Atom, FloorDivision, Linear
from .nest import Operand
from .sample import Sample

__all__ = ["steps_of_element", "word_of"]

# Eight different integers.
_SAMPLE = 0x1FD96A2C


def word_of(integer: ir.Value, operands: Sequence[Operand], k: int) -> ir.Value | None:
    """The word that an integer is four bits of, at four times the place of step k among eight; None where it is none.

    Raises:
        RelaxError: an operation is marked that does not take integers out of words like that, at its location.
    """
    if isinstance(integer, ir.BlockArgument) or WORD not in integer.owner.attributes:
        return None
    op = integer.owner.operation
    word = _word(op)
    sources = [o for o in operands if _depends(integer, o.argument)]
    if len(sources) != 1:
        raise RelaxError(f"expected integers of one word, got those of {len(sources)}", op.location)
    (source,) = sources
    if source.argument.type != ir.IntegerType.get_signless(word.width, op.context):
        raise RelaxError(f"expected a word of i{word.width}, got {source.argument.type}", op.location)
    if word != NIBBLES or not _is_read_by(source, k, word.count):
        return None
    _check(integer, source, k, word)
    return source.argument


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


def _word(op: ir.Operation) -> Word:
    attribute = op.attributes[WORD]
    word = Word.parse(ir.StringAttr(attribute).value) if isinstance(attribute, ir.StringAttr) else None
    if word is None:
        raise RelaxError(f'expected {WORD} such as "{NIBBLES}", got {attribute}', op.location)
    return word


def _depends(value: ir.Value, argument: ir.Value) -> bool:
    if isinstance(value, ir.BlockArgument):
        return value == argument
    return any(_depends(v, argument) for v in value.owner.operands)


def _is_read_by(source: Operand, k: int, count: int) -> bool:
    """Whether so many steps of k read one word, and the next ones another."""
    along = [atom for atom, _ in source.offset.terms if _is_along(atom, k)]
    return [(a.inner, a.divisor) for a in along if not isinstance(a, int)] == [(Linear.dim(k), count)] and len(along) == 1


def _check(integer: ir.Value, source: Operand, k: int, word: Word) -> None:
    """Raises RelaxError where the integer of a step is not the one at its place."""
    for step, place in enumerate(word.places()):
        wanted = _SAMPLE >> place & (1 << word.bits) - 1
        found = Sample({source.argument: _SAMPLE}, {k: step}).of(integer)
        if found != wanted:
            at = f"the integer at bit {place} of a word"
            raise RelaxError(f"expected step {step} to take {at}, {wanted}, got {found}", integer.owner.location)
