"""``relaxir view``: modules and artifacts as one HTML page, Graphviz text or JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from ..dialect.errors import RelaxError
from ..dialect.reports.report import plural
from .cli_output import tell
from .cli_paths import Read, Streamed
from .models import is_artifact, load_module

__all__ = ["add_view"]

_FORMATS = ("html", "svg", "dot", "json")


def add_view(commands: Any) -> None:
    """Adds the command to ``relaxir``'s."""
    command = commands.add_parser("view", help="a model's graph, or two side by side, as a page to look at or a picture")
    command.add_argument(
        "models", type=Read, nargs="+", metavar="MODEL", help="MODEL.mlir, - or MODEL.relax; two: before, after"
    )
    command.add_argument("--pipeline", metavar="PASSES", help="show the one module before and after these relax passes")
    command.add_argument("--format", choices=_FORMATS, help="what to write (default: as the file's name ends, else html)")
    command.add_argument(
        "-o", "--output", type=Streamed, required=True, metavar="VIEW.html", help="the file to write; - is standard output"
    )
    command.set_defaults(command=_view, refuse=command.error)


def _view(arguments: argparse.Namespace) -> None:
    from ..inspection.data import compared, graph_data
    from ..inspection.dot import dot_text
    from ..inspection.html import html_page
    from ..inspection.svg import svg_text
    from ..weights.files import replacing

    if arguments.output == "-" and arguments.json:
        arguments.refuse("--json: the view itself goes to standard output")
    arguments.format = arguments.format or _format_of(arguments.output)
    graphs, title = _graphs(arguments), " -> ".join(os.path.basename(os.path.normpath(m)) for m in arguments.models)
    if arguments.format in ("dot", "svg"):
        text = dot_text(graphs[-1]) if arguments.format == "dot" else svg_text(graphs[-1])
    else:
        data = graph_data(title, graphs[0]) if len(graphs) == 1 else compared(title, graphs[0], graphs[1])
        text = html_page(data) if arguments.format == "html" else json.dumps(data, indent=1) + "\n"
    if arguments.output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())  # as in a file, whatever the terminal's encoding
        return
    with replacing(arguments.output) as file:
        file.write(text.encode())
    counts = {graph.name: len(graph.nodes) for graph in graphs[-1]}
    told = ", ".join(f"@{name} {plural(count, 'node')}" for name, count in counts.items())
    tell(arguments, [f"wrote {arguments.output}: {told or 'no functions'}"], {"output": arguments.output, "nodes": counts})


def _format_of(output: str) -> str:
    end = os.path.splitext(output)[1].lower().removeprefix(".")
    return {"gv": "dot"}.get(end, end if end in _FORMATS else "html")


def _graphs(arguments: argparse.Namespace) -> list[Any]:
    """The graphs of one module, or of two."""
    models: list[str] = arguments.models
    if len(models) > 2:
        raise RelaxError(f"expected one module, or two to compare, got {len(models)}")
    if arguments.pipeline and len(models) == 2:
        raise RelaxError("expected one module with --pipeline, got 2")
    if arguments.format in ("dot", "svg") and len(models) == 2:
        raise RelaxError(f"expected one module with --format {arguments.format}, got 2")
    if not arguments.pipeline:
        return [_graphs_of_file(path) for path in models]
    from ..inspection.graph import graphs_of

    before = load_module(models[0])
    return [graphs_of(before), graphs_of(before.run(arguments.pipeline))]


def _graphs_of_file(path: str) -> Any:
    """Of an artifact, with what its compilation told."""
    from ..inspection.graph import graphs_of
    from ..inspection.kernels import kernel_calls
    from ..module import Module
    from ..runtime.artifact import MODULE, read_manifest

    if not is_artifact(path):
        return graphs_of(load_module(path))
    manifest, module = read_manifest(path), Module.load(os.path.join(os.path.expanduser(path), MODULE))
    return graphs_of(module, manifest.report, kernel_calls(module, manifest.report, manifest.target.backend))
