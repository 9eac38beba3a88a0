"""Exponentials of matrices."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ..emit import cast, emit, extreme_flag, full, info_of, integer, reshape
from ..loops import loop, while_holds
from .matrices import eye, minus, times, where

__all__ = ["exponential"]

#: Terms of Taylor's series, of matrices whose 1-norm is at most one: the next one is below 1 / 20!, 4e-19.
_TERMS = 19


def exponential(a: ir.Value) -> ir.Value:
    """``e^A`` of square matrices ``[..., n, n]``: Taylor's series of ``A / 2^s``, squared s times.

    Source: Higham, Functions of Matrices, 10.3 (scaling and squaring), with the series itself.
    """
    rank, dtype, size = info_of(a).rank, info_of(a).dtype, info_of(a).shape[-1]
    ones = eye(a, size, size)
    sums = emit(ops.Sum, emit(ops.Abs, a), axis=[rank - 2], keepdims=True)
    norm = emit(ops.Max, sums, axis=[rank - 1], keepdims=True)
    norm = where(emit(ops.IsFinite, norm), norm, 0)
    halvings = emit(ops.Maximum, emit(ops.Ceil, emit(ops.Log2, norm)), full(0, dtype))
    scaled = times(a, emit(ops.Exp2, emit(ops.Negative, halvings)))
    last = full(_TERMS, integer())

    def term(state: list[ir.Value], k: ir.Value) -> list[ir.Value]:
        divisor = cast(minus(last, k), dtype)
        return [emit(ops.Add, ones, emit(ops.Divide, emit(ops.MatMul, scaled, state[0]), divisor))]

    def is_open(state: list[ir.Value]) -> ir.Value:
        flags = emit(ops.Less, state[1], halvings)
        return reshape(extreme_flag(ops.Max, flags, axis=list(range(rank))), (1,))

    def squared(state: list[ir.Value]) -> list[ir.Value]:
        x, done = state
        x = where(emit(ops.Less, done, halvings), emit(ops.MatMul, x, x), x)
        return [x, emit(ops.Add, done, full(1, dtype))]

    (series,) = loop(_TERMS, [ones], term)
    return while_holds([series, full(0, dtype, (1,))], is_open, squared)[0]
