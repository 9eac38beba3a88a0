"""Graphs as Graphviz text, modules as nested clusters; Graphviz makes pictures of it (``dot -Tsvg``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from .graph import FunctionGraph

__all__ = ["dot_text"]


def dot_text(graphs: Sequence[FunctionGraph]) -> str:
    """One ``digraph``, with a cluster for each function and for each module in it."""
    return "\n".join(["digraph module {", "  node [shape=box, fontname=sans]", *_functions(graphs), "}", ""])


def _functions(graphs: Sequence[FunctionGraph]) -> Iterator[str]:
    for number, graph in enumerate(graphs):
        yield f"  subgraph cluster_{number} {{"
        yield f"    label={_quoted('@' + graph.name)}"
        yield from _modules(graph, f"f{number}")
        yield from (f"    f{number}_{r} -> f{number}_{i}" for i, node in enumerate(graph.nodes) for r in node.reads)
        yield "  }"


def _modules(graph: FunctionGraph, prefix: str) -> Iterator[str]:
    """Nodes in the order of their modules: of equal paths one cluster, opened and closed once."""
    opened: list[str] = []
    by_path = sorted(range(len(graph.nodes)), key=lambda i: ([*filter(None, graph.nodes[i].group.split("."))], i))
    for i in by_path:
        node = graph.nodes[i]
        parts = [*filter(None, node.group.split("."))]
        same = next((k for k, (a, b) in enumerate(zip(opened, parts, strict=False)) if a != b), min(len(opened), len(parts)))
        yield from ("    }" for _ in opened[same:])
        for depth in range(same, len(parts)):
            name = f"cluster_{prefix}_{'.'.join(parts[: depth + 1])}"
            yield f"    subgraph {_quoted(name)} {{ label={_quoted(parts[depth])}"
        opened = parts
        yield f"    {prefix}_{i} [label={_quoted(' '.join(filter(None, (node.op, node.label))) + chr(10) + node.type)}]"
    yield from ("    }" for _ in opened)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
