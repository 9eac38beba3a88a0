"""Graphs as the JSON that the page reads: tables of texts, nodes as lists, edges as distances; two with what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .graph import FunctionGraph, GraphNode

__all__ = ["compared", "graph_data"]

_SAME, _ADDED, _REMOVED = 0, 2, 3


def graph_data(title: str, graphs: Sequence[FunctionGraph]) -> dict[str, Any]:
    """One module: a function that is called, beside the one that prepares its weights."""
    names = [g.name for g in graphs]
    data = [_function(g) for g in graphs]
    for i, graph in enumerate(graphs):
        if graph.prepares in names:
            _link_weights(data, graphs, names.index(graph.prepares), i)
    return {"title": title, "compared": False, "shown": _shown(graphs), "functions": data}


def compared(title: str, before: Sequence[FunctionGraph], after: Sequence[FunctionGraph]) -> dict[str, Any]:
    """Two modules: functions of the same name with what is in one alone; a function of one alone is new, or gone, as a whole.

    Nodes are the same where op, name, type, module and attributes are, and the ops and names that they read; equal
    ones are taken in their order.
    """
    data = [_function(g, "before ") for g in before] + [_function(g, "after ") for g in after]
    names, others = [g.name for g in before], [g.name for g in after]
    for name in dict.fromkeys([*names, *others]):
        old, new = names.index(name) if name in names else None, others.index(name) if name in others else None
        _compare(data, old, None if new is None else len(before) + new, before, after)
    shown = [_shown(before)[0]] if before else []
    if after:
        same = others.index(before[shown[0]].name) if shown and before[shown[0]].name in others else _shown(after)[0]
        shown.append(len(before) + same)
    return {"title": title, "compared": True, "shown": shown, "functions": data}


def _shown(graphs: Sequence[FunctionGraph]) -> list[int]:
    """The first function that users call, and the one that prepares its weights."""
    called = [i for i, g in enumerate(graphs) if not g.private and g.prepares is None] or list(range(len(graphs)))[:1]
    transforms = [i for i, g in enumerate(graphs) if called and g.prepares == graphs[called[0]].name]
    return called[:1] + transforms[:1]


def _function(graph: FunctionGraph, side: str = "") -> dict[str, Any]:
    ops, paths, types, notes = _Table(), _Table(), _Table(), _Table()
    nodes = [
        [
            ops.at(n.op), paths.at(n.path), types.at(n.type), n.bytes, n.flops, n.label, notes.at(_known(n)),
            paths.at(n.group), -1, _SAME,
        ]
        for n in graph.nodes
    ]  # fmt: skip
    edges = [number for i, n in enumerate(graph.nodes) for source in n.reads for number in (i, i - source)]
    tables = {"ops": ops.texts, "paths": paths.texts, "types": types.texts, "notes": notes.texts}
    kernels = sorted({paths.at(n.kernel) for n in graph.nodes if n.kernel})
    return {"name": graph.name, "side": side, "linked": -1, **tables, "kernels": kernels, "nodes": nodes, "edges": edges}


class _Table:
    """Texts that many nodes share."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def at(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))

    @property
    def texts(self) -> list[str]:
        return list(self._places)


def _link_weights(data: list[dict[str, Any]], graphs: Sequence[FunctionGraph], called: int, transform: int) -> None:
    """Each prepared weight and what makes it."""
    made = graphs[transform].named("result")
    for name, reader in graphs[called].named("weight").items():
        if name in made:
            _link(data, called, reader, transform, made[name])


def _link(data: list[dict[str, Any]], one: int, node: int, other: int, counterpart: int) -> None:
    data[one]["linked"], data[other]["linked"] = other, one
    data[one]["nodes"][node][-2], data[other]["nodes"][counterpart][-2] = counterpart, node


def _compare(
    data: list[dict[str, Any]],
    old: int | None,
    new: int | None,
    before: Sequence[FunctionGraph],
    after: Sequence[FunctionGraph],
) -> None:
    olds = _keys(before[old]) if old is not None else {}
    news = _keys(after[new - len(before)]) if new is not None else {}
    for key, node in olds.items():
        if old is not None and new is not None and key in news:
            _link(data, old, node, new, news[key])
        elif old is not None:
            data[old]["nodes"][node][-1] = _REMOVED
    for key, node in news.items():
        if new is not None and key not in olds:
            data[new]["nodes"][node][-1] = _ADDED


def _keys(graph: FunctionGraph) -> dict[tuple[object, int], int]:
    """What a node is the same by, with how many equal ones were before it."""
    seen, found = Counter[object](), dict[tuple[object, int], int]()
    for i, node in enumerate(graph.nodes):
        key = (*_own(node), tuple((graph.nodes[r].op, graph.nodes[r].label) for r in node.reads))
        found[key, seen[key]] = i
        seen[key] += 1
    return found


def _own(node: GraphNode) -> tuple[str, ...]:
    return node.op, node.label, node.type, node.path, node.attributes


def _known(node: GraphNode) -> str:
    return "\n".join(filter(None, (node.attributes, node.notes)))
