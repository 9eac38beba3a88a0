"""Eigenvalues and eigenvectors of symmetric matrices."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ..emit import cast, emit, expand, full, info_of, size_value, squeeze, unsqueeze
from .jacobi import Rotation, any_of, partners, sweeps
from .matrices import diagonal, epsilon, eye, in_order, on_diagonal, times, transposed, triangle, where

__all__ = ["eigenvectors"]


def eigenvectors(a: ir.Value, upper: bool = False) -> tuple[ir.Value, ir.Value]:
    """Eigenvalues, ``[..., n]``, the smallest first, and eigenvectors as columns, ``[..., n, n]``, of matrices ``[..., n, n]``.

    One triangle is read. The sign of a vector is open, and so are vectors of equal values.
    Source: Golub and Van Loan, Matrix Computations, 4th edition, 8.5.
    """
    rank, dtype, size = info_of(a).rank, info_of(a).dtype, info_of(a).shape[-1]
    a = emit(ops.Add, triangle(a, upper), transposed(triangle(a, upper, strict=True)))
    beside_diagonal = emit(ops.LogicalNot, on_diagonal(a))
    axes = [rank - 2, rank - 1]
    # Rounding leaves each element beside the diagonal about an epsilon of the largest eigenvalue.
    limit = times(emit(ops.Sum, emit(ops.Square, a), axis=axes), full(4 * epsilon(dtype) ** 2, dtype))
    limit = times(limit, cast(size_value(size), dtype))

    def is_open(state: list[ir.Value]) -> ir.Value:
        rest = emit(ops.Sum, emit(ops.Square, where(beside_diagonal, state[0], 0)), axis=axes)
        return any_of(emit(ops.Greater, rest, limit))

    def step(state: list[ir.Value], r: ir.Value) -> list[ir.Value]:
        a, vectors = state
        partner, here = partners(size, r), diagonal(a)
        places = expand(unsqueeze(partner, 1), [*info_of(a).shape[:-1], 1])
        beside = squeeze(emit(ops.GatherElements, a, places, axis=rank - 1), rank - 1)
        turn = Rotation.of(partner, here, emit(ops.Take, here, partner, axis=rank - 2), beside)
        return [turn.columns(turn.rows(a)), turn.columns(vectors)]

    a, vectors = sweeps(size, [a, eye(a, size, size)], is_open, step)
    values = diagonal(a)
    order = emit(ops.ArgSort, values, axis=rank - 2)
    return emit(ops.GatherElements, values, order, axis=rank - 2), in_order(vectors, order)
