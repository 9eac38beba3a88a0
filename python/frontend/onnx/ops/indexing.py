"""ONNX operators that read or write at computed places."""

from __future__ import annotations

from typing import Any

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.symbolic import Dim, Expr
from ...emit import cast, emit, expand, full, info_of, integer, multiply_all, reshape, sequence, slice_axis, squeeze, unsqueeze
from ..node import Node, handles
from .slices import element_of

__all__ = ["place_in"]


@handles("Gather")
def _gather(node: Node) -> ir.Value:
    """One index that is known is a slice."""
    x, axis = node.tensor(0), node.axis(0, node.rank(0))
    known = node.operand(1).known
    if known is not None and not known.ndim:
        return element_of(x, axis, known.item())
    return emit(ops.Take, x, node.tensor(1), axis=axis)


@handles("GatherElements")
def _gather_elements(node: Node) -> ir.Value:
    x, indices = node.tensor(0), node.tensor(1)
    axis = node.axis(0, node.rank(0))
    for i, size in enumerate(info_of(indices).shape):
        if i != axis and size != info_of(x).shape[i]:
            x = slice_axis(x, i, 0, size)
    return emit(ops.GatherElements, x, indices, axis=axis)


@handles("GatherND", "com.microsoft.GatherND")
def _gather_nd(node: Node) -> ir.Value:
    return emit(ops.GatherND, node.tensor(0), node.tensor(1), batch_dims=node.attribute("batch_dims", 0))


@handles("ScatterElements", "Scatter")
def _scatter_elements(node: Node) -> ir.Value:
    """Indices may be fewer than elements along other axes: the updates then are of the same part of all."""
    x, indices, updates = (node.tensor(i) for i in range(3))
    axis = node.axis(0, node.rank(0))
    reduction = _REDUCTIONS[node.attribute("reduction", "none")]
    shape, places = info_of(x).shape, info_of(indices).shape
    if all(i == axis or a == b for i, (a, b) in enumerate(zip(shape, places, strict=True))):
        return emit(ops.ScatterElements, x, indices, updates, axis=axis, reduction=reduction)
    flat = _flat_places(place_in(indices, shape[axis]), shape, axis)
    count = multiply_all(shape)
    rows = [reshape(v, (multiply_all(places),)) for v in (flat, updates)]
    return reshape(emit(ops.ScatterElements, reshape(x, (count,)), *rows, axis=0, reduction=reduction), shape)


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _flat_places(index: ir.Value, shape: Any, axis: int) -> ir.Value:
    """Where in the row-major tensor of that shape each place of an axis is."""
    i64 = integer()
    total: ir.Value | None = None
    step: Any = 1
    places = info_of(index).shape
    for i in reversed(range(len(shape))):
        along = index if i == axis else _along(sequence(0, places[i], 1), i, len(shape))
        part = emit(ops.Multiply, along, full(step, i64))
        total = part if total is None else emit(ops.Add, total, part)
        step = step * shape[i]
    assert total is not None
    return expand(total, places)


def place_in(indices: ir.Value, size: Dim, wrap: bool = True) -> ir.Value:
    """Indices of a dimension counted from its start, which are looked up: those that it has not are refused, as by ``Take``.

    Places of other rows would be theirs once they are those of a flattened tensor.
    """
    if size is None:
        raise RelaxError("expected dimensions that are known or symbolic")
    return emit(ops.Take, sequence(0, size), cast(indices, integer()), axis=0, wrap_negative_indices=wrap)


def _along(x: ir.Value, axis: int, rank: int) -> ir.Value:
    return unsqueeze(x, *(i for i in range(rank) if i != axis))


@handles("ScatterND")
def _scatter_nd(node: Node) -> ir.Value:
    """Rows of the flattened leading dimensions."""
    x, indices, updates = (node.tensor(i) for i in range(3))
    reduction = _REDUCTIONS[node.attribute("reduction", "none")]
    shape, places = info_of(x).shape, info_of(indices).shape
    depth = places[-1]
    if not isinstance(depth, int):
        raise RelaxError("expected indices whose last dimension is known")
    i64 = integer()
    total: ir.Value = full(0, i64)
    rank = len(places)
    for i in range(depth):
        part = place_in(squeeze(slice_axis(indices, rank - 1, i, i + 1), rank - 1), shape[i])
        total = emit(ops.Add, emit(ops.Multiply, total, full(node.size(0, i), i64)), part)
    rows, rest = multiply_all(shape[:depth]), multiply_all(shape[depth:])
    count = multiply_all(places[:-1])
    flat = reshape(x, (rows, rest))
    at = expand(reshape(expand(total, places[:-1]), (count, 1)), (count, rest))
    values = reshape(updates, (count, rest))
    return reshape(emit(ops.ScatterElements, flat, at, values, axis=0, reduction=reduction), shape)


@handles("OneHot")
def _one_hot(node: Node) -> ir.Value:
    """An index may be negative, and is nowhere where it is outside."""
    depth = node.number(1)
    depth = depth if isinstance(depth, Expr) else int(depth)
    indices, values = node.tensor(0), node.tensor(2)
    rank = node.rank(0) + 1
    axis = node.axis(-1, rank)
    index = unsqueeze(cast(indices, integer()), axis)
    index = emit(ops.Where, emit(ops.Less, index, full(0, integer())), emit(ops.Add, index, full(depth, integer())), index)
    hot = emit(ops.Equal, index, _along(sequence(0, depth, 1), axis, rank))
    off, on = (reshape(slice_axis(values, 0, i, i + 1), ()) for i in range(2))
    return emit(ops.Where, hot, on, off)


@handles("TopK")
def _top_k(node: Node) -> list[ir.Value]:
    x = node.tensor(0)
    axis = node.axis(-1, node.rank(0))
    count = node.attribute("k") if node.version < 10 else node.number(1)
    order = emit(ops.ArgSort, x, axis=axis, descending=bool(node.attribute("largest", 1)))
    order = slice_axis(order, axis, 0, count)
    return [emit(ops.GatherElements, x, order, axis=axis), order]


@handles("TensorScatter")
def _tensor_scatter(node: Node) -> ir.Value:
    """Rows of a cache from each batch's own place on. Source: https://onnx.ai/onnx/operators/onnx__TensorScatter.html."""
    x, update = node.tensor(0), node.tensor(1)
    rank = node.rank(0)
    axis = node.axis(-2, rank)
    size = node.size(0, axis)
    i64 = integer()
    places = _along(sequence(0, node.size(1, axis), 1), axis, rank)
    if node.has(2):
        start = _along(cast(node.tensor(2), i64), 0, rank)
        places = emit(ops.Add, start, places)
    if node.attribute("mode", "linear") == "circular":
        places = emit(ops.Mod, places, full(size, i64))
    places = place_in(places, size, wrap=False)
    shape = info_of(update).shape
    flat = _flat_places(expand(places, shape), info_of(x).shape, axis)
    row = (multiply_all(shape),)
    whole = reshape(x, (multiply_all(info_of(x).shape),))
    return reshape(emit(ops.ScatterElements, whole, reshape(flat, row), reshape(update, row), axis=0), info_of(x).shape)


@handles("ai.onnx.ml.ArrayFeatureExtractor")
def _array_feature_extractor(node: Node) -> ir.Value:
    """Columns; a row of its own for a tensor of one dimension."""
    found = emit(
        ops.Take, node.tensor(0), reshape(node.tensor(1), (multiply_all(node.operand(1).shape),)), axis=node.rank(0) - 1
    )
    return found if node.rank(0) > 1 else unsqueeze(found, 0)
