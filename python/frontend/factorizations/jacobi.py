"""Jacobi's rotations, of half of all pairs of columns at once, in sweeps over all pairs.

Source: Golub and Van Loan, Matrix Computations, 4th edition, 8.5; the pairs of a round are those of a round-robin tournament.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.symbolic import Dim
from ..emit import emit, extreme_flag, full, info_of, integer, reshape, sequence, size_value, unsqueeze
from ..loops import loop, while_holds
from .matrices import both, compared, minus, times, where

__all__ = ["Rotation", "any_of", "partners", "sweeps"]

#: Sweeps after which it ends in any case; six to ten are what matrices of up to some hundred rows take.
_MOST_SWEEPS = 40


def sweeps(
    size: Dim,
    start: Sequence[ir.Value],
    is_open: Callable[[list[ir.Value]], ir.Value],
    step: Callable[[list[ir.Value], ir.Value], list[ir.Value]],
) -> list[ir.Value]:
    """Sweeps of so many rounds as long as ``is_open``, a tensor of one boolean, holds; ``step`` gets the round's number."""
    most = full(_MOST_SWEEPS, integer(), (1,))

    def goes_on(state: list[ir.Value]) -> ir.Value:
        return both(emit(ops.Less, state[0], most), reshape(is_open(state[1:]), (1,)))

    def sweep(state: list[ir.Value]) -> list[ir.Value]:
        return [emit(ops.Add, state[0], full(1, integer())), *loop(size, state[1:], step)]

    return while_holds([full(0, integer(), (1,)), *start], goes_on, sweep)[1:]


def any_of(flags: ir.Value) -> ir.Value:
    """Whether any of these booleans is set."""
    return extreme_flag(ops.Max, flags, axis=list(range(info_of(flags).rank))) if info_of(flags).rank else flags


def partners(size: Dim, r: ir.Value) -> ir.Value:
    """Which column each one meets in a round, ``[n]`` of i64; itself where it is left over.

    By the circle method: of an even number the last one stays, and the others' numbers, modulo one less, add up to the round's.
    An even number has a round less: the last one is the first one again.

    Args:
        size: n.
        r: the round's number, ``[1]`` of i64.
    """
    one, all_of = full(1, integer()), size_value(size)
    is_odd = emit(ops.BitwiseAnd, all_of, one)
    circle = emit(ops.Maximum, minus(emit(ops.Add, all_of, is_odd), one), one)
    number = sequence(0, size)
    found = emit(ops.Mod, minus(emit(ops.Add, r, circle), emit(ops.Mod, number, circle)), circle)
    half = emit(ops.Mod, times(r, emit(ops.RightShift, emit(ops.Add, circle, one), one)), circle)
    alone = where(compared(ops.Equal, is_odd, 1), number, circle)
    found = where(emit(ops.Equal, found, number), alone, found)
    return where(emit(ops.Equal, number, circle), half, found)


@dataclass(frozen=True)
class Rotation:
    """Rotations of disjoint pairs of columns: each becomes ``cosine * itself + sine * its partner``.

    Attributes:
        partner: ``[n]``, the number of the other column; a column that is alone stays.
        cosine: ``[..., n]``.
        sine: ``[..., n]``, of the two of a pair with opposite signs.
    """

    partner: ir.Value
    cosine: ir.Value
    sine: ir.Value

    @staticmethod
    def of(partner: ir.Value, here: ir.Value, other: ir.Value, beside: ir.Value) -> Rotation:
        """What makes ``beside`` zero, a product of two columns; ``here`` and ``other`` are their products with themselves."""
        dtype, (size,) = info_of(here).dtype, info_of(partner).shape
        number = sequence(0, size)
        first = emit(ops.Less, number, partner)
        # One number for both of a pair: sums that are rounded otherwise would give two angles.
        beside = where(first, beside, emit(ops.Take, beside, partner, axis=info_of(beside).rank - 1))
        turns = both(emit(ops.NotEqual, number, partner), compared(ops.NotEqual, beside, 0))
        apart = where(first, minus(other, here), minus(here, other))
        cotangent = emit(ops.Divide, apart, where(turns, times(beside, full(2, dtype)), 1))
        root = emit(ops.Sqrt, emit(ops.Add, emit(ops.Square, cotangent), full(1, dtype)))
        tangent = emit(ops.Reciprocal, emit(ops.Add, emit(ops.Abs, cotangent), root))
        tangent = where(compared(ops.Less, cotangent, 0), emit(ops.Negative, tangent), tangent)
        tangent = where(turns, tangent, 0)
        cosine = emit(ops.Rsqrt, emit(ops.Add, emit(ops.Square, tangent), full(1, dtype)))
        sine = times(tangent, cosine)
        return Rotation(partner, cosine, where(first, emit(ops.Negative, sine), sine))

    def columns(self, x: ir.Value) -> ir.Value:
        """``[..., m, n]`` with its columns rotated."""
        return self._turned(x, info_of(x).rank - 1, info_of(x).rank - 2)

    def rows(self, x: ir.Value) -> ir.Value:
        """``[..., n, m]`` with its rows rotated."""
        return self._turned(x, info_of(x).rank - 2, info_of(x).rank - 1)

    def _turned(self, x: ir.Value, axis: int, other: int) -> ir.Value:
        cosine, sine = unsqueeze(self.cosine, other), unsqueeze(self.sine, other)
        return emit(ops.Add, times(cosine, x), times(sine, emit(ops.Take, x, self.partner, axis=axis)))
