"""Triangular factors by Gauss's elimination with exchanged rows, and what they give: solutions, inverses, determinants."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.symbolic import Dim
from ..emit import cast, emit, expand, full, info_of, integer, sequence, slice_axis, squeeze, unsqueeze
from ..loops import loop
from .matrices import (
    at,
    both,
    column_at,
    columns_of,
    compared,
    diagonal,
    eye,
    least,
    minus,
    number_of_first,
    on_diagonal,
    row_at,
    rows_of,
    times,
    where,
)  # fmt: skip
from .triangular import solve_triangular

__all__ = ["Factors", "determinant", "factors", "inverse", "order_of", "sign_and_log_determinant", "solve"]


@dataclass(frozen=True)
class Factors:
    """``A[order] = L U``.

    Attributes:
        packed: ``[..., m, n]``, U, and below its diagonal L, whose diagonal is one.
        exchanges: ``[..., k]`` of i64, with which row each of the first ``k = min(m, n)`` was exchanged, one after the other.
        order: ``[..., m]`` of i64, which row of A each row of the product is.
    """

    packed: ir.Value
    exchanges: ir.Value
    order: ir.Value

    def first_zero(self) -> ir.Value:
        """One more than the place of the first zero on U's diagonal, 0 where there is none, ``[...]`` of i64."""
        return number_of_first(compared(ops.Equal, diagonal(self.packed), 0))


def factors(a: ir.Value) -> Factors:
    """The factors of matrices ``[..., m, n]``: in each round the row whose element is the largest comes next.

    Source: LAPACK's xGETRF2, column by column. Raises RelaxError where it is open which one of m and n is smaller.
    """
    *batch, m, n = info_of(a).shape
    rank, count = info_of(a).rank, least(m, n)
    rows, columns, places = rows_of(a), columns_of(a), sequence(0, count)

    def step(state: list[ir.Value], k: ir.Value) -> list[ir.Value]:
        a, order, exchanges = state
        size = where(emit(ops.Less, rows, k), full(-1, info_of(a).dtype), emit(ops.Abs, column_at(a, k)))
        best = emit(ops.ArgMax, size, axis=rank - 2, keepdims=True)
        exchanged = where(emit(ops.Equal, rows, k), best, where(emit(ops.Equal, rows, best), k, rows))
        a = emit(ops.GatherElements, a, expand(exchanged, [*batch, m, n]), axis=rank - 2)
        order = emit(ops.GatherElements, order, squeeze(exchanged, rank - 1), axis=rank - 2)
        exchanges = where(emit(ops.Equal, places, k), squeeze(best, rank - 1), exchanges)
        pivot = at(a, k)
        factor = where(compared(ops.NotEqual, pivot, 0), emit(ops.Divide, column_at(a, k), pivot), 0)
        below, right = emit(ops.Greater, rows, k), emit(ops.Greater, columns, k)
        left = where(both(below, emit(ops.Equal, columns, k)), factor, a)
        return [where(both(below, right), minus(a, times(factor, row_at(a, k))), left), order, exchanges]

    start = [a, expand(sequence(0, m), [*batch, m]), expand(places, [*batch, count])]
    packed, order, exchanges = loop(count, start, step)
    return Factors(packed, exchanges, order)


def order_of(exchanges: ir.Value, m: Dim) -> ir.Value:
    """The order of rows that exchanges one after the other make, ``[..., m]`` of i64."""
    *batch, count = info_of(exchanges).shape
    rank, rows = info_of(exchanges).rank, sequence(0, m)

    def step(state: list[ir.Value], k: ir.Value) -> list[ir.Value]:
        other = emit(ops.Take, exchanges, k, axis=rank - 1)
        exchanged = where(emit(ops.Equal, rows, k), other, where(emit(ops.Equal, rows, other), k, rows))
        return [emit(ops.GatherElements, state[0], exchanged, axis=rank - 1)]

    return loop(count, [expand(rows, [*batch, m])], step)[0]


def solve(f: Factors, b: ir.Value, adjoint: bool = False) -> ir.Value:
    """X of ``A X = B``, or of ``A^T X = B``, ``[..., n, k]``; both with the same leading dimensions."""
    rank = info_of(b).rank
    if not adjoint:
        b = emit(ops.GatherElements, b, expand(unsqueeze(f.order, rank - 1), info_of(b).shape), axis=rank - 2)
        return solve_triangular(f.packed, solve_triangular(f.packed, b, upper=False, unit=True), upper=True)
    x = solve_triangular(f.packed, b, upper=True, adjoint=True)
    x = solve_triangular(f.packed, x, upper=False, unit=True, adjoint=True)
    back = emit(ops.ArgSort, f.order, axis=rank - 2)
    return emit(ops.GatherElements, x, expand(unsqueeze(back, rank - 1), info_of(x).shape), axis=rank - 2)


def inverse(f: Factors) -> ir.Value:
    """The inverses of square matrices."""
    n = info_of(f.packed).shape[-1]
    return solve(f, eye(f.packed, n, n))


def determinant(f: Factors) -> ir.Value:
    """The determinants of square matrices, ``[...]``."""
    rank = info_of(f.packed).rank
    return times(_sign_of_order(f), emit(ops.Prod, diagonal(f.packed), axis=[rank - 2]))


def sign_and_log_determinant(f: Factors) -> tuple[ir.Value, ir.Value]:
    """Signs of determinants, and logarithms of their magnitudes, ``[...]``."""
    rank, places = info_of(f.packed).rank, diagonal(f.packed)
    sign = times(_sign_of_order(f), emit(ops.Prod, emit(ops.Sign, places), axis=[rank - 2]))
    return sign, emit(ops.Sum, emit(ops.Log, emit(ops.Abs, places)), axis=[rank - 2])


def _sign_of_order(f: Factors) -> ir.Value:
    """1 for an even number of exchanges, -1 for an odd one."""
    rank = info_of(f.exchanges).rank
    moved = emit(ops.NotEqual, f.exchanges, sequence(0, info_of(f.exchanges).shape[-1]))
    odd = emit(ops.BitwiseAnd, emit(ops.Sum, cast(moved, integer()), axis=[rank - 1]), full(1, integer()))
    return cast(minus(full(1, integer()), times(odd, full(2, integer()))), info_of(f.packed).dtype)


def permutation(order: ir.Value, dtype: ir.Type) -> ir.Value:
    """P of ``A = P L U``, ``[..., m, m]``, of the order of rows."""
    rank = info_of(order).rank
    rows = unsqueeze(sequence(0, info_of(order).shape[-1]), 1)
    return cast(emit(ops.Equal, rows, unsqueeze(order, rank - 1)), dtype)


def unpacked(packed: ir.Value) -> tuple[ir.Value, ir.Value]:
    """L, ``[..., m, k]``, and U, ``[..., k, n]``, of packed factors, ``k = min(m, n)``."""
    m, n = info_of(packed).shape[-2:]
    rank, count = info_of(packed).rank, least(m, n)
    lower = where(on_diagonal(packed), full(1, info_of(packed).dtype), emit(ops.Tril, packed))
    upper = emit(ops.Triu, packed)
    return slice_axis(lower, rank - 1, 0, count), slice_axis(upper, rank - 2, 0, count)
