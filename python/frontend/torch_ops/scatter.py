"""torch ops that write parts of tensors; the written tensor is a new one."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ...dialect.symbolic import Dim
from ..emit import (
    broadcast,
    cast,
    concat,
    emit,
    expand,
    full,
    info_of,
    integer,
    multiply_all,
    permute,
    reshape,
    slice_axis,
    unsqueeze,
)  # fmt: skip
from ..torch_op import TorchOp, handles
from .creation import sequence
from .indexing import from_start, slice_bound


@handles("aten.slice_scatter")
def _slice_scatter(op: TorchOp) -> ir.Value:
    """What lies before the slice, the source, and what lies after it."""
    x = op.tensor(0)
    axis = op.axis(2, info_of(x).rank) if len(op.operands) > 2 else 0
    if op.integer(5, "stride", 1) != 1:
        raise RelaxError("expected a stride of 1")
    size = info_of(x).shape[axis]
    begin, end = slice_bound(op, op.number(3, 0), size), slice_bound(op, op.number(4), size)
    return _replaced(x, cast(op.tensor(1), op.dtype), axis, begin, end)


@handles("aten.select_scatter")
def _select_scatter(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    axis = op.axis(2, info_of(x).rank)
    size, index = info_of(x).shape[axis], op.number(3)
    begin = size + index if isinstance(index, int) and index < 0 and size is not None else index
    return _replaced(x, unsqueeze(cast(op.tensor(1), op.dtype), axis), axis, begin, begin + 1)


def _replaced(x: ir.Value, source: ir.Value, axis: int, begin: Dim, end: Dim) -> ir.Value:
    """Written in place, where that moves rows; along the last axis it would move single elements."""
    size = info_of(x).shape[axis]
    if axis < info_of(x).rank - 1 and begin is not None and end is not None and (begin, end) != (0, size):
        return _put_along(x, sequence(begin, end, 1, integer()), source, axis)
    parts = [slice_axis(x, axis, 0, begin)] if begin != 0 else []
    parts.append(source)
    if end != size:
        parts.append(slice_axis(x, axis, end, size))
    return concat(parts, axis)


@handles("aten.index_put")
def _index_put(op: TorchOp) -> ir.Value:
    """Writes at the indices of neighbouring dimensions, as a cache of keys does, or one number where a mask is true."""
    x, found = op.tensor(0), op.optionals(1)
    if op.number(3, False):
        raise RelaxError("no relax form of index_put that adds to what is there")
    indices = [(axis, value) for axis, value in enumerate(found) if value is not None]
    values = cast(op.tensor(2), op.dtype)
    if len(indices) != 1:
        return _put_at_places(x, dict(indices), values)
    ((axis, index),) = indices
    if info_of(index).dtype == boolean():
        return _put_where(x, index, values, axis)
    if info_of(index).rank != 1:
        return _put_at_places(x, {axis: index}, values)
    return _put_along(x, index, values, axis)


def _put_at_places(x: ir.Value, indices: dict[int, ir.Value], values: ir.Value) -> ir.Value:
    """The indexed dimensions come first and are joined: a place in them is one number, and what is there is a row."""
    shape = info_of(x).shape
    axes, others = list(indices), [a for a in range(len(shape)) if a not in indices]
    if any(info_of(v).dtype in (boolean(), ir.IntegerType.get_unsigned(8)) for v in indices.values()):
        raise RelaxError("expected index_put with integer indices, got a mask among several")
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise RelaxError(f"expected index_put with indices of neighbouring dimensions, got {axes}")
    sizes = [shape[a] for a in axes]
    total = multiply_all(sizes)
    if total is None:
        raise RelaxError("expected to index dimensions whose sizes are known or symbolic")
    parts = broadcast([cast(v, integer()) for v in indices.values()])
    chosen, rest = info_of(parts[0]).shape, [shape[a] for a in others]
    where = _joined(parts, sizes, total)
    before, after = list(chosen), rest[axes[0] :]
    values = expand(values, [*rest[: axes[0]], *before, *after])
    ranks = [list(range(axes[0])), list(range(axes[0], axes[0] + len(chosen)))]
    values = permute(values, [*ranks[1], *ranks[0], *range(axes[0] + len(chosen), len(rest) + len(chosen))])
    order = [*axes, *others]
    rows = reshape(permute(x, order), (total, *rest))
    written = emit(ops.IndexCopy, rows, where, reshape(values, (multiply_all(chosen), *rest)), axis=0)
    restored = reshape(written, [shape[a] for a in order])
    return permute(restored, [order.index(a) for a in range(len(shape))])


def _joined(parts: list[ir.Value], sizes: list[Dim], total: Dim) -> ir.Value:
    """One index in place of several; outside of all, which a check finds, where one of them is outside of its dimension."""
    chosen = info_of(parts[0]).shape
    result, inside = full(0, integer(), chosen), full(True, boolean(), chosen)
    for part, size in zip(parts, sizes, strict=True):
        index, bound = from_start(part, size), full(size or 0, integer())
        fits = emit(ops.LogicalAnd, emit(ops.GreaterEqual, index, full(0, integer())), emit(ops.Less, index, bound))
        result = emit(ops.Add, emit(ops.Multiply, result, bound), index)
        inside = emit(ops.LogicalAnd, inside, fits)
    where = emit(ops.Where, inside, result, full(total or 0, integer()))
    return reshape(where, (multiply_all(chosen),))


def _put_where(x: ir.Value, mask: ir.Value, values: ir.Value, axis: int) -> ir.Value:
    if multiply_all(info_of(values).shape) != 1:
        raise RelaxError("expected index_put by a mask to write one number")
    rank = info_of(x).rank
    mask = unsqueeze(mask, *range(axis), *range(axis + info_of(mask).rank, rank))
    return emit(ops.Where, mask, reshape(values, ()), x)


def _put_along(x: ir.Value, index: ir.Value, values: ir.Value, axis: int) -> ir.Value:
    shape = info_of(x).shape
    values = expand(values, [*shape[:axis], *info_of(index).shape, *shape[axis + 1 :]])
    return emit(ops.IndexCopy, x, index, values, axis=axis)
