"""torch ops that write parts of tensors; the written tensor is a new one."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean, is_float, normalize_axis
from ...dialect.symbolic import Dim, Expr
from ..emit import (
    agreed,
    broadcast,
    cast,
    concat,
    emit,
    expand,
    full,
    info_of,
    integer,
    match,
    multiply_all,
    neutral,
    permute,
    reshape,
    slice_axis,
    squeeze,
    unsqueeze,
)  # fmt: skip
from ..places import diagonal_places
from ..slices import UncertainError
from ..torch_op import TorchOp, handles
from .creation import sequence
from .elementwise import apply
from .indexing import from_start, indices_of, is_mask, slice_bound


@handles("aten.slice_scatter")
def _slice_scatter(op: TorchOp) -> ir.Value:
    """What lies before the slice, the source, and what lies after it."""
    x = op.tensor(0)
    axis = op.axis(2, info_of(x).rank) if len(op.operands) > 2 else 0
    source = cast(op.tensor(1), op.dtype)
    size, stride = info_of(x).shape[axis], op.integer(5, "stride", 1)
    if size is None or stride < 1:
        raise RelaxError("expected a positive stride, and a dimension whose size is known or symbolic")
    try:
        begin, end = slice_bound(op, op.number(3, 0), size), slice_bound(op, op.number(4), size)
    except UncertainError:
        return _put_along(x, _places_inside(op, size, stride, info_of(source).shape[axis]), source, axis)
    if stride != 1:
        return _put_along(x, sequence(begin, end, stride, integer()), source, axis)
    return _replaced(x, source, axis, begin, end)


def _places_inside(op: TorchOp, size: int | Expr, stride: int, count: Dim) -> ir.Value:
    """Those of a slice whose bounds may be outside of the dimension, and are then limited to it; as many as the source has."""
    bounds = [full(bound, integer(), (1,)) for bound in (op.number(3, 0), op.number(4, 2**63 - 1))]
    places = emit(ops.DynamicStridedSlice, sequence(0, size), *bounds, axes=[0], strides=[stride])
    return match(places, info_of(places).with_(shape=[count]))


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
    """Writes at indices, as a cache of keys does, or where a mask is true."""
    x, found = op.tensor(0), op.optionals(1)
    add = bool(op.number(3, False))
    indices = [(axis, value) for axis, value in enumerate(found) if value is not None]
    values = cast(op.tensor(2), op.dtype)
    if len(indices) != 1:
        return _put_at_places(x, indices_of(op, 1), values, add)
    ((axis, index),) = indices
    if is_mask(index):
        return _put_where(x, cast(index, boolean()), values, axis, add)
    if info_of(index).rank != 1:
        return _put_at_places(x, {axis: index}, values, add)
    return _put_along(x, index, values, axis, add)


def _put_at_places(x: ir.Value, indices: dict[int, ir.Value], values: ir.Value, add: bool) -> ir.Value:
    """The indexed dimensions come first and are joined: a place in them is one number, and what is there is a row."""
    shape = info_of(x).shape
    axes, others = list(indices), [a for a in range(len(shape)) if a not in indices]
    # Where the indexed ones are not beside each other, what is at a place comes behind the places.
    first = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    sizes = [shape[a] for a in axes]
    total = multiply_all(sizes)
    if total is None:
        raise RelaxError("expected to index dimensions whose sizes are known or symbolic")
    parts = broadcast(agreed(*(cast(v, integer()) for v in indices.values())))
    chosen, rest = info_of(parts[0]).shape, [shape[a] for a in others]
    where = _joined(parts, sizes, total)
    values = expand(values, [*rest[:first], *chosen, *rest[first:]])
    behind = first + len(chosen)
    values = permute(values, [*range(first, behind), *range(first), *range(behind, len(rest) + len(chosen))])
    order = [*axes, *others]
    rows = reshape(permute(x, order), (total, *rest))
    written = _written(rows, where, reshape(values, (multiply_all(chosen), *rest)), 0, add)
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


def _put_where(x: ir.Value, mask: ir.Value, values: ir.Value, axis: int, add: bool) -> ir.Value:
    """Of values one for all places, or one after the other, in the order of memory, for each that is true."""
    info, masked = info_of(x), info_of(mask).rank
    rest = info.shape[axis + masked :]
    here = info_of(values).rank - 1 - len(rest)  # which dimension of the values counts places
    count = info_of(values).shape[here] if here >= 0 else 1
    places = [*range(axis), *range(axis + masked, info.rank)]
    if count != 1:
        values = _by_order(expand(values, [*info.shape[:axis], count, *rest]), mask, axis)
    elif here >= 0:
        values = unsqueeze(squeeze(values, here), *range(here, here + masked))
    mask = unsqueeze(mask, *places)
    return emit(ops.Where, mask, apply(ops.Add, x, values) if add else values, x)


def _by_order(values: ir.Value, mask: ir.Value, axis: int) -> ir.Value:
    """Along an axis the next one wherever the mask is true, in the order of memory; of sizes that may be none, zeros first.

    A check finds more places than there is something for.
    """
    shape, total, given = info_of(mask).shape, multiply_all(info_of(mask).shape), info_of(values).shape
    count = given[axis]
    if total is None or count is None:
        raise RelaxError("expected a mask, and values for its places, of sizes that are known or symbolic")
    number = emit(ops.CumSum, cast(reshape(mask, (total,)), integer()), axis=0)
    if isinstance(count, int) and count:
        number = emit(ops.Subtract, number, full(1, integer()))
    else:
        values = concat([full(0, info_of(values).dtype, [*given[:axis], 1, *given[axis + 1 :]]), values], axis)
    places = emit(ops.Where, reshape(mask, (total,)), number, full(0, integer()))
    return reshape(emit(ops.Take, values, places, axis=axis), [*given[:axis], *shape, *given[axis + 1 :]])


def _put_along(x: ir.Value, index: ir.Value, values: ir.Value, axis: int, add: bool = False) -> ir.Value:
    shape = info_of(x).shape
    values = expand(values, [*shape[:axis], *info_of(index).shape, *shape[axis + 1 :]])
    return _written(x, index, values, axis, add)


@handles("aten.index_add")
def _index_add(op: TorchOp) -> ir.Value:
    x, axis = op.tensor(0), op.axis(1, info_of(op.tensor(0)).rank)
    values, alpha = cast(op.tensor(3), op.dtype), op.number(4, 1)
    if alpha != 1:
        values = apply(ops.Multiply, values, full(alpha, op.dtype))
    index = op.tensor(2) if info_of(op.tensor(2)).rank else reshape(op.tensor(2), (1,))
    if info_of(x).rank:
        return _added(x, index, values, axis, wraps=False)
    return reshape(_added(reshape(x, (1,)), index, reshape(values, (1,)), 0, wraps=False), ())


@handles("aten.put")
def _put(op: TorchOp) -> ir.Value:
    """At places in the order of memory."""
    x, index, values = op.tensor(0), cast(op.tensor(1), integer()), cast(op.tensor(2), op.dtype)
    count, total = multiply_all(info_of(index).shape), multiply_all(info_of(x).shape)
    if count is None or total is None:
        raise RelaxError("expected tensors whose sizes are known or symbolic")
    written = _written(reshape(x, (total,)), reshape(index, (count,)), reshape(values, (count,)), 0, bool(op.number(3, False)))
    return reshape(written, info_of(x).shape)


@handles("aten.index_copy")
def _index_copy(op: TorchOp) -> ir.Value:
    """An index below zero is refused."""
    x, index, values = (v if info_of(v).rank else reshape(v, (1,)) for v in (op.tensor(0), op.tensor(2), op.tensor(3)))
    axis = op.axis(1, info_of(x).rank)
    places = cast(index, integer())
    result = emit(ops.IndexCopy, x, places, cast(values, op.dtype), axis=axis, wrap_negative_indices=False)
    return result if info_of(op.tensor(0)).rank else reshape(result, ())


@handles("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def _index_fill(op: TorchOp) -> ir.Value:
    """An index below zero counts from the end, alone among those of its kind."""
    x, index = (v if info_of(v).rank else reshape(v, (1,)) for v in (op.tensor(0), op.tensor(2)))
    axis, shape = op.axis(1, info_of(x).rank), info_of(x).shape
    values = expand(op.value_in(3, op.dtype), [*shape[:axis], *info_of(index).shape, *shape[axis + 1 :]])
    result = emit(ops.IndexCopy, x, cast(index, integer()), values, axis=axis, wrap_negative_indices=True)
    return result if info_of(op.tensor(0)).rank else reshape(result, ())


@handles("aten.index_reduce")
def _index_reduce(op: TorchOp) -> ir.Value:
    """As elements are scattered, with one index for all that is beside each other."""
    x, index, values = (v if info_of(v).rank else reshape(v, (1,)) for v in (op.tensor(0), op.tensor(2), op.tensor(3)))
    axis, info = op.axis(1, info_of(x).rank), info_of(values)
    others = [a for a in range(info.rank) if a != axis]
    places = expand(unsqueeze(cast(index, integer()), *others) if others else cast(index, integer()), info.shape)
    result = _reduced_into(op, x, places, cast(values, op.dtype), axis, op.number(4))
    return result if info_of(op.tensor(0)).rank else reshape(result, ())


def _written(x: ir.Value, index: ir.Value, values: ir.Value, axis: int, add: bool) -> ir.Value:
    """Values at the positions of one dimension, in place of what is there or added to it."""
    if add:
        return _added(x, index, values, axis, wraps=True)
    return emit(ops.IndexCopy, x, index, values, axis=axis)


def _added(x: ir.Value, index: ir.Value, values: ir.Value, axis: int, *, wraps: bool) -> ir.Value:
    info = info_of(values)
    others = [a for a in range(info.rank) if a != axis]
    places = unsqueeze(cast(index, integer()), *others) if others else cast(index, integer())
    reduction = "max" if info.dtype == boolean() else "add"
    attrs = {"axis": axis, "reduction": reduction, "wrap_negative_indices": wraps}
    return emit(ops.ScatterElements, x, places, values, **attrs)


def _scattered(x: ir.Value, index: ir.Value, updates: ir.Value, axis: int, reduction: str) -> ir.Value:
    """Updates where indices say; both may be smaller than the tensor in other dimensions, and then name its first elements.

    Truth values are added and multiplied as numbers.
    """
    info = info_of(x)
    for i, size in enumerate(info_of(index).shape):
        if i != axis and size != info.shape[i]:
            part = _scattered(slice_axis(x, i, 0, size), index, updates, axis, reduction)
            return _replaced(x, part, i, 0, size)
    if info.dtype == boolean() and reduction in ("add", "mul"):
        reduction = "max" if reduction == "add" else "min"
    attrs = {"axis": axis, "reduction": reduction, "wrap_negative_indices": False}
    return emit(ops.ScatterElements, x, cast(index, integer()), updates, **attrs)


_TORCH_REDUCTIONS = {
    "add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add",
}  # fmt: skip


@handles("aten.scatter.src", "aten.scatter.value", "aten.scatter.reduce", "aten.scatter.value_reduce", "aten.scatter_add",
         "aten.scatter_reduce.two")  # fmt: skip
def _scatter(op: TorchOp) -> ir.Value:
    x, index, axis = op.tensor(0), op.tensor(2), op.axis(1, info_of(op.tensor(0)).rank)
    if not info_of(x).rank:
        x = reshape(x, (1,))
    index = reshape(index, (1,)) if not info_of(index).rank else index
    shape = info_of(index).shape
    updates = op.value_in(3, op.dtype)
    if op.is_tensor(3):
        updates = updates if info_of(updates).rank else reshape(updates, (1,))
        for i, size in enumerate(shape):
            updates = slice_axis(updates, i, 0, size)
    updates = expand(updates, shape)
    how = "add" if op.key == "aten.scatter_add" else op.number(4, "update")
    result = _reduced_into(op, x, index, updates, axis, how)
    return result if info_of(op.tensor(0)).rank else reshape(result, ())


def _reduced_into(op: TorchOp, x: ir.Value, index: ir.Value, updates: ir.Value, axis: int, how: str) -> ir.Value:
    if how == "update":
        return _scattered(x, index, updates, axis, how)
    dtype, includes = info_of(x).dtype, bool(op.number(5, True))
    if not includes:  # what is named begins from nothing
        nothing = full(neutral(_TORCH_REDUCTIONS[how], dtype), dtype, info_of(index).shape)
        x = _scattered(x, index, nothing, axis, "update")
    total = _scattered(x, index, updates, axis, _TORCH_REDUCTIONS[how])
    return _divided(op, total, index, axis, includes) if how == "mean" else total


def _divided(op: TorchOp, total: ir.Value, index: ir.Value, axis: int, includes: bool) -> ir.Value:
    """Sums by how many elements they are of; without the tensor's own, at least one."""
    shape = info_of(total).shape
    start, ones = full(int(includes), integer(), shape), full(1, integer(), info_of(index).shape)
    count = _scattered(start, index, ones, axis, "add")
    count = cast(emit(ops.Maximum, count, full(1, integer())), op.dtype)
    return emit(ops.Divide if is_float(op.dtype) else ops.FloorDivide, total, count)


