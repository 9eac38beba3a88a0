"""A factor of quantized weights as what tensor cores multiply: small integers as floats, and the scales of groups of them.

A factor ``(q[k, n] - zero[k div g, n]) * scale[k div g, n]`` is summed group by group::

    sum += scale[g, n] * sum over the group (x[m, k] * (q[k, n] - zero))

A float of 16 bits has the integers and the floats of 8 bits, and differences of such integers, without rounding. So is the
product with an x of 16 bits in f32: sums are those of the factor in f32, and not of one that was rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.structure.factor import Factor
from ....kernels.structure.group_invariant import find_group_invariant
from ....kernels.structure.match import Contraction
from .float8 import float8_format

__all__ = ["NarrowFactor", "narrow_factor"]

# Up to which a float of 16 bits has all integers: that of fewer bits of fraction, 8.
_LARGEST = 256
_CONVERSIONS = ("arith.sitofp", "arith.uitofp")


@dataclass(frozen=True)
class NarrowFactor:
    """A factor in two parts, whose product it is.

    Attributes:
        group: steps of k that have one scale; 0: all have.
        integers: one part, whole numbers, or floats of 8 bits, that a float of 16 bits has.
        scale: the other part.
    """

    group: int
    integers: Factor
    scale: Factor


def narrow_factor(contraction: Contraction) -> NarrowFactor | None:
    """The parts of a product's right factor; None of one that is something else."""
    factor = contraction.right
    found = None if contraction.outer else find_group_invariant(factor, contraction.k)
    if found is None or found.scale is None or found.low is not None:
        return None
    value = found.step_value.value if found.conversion is None else found.conversion.results[0]
    integers = factor.part(value)
    bounds = _bounds(value)
    if (bounds is None or max(map(abs, bounds)) > _LARGEST) and float8_format(integers) is None:
        return None
    return NarrowFactor(found.group_size, integers, factor.part(found.scale))


def _bounds(value: ir.Value) -> tuple[int, int] | None:
    """The least and the largest that a whole number can be; None where nothing is known, or it is none."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.operation
    if op.name in _CONVERSIONS:
        return _bounds(op.operands[0]) or _of_type(op.operands[0].type, signed=op.name == "arith.sitofp")
    if op.name == "arith.constant" and isinstance(value.type, ir.IntegerType):
        number = ir.IntegerAttr(op.attributes["value"]).value
        return number, number
    if op.name in ("arith.extsi", "arith.extui"):
        return _of_type(op.operands[0].type, signed=op.name == "arith.extsi")
    if op.name == "arith.andi":
        mask = _bounds(op.operands[1])
        return (0, mask[1]) if mask is not None and mask[0] >= 0 else None
    if op.name in ("arith.subi", "arith.subf", "arith.addi", "arith.addf"):
        a, b = map(_bounds, op.operands)
        if a is None or b is None:
            return None
        return (a[0] - b[1], a[1] - b[0]) if "sub" in op.name else (a[0] + b[0], a[1] + b[1])
    return None


def _of_type(kind: ir.Type, *, signed: bool) -> tuple[int, int] | None:
    """Those of integers of at most 8 bits."""
    if not isinstance(kind, ir.IntegerType) or kind.width > 8:
        return None
    return (-(1 << kind.width - 1), (1 << kind.width - 1) - 1) if signed else (0, (1 << kind.width) - 1)
