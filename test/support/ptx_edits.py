"""Edits of PTX text, by which bugs are planted: each takes a text and gives another one."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["Edit", "drop", "put", "swap"]

Edit = Callable[[str], str]


def put(pattern: str, replacement: str, which: int | None = 0) -> Edit:
    """Replaces one match, or all of them."""

    def edit(text: str) -> str:
        matches = list(re.finditer(pattern, text, re.M))
        assert matches, pattern
        for match in reversed(matches if which is None else [matches[which]]):
            text = text[: match.start()] + match.expand(replacement) + text[match.end() :]
        return text

    return edit


def drop(pattern: str, which: int | None = 0) -> Edit:
    """Removes an instruction with its guard."""
    return put(r"^\s*(?:@!?%?\w+ )?" + pattern + r"[^;]*;", "", which)


def swap(pattern: str, which: int = 0) -> Edit:
    """Exchanges the two operands that end a match."""
    return put(pattern + r"(%\w+), (%\w+)", r"\1\3, \2", which)
