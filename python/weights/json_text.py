"""JSON that strangers wrote: text in, values out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..collector import collector_paused

__all__ = ["members", "parse_json"]

_SPACE = re.compile(r"[ \t\n\r]*")
_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")


def parse_json(text: str | bytes, **hooks: Any) -> Any:
    """``json.loads`` with the garbage collector paused.

    Text that is nested too deep ends at Python's recursion limit, and a collection down there would run finalizers of native
    objects, which then fail and leak.

    Raises:
        ValueError: the text is no JSON.
        RecursionError: it is nested too deep.
    """
    with collector_paused():
        return json.loads(text, **hooks)


def members(text: str, **hooks: Any) -> Iterator[tuple[str, Any]]:
    """The names and values of a JSON object, one after the other: all at once may take ten times the memory of the text.

    Args:
        text: an object, from its ``{`` on.
        hooks: of :class:`json.JSONDecoder`, for the values.

    Raises:
        ValueError: the text is no JSON object.
        RecursionError: it is nested too deep.
    """
    decode = json.JSONDecoder(**hooks).raw_decode
    colon, comma = _COLON.match, _COMMA.match
    at = _end(_SPACE, text, 1)
    more = not text.startswith("}", at)
    while more:
        name, at = decode(text, at)
        if type(name) is not str:
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        found = colon(text, at)
        if found is None:
            raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
        value, at = decode(text, found.end())
        yield name, value
        found = comma(text, at)
        more = found is not None
        at = found.end() if found is not None else _end(_SPACE, text, at)
    if not text.startswith("}", at):
        raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
    at = _end(_SPACE, text, at + 1)
    if at != len(text):
        raise json.JSONDecodeError("Extra data", text, at)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where what matches there, which may be nothing, ends."""
    found = pattern.match(text, at)
    return at if found is None else found.end()
