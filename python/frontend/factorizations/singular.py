"""Singular values and vectors, and the pseudoinverse."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ..emit import concat, emit, full, info_of, sequence, slice_axis, unsqueeze
from .householder import product_of_reflections, qr, reflections
from .jacobi import Rotation, any_of, partners, sweeps
from .matrices import both, compared, diagonal, epsilon, eye, in_order, least, times, transposed, where

__all__ = ["pseudoinverse", "singular_vectors"]


def singular_vectors(a: ir.Value, complete: bool = False) -> tuple[ir.Value, ir.Value, ir.Value]:
    """U, S, and V transposed, of ``A = U diag(S) V^T``, of matrices ``[..., m, n]``; the largest of S first.

    With ``k = min(m, n)``, U is ``[..., m, k]``, S ``[..., k]``, and V transposed ``[..., k, n]``; where they are ``complete``,
    U is ``[..., m, m]``, and V ``[..., n, n]``.
    Signs of a pair of vectors are open, and so are vectors of equal values. Raises RelaxError where it is open which one of m
    and n is smaller.
    Source: one-sided rotations of the triangular factor; Golub and Van Loan, Matrix Computations, 4th edition, 8.6.3.
    """
    m, n = info_of(a).shape[-2:]
    if least(m, n) != n:
        u, s, v = singular_vectors(transposed(a), complete)
        return transposed(v), s, transposed(u)
    axis = info_of(a).rank - 2
    outer, triangular = qr(a)
    x, vectors = _orthogonal(triangular)
    values = emit(ops.Sqrt, emit(ops.Sum, emit(ops.Square, x), axis=[axis]))
    order = emit(ops.ArgSort, values, axis=axis, descending=True)
    values = emit(ops.GatherElements, values, order, axis=axis)
    lengths = unsqueeze(values, axis)
    positive = compared(ops.Greater, lengths, 0)
    left = where(positive, emit(ops.Divide, in_order(x, order), where(positive, lengths, 1)), 0)
    return _completed(emit(ops.MatMul, outer, left), complete), values, transposed(in_order(vectors, order))


def _orthogonal(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``X V`` with orthogonal columns, and the rotations V, of square matrices."""
    axis, dtype, size = info_of(x).rank - 2, info_of(x).dtype, info_of(x).shape[-1]
    limit = full(4 * epsilon(dtype), dtype)

    def is_open(state: list[ir.Value]) -> ir.Value:
        return any_of(emit(ops.Greater, state[2], limit))

    def step(state: list[ir.Value], r: ir.Value) -> list[ir.Value]:
        x, vectors, cosines = state
        partner = partners(size, r)
        here = emit(ops.Sum, emit(ops.Square, x), axis=[axis])
        other = emit(ops.Take, here, partner, axis=axis)
        beside = emit(ops.Sum, times(x, emit(ops.Take, x, partner, axis=axis + 1)), axis=[axis])
        turn = Rotation.of(partner, here, other, beside)
        lengths = times(emit(ops.Sqrt, here), emit(ops.Sqrt, other))
        counts = both(compared(ops.Greater, lengths, 0), emit(ops.NotEqual, partner, sequence(0, size)))
        found = where(counts, emit(ops.Divide, emit(ops.Abs, beside), where(counts, lengths, 1)), 0)
        before = where(compared(ops.Equal, r, 0), full(0, dtype), cosines)
        return [turn.columns(x), turn.columns(vectors), emit(ops.Maximum, before, found)]

    cosines = full(1, dtype, [*info_of(x).shape[:-2], size])
    turned, vectors, _ = sweeps(size, [x, eye(x, size, size), cosines], is_open, step)
    return turned, vectors


def _completed(left: ir.Value, complete: bool) -> ir.Value:
    """Orthonormal columns ``[..., m, n]``; where they are zero, others take their place, and ``complete`` there are m."""
    m, n = info_of(left).shape[-2:]
    axis, dtype = info_of(left).rank - 2, info_of(left).dtype
    packed, taus = reflections(left)
    found = product_of_reflections(packed, taus, m if complete else n)
    ends = unsqueeze(diagonal(slice_axis(packed, axis, 0, n)), axis)
    signed = times(slice_axis(found, axis + 1, 0, n), where(compared(ops.Less, ends, 0), full(-1, dtype), 1))
    return concat([signed, slice_axis(found, axis + 1, n, m)], axis + 1) if complete and m != n else signed


def pseudoinverse(a: ir.Value, absolute: ir.Value, relative: ir.Value) -> ir.Value:
    """Moore and Penrose's inverse, ``[..., n, m]``: singular values up to a limit count as zero.

    Args:
        a: ``[..., m, n]``.
        absolute: the limit, ``[...]``.
        relative: the limit as a part of the largest singular value, ``[...]``; the larger limit counts.
    """
    u, values, v = singular_vectors(a)
    axis = info_of(values).rank - 1
    largest = emit(ops.Max, values, axis=[axis], keepdims=True)
    limits = times(unsqueeze(relative, info_of(relative).rank), largest)
    counts = emit(ops.Greater, values, emit(ops.Maximum, unsqueeze(absolute, info_of(absolute).rank), limits))
    inverses = where(counts, emit(ops.Reciprocal, where(counts, values, 1)), 0)
    return emit(ops.MatMul, times(transposed(v), unsqueeze(inverses, axis)), transposed(u))
