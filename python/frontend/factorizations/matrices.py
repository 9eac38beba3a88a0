"""Matrices ``[..., m, n]`` as what factorizes them sees them: their places, columns, diagonals, and transposes."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.op import EffectOp
from ...dialect.symbolic import Dim
from ..emit import cast, emit, expand, full, info_of, integer, permute, sequence, squeeze, unsqueeze

__all__ = [
    "at", "both", "column_at", "columns_of", "compared", "diagonal", "epsilon", "eye", "in_order", "least", "minus",
    "number_of_first", "on_diagonal", "row_at", "rows_of", "times", "transposed", "triangle", "where",
]  # fmt: skip


def least(a: Dim, b: Dim) -> Dim:
    """The smaller one of two sizes. Raises RelaxError where that is not known."""
    if a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    raise RelaxError(f"expected matrices that are square or of known size, got {a} by {b}")


def rows_of(x: ir.Value) -> ir.Value:
    """The number of each row, ``[m, 1]`` of i64."""
    return unsqueeze(sequence(0, info_of(x).shape[-2]), 1)


def columns_of(x: ir.Value) -> ir.Value:
    """The number of each column, ``[1, n]`` of i64."""
    return unsqueeze(sequence(0, info_of(x).shape[-1]), 0)


def row_at(x: ir.Value, k: ir.Value) -> ir.Value:
    """The row of that number, ``[..., 1, n]``."""
    return emit(ops.Take, x, k, axis=info_of(x).rank - 2)


def column_at(x: ir.Value, k: ir.Value) -> ir.Value:
    """The column of that number, ``[..., m, 1]``."""
    return emit(ops.Take, x, k, axis=info_of(x).rank - 1)


def at(x: ir.Value, k: ir.Value) -> ir.Value:
    """The element of that number on the diagonal, ``[..., 1, 1]``."""
    return column_at(row_at(x, k), k)


def diagonal(x: ir.Value) -> ir.Value:
    """The diagonal of square matrices, ``[..., n]``."""
    shape, rank = info_of(x).shape, info_of(x).rank
    places = expand(rows_of(x), [*shape[:-1], 1])
    return squeeze(emit(ops.GatherElements, x, places, axis=rank - 1), rank - 1)


def transposed(x: ir.Value) -> ir.Value:
    """The matrices with rows as columns."""
    rank = info_of(x).rank
    return permute(x, [*range(rank - 2), rank - 1, rank - 2])


def triangle(x: ir.Value, upper: bool, strict: bool = False) -> ir.Value:
    """One triangle of matrices, zeros elsewhere; without the diagonal where it is ``strict``."""
    return emit(ops.Triu, x, k=int(strict)) if upper else emit(ops.Tril, x, k=-int(strict))


def on_diagonal(x: ir.Value) -> ir.Value:
    """Which elements of matrices are on the diagonal, ``[m, n]``."""
    return emit(ops.Equal, rows_of(x), columns_of(x))


def eye(like: ir.Value, m: Dim, n: Dim) -> ir.Value:
    """Matrices ``[..., m, n]`` of ones on the diagonal, as many as of another tensor, in its dtype."""
    info = info_of(like)
    plane = emit(ops.Equal, unsqueeze(sequence(0, m), 1), unsqueeze(sequence(0, n), 0))
    return expand(cast(plane, info.dtype), [*info.shape[:-2], m, n])


def where(condition: ir.Value, x: ir.Value, other: ir.Value | float) -> ir.Value:
    """``x`` where the condition holds, else the other, which may be a number."""
    return emit(ops.Where, condition, x, full(other, info_of(x).dtype) if not isinstance(other, ir.Value) else other)


def both(a: ir.Value, b: ir.Value) -> ir.Value:
    """Where both conditions hold."""
    return emit(ops.LogicalAnd, a, b)


def times(a: ir.Value, b: ir.Value) -> ir.Value:
    """Products of elements."""
    return emit(ops.Multiply, a, b)


def minus(a: ir.Value, b: ir.Value) -> ir.Value:
    """Differences of elements."""
    return emit(ops.Subtract, a, b)


def number_of_first(fails: ir.Value) -> ir.Value:
    """One more than the place of the first boolean that is set in the last dimension, 0 where none is; ``[...]`` of i64."""
    rank = info_of(fails).rank
    flags = cast(fails, integer())
    place = emit(ops.ArgMax, flags, axis=rank - 1)
    found = emit(ops.Max, flags, axis=[rank - 1])
    return times(emit(ops.Add, place, full(1, integer())), found)


def compared(op_class: type[EffectOp], a: ir.Value, b: float) -> ir.Value:
    """A comparison with a number."""
    return emit(op_class, a, full(b, info_of(a).dtype))


def in_order(x: ir.Value, order: ir.Value) -> ir.Value:
    """The columns of matrices in an order, ``[..., n]``."""
    rank = info_of(x).rank
    return emit(ops.GatherElements, x, expand(unsqueeze(order, rank - 2), info_of(x).shape), axis=rank - 1)


def epsilon(dtype: ir.Type) -> float:
    """The distance from one to the next number. Raises RelaxError for other dtypes than f32 and f64."""
    for kind, found in ((ir.F32Type, 2.0**-23), (ir.F64Type, 2.0**-52)):
        if isinstance(dtype, kind):
            return found
    raise RelaxError(f"expected matrices of f32 or f64, got {dtype}")
