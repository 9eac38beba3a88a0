"""What of a factor stays the same for some steps of k, as the scale of a group of quantized weights does, or for all of them.

A sum of products with ``(q[k] - zero) * scale``, where zero and scale are the same for the steps of a group, is per group::

    scale * (sum(x[k] * q[k]) - zero * sum(x[k]))

so that a step takes no multiplication by the scale, and with q of four bits no subtraction of the zero point: wider integers
would lose more digits to the difference than their sum has. Sums are the same but for the rounding of their terms; of an
infinite x they are NaN where the zero point is taken out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

from ....dialect.bindings import ir
from .contraction import Factor
from .index_math import Linear
from .nest import Operand

__all__ = ["Steady", "find_steady"]

# The largest integer whose zero point is taken out of the sum.
_FOUR_BITS = 15
# What is the same for fewer steps is no group: a sum of its own would take longer than it saves. Two nibbles share a byte.
_SHORTEST = 8


@dataclass(frozen=True)
class Steady:
    """A factor in two parts.

    Attributes:
        every: steps of k that share the steady part; 0 for all.
        operands, operations: the steady part.
        moving: the rest; its value is what each step adds a multiple of.
        scale: a steady factor of the whole, None for 1.
        converted: the conversion to a float that the moving value still needs, when a zero point was taken out of it.
        zero: the steady zero point, an integer.
    """

    every: int
    operands: tuple[Operand, ...]
    operations: tuple[ir.Operation, ...]
    moving: Factor
    scale: ir.Value | None = None
    converted: ir.Operation | None = None
    zero: ir.Value | None = None


def find_steady(factor: Factor, k: int) -> Steady | None:
    """The parts of a factor; None when none of what it reads is steady, or all is."""
    periods = {o.argument: _period(o, k) for o in factor.operands}
    operands = tuple(o for o in factor.operands if periods[o.argument] is not None)
    if not operands or len(operands) == len(factor.operands):
        return None
    operations = tuple(_steady_operations(factor.operations, [o.argument for o in factor.operands if o not in operands]))
    moving = tuple(op for op in factor.operations if op not in operations)
    rest = tuple(o for o in factor.operands if o not in operands)
    known = {o.argument for o in operands} | {op.results[0] for op in operations}
    every = gcd(*(periods[o.argument] or 0 for o in operands))
    if every and every < _SHORTEST:
        return None
    value, scale = _without_scale(factor.value, known)
    value, converted, zero = _without_zero(value, known) if scale is not None else (value, None, None)
    return Steady(every, operands, operations, Factor(value, rest, moving), scale, converted, zero)


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


def _steady_operations(operations: Iterable[ir.Operation], moving: Sequence[ir.Value]) -> list[ir.Operation]:
    found, changing = list[ir.Operation](), set(moving)
    for op in operations:
        if op.name.startswith("arith.") and changing.isdisjoint(op.operands):
            found.append(op)
        else:
            changing.update(op.results)
    return found


def _without_scale(value: ir.Value, known: set[ir.Value]) -> tuple[ir.Value, ir.Value | None]:
    """The moving one of two factors, and the steady one."""
    op = _made_by(value, "arith.mulf")
    if op is None:
        return value, None
    sides = [v for v in op.operands if v not in known]
    steady = [v for v in op.operands if v in known]
    return (sides[0], steady[0]) if len(sides) == 1 else (value, None)


def _without_zero(value: ir.Value, known: set[ir.Value]) -> tuple[ir.Value, ir.Operation | None, ir.Value | None]:
    """The integer that a steady one is subtracted from before the conversion, the conversion, and the steady one."""
    conversion = _made_by(value, "arith.sitofp")
    difference = None if conversion is None else _made_by(conversion.operands[0], "arith.subi")
    if difference is None:
        return value, None, None
    integer, zero = difference.operands
    mask = _made_by(integer, "arith.andi")
    bits = None if mask is None else _made_by(mask.operands[1], "arith.constant")
    if bits is None or not 0 <= ir.IntegerAttr(bits.attributes["value"]).value <= _FOUR_BITS:
        return value, None, None
    if zero not in known and _made_by(zero, "arith.constant") is None:
        return value, None, None
    return integer, conversion, zero


def _made_by(value: ir.Value, name: str) -> ir.Operation | None:
    """The op of that name that makes a value."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != name:
        return None
    return value.owner.operation
