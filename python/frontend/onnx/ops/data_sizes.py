"""ONNX operators whose results are as large as data says: NonZero, Compress, Unique and NonMaxSuppression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ....dialect.symbolic import Dim, Expr
from ...emit import (
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
    sequence,
    slice_axis,
    squeeze,
    unsqueeze,
)
from ...places import places_where, unraveled
from ..node import Node, handles
from ..rounds import repeat, taken
from ..values import GraphValue, known_value, numbers_array, tensor_value


@handles("NonZero")
def _nonzero(node: Node) -> ir.Value:
    """A column of places for each element that is not zero, in the order of memory; a scalar is a row of one element."""
    x, shape = node.tensor(0), node.operand(0).shape or (1,)
    flat = places_where(x if node.rank(0) else reshape(x, shape), node.new_symbol())
    return concat([unsqueeze(p, 0) for p in unraveled(flat, shape)], 0)


@handles("Compress")
def _compress(node: Node) -> ir.Value:
    """Where the condition is known at import the size is, too."""
    x, axis = node.tensor(0), 0
    if "axis" in node.attributes:
        axis = node.axis(None, node.rank(0))
    else:
        x = reshape(x, (multiply_all(info_of(x).shape),))
    known = node.operand(1).known
    if known is None:
        return emit(ops.Take, x, places_where(node.tensor(1), node.new_symbol()), axis=axis)
    chosen = numbers_array([i for i, c in enumerate(known.reshape(-1).tolist()) if c])
    return emit(ops.Take, x, known_value("places", chosen).value, axis=axis)


@handles("Unique")
def _unique(node: Node) -> list[ir.Value]:
    """What differs, first places, which of them each is like, how many are like it.

    Sorted rows have their like beside them; of each group the first in the tensor's order counts.
    """
    x, axis, shape = node.tensor(0), 0, node.operand(0).shape
    if "axis" in node.attributes:
        axis = node.axis(None, node.rank(0))
        rows = permute(x, [axis, *(i for i in range(len(shape)) if i != axis)])
        rows = reshape(rows, (shape[axis], multiply_all([s for i, s in enumerate(shape) if i != axis])))
    else:
        x = reshape(x, (multiply_all(shape),))
        rows = unsqueeze(x, 1)
    count, i64 = _size(info_of(rows).shape[0]), integer()
    order = _sorted(rows)
    begins = _begins(emit(ops.Take, rows, order, axis=0), count)
    group = emit(ops.Subtract, emit(ops.CumSum, begins, axis=0), full(1, i64))
    firsts = emit(ops.ScatterElements, full(count, i64, (count,)), group, order, axis=0, reduction="min")
    if node.attribute("sorted", 1):
        number = group
        places = emit(ops.Take, order, places_where(begins, node.new_symbol()), axis=0)
    else:
        mine = emit(ops.Take, firsts, group, axis=0)
        is_first = emit(ops.Equal, mine, order)
        flags = emit(ops.ScatterElements, full(0, i64, (count,)), order, cast(is_first, i64), axis=0)
        number = emit(ops.Subtract, emit(ops.Take, emit(ops.CumSum, flags, axis=0), mine, axis=0), full(1, i64))
        places = places_where(flags, node.new_symbol())
    inverse = emit(ops.ScatterElements, full(0, i64, (count,)), order, number, axis=0)
    like = emit(ops.ScatterElements, full(0, i64, (count,)), number, full(1, i64, (count,)), axis=0, reduction="add")
    counts = emit(ops.Take, like, emit(ops.Take, inverse, places, axis=0), axis=0)
    return [emit(ops.Take, x, places, axis=axis), places, inverse, counts]


@handles("com.microsoft.Unique")
def _unique_in_order(node: Node) -> list[ir.Value]:
    """What differs in the order in which it comes, which of it each element is, how many are like it."""
    unique, _, inverse, counts = _unique(replace(node, attributes={"sorted": 0}))
    return [unique, inverse, counts]


def _size(dim: Dim) -> int | Expr:
    if dim is None:
        raise RelaxError("expected a tensor whose sizes are known or symbolic")
    return dim


def _sorted(rows: ir.Value) -> ir.Value:
    """The order of rows ``[n, k]`` by their first elements, equal ones by the next: sorted by one column after the other."""
    count, width = info_of(rows).shape

    def body(number: GraphValue, carried: list[Any]) -> tuple[list[Any], list[Any]]:
        order = carried[0].value
        back = emit(ops.Subtract, full(_size(width) - 1, integer()), number.value)
        keys = emit(ops.Take, emit(ops.Take, rows, back, axis=1), order, axis=0)
        return [tensor_value("order", emit(ops.Take, order, emit(ops.ArgSort, keys, axis=0), axis=0))], []

    (found,), _ = repeat(_size(width), [tensor_value("order", sequence(0, _size(count)))], body)
    return found.value


def _begins(rows: ir.Value, count: int | Expr) -> ir.Value:
    """1 for each of sorted rows that is another than the one before it, as the first is; two that are no numbers are alike."""
    places = sequence(0, count)
    before = emit(ops.Take, rows, emit(ops.Maximum, emit(ops.Subtract, places, full(1, integer())), full(0, integer())), axis=0)
    differs = emit(ops.NotEqual, before, rows)
    if is_float(info_of(rows).dtype):
        nans = [emit(ops.IsNan, v) for v in (before, rows)]
        differs = emit(ops.LogicalAnd, differs, emit(ops.LogicalNot, emit(ops.LogicalAnd, *nans)))
    differing = emit(ops.Sum, cast(differs, integer()), axis=[1])
    is_other = emit(
        ops.LogicalOr, emit(ops.Greater, differing, full(0, integer())), emit(ops.Equal, places, full(0, integer()))
    )
    return cast(is_other, integer())


@handles("NonMaxSuppression")
def _non_max_suppression(node: Node) -> ir.Value:
    """Rows ``[batch, class, box]`` of those that no better one of their class covers, the best first.

    In the order of scores each round decides about one box of each class: chosen, it takes out what it covers.
    """
    batch, count = (_size(d) for d in node.operand(0).shape[:2])
    classes = _size(node.operand(1).shape[1])
    f32, i64 = ir.F32Type.get(), integer()
    most = reshape(node.tensor(2), ()) if node.has(2) else full(0, i64)
    limit = reshape(node.tensor(3), ()) if node.has(3) else full(0, f32)
    scores = node.tensor(1)
    order = emit(ops.ArgSort, scores, axis=2, descending=True)
    sides = [_by_score(s, order) for s in _sides(node.tensor(0), bool(node.attribute("center_point_box", 0)))]
    alive = full(True, integer(1), (batch, classes, count))
    if node.has(4):
        ranked = emit(ops.GatherElements, scores, order, axis=2)
        alive = emit(ops.Greater, ranked, reshape(node.tensor(4), ()))

    def body(number: GraphValue, carried: list[Any]) -> tuple[list[Any], list[Any]]:
        alive, chosen, taken_so_far = (c.value for c in carried)
        candidate = emit(ops.LogicalAnd, taken(alive, number, 2), emit(ops.Less, taken_so_far, most))
        covered = emit(ops.Greater, _overlap(sides, [taken(s, number, 2) for s in sides]), limit)
        out = emit(ops.LogicalAnd, unsqueeze(candidate, 2), covered)
        place = reshape(number.value, (1,))
        after = [
            emit(ops.LogicalAnd, alive, emit(ops.LogicalNot, out)),
            emit(ops.IndexCopy, chosen, place, unsqueeze(candidate, 2), axis=2),
            emit(ops.Add, taken_so_far, cast(candidate, i64)),
        ]
        return [tensor_value("carried", v) for v in after], []

    start = [alive, full(False, integer(1), (batch, classes, count)), full(0, i64, (batch, classes))]
    (_, chosen, _), _ = repeat(count, [tensor_value("start", v) for v in start], body)
    flat = places_where(chosen.value, node.new_symbol())
    box = emit(ops.Take, reshape(order, (multiply_all((batch, classes, count)),)), flat, axis=0)
    batches, kinds, _ = unraveled(flat, (batch, classes, count))
    return concat([unsqueeze(v, 1) for v in (batches, kinds, box)], 1)


def _sides(boxes: ir.Value, centered: bool) -> list[ir.Value]:
    """Where boxes ``[batch, n, 4]`` begin and end along both axes, ``[batch, n]`` each; corners may be any two across."""
    a, b, c, d = (squeeze(slice_axis(boxes, 2, i, i + 1), 2) for i in range(4))
    if centered:
        half = full(0.5, info_of(boxes).dtype)
        c, d = (emit(ops.Multiply, v, half) for v in (c, d))
        return [emit(op, *pair) for pair in ((a, c), (b, d)) for op in (ops.Subtract, ops.Add)]
    return [emit(op, *pair) for pair in ((a, c), (b, d)) for op in (ops.Minimum, ops.Maximum)]


def _by_score(side: ir.Value, order: ir.Value) -> ir.Value:
    """``[batch, class, n]``, in the order of each class."""
    return emit(ops.GatherElements, expand(unsqueeze(side, 1), info_of(order).shape), order, axis=2)


def _overlap(boxes: list[ir.Value], one: list[ir.Value]) -> ir.Value:
    """The area that boxes have with one of each class, relative to the area of both; 0 where they share none."""
    one = [unsqueeze(v, 2) for v in one]
    zero = full(0, info_of(boxes[0]).dtype)
    shared, whole, other = (
        emit(ops.Multiply, *[emit(ops.Maximum, emit(ops.Subtract, ends[i], begins[i]), zero) for i in range(2)])
        for begins, ends in (
            ([emit(ops.Maximum, boxes[i], one[i]) for i in (0, 2)], [emit(ops.Minimum, boxes[i], one[i]) for i in (1, 3)]),
            (boxes[0::2], boxes[1::2]),
            (one[0::2], one[1::2]),
        )
    )
    union = emit(ops.Subtract, emit(ops.Add, whole, other), shared)
    ratio = emit(ops.Divide, shared, union)
    return emit(ops.Where, emit(ops.Greater, shared, zero), ratio, zero)
