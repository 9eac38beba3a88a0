"""Which word of a weight an integer of a body is taken from, by the mark on the operation that takes it out."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.packed_layout import NIBBLES, Word
from ...marks import WORD
from ..emit.linear_index import Linear
from .nest import Operand
from .sample import Sample

__all__ = ["word_of"]

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
    along = [atom for atom, _ in source.offset.terms if (atom == k if isinstance(atom, int) else k in atom.inner.dims())]
    return [(a.inner, a.divisor) for a in along if not isinstance(a, int)] == [(Linear.dim(k), count)] and len(along) == 1


def _check(integer: ir.Value, source: Operand, k: int, word: Word) -> None:
    """Raises RelaxError where the integer of a step is not the one at its place."""
    for step, place in enumerate(word.places()):
        wanted = _SAMPLE >> place & (1 << word.bits) - 1
        found = Sample({source.argument: _SAMPLE}, {k: step}).of(integer)
        if found != wanted:
            at = f"the integer at bit {place} of a word"
            raise RelaxError(f"expected step {step} to take {at}, {wanted}, got {found}", integer.owner.location)
