"""A hook of mkdocs: names that docstrings give a role, as in Sphinx, are shown as code without it."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>[~.]*([^<]*)</code>")


def on_page_content(content: str, **_: Any) -> str:
    """Takes and returns a page's HTML."""
    return _ROLE.sub(r"<code>\1</code>", content)
