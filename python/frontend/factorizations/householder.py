"""Orthogonal factors by Householder's reflections."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.symbolic import Dim
from ..emit import emit, full, info_of, integer, size_value, slice_axis, squeeze, unsqueeze
from ..loops import loop
from .matrices import at, both, column_at, columns_of, compared, eye, least, minus, rows_of, times, where

__all__ = ["apply_reflections", "product_of_reflections", "qr", "reflections"]


def reflections(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """R of ``A = H_0 H_1 ... R``, of matrices ``[..., m, n]``, with ``v_k`` of the reflections below its diagonal, and tau.

    ``H_k = I - tau_k v_k v_k^T``. Tau is ``[..., min(m, n)]``. Source: LAPACK's xGEQR2 and xLARFG.
    """
    *batch, m, n = info_of(a).shape
    rows, columns, rank, dtype = rows_of(a), columns_of(a), info_of(a).rank, info_of(a).dtype
    places = columns_of(slice_axis(a, rank - 1, 0, least(m, n)))

    def step(state: list[ir.Value], k: ir.Value) -> list[ir.Value]:
        a, taus = state
        below, first = emit(ops.Greater, rows, k), at(a, k)
        rest = where(below, column_at(a, k), 0)
        length = _length(rest)
        beta = times(where(compared(ops.Less, first, 0), full(1, dtype), -1), _length_of_two(first, length))
        nothing = compared(ops.Equal, length, 0)
        beta = where(nothing, first, beta)
        tau = where(nothing, full(0, dtype), emit(ops.Divide, minus(beta, first), where(nothing, full(1, dtype), beta)))
        vector = emit(ops.Divide, rest, where(nothing, full(1, dtype), minus(first, beta)))
        vector = where(emit(ops.Equal, rows, k), full(1, dtype), vector)
        right = emit(ops.Greater, columns, k)
        reflected = minus(a, times(times(tau, vector), _row_product(vector, a)))
        here = where(emit(ops.Equal, rows, k), beta, vector)
        after = where(both(emit(ops.GreaterEqual, rows, k), right), reflected, a)
        after = where(both(emit(ops.GreaterEqual, rows, k), emit(ops.Equal, columns, k)), here, after)
        return [after, where(emit(ops.Equal, places, k), tau, taus)]

    packed, taus = loop(least(m, n), [a, full(0, dtype, [*batch, 1, least(m, n)])], step)
    return packed, squeeze(taus, rank - 2)


def _length(x: ir.Value) -> ir.Value:
    """The 2-norm of columns ``[..., m, 1]``, by their largest element, so that no square overflows."""
    axis, dtype = info_of(x).rank - 2, info_of(x).dtype
    largest = emit(ops.Max, emit(ops.Abs, x), axis=[axis], keepdims=True)
    scale = where(compared(ops.Equal, largest, 0), full(1, dtype), largest)
    return times(scale, emit(ops.Sqrt, emit(ops.Sum, emit(ops.Square, emit(ops.Divide, x, scale)), axis=[axis], keepdims=True)))


def _length_of_two(a: ir.Value, b: ir.Value) -> ir.Value:
    """``sqrt(a^2 + b^2)``, by the larger one."""
    a, b = emit(ops.Abs, a), emit(ops.Abs, b)
    largest = emit(ops.Maximum, a, b)
    scale = where(compared(ops.Equal, largest, 0), full(1, info_of(a).dtype), largest)
    squares = emit(ops.Add, emit(ops.Square, emit(ops.Divide, a, scale)), emit(ops.Square, emit(ops.Divide, b, scale)))
    return times(scale, emit(ops.Sqrt, squares))


def _row_product(vector: ir.Value, x: ir.Value) -> ir.Value:
    """``v^T X``, ``[..., 1, n]``."""
    return emit(ops.Sum, times(vector, x), axis=[info_of(x).rank - 2], keepdims=True)


def apply_reflections(packed: ir.Value, taus: ir.Value, x: ir.Value, transpose: bool = False) -> ir.Value:
    """``H_0 H_1 ... X``, or with ``transpose`` ``... H_1 H_0 X``; X is ``[..., m, k]``."""
    count, rows, dtype = info_of(taus).shape[-1], rows_of(x), info_of(x).dtype
    taus, rank = unsqueeze(taus, info_of(taus).rank - 1), info_of(packed).rank
    last = minus(size_value(count), full(1, integer()))

    def step(state: list[ir.Value], k: ir.Value) -> list[ir.Value]:
        k = k if transpose else minus(last, k)
        vector = where(emit(ops.Greater, rows, k), column_at(packed, k), 0)
        vector = where(emit(ops.Equal, rows, k), full(1, dtype), vector)
        tau = emit(ops.Take, taus, k, axis=rank - 1)
        return [minus(state[0], times(times(tau, vector), _row_product(vector, state[0])))]

    return loop(count, [x], step)[0]


def product_of_reflections(packed: ir.Value, taus: ir.Value, columns: Dim) -> ir.Value:
    """The first columns of ``H_0 H_1 ...``, ``[..., m, columns]``. Source: LAPACK's xORG2R."""
    return apply_reflections(packed, taus, eye(packed, info_of(packed).shape[-2], columns))


def qr(a: ir.Value, complete: bool = False) -> tuple[ir.Value, ir.Value]:
    """Q, ``[..., m, k]``, and R, ``[..., k, n]``, with ``k = min(m, n)``, or m where they are ``complete``."""
    m, n = info_of(a).shape[-2:]
    packed, taus = reflections(a)
    count = m if complete else least(m, n)
    upper = emit(ops.Triu, slice_axis(packed, info_of(a).rank - 2, 0, count))
    return product_of_reflections(packed, taus, count), upper
