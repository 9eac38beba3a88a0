"""``flex_attention`` as operators of ATen: scores, what the user's functions make of them, softmax, values.

PyTorch's own eager form is traced, in which the functions of one score work on all of them at once. What a block mask says of
whole blocks is how fast the original is, not what it computes: the mask's function alone decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

__all__ = ["expand_flex_attention"]


def expand_flex_attention(module: torch.fx.GraphModule, table: Mapping[Any, Any]) -> None:
    """Rewrites a graph in place.

    Args:
        module: a functional graph with fake values.
        table: the decompositions of operators that take part.
    """
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is torch.ops.higher_order.flex_attention:
            _expand(module, node, table)


def _expand(module: torch.fx.GraphModule, node: torch.fx.Node, table: Mapping[Any, Any]) -> None:
    from torch._higher_order_ops.flex_attention import math_attention

    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    values = [_value(module, leaf) for leaf in leaves]
    places = [i for i, v in enumerate(values) if isinstance(v, torch.Tensor)]

    def attention(*tensors: torch.Tensor) -> Any:
        given = dict(zip(places, tensors, strict=True))
        args, kwargs = pytree.tree_unflatten([given.get(i, v) for i, v in enumerate(values)], spec)
        return math_attention(*args, **kwargs)

    traced = make_fx(attention, decomposition_table=dict(table))(*(values[i] for i in places))
    with module.graph.inserting_before(node):
        results = _copied(module.graph, traced, [leaves[i] for i in places], node)
    for user in list(node.users):  # one result each; the program's own go by the names of nodes
        name, new = user.name, results[cast("int", user.args[1])]
        user.replace_all_uses_with(new)
        module.graph.erase_node(user)
        new.name = name
    module.graph.erase_node(node)
    module.graph.eliminate_dead_code()


def _value(module: torch.fx.GraphModule, leaf: Any) -> Any:
    if not isinstance(leaf, torch.fx.Node):
        return leaf
    return getattr(module, str(leaf.target)) if leaf.op == "get_attr" else leaf.meta["val"]


def _copied(
    graph: torch.fx.Graph, traced: torch.fx.GraphModule, inputs: Sequence[torch.fx.Node], place: torch.fx.Node
) -> Sequence[torch.fx.Node]:
    """The nodes of a traced graph, which have the source and the module of the node that they stand for; its results."""
    given = iter(inputs)
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            copies[node] = next(given)
        elif node.op == "output":
            return map_arg(node.args[0], lambda n: copies[n])
        else:
            if node.op == "get_attr":
                new = _number(graph, getattr(traced, str(node.target)))
            else:
                new = graph.node_copy(node, lambda n: copies[n])
            copies[node] = new
            new.meta = {k: v for k, v in place.meta.items() if k in ("stack_trace", "nn_module_stack")}
            new.meta["val"] = node.meta["val"] if "val" in node.meta else _value_of(new, place)
    raise AssertionError("a graph without results")


def _number(graph: torch.fx.Graph, value: torch.Tensor) -> torch.fx.Node:
    """A constant of a traced function, as PyTorch's own have: minus infinity."""
    if value.dim():
        raise ValueError("expected functions of scores whose tensors are buffers or arguments, got a constant")
    return graph.call_function(torch.ops.aten.full.default, ([], value.item()), {"dtype": value.dtype})


def _value_of(node: torch.fx.Node, place: torch.fx.Node) -> torch.Tensor:
    query, compute = cast("torch.fx.Node", place.args[0]), cast("Callable[..., torch.Tensor]", node.target)
    with query.meta["val"].fake_mode:
        return compute(*node.args, **node.kwargs)
