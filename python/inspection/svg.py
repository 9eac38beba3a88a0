"""A module as one picture (SVG): ops from top to bottom, the model's modules as boxes around them, arcs to what is read.

Modules stay closed, as one line with how many nodes they hold, where all of it would be more than :data:`_ROWS` lines.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .graph import FunctionGraph, GraphNode

__all__ = ["svg_text"]

# What XML has no way to write, even as a number. Source: https://www.w3.org/TR/xml/#charsets
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: Lines of a function at most, as far as closing modules can do that.
_ROWS = 200
_ROW, _INDENT, _TEXT_WIDTH, _ARC = 22, 16, 480, 120
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1b1f24}.t{fill:#57606a}.m{fill:#0969da;fill-opacity:.06;stroke:#0969da;"
    "stroke-opacity:.35}.e{fill:none;stroke:#57606a;stroke-opacity:.45}.w{fill:#9a6700}.h{font-weight:600}"
)


@dataclass
class _Group:
    """A module of the model, with what is in it, in program order."""

    name: str
    items: list[_Group | int] = field(default_factory=list["_Group | int"])
    groups: dict[str, _Group] = field(default_factory=dict[str, "_Group"])
    count: int = 0
    is_open: bool = False


def svg_text(graphs: Sequence[FunctionGraph]) -> str:
    """The picture of all functions, one below the other."""
    lines, down = list[str](), 8.0
    for graph in graphs:
        drawn = _Drawing(graph, down)
        lines += drawn.lines
        down = drawn.end + 2 * _ROW
    width = _TEXT_WIDTH + _ARC + 24
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {down:.0f}" width="{width}" height="{down:.0f}">'
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", background, *lines, "</svg>", ""])


class _Drawing:
    """Lines of SVG for one function.

    Attributes:
        lines: the elements.
        end: how far down they go.
    """

    def __init__(self, graph: FunctionGraph, down: float):
        self.lines = [f'<text class="h" x="8" y="{down + 15:.0f}">@{escape(graph.name)}</text>']
        self.end = down + _ROW
        self._graph = graph
        self._rows = list[int](0 for _ in graph.nodes)  # where each node is, or the closed module around it
        self._row = 0
        self._top = self.end
        self._group(_opened(_tree(graph)), 0)
        self.lines += self._arcs()
        self.end = self._top + self._row * _ROW

    def _group(self, group: _Group, depth: int) -> None:
        for item in group.items:
            if isinstance(item, int):
                self._node(item, depth)
            elif item.is_open:
                first = self._row
                place = len(self.lines)
                self._title(item.name, "", depth)
                self._group(item, depth + 1)
                self.lines.insert(place, self._box(first, depth))
            else:
                for node in _nodes(item):
                    self._rows[node] = self._row
                self.lines.append(self._box(self._row, depth, 1))
                self._title(item.name, f"{item.count} nodes", depth)

    def _box(self, first: int, depth: int, rows: int | None = None) -> str:
        x, y = 4 + depth * _INDENT, self._top + first * _ROW + 1
        height = (self._row - first if rows is None else rows) * _ROW - 2
        return f'<rect class="m" x="{x}" y="{y:.0f}" width="{max(_TEXT_WIDTH - x - 4 * depth, 60)}" height="{height}" rx="3"/>'

    def _title(self, name: str, more: str, depth: int) -> None:
        self._line(f'<tspan class="h">{escape(name)}</tspan>', more, depth)

    def _node(self, number: int, depth: int) -> None:
        node = self._graph.nodes[number]
        self._rows[number] = self._row
        kind = ' class="w"' if node.op == "weight" else ""
        self._line(f"<tspan{kind}>{escape(_short(_named(node)))}</tspan>", node.type, depth)

    def _line(self, text: str, more: str, depth: int) -> None:
        y = self._top + self._row * _ROW + 15
        behind = f'<tspan class="t">{escape(_short(more))}</tspan>'
        self.lines.append(f'<text x="{10 + depth * _INDENT}" y="{y:.0f}">{text} {behind}</text>')
        self._row += 1

    def _arcs(self) -> Iterator[str]:
        """One for each pair of rows, to the right of the text; the farther apart, the farther out."""
        pairs = {(self._rows[r], self._rows[i]) for i, node in enumerate(self._graph.nodes) for r in node.reads}
        for start, end in sorted(pairs):
            if start == end:
                continue
            y1, y2 = (self._top + row * _ROW + _ROW / 2 for row in (start, end))
            out = min(_ARC, 10 + 6 * abs(end - start) ** 0.7)
            x = _TEXT_WIDTH - 4
            yield f'<path class="e" d="M{x} {y1:.0f}C{x + out:.0f} {y1:.0f} {x + out:.0f} {y2:.0f} {x} {y2:.0f}"/>'


def _named(node: GraphNode) -> str:
    """With its name, but for the modules that it is in."""
    return " ".join(filter(None, (node.op, node.label.removeprefix(f"{node.path}."))))


def _short(text: str, most: int = 44) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _tree(graph: FunctionGraph) -> _Group:
    """Modules in the order of their first nodes."""
    root = _Group("", is_open=True)
    for i, node in enumerate(graph.nodes):
        group = root
        for part in filter(None, node.group.split(".")):
            if part not in group.groups:
                group.groups[part] = _Group(part)
                group.items.append(group.groups[part])
            group.count += 1
            group = group.groups[part]
        group.count += 1
        group.items.append(i)
    return root


def _opened(root: _Group) -> _Group:
    """The same with modules open, the outer ones first, while there is room."""
    rows, pending = len(root.items), [g for g in root.items if isinstance(g, _Group)]
    while pending:
        group = pending.pop(0)
        if rows + len(group.items) > _ROWS:
            continue
        group.is_open = True
        rows += len(group.items)
        pending += [g for g in group.items if isinstance(g, _Group)]
    return root


def _nodes(group: _Group) -> Iterator[int]:
    for item in group.items:
        if isinstance(item, int):
            yield item
        else:
            yield from _nodes(item)


def escape(text: str) -> str:
    """Text as XML has it; what it cannot have is shown as a replacement."""
    return html.escape(_NOT_IN_XML.sub("\ufffd", text))