@handles("aten.masked_scatter")
def _masked_scatter(op: TorchOp) -> ir.Value:
    """Where the mask is true the elements of the source, in the order of memory."""
    x, mask = broadcast([op.tensor(0), op.tensor(1)])
    source = reshape(op.tensor(2), (multiply_all(info_of(op.tensor(2)).shape),))
    return emit(ops.Where, mask, _by_order(source, mask, 0), x)


@handles("aten.diagonal_scatter")
def _diagonal_scatter(op: TorchOp) -> ir.Value:
    """Every ``columns + 1``-th element of the two dimensions joined, which come last, and then go back."""
    x, source, offset = op.tensor(0), cast(op.tensor(1), op.dtype), op.integer(2, "offset", 0)
    rank = info_of(x).rank
    axes = [normalize_axis(op.integer(i, "axis", i - 3), rank) for i in (3, 4)]
    order = [*(a for a in range(rank) if a not in axes), *axes]
    moved = permute(x, order)
    *batch, rows, columns = info_of(moved).shape
    count = info_of(source).shape[-1]
    if count == 0:
        return x
    places = diagonal_places(columns, offset, count)
    written = _put_along(reshape(moved, (*batch, multiply_all([rows, columns]))), places, source, rank - 2)
    return permute(reshape(written, (*batch, rows, columns)), [order.index(a) for a in range(rank)])
