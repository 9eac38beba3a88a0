"""Higher-order operators, such as ``torch.cond``: their graphs as private functions, a ``torch.operator`` that names them.

::

    %r = torch.operator "torch.higher_order.cond"(%p, %x, %w)
        {relax.graphs = ["main_cond_0", "main_cond_1"], relax.counts = array<i64: 2>}

    func.func private @main_cond_0(%x: ..., %w: ...) -> ... attributes {relax.graph}

``relax.counts`` says how many of the operands each list of the operator's has: what is carried, what is read. Sizes among the
operands are symbols of the module, and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..dialect.bindings import func, ir

__all__ = ["COUNTS", "GRAPH", "GRAPHS", "import_higher_order", "refused_graphs"]

#: On a function: it is a graph of a higher-order operator.
GRAPH = "relax.graph"

#: On a higher-order operator: names of its graphs, and how many tensors are in each of its lists.
GRAPHS, COUNTS = "relax.graphs", "relax.counts"

_OPERATORS = ("cond", "map_impl", "scan", "while_loop")


def import_higher_order(importer: Any, location: ir.Location, node: torch.fx.Node, name: str) -> ir.Operation:
    """Imports one node, and its graphs as functions of the module.

    Args:
        importer: what imports the nodes around it.
        location: the node's.
        node: a call of a higher-order operator.
        name: the operator's name in the torch dialect.

    Raises:
        NotImplementedError: there is no relax form of the operator, or of what it takes or returns.
    """
    if name.rpartition(".")[2] not in _OPERATORS:
        is_higher = isinstance(node.target, torch._ops.HigherOrderOperator)
        raise NotImplementedError("no relax form of a higher-order operator" if is_higher else "no relax form")
    graphs = [_graph_of(node, a) for a in node.args]
    lists = [list(a) for a in node.args if isinstance(a, tuple | list)]
    single = [a for a, graph in zip(node.args, graphs, strict=True) if graph is None and not isinstance(a, tuple | list)]
    tensors = [[v for v in values if _is_tensor(v)] for values in lists]
    operands = [importer.resolve_node_value(v) for v in (*single, *(v for values in tensors for v in values))]
    functions = [_function(importer, location, node, graph, _outputs(graph.graph)) for graph in graphs if graph is not None]
    types = [importer._cc.value_info_to_type(v) for v in node.meta["val"]]
    with location:
        return ir.Operation.create(
            "torch.operator",
            results=types,
            operands=operands,
            attributes={
                "name": ir.StringAttr.get(f"torch.{name}"),
                GRAPHS: ir.ArrayAttr.get([ir.StringAttr.get(f) for f in functions]),
                COUNTS: ir.DenseI64ArrayAttr.get([len(values) for values in tensors]),
            },
        )


def refused_graphs(importer: Any, location: ir.Location, node: torch.fx.Node) -> dict[str, ir.Attribute]:
    """The graphs of an operator that cannot be imported, without results, for what is to be reported of them."""
    graphs = [graph for a in node.args if (graph := _graph_of(node, a)) is not None]
    names = [_function(importer, location, node, graph, ()) for graph in graphs]
    return {GRAPHS: ir.ArrayAttr.get([ir.StringAttr.get(n) for n in names])} if names else {}


def _graph_of(node: torch.fx.Node, argument: Any) -> torch.fx.GraphModule | None:
    if not isinstance(argument, torch.fx.Node) or argument.op != "get_attr":
        return None
    found = getattr(node.graph.owning_module, str(argument.target))
    return found if isinstance(found, torch.fx.GraphModule) else None


def _is_tensor(value: Any) -> bool:
    """Whether an operand is a tensor; a size is a symbol, which graphs know by its name."""
    found = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
    if not isinstance(found, torch.Tensor | torch.SymInt):
        raise NotImplementedError(f"expected operands that are tensors or sizes, got {type(found).__name__}")
    return isinstance(found, torch.Tensor)


def _function(
    importer: Any, location: ir.Location, node: torch.fx.Node, module: torch.fx.GraphModule, outputs: Sequence[torch.fx.Node]
) -> str:
    """Imports a graph that returns some of its nodes; the name of the function."""
    graph = module.graph
    inputs = [n for n in graph.nodes if n.op == "placeholder" and isinstance(n.meta.get("val"), torch.Tensor)]
    types = [[importer._cc.node_val_to_type(n) for n in nodes] for nodes in (inputs, outputs)]
    owner = importer.fx_importer
    name = f"graph_{len(list(owner.module.body.operations))}_{node.name}"
    with location:
        function = func.FuncOp(name, (types[0], types[1]), ip=owner._m_ip, visibility="private")
        function.attributes[GRAPH] = ir.UnitAttr.get()
        block = function.add_entry_block()
    inner = type(importer)(owner, importer._c, importer._cc, block)
    for value, n in zip(block.arguments, inputs, strict=True):
        inner.bind_node_value(n, value)
    inner.import_nodes(graph.nodes)
    inner.return_node_values(location, outputs, {})
    return name


def _outputs(graph: torch.fx.Graph) -> Sequence[torch.fx.Node]:
    (output,) = [n for n in graph.nodes if n.op == "output"]
    found = output.args[0] if isinstance(output.args[0], tuple | list) else [output.args[0]]
    for value in found:
        if not isinstance(value, torch.fx.Node) or not isinstance(value.meta.get("val"), torch.Tensor):
            raise NotImplementedError(f"expected graphs that return tensors, got {value}")
    return found
