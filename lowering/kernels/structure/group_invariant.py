"""What of a factor stays the same for some steps of k, as the scale of a group of quantized weights does, or for all of them.

A sum of products with ``(q[k] - zero) * scale``, where zero and scale are the same for the steps of a group, is per group::

    scale * (sum(x[k] * q[k]) - zero * sum(x[k]))

so that a step takes no multiplication by the scale, and with q of four bits no subtraction of the zero point: wider integers
would lose more digits to the difference than their sum has. So it is with a minimum behind the scale, ``q[k] * scale - low``::

    scale * sum(x[k] * q[k]) - low * sum(x[k])

Sums are the same but for the rounding of their terms; of an
infinite x they are NaN where the zero point is taken out.

Eight q of four bits are a word. ``q[j] << 4 * j`` is the word under a mask, and its product with ``x / 16 ** j`` that of q[j]
and x, to the last bit: shifts are powers of two. So nothing is shifted per step where x can be prepared. Of five and six bits
the high ones are in a word that groups of steps share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

from ....dialect.bindings import ir
from ....dialect.packed_layout import NIBBLES, PLANES
from ..emit.linear_index import Linear
from .factor import Factor
from .nest import Operand
from .packed_words import PackedInteger, packed_integer

__all__ = ["GroupInvariant", "find_group_invariant"]

# The largest integer whose zero point is taken out of the sum: of wider ones more digits are lost to the difference.
_SIX_BITS = (1 << NIBBLES.bits + max(PLANES)) - 1
# What is the same for fewer steps is no group: a sum of its own would take longer than it saves, and words are no groups.
_SHORTEST = 16


@dataclass(frozen=True)
class GroupInvariant:
    """A factor in two parts: what is the same for all steps of a group, and what varies from step to step.

    Attributes:
        group_size: steps of k in a group; 0 when all are one group.
        operands, operations: the invariant part.
        varying: the factor, computed from what varies and the invariant part.
        step_value: of that, what the left factor is multiplied with in each step; the rest is applied to a group's sum.
        scale: the invariant value that a group's sum is multiplied with, None for 1.
        conversion: the conversion to a float that the step's value still needs, when a zero point was taken out of it.
        zero_point: the invariant integer that was taken out, None for 0.
        low: the invariant float that was taken out behind the scale, None for 0.
        reads_invariant: whether the step's value is computed from the invariant part, too.
        packed_word: the word of eight that the step's value is four bits of.
        word_rows: where in the word step k is: ``NIBBLES.places(word_rows)[k mod 8]``.
        high_word: the invariant word that has its other bits, None where there are none; high_bits: how many these are.
    """

    group_size: int
    operands: tuple[Operand, ...]
    operations: tuple[ir.Operation, ...]
    varying: Factor
    step_value: Factor
    scale: ir.Value | None = None
    conversion: ir.Operation | None = None
    zero_point: ir.Value | None = None
    low: ir.Value | None = None
    reads_invariant: bool = False
    packed_word: Factor | None = None
    word_rows: int = 1
    high_word: ir.Value | None = None
    high_bits: int = 0

    @property
    def word_steps(self) -> int:
        """After how many steps all words are others; 0 where there are none."""
        if self.packed_word is None:
            return 0
        return PLANES[self.high_bits].count if self.high_bits else NIBBLES.count


def find_group_invariant(factor: Factor, k: int) -> GroupInvariant | None:
    """The parts of a factor; None when it reads nothing that is invariant, or nothing else.

    Raises RelaxError at an operation whose marks do not fit it.
    """
    periods = {o.argument: _period(o, k) for o in factor.operands}
    operands = tuple(o for o in factor.operands if periods[o.argument] is not None)
    if not operands or len(operands) == len(factor.operands):
        return None
    varying = tuple(o for o in factor.operands if o not in operands)
    operations = tuple(_invariant_operations(factor.operations, [o.argument for o in varying]))
    others = tuple(op for op in factor.operations if op not in operations)
    known = {o.argument for o in operands} | {op.results[0] for op in operations}
    group_size = gcd(*(periods[o.argument] or 0 for o in operands))
    if group_size and group_size < _SHORTEST:
        return None
    value, low = _without_low(factor.value, known)
    value, scale = _without_scale(value, known)
    value, conversion, zero_point = _without_zero(value, known) if scale is not None else (value, None, None)
    if low is not None and conversion is None:
        value, scale, low = factor.value, None, None
    word = None if conversion is None or group_size % NIBBLES.count else _packed(value, factor.operands, k, group_size, known)
    whole = Factor(factor.value, varying, others)
    step_value = whole.part(value)
    return GroupInvariant(
        group_size,
        operands,
        operations,
        varying=whole,
        step_value=step_value,
        scale=scale,
        conversion=conversion,
        zero_point=zero_point,
        low=low,
        reads_invariant=any(v in known for op in step_value.operations for v in op.operands),
        packed_word=None if word is None else whole.part(word.low),
        word_rows=1 if word is None else word.rows,
        high_word=None if word is None else word.high,
        high_bits=0 if word is None else word.bits,
    )


def _packed(
    value: ir.Value, operands: Sequence[Operand], k: int, group_size: int, known: set[ir.Value]
) -> PackedInteger | None:  # fmt: skip
    """The words of an integer whose high bits, if it has such, are the same for a group, and begin with it."""
    found = packed_integer(value, operands, k)
    if found is None or found.high is None:
        return found
    return found if found.high in known and group_size % PLANES[found.bits].count == 0 else None


def _period(operand: Operand, k: int) -> int | None:
    """For how many steps of k an operand is the same: 0 for all, None when for none."""
    found = 0
    for atom, _ in operand.offset.terms:
        if atom == k:
            return None
        if isinstance(atom, int) or k not in atom.inner.dims():
            continue
        if atom.inner != Linear.dim(k):
            return None
        found = gcd(found, atom.divisor)
    return found if not found or found >= _SHORTEST else None


def _invariant_operations(operations: Iterable[ir.Operation], varying: Sequence[ir.Value]) -> list[ir.Operation]:
    found, changing = list[ir.Operation](), set(varying)
    for op in operations:
        if op.name.startswith("arith.") and changing.isdisjoint(op.operands):
            found.append(op)
        else:
            changing.update(op.results)
    return found


def _without_low(value: ir.Value, known: set[ir.Value]) -> tuple[ir.Value, ir.Value | None]:
    """What varies of a difference, and the invariant value that is taken from it, if any."""
    op = _made_by(value, "arith.subf")
    if op is None or op.operands[0] in known or op.operands[1] not in known:
        return value, None
    return op.operands[0], op.operands[1]


def _without_scale(value: ir.Value, known: set[ir.Value]) -> tuple[ir.Value, ir.Value | None]:
    """The varying one of two factors, and the invariant one; None where no factor is invariant."""
    op = _made_by(value, "arith.mulf")
    if op is None:
        return value, None
    sides = [v for v in op.operands if v not in known]
    invariant = [v for v in op.operands if v in known]
    return (sides[0], invariant[0]) if len(sides) == 1 else (value, None)


def _without_zero(value: ir.Value, known: set[ir.Value]) -> tuple[ir.Value, ir.Operation | None, ir.Value | None]:
    """The integer that is converted, without the zero point that is taken from it; the conversion; the zero point, if any."""
    conversion = _made_by(value, "arith.sitofp")
    if conversion is None:
        return value, None, None
    difference = _made_by(conversion.operands[0], "arith.subi")
    integer, zero = (conversion.operands[0], None) if difference is None else difference.operands
    if not 0 <= _constant(integer, "arith.andi") <= _SIX_BITS:
        return value, None, None
    if zero is not None and zero not in known and _made_by(zero, "arith.constant") is None:
        return value, None, None
    return integer, conversion, zero


def _constant(value: ir.Value, name: str) -> int:
    """The constant that is the second operand of the op of that name which makes a value; -1 where there is none."""
    op = _made_by(value, name)
    constant = None if op is None else _made_by(op.operands[1], "arith.constant")
    return -1 if constant is None else ir.IntegerAttr(constant.attributes["value"]).value


def _made_by(value: ir.Value, name: str) -> ir.Operation | None:
    """The op of that name that makes a value."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != name:
        return None
    return value.owner.operation
