"""Loops that carry integers: these become tensors without dimensions, read as numbers where they were.

::

    %r = while_loop(@cond, @body, (0, %x), ())          ->  %i = scalar_tensor(0);  %r = while_loop(@cond, @body, (%i, %x), ())
    # @body(%n: Sym(u0), %x) returns %n + 1, ...            # @body(%i: i64[], %x): %n = item(%i); returns scalar_tensor(%n + 1)
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._guards import detect_fake_mode

__all__ = ["carries_numbers", "carry_tensors"]

_aten = torch.ops.aten


def carries_numbers(node: torch.fx.Node) -> bool:
    """Whether it is a loop that carries numbers."""
    if node.target is not torch.ops.higher_order.while_loop:
        return False
    carried: Any = node.args[2]
    return any(_is_number(v) for v in carried)


def carry_tensors(owner: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Rewrites a loop and its graphs, which belong to it alone, in place."""
    if not carries_numbers(node):
        return
    arguments: list[Any] = list(node.args)
    places = [i for i, v in enumerate(arguments[2]) if _is_number(v)]
    graph = owner.graph
    with graph.inserting_before(node):
        arguments[2] = tuple(_as_tensor(graph, v, torch.int64) if i in places else v for i, v in enumerate(arguments[2]))
    node.args = tuple(arguments)
    condition, body = (getattr(owner, str(a.target)) for a in arguments[:2])
    for module in (condition, body):
        _read_numbers(module.graph, places)
        _return_tensors(module.graph, places if module is body else [0], torch.int64 if module is body else torch.bool)
        module.recompile()
    node.meta.pop("unbacked_bindings", None)
    values = list(node.meta["val"])
    for user in list(node.users):
        if user.target is operator.getitem and user.args[1] in places:
            _read_result(graph, user)
    node.meta["val"] = tuple(_scalar(graph, torch.int64) if i in places else v for i, v in enumerate(values))


def _is_number(value: Any) -> bool:
    found = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
    return isinstance(found, int | torch.SymInt) and not isinstance(found, bool)


def _as_tensor(graph: torch.fx.Graph, value: Any, dtype: torch.dtype) -> torch.fx.Node:
    found = graph.call_function(_aten.scalar_tensor.default, (value,), {"dtype": dtype})
    found.meta["val"] = _scalar(graph, dtype)
    return found


def _scalar(graph: torch.fx.Graph, dtype: torch.dtype) -> torch.Tensor:
    """A fake one, as the graph's other values are."""
    mode: Any = detect_fake_mode([n.meta["val"] for n in graph.nodes if isinstance(n.meta.get("val"), torch.Tensor)])
    with mode:
        return torch.empty((), dtype=dtype)


def _item(graph: torch.fx.Graph, of: torch.fx.Node, value: Any) -> torch.fx.Node:
    found = graph.call_function(_aten._local_scalar_dense.default, (of,))
    found.meta["val"] = value
    if isinstance(value, torch.SymInt) and value.node.expr.is_symbol:
        found.meta["unbacked_bindings"] = {value.node.expr: ()}
    return found


def _read_numbers(graph: torch.fx.Graph, places: list[int]) -> None:
    """Placeholders of numbers become those of tensors, whose elements take their place."""
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    first = next(n for n in graph.nodes if n.op != "placeholder")
    for old in [placeholders[i] for i in places]:
        value, scalar = old.meta["val"], _scalar(graph, torch.int64)
        with graph.inserting_before(first):
            new = _item(graph, old, value)
        old.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
        old.meta = {"val": scalar}


def _return_tensors(graph: torch.fx.Graph, places: list[int], dtype: torch.dtype) -> None:
    """Numbers that a graph returns become tensors."""
    output = graph.output_node()
    given: Any = output.args[0]
    values = list(given) if isinstance(given, tuple | list) else [given]
    with graph.inserting_before(output):
        for i in places:
            found = values[i].meta.get("val") if isinstance(values[i], torch.fx.Node) else values[i]
            if not isinstance(found, torch.Tensor):
                values[i] = _as_tensor(graph, values[i], dtype)
    output.args = (tuple(values) if isinstance(given, tuple | list) else values[0],)


def _read_result(graph: torch.fx.Graph, user: torch.fx.Node) -> None:
    """The number behind the loop, under the name that it has."""
    value, name = user.meta["val"], user.name
    with graph.inserting_after(user):
        new = _item(graph, user, value)
    user.replace_all_uses_with(new, delete_user_cb=lambda other: other is not new)
    user.meta = {"val": _scalar(graph, torch.int64)}
    user.name = f"{name}_element"
    new.name = name
