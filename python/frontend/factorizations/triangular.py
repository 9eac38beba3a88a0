"""Systems of equations with a triangular matrix, by substitution; and Cholesky's factors."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.inference import boolean
from ..emit import emit, full, info_of, integer, size_value, squeeze
from ..loops import loop
from .matrices import (
    at,
    both,
    column_at,
    columns_of,
    minus,
    number_of_first,
    row_at,
    rows_of,
    times,
    transposed,
    triangle,
    where,
)

__all__ = ["cholesky", "solve_cholesky", "solve_triangular"]


def solve_triangular(a: ir.Value, b: ir.Value, upper: bool, unit: bool = False, adjoint: bool = False) -> ir.Value:
    """X of ``A X = B``, ``[..., n, k]``, where one triangle of A is read.

    Source: BLAS's xTRSM, from the left: a row of X in each round, which then leaves the other rows.

    Args:
        a: ``[..., n, n]``.
        b: ``[..., n, k]``, with the same leading dimensions.
        upper: whether the upper triangle is read, else the lower one.
        unit: whether the diagonal is taken as ones, and not read.
        adjoint: solves with the transpose of what is read.
    """
    if adjoint:
        return solve_triangular(transposed(a), b, not upper, unit)
    size, rows = info_of(a).shape[-1], rows_of(b)
    last = minus(size_value(size), full(1, integer()))

    def step(state: list[ir.Value], k: ir.Value) -> list[ir.Value]:
        (b,) = state
        k = minus(last, k) if upper else k
        found = row_at(b, k) if unit else emit(ops.Divide, row_at(b, k), at(a, k))
        later = emit(ops.Less if upper else ops.Greater, rows, k)
        left = where(emit(ops.Equal, rows, k), found, b)
        return [where(later, minus(b, times(column_at(a, k), found)), left)]

    return loop(size, [b], step)[0]


def cholesky(a: ir.Value, upper: bool = False) -> tuple[ir.Value, ir.Value]:
    """L of ``A = L L^T``, or U of ``A = U^T U``, ``[..., n, n]``, of which that triangle is read; and where it is not there.

    That is one more than the number of the first row at which a matrix is not positive definite, else 0, ``[...]`` of i64.
    Source: LAPACK's xPOTRF, from the left to the right.
    """
    a = transposed(a) if upper else a
    rows, columns, size = rows_of(a), columns_of(a), info_of(a).shape[-1]
    rank = info_of(a).rank

    def step(state: list[ir.Value], k: ir.Value) -> list[ir.Value]:
        a, fails = state
        pivot = at(a, k)
        root = emit(ops.Sqrt, pivot)
        column = where(emit(ops.Equal, rows, k), root, emit(ops.Divide, column_at(a, k), root))
        below, right = emit(ops.Greater, rows, k), emit(ops.Greater, columns, k)
        here = both(emit(ops.GreaterEqual, rows, k), emit(ops.Equal, columns, k))
        rest = where(both(below, right), minus(a, times(column, transposed(column))), a)
        bad = emit(ops.LogicalNot, emit(ops.Greater, pivot, full(0, info_of(a).dtype)))
        return [where(here, column, rest), where(emit(ops.Equal, columns, k), bad, fails)]

    none = full(0, boolean(), [*info_of(a).shape[:-2], 1, size])
    factor, fails = loop(size, [a, none], step)
    factor = triangle(factor, upper=False)
    return transposed(factor) if upper else factor, number_of_first(squeeze(fails, rank - 2))


def solve_cholesky(b: ir.Value, factor: ir.Value, upper: bool) -> ir.Value:
    """X of ``A X = B`` for the factor of A, ``[..., n, k]``; both with the same leading dimensions."""
    x = solve_triangular(factor, b, upper, adjoint=upper)
    return solve_triangular(factor, x, upper, adjoint=not upper)
