"""Whole numbers that models make of sizes by Python's arithmetic, as symbolic expressions of sizes."""

from __future__ import annotations

from ..dialect.errors import RelaxError
from ..dialect.symbolic import Expr
from .ranges import Ranges, quotient_to_zero

__all__ = ["LARGEST_FACTOR", "masked", "rounded", "shifted"]

#: With numerators and denominators below it, floats give exact products and quotients of sizes up to 2^37, and round as here.
LARGEST_FACTOR = 1 << 16

_Size = int | Expr


def rounded(how: str, above: _Size, below: int, ranges: Ranges) -> _Size:
    """``above / below`` as ``floor``, ``ceil``, ``trunc`` or ``round`` of Python give it; the denominator is positive.

    Raises:
        RelaxError: halves, which go to the even number, are of a denominator for which that is not written here.
    """
    if how == "floor":
        return above // below
    if how == "ceil":
        return (above + (below - 1)) // below
    if how == "trunc":
        found = quotient_to_zero(above, below, ranges)
        assert found is not None
        return found
    if below % 2:  # nothing is in the middle
        return (2 * above + below) // (2 * below)
    if below != 2:
        raise RelaxError(f"expected to round halves, or parts of which none is in the middle, got {below}ths")
    down = above // 2
    return down + (down % 2) * (above % 2)


def shifted(number: _Size, bits: int) -> _Size:
    """``number << bits``, to the right where that is negative.

    Raises:
        RelaxError: these are not from -62 to 62 bits.
    """
    if not isinstance(bits, int) or abs(bits) > 62:
        raise RelaxError(f"expected to shift a size by up to 62 bits, got {bits}")
    return number * (1 << bits) if bits >= 0 else number // (1 << -bits)


def masked(number: _Size, other: _Size) -> _Size:
    """``number & other``, of which one is known and keeps the lowest bits, or all but these.

    Raises:
        RelaxError: it keeps others.
    """
    size, mask = (other, number) if isinstance(number, int) else (number, other)
    if isinstance(size, int) and isinstance(mask, int):
        return size & mask
    if isinstance(mask, int) and mask >= 0 and (mask & (mask + 1)) == 0:
        return size % (mask + 1) if mask else 0
    if isinstance(mask, int) and mask < 0 and (-mask & (-mask - 1)) == 0:
        return size - size % -mask if mask != -1 else size
    raise RelaxError(f"expected to keep the lowest bits of a size, or all but these, got {number} & {other}")
