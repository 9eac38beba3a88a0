"""Graph data as one HTML file, which fetches nothing: script, style and data are inside, and nothing else may run."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib import resources
from typing import Any

__all__ = ["html_page"]

_SCRIPTS = ("layout.js", "model.js", "pane.js", "viewer.js")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width"><title>{title}</title><style>{style}</style></head>
<body><header><h1>{title}</h1>
<input type="search" id="search" placeholder="ops, names, types, modules ( / )" aria-label="search">
<span id="count" role="status"></span>
<label>bars <select id="measure"><option value="flops">operations</option><option value="bytes">bytes</option></select></label>
<label><input type="checkbox" id="follow" checked> follow links</label>
<button id="fit">Fit</button><button id="expand">Expand all</button><button id="collapse">Collapse all</button>
<span>Enter or double click: open &middot; drag, scroll: move &middot; Ctrl+scroll: zoom &middot; arrows: walk</span></header>
<main></main><aside id="panel" aria-live="polite"></aside><div id="tip" hidden></div>
<noscript><p>This page draws with JavaScript. It has:</p><ul>{summary}</ul></noscript>
<script type="application/octet-stream" id="graph">{data}</script><script>{script}</script></body></html>
"""


def html_page(graph: Mapping[str, Any]) -> str:
    """The page of what :func:`.data.graph_data` or :func:`.data.compared` made; the same graph gives the same text."""
    script, style = "\n".join(map(_text, _SCRIPTS)), _text("viewer.css")
    packed = gzip.compress(json.dumps(graph, separators=(",", ":")).encode(), 9, mtime=0)
    functions = (f"<li>@{escape(f['name'])}: {len(f['nodes'])} nodes</li>" for f in graph["functions"])
    return _PAGE.format(
        policy=f"default-src 'none'; script-src '{_digest(script)}'; style-src 'unsafe-inline'; form-action 'none'",
        title=escape(graph["title"]),
        style=style,
        summary="".join(functions),
        data=base64.b64encode(packed).decode(),
        script=script,
    )


def _text(name: str) -> str:
    return resources.files(__package__ or "").joinpath("page", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
