"""Padding: by a constant, and by what the edges repeat or mirror."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import Dim, Expr
from ..emit import emit, info_of, slice_axis
from ..padding import padded_by_edges, padded_by_number
from ..ranges import at_least
from ..torch_op import TorchOp, handles

__all__: list[str] = []


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
            x = padded_by_number(x, rank - 1 - i, _amount(op, low), _amount(op, high), value)
            low, high = 0, 0
        before[rank - 1 - i], after[rank - 1 - i] = low, high
    x = _cropped(x, before, after)
    before, after = [max(p, 0) for p in before], [max(p, 0) for p in after]
    return emit(ops.Pad, x, before=before, after=after, value=value) if any([*before, *after]) else x


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
    for i, pair in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        low, high = (a if isinstance(a, int) else _amount(op, a) for a in pair)
        x = padded_by_edges(x, info_of(x).rank - 1 - i, low, high, mode)
    return x


def _amount(op: TorchOp, amount: Dim) -> int | Expr:
    if amount is None or not at_least(amount, 0, op.values.ranges):
        raise RelaxError(f"expected amounts of padding that are never negative, got {amount}")
    return amount
