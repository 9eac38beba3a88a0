"""Padding: by a constant, and by what the edges repeat or mirror, each axis as parts one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import Dim, Expr
from ..emit import concat, emit, expand, full, info_of, slice_axis
from ..ranges import at_least
from ..torch_op import TorchOp, handles

__all__: list[str] = []

_Size = int | Expr

#: What is beyond the first element of an axis, or beyond the last: of a tensor, the axis and how much.
_Edge = Callable[[ir.Value, int, _Size], ir.Value]


@handles("aten.constant_pad_nd", "aten.pad")
def _pad(op: TorchOp) -> ir.Value:
    """Pairs count from the last dimension; a negative amount takes away."""
    x, amounts = op.tensor(0), op.number(1)
    if op.key == "aten.pad" and (mode := op.number(2, "constant")) != "constant":
        return _by_edges(op, mode)
    value = op.number(3 if op.key == "aten.pad" else 2, 0)
    rank = info_of(x).rank
    before, after = [0] * rank, [0] * rank
    for i, (low, high) in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        if not isinstance(low, int) or not isinstance(high, int):
            x = _padded_by_sizes(op, x, rank - 1 - i, low, high, value)
            low, high = 0, 0
        before[rank - 1 - i], after[rank - 1 - i] = low, high
    x = _cropped(x, before, after)
    before, after = [max(p, 0) for p in before], [max(p, 0) for p in after]
    return emit(ops.Pad, x, before=before, after=after, value=value) if any([*before, *after]) else x


def _padded_by_sizes(op: TorchOp, x: ir.Value, axis: int, low: Dim, high: Dim, value: float) -> ir.Value:
    """With what an axis gets before and after it; these are sizes."""
    if not all(at_least(amount, 0, op.values.ranges) for amount in (low, high)):
        raise RelaxError(f"expected amounts of padding that are never negative, got {low} and {high}")
    shape, dtype = info_of(x).shape, info_of(x).dtype

    def edge(amount: Dim) -> list[ir.Value]:
        return [full(value, dtype, (*shape[:axis], amount, *shape[axis + 1 :]))] if amount != 0 else []

    return concat([*edge(low), x, *edge(high)], axis)


def _cropped(x: ir.Value, before: Sequence[int], after: Sequence[int]) -> ir.Value:
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        size = info_of(x).shape[axis]
        if low >= 0 and high >= 0:
            continue
        if size is None:
            raise RelaxError("expected to crop a dimension whose size is known or symbolic")
        x = slice_axis(x, axis, max(-low, 0), size + min(high, 0))
    return x


@handles(*(f"aten.replication_pad{n}d" for n in (1, 2, 3)))
def _replication_pad(op: TorchOp) -> ir.Value:
    return _by_edges(op, "replicate")


@handles(*(f"aten.reflection_pad{n}d" for n in (1, 2, 3)))
def _reflection_pad(op: TorchOp) -> ir.Value:
    return _by_edges(op, "reflect")


def _by_edges(op: TorchOp, mode: str) -> ir.Value:
    """Pairs count from the last dimension; a negative amount takes away, from what goes round as well."""
    x, amounts = op.tensor(0), op.number(1)
    before, behind = _EDGES[mode]
    for i, (low, high) in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        axis = info_of(x).rank - 1 - i
        size = _size(x, axis)
        kept = slice_axis(x, axis, -low if _takes_away(low) else 0, size + high if _takes_away(high) else size)
        source = kept if mode == "circular" else x
        parts = [kept]
        if low != 0 and not _takes_away(low):
            parts.insert(0, before(source, axis, _amount(op, low)))
        if high != 0 and not _takes_away(high):
            parts.append(behind(source, axis, _amount(op, high)))
        x = concat(parts, axis)
    return x


def _size(x: ir.Value, axis: int) -> _Size:
    size = info_of(x).shape[axis]
    if size is None:
        raise RelaxError("expected to pad a dimension whose size is known or symbolic")
    return size


def _takes_away(amount: Dim) -> bool:
    return isinstance(amount, int) and amount < 0


def _amount(op: TorchOp, amount: Dim) -> _Size:
    if amount is None or not at_least(amount, 0, op.values.ranges):
        raise RelaxError(f"expected an amount of padding that is never negative, got {amount}")
    return amount


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
