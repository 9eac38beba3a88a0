"""What of a product's right factor is read step by step of k, and never again: numbers, or small integers and their scales."""

from __future__ import annotations

from dataclasses import dataclass

from .....dialect.bindings import ir
from .....dialect.packed_layout import NIBBLES
from ....kernels.structure.factor import Factor
from ....kernels.structure.group_invariant import GroupInvariant, find_group_invariant
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand
from ....kernels.structure.packed_words import steps_of_element
from ..device_memory import element_bytes_of

__all__ = ["ScaledIntegers", "Stream", "find_stream"]


@dataclass(frozen=True)
class ScaledIntegers:
    """A factor ``(q[k] - zero) * scale``.

    Attributes:
        bits: of q.
        is_signed: whether q has a sign.
        zero: what is taken from it, an integer that is the same for a group; None for 0.
        scale: of a group.
        group: steps of k that have these; 0: all have the same.
    """

    bits: int
    is_signed: bool
    zero: Factor | None
    scale: Factor
    group: int

    @property
    def per_word(self) -> int:
        """How many are in 32 bits."""
        return 32 // self.bits


@dataclass(frozen=True)
class Stream:
    """The part of the right factor that varies along k, whose neighbours in memory are the next steps.

    Attributes:
        operand: it.
        per_element: steps of k that are in an element: several, of words.
        integers: what they are, of a factor that has a scale.
    """

    operand: Operand
    per_element: int
    integers: ScaledIntegers | None

    @property
    def step_bits(self) -> int:
        """Of memory, for one step."""
        assert self.operand.buffer is not None
        return 8 * element_bytes_of(self.operand.buffer.element) // self.per_element


def find_stream(contraction: Contraction) -> Stream | None:
    """That of a product; None where the right factor is no stream, or several.

    Raises:
        RelaxError: at an operation whose marks do not fit it.
    """
    right, k = contraction.right, contraction.k
    found = find_group_invariant(right, k)
    varying = right.operands if found is None else found.varying.operands
    if len(varying) != 1 or varying[0].buffer is None:
        return None
    (operand,) = varying
    per_element = steps_of_element(operand, k)
    integers = None if found is None else _scaled_integers(found, right, operand)
    depth = contraction.nest.extents[k].static
    if integers is not None and (depth is None or depth % integers.per_word):
        integers = None  # no whole words
    if not per_element or (per_element > 1 and (integers is None or integers.bits != NIBBLES.bits)):
        return None
    return Stream(operand, per_element, integers)


def _scaled_integers(found: GroupInvariant, factor: Factor, operand: Operand) -> ScaledIntegers | None:
    if found.scale is None:
        return None
    scale = factor.part(found.scale)
    if found.packed_word is not None:
        if found.word_rows > 1:
            return None
        zero = None if found.zero_point is None else factor.part(found.zero_point)
        return ScaledIntegers(NIBBLES.bits, False, zero, scale, found.group_size)
    conversion = found.step_value.value
    if not _is_made_by(conversion, "arith.sitofp", "arith.uitofp"):
        return None
    difference, zero = conversion.owner.operands[0], None
    if _is_made_by(difference, "arith.subi"):
        difference, taken = difference.owner.operands
        zero = factor.part(taken)
    source, is_signed = difference, conversion.owner.name == "arith.sitofp"
    if _is_made_by(difference, "arith.extsi", "arith.extui"):
        source, is_signed = difference.owner.operands[0], difference.owner.name == "arith.extsi"
    if source != operand.argument or source.type != ir.IntegerType.get_signless(8, source.type.context):
        return None
    if zero is not None and (operand in zero.operands or source == difference):
        return None  # what is taken varies, or from eight bits, which wrap around
    return ScaledIntegers(8, is_signed, zero, scale, found.group_size)


def _is_made_by(value: ir.Value, *names: str) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.name in names
