"""Views of a graph's memory: what a write into one makes of the whole, and the views that see it afterwards."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any

import torch

__all__ = ["base_and_views", "copied_views", "gives_memory", "is_view", "shares", "views_of", "whole"]

_aten = torch.ops.aten

#: By the operator of a view the one that gives the whole with a value in the view's place.
_SCATTERED = {
    _aten.slice.Tensor: _aten.slice_scatter.default,
    _aten.select.int: _aten.select_scatter.default,
    _aten.diagonal.default: _aten.diagonal_scatter.default,
}

#: Operators of views that see all of their operand and change its dimensions alone.
_OTHER_DIMENSIONS = {
    _aten.alias.default, _aten.detach.default, _aten.permute.default, _aten.squeeze.dim, _aten.t.default,
    _aten.transpose.int, _aten.unsqueeze.default,
}  # fmt: skip

#: Operators that always share their operand's memory beside those; no write through them is known here.
_ALSO_VIEWS = {
    _aten.chunk.default, _aten.expand.default, _aten.narrow.default, _aten.split.Tensor, _aten.split_with_sizes.default,
    _aten.squeeze.default, _aten.squeeze.dims, _aten.unbind.int, _aten.unfold.default, _aten.view.default,
}  # fmt: skip


def is_view(node: torch.fx.Node) -> bool:
    """Whether a value always lies in its operand's memory, which a reshape does not."""
    if _is_item(node):
        return is_view(_operand(node))
    return node.target in _SCATTERED or node.target in _OTHER_DIMENSIONS or node.target in _ALSO_VIEWS


def shares(node: torch.fx.Node) -> bool:
    """Whether a value may lie in its operand's memory."""
    if _is_item(node):
        return shares(_operand(node))
    return gives_memory(node.target)


def gives_memory(operator: Any) -> bool:
    """Whether an operator's schema says that its result may lie in an operand's memory."""
    return isinstance(operator, torch._ops.OpOverload) and any(r.alias_info is not None for r in operator._schema.returns)


def base_and_views(
    written: torch.fx.Node, made: Collection[torch.fx.Node]
) -> tuple[torch.fx.Node, list[torch.fx.Node]]:  # fmt: skip
    """The value that a write changes, and the views on the way to what it names, that first.

    What :func:`whole` has ``made`` is a value, though an operator of views may have computed it.
    """
    views = list[torch.fx.Node]()
    while written not in made and (written.target in _SCATTERED or written.target in _OTHER_DIMENSIONS):
        views.append(written)
        written = _operand(written)
    return written, views


def views_of(base: torch.fx.Node, is_seen: Callable[[torch.fx.Node], bool]) -> list[torch.fx.Node]:
    """What may lie in a value's memory, of the nodes that are seen, each behind what it is a view of."""
    found = [base]
    for node in found:  # which grows meanwhile
        found += [u for u in node.users if is_seen(u) and shares(u) and u not in found]
    return found[1:]


def whole(views: Collection[torch.fx.Node], value: torch.fx.Node) -> torch.fx.Node:
    """What a value in the place of the first of the views makes of what the last is a view of.

    The new nodes are where the graph inserts.
    """
    for view in views:
        value = _whole_of(view, value)
        value.meta = dict(_operand(view).meta)
    return value


def _whole_of(view: torch.fx.Node, value: torch.fx.Node) -> torch.fx.Node:
    graph, operand = view.graph, _operand(view)
    target: Any = view.target
    args: tuple[Any, ...] = view.args[1:]
    if target in _SCATTERED:
        return graph.call_function(_SCATTERED[target], (operand, value, *args), view.kwargs)
    if target is _aten.permute.default:
        axes = [axis % len(args[0]) for axis in args[0]]
        return graph.call_function(target, (value, [axes.index(i) for i in range(len(axes))]))
    if target is _aten.unsqueeze.default:
        return graph.call_function(_aten.squeeze.dim, (value, *args))
    if target is _aten.squeeze.dim and view.meta["val"].dim() < operand.meta["val"].dim():
        return graph.call_function(_aten.unsqueeze.default, (value, *args))
    if target in (_aten.transpose.int, _aten.t.default):
        return graph.call_function(target, (value, *args))
    return value


def copied_views(
    views: Collection[torch.fx.Node], base: torch.fx.Node, new: torch.fx.Node
) -> dict[torch.fx.Node, torch.fx.Node]:
    """Views of one value, each behind what it is a view of, as views of another. They are where the graph inserts."""
    copies = {base: new}
    for view in views:
        copies[view] = view.graph.node_copy(view, lambda node: copies.get(node, node))
    return copies


def _is_item(node: torch.fx.Node) -> bool:
    return node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node)


def _operand(node: torch.fx.Node) -> torch.fx.Node:
    operand = node.args[0]
    assert isinstance(operand, torch.fx.Node)
    return operand
