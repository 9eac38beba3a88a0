"""Which nodes of a graph something depends on: others are not converted, whatever they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx

__all__ = ["live_nodes", "names_read"]


def live_nodes(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[tuple[int, onnx.NodeProto]]:
    """Those that results of these names are computed by, in their order, with their places among all nodes."""
    wanted, found = set(outputs) - {""}, list[tuple[int, onnx.NodeProto]]()
    for number, node in reversed(list(enumerate(nodes))):
        if not wanted.isdisjoint(node.output):
            wanted |= names_read(node)
            found.append((number, node))
    return found[::-1]


def names_read(node: onnx.NodeProto) -> set[str]:
    """The names that a node reads, and those that occur in graphs inside of it, some of which are their own."""
    found = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            found |= {o.name for o in graph.output}.union(*map(names_read, graph.node))
    return found
