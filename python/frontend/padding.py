"""Padding of an axis, as parts one after the other: by a number, or what its edges repeat or mirror; amounts may be sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.symbolic import Dim, Expr
from .emit import concat, emit, expand, full, info_of, slice_axis

__all__ = ["padded_by_edges", "padded_by_number"]

_Size = int | Expr

#: What is beyond the first element of an axis, or beyond the last: of a tensor, the axis and how much.
_Edge = Callable[[ir.Value, int, _Size], ir.Value]


def padded_by_number(x: ir.Value, axis: int, low: _Size, high: _Size, value: float) -> ir.Value:
    """With so many elements of one value before and after; a call in which an amount is negative is refused."""
    shape, dtype = info_of(x).shape, info_of(x).dtype

    def edge(amount: _Size) -> list[ir.Value]:
        return [full(value, dtype, (*shape[:axis], amount, *shape[axis + 1 :]))] if amount != 0 else []

    return concat([*edge(low), x, *edge(high)], axis)


def padded_by_edges(x: ir.Value, axis: int, low: _Size, high: _Size, mode: str) -> ir.Value:
    """With elements of the axis itself: ``replicate``, ``reflect`` or ``circular``, as PyTorch calls them.

    A number below 0 takes away, from what goes round as well. A call in which a symbolic amount is negative is refused, and one
    in which there are not as many elements to mirror.
    """
    before, behind = _EDGES[mode]
    size = _size(x, axis)
    kept = slice_axis(x, axis, -low if _takes_away(low) else 0, size + high if _takes_away(high) else size)
    source = kept if mode == "circular" else x
    parts = [kept]
    if low != 0 and not _takes_away(low):
        parts.insert(0, before(source, axis, low))
    if high != 0 and not _takes_away(high):
        parts.append(behind(source, axis, high))
    return concat(parts, axis)


def _size(x: ir.Value, axis: int) -> _Size:
    size = info_of(x).shape[axis]
    if size is None:
        raise RelaxError("expected to pad a dimension whose size is known or symbolic")
    return size


def _takes_away(amount: Dim) -> bool:
    return isinstance(amount, int) and amount < 0


def _first(x: ir.Value, axis: int, amount: _Size) -> ir.Value:
    return _repeated(slice_axis(x, axis, 0, 1), axis, amount)


def _last(x: ir.Value, axis: int, amount: _Size) -> ir.Value:
    size = _size(x, axis)
    return _repeated(slice_axis(x, axis, size - 1, size), axis, amount)


def _repeated(edge: ir.Value, axis: int, amount: _Size) -> ir.Value:
    shape = info_of(edge).shape
    return expand(edge, (*shape[:axis], amount, *shape[axis + 1 :]))


def _before_mirrored(x: ir.Value, axis: int, amount: _Size) -> ir.Value:
    return emit(ops.Flip, slice_axis(x, axis, 1, 1 + amount), axis=axis)


def _behind_mirrored(x: ir.Value, axis: int, amount: _Size) -> ir.Value:
    size = _size(x, axis)
    return emit(ops.Flip, slice_axis(x, axis, size - 1 - amount, size - 1), axis=axis)


def _end(x: ir.Value, axis: int, amount: _Size) -> ir.Value:
    size = _size(x, axis)
    return slice_axis(x, axis, size - amount, size)


def _beginning(x: ir.Value, axis: int, amount: _Size) -> ir.Value:
    return slice_axis(x, axis, 0, amount)


_EDGES: Mapping[str, tuple[_Edge, _Edge]] = {
    "replicate": (_first, _last),
    "reflect": (_before_mirrored, _behind_mirrored),
    "circular": (_end, _beginning),
}
