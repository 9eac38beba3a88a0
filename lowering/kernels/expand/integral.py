"""Numbers that are quantized: rounded and converted by one instruction, and left floats where they are dequantized at once.

Before::

    %1 = math.roundeven %0 : vector<16xf32>                     // within the limits of the integers, less the zero point
    %2 = arith.addf %1, %zero                                   // sitofp of an integer
    %3 = arith.fptoui %2 {relax.integral} : vector<16xf32> to vector<16xi8>

after, where the target has such an instruction::

    %1 = llvm.call_intrinsic "llvm.lrint"(%0) : vector<16xi32>
    %3 = arith.trunci (arith.addi %1, %zero)
"""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from ...marks import INTEGRAL
from .float_math import FloatMath

__all__ = ["distance_in_floats", "rounded_at_once"]


def distance_in_floats(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    """What was quantized and is dequantized at once: its distance from the zero point in floats, as it was, not in integers.

    Both have 16 bits at most, as dequantization computes in i32 only then: the difference is exact in f32.
    """
    distance, zero = operands[0], None
    if _is(distance, "arith.subi"):
        distance, zero = distance.owner.operands
    if not _is(distance, "arith.extui", "arith.extsi") or distance.type != f.integer:
        return None
    stored = distance.owner.operands[0]
    if isinstance(stored.owner, ir.Block) or INTEGRAL not in stored.owner.attributes:
        return None
    number = stored.owner.operands[0]
    if number.type != f.kind:
        return None
    if zero is None:
        return number
    if _is(number, "arith.addf") and _is_same_integer(number.owner.operands[1], zero):
        # Without the zero point in between; a zero is positive.
        return f.add(number.owner.operands[0], f.number(0.0))
    return f.sub(number, f.emitter.op("arith.sitofp", [zero], f.kind))


def rounded_at_once(f: FloatMath, operands: Sequence[ir.Value]) -> ir.Value | None:
    """A number between limits of 16 bits that is rounded to an even integer, and moved by a zero point, as an integer."""
    number, em, moved_by = operands[0], f.emitter, None
    if INTEGRAL not in f.operation.attributes or not f.target.rounds_to_integers:
        return None
    if _is(number, "arith.addf"):
        number, moved_by = number.owner.operands
    if not _is(number, "math.roundeven"):
        return None
    wide = em.vector(f.width, em.i32) if f.width else em.i32
    zero = None if moved_by is None else _as_integer(f, moved_by, wide)
    if moved_by is not None and zero is None:
        return None
    whole = em.intrinsic("llvm.lrint", [number.owner.operands[0]], wide)
    return em.op("arith.trunci", [whole if zero is None else em.add(whole, zero)], f.kind)


def _as_integer(f: FloatMath, number: ir.Value, wide: ir.Type) -> ir.Value | None:
    """An integer of up to 16 bits that was converted to a float, or a constant, as i32; None where it is neither."""
    em, known = f.emitter, constant_number(number)
    if known is not None:
        return em.constant(int(known), wide) if known == int(known) else None
    if _is(number, "vector.broadcast"):
        inner = number.owner.operands[0]
        scalar = None if isinstance(inner.type, ir.VectorType) else _as_integer(f, inner, em.i32)
        return None if scalar is None else em.broadcast(scalar, f.width)
    if not _is(number, "arith.uitofp", "arith.sitofp"):
        return None
    source = number.owner.operands[0]
    extension = "arith.extui" if _is(number, "arith.uitofp") else "arith.extsi"
    return em.op(extension, [source], wide) if _bits(source) <= 16 else None


def _is_same_integer(number: ir.Value, integer: ir.Value) -> bool:
    """Whether a float is the integer, both made from the same one of fewer bits, or the same constant."""
    known = constant_number(number)
    if known is not None:
        return _constant_integer(integer) == known
    if _is(number, "vector.broadcast") and _is(integer, "vector.broadcast"):
        return _is_same_integer(number.owner.operands[0], integer.owner.operands[0])
    extended = "arith.extui" if _is(number, "arith.uitofp") else "arith.extsi"
    if not _is(number, "arith.uitofp", "arith.sitofp") or not _is(integer, extended):
        return False
    return number.owner.operands[0] == integer.owner.operands[0]


def constant_number(value: ir.Value) -> float | None:
    """The float that a constant is, or a vector that is one constant everywhere."""
    attribute = _constant(value)
    return attribute.value if isinstance(attribute, ir.FloatAttr) else None


def _constant_integer(value: ir.Value) -> int | None:
    attribute = _constant(value)
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _constant(value: ir.Value) -> ir.Attribute | None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "vector.broadcast":
        return _constant(owner.operands[0])
    if owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        return attribute.get_splat_value() if attribute.is_splat else None
    return attribute


def _bits(value: ir.Value) -> int:
    kind = value.type
    return ir.IntegerType(kind.element_type if isinstance(kind, ir.VectorType) else kind).width


def _is(value: ir.Value, *names: str) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name in names
