"""torch ops that write parts of tensors; the written tensor is a new one."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ...dialect.symbolic import Dim
from ..emit import cast, concat, emit, expand, info_of, integer, multiply_all, reshape, slice_axis, unsqueeze
from ..torch_op import TorchOp, handles
from .creation import sequence
from .indexing import slice_bound


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
    """Writes at the indices of one dimension, as a cache of keys does, or one number where a mask is true."""
    x, found = op.tensor(0), op.optionals(1)
    if op.number(3, False):
        raise RelaxError("no relax form of index_put that adds to what is there")
    indices = [(axis, value) for axis, value in enumerate(found) if value is not None]
    if len(indices) != 1:
        raise RelaxError(f"expected index_put with one index, got {len(indices)}")
    ((axis, index),) = indices
    values = cast(op.tensor(2), op.dtype)
    if info_of(index).dtype == boolean():
        return _put_where(x, index, values, axis)
    if info_of(index).rank != 1:
        raise RelaxError(f"expected index_put with an index of one dimension, got {info_of(index).rank}")
    return _put_along(x, index, values, axis)


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
