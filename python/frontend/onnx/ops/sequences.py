"""ONNX operators on sequences and optionals, whose lengths are known at import."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....dialect.errors import RelaxError
from ...emit import alike, concat, slice_axis, squeeze, unsqueeze
from ..node import Node, handles
from ..values import GraphValue, TensorSequence, known_value, tensor_value


def _items(node: Node) -> list[GraphValue]:
    return [node.operand(i) for i in range(len(node.operands))]


@handles("SequenceConstruct")
def _construct(node: Node) -> TensorSequence:
    return TensorSequence(_items(node))


@handles("SequenceEmpty")
def _empty(node: Node) -> TensorSequence:
    return TensorSequence([])


def _at(node: Node, index: int, count: int) -> int:
    place = int(node.number(index))
    if not -count <= place < count:
        raise RelaxError(f"expected a place in a sequence of {count}, got {place}")
    return place % count


@handles("SequenceAt")
def _sequence_at(node: Node) -> GraphValue:
    items = node.sequence(0).items
    return items[_at(node, 1, len(items))]


@handles("SequenceInsert")
def _insert(node: Node) -> TensorSequence:
    items = list(node.sequence(0).items)
    place = int(node.number(2, len(items)))
    items.insert(place + len(items) if place < 0 else place, node.operand(1))
    return TensorSequence(items)


@handles("SequenceErase")
def _erase(node: Node) -> TensorSequence:
    items = list(node.sequence(0).items)
    del items[_at(node, 1, len(items)) if node.has(1) else -1]
    return TensorSequence(items)


@handles("SequenceLength")
def _length(node: Node) -> Any:
    return np.array(len(node.sequence(0).items), np.int64)


@handles("SplitToSequence")
def _split(node: Node) -> TensorSequence:
    x, axis = node.tensor(0), node.axis(0, node.rank(0))
    size = node.known_size(0, axis)
    keep = bool(node.attribute("keepdims", 1)) or node.has(1)
    if not node.has(1):
        parts = [1] * size
    elif node.rank(1) == 0:
        part = int(node.number(1))
        parts = [min(part, size - i) for i in range(0, size, part)]
    else:
        parts = [int(n) for n in node.numbers(1)]
    items: list[GraphValue] = []
    start = 0
    for part in parts:
        value = slice_axis(x, axis, start, start + part)
        items.append(tensor_value("item", value if keep else squeeze(value, axis)))
        start += part
    return TensorSequence(items)


@handles("ConcatFromSequence")
def _concat(node: Node) -> Any:
    values = [i.value for i in node.sequence(0).items]
    if not values:
        raise RelaxError("expected a sequence with tensors to concatenate")
    stack = bool(node.attribute("new_axis", 0))
    rank = node.sequence(0).items[0].rank + stack
    axis = node.axis(None, rank)
    values = [unsqueeze(v, axis) for v in values] if stack else values
    return concat(alike(values, axis), axis)


@handles("Optional")
def _optional(node: Node) -> TensorSequence:
    return TensorSequence([o for o in node.operands if o is not None], optional=True)


@handles("OptionalHasElement")
def _has_element(node: Node) -> Any:
    found = node.operands[0] if node.operands else None
    has = found is not None and not (isinstance(found, TensorSequence) and found.optional and not found.items)
    return known_value("has", np.array(has))


@handles("OptionalGetElement")
def _get_element(node: Node) -> Any:
    found = node.operands[0]
    if isinstance(found, TensorSequence) and found.optional:
        if not found.items:
            raise RelaxError("expected an optional with an element")
        return found.items[0]
    return found
