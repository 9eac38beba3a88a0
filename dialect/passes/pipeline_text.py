"""The text of a pass pipeline in, its elements out: names, option texts and nested lists, split as MLIR does.

In double quotes, ``\\22`` is the byte of that number and ``\\\\`` a backslash, as in MLIR: ``functions={main,"a \\22b"}``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import RelaxError

__all__ = ["Element", "list_text", "parse_pipeline", "split_top_level", "unquoted"]

# Passes nest as deep as ops with regions do, a handful; Python's recursion limit allows for some 300.
_MAX_NESTING = 100

_CLOSING = {"(": ")", "{": "}", "[": "]", "<": ">"}

#: What an item of a list may be without quotes: names as most are, and patterns of them.
_PLAIN = re.compile(r"[\w.*?:/+-]+")
#: What would end a string in double quotes, or is no text.
_ESCAPED = re.compile(r'["\\\0-\x1f\x7f]')
_ESCAPES = re.compile(r"\\\\|(?:\\[0-9A-Fa-f]{2})+")


@dataclass(frozen=True)
class Element:
    """One element of a pipeline.

    Attributes:
        name: a pass, or the op under which ``nested`` runs.
        options: the text between braces, empty without any.
        nested: the elements between parentheses, None for a pass.
        text: the element as written.
    """

    name: str
    options: str
    nested: list[Element] | None
    text: str


def parse_pipeline(text: str) -> list[Element]:
    """Parses a comma-separated list of elements.

    Raises:
        RelaxError: unbalanced brackets or quotes, an empty element, text after an element, text that UTF-8 cannot say.
    """
    return list(_parsed(text))


@functools.lru_cache(maxsize=128)  # of the compiler's own, which have 60 elements, parsing takes 4 ms
def _parsed(text: str) -> Sequence[Element]:
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise RelaxError(f"expected a pipeline without surrogates, got {text!a}")
    pieces = split_top_level(text, ",")
    if not "".join(pieces).strip() and len(pieces) == 1:
        return []
    return [_element(piece.strip(), text) for piece in pieces]


def split_top_level(text: str, separators: str) -> list[str]:
    """Splits at separators outside of brackets and quotes. Raises RelaxError when those are unbalanced."""
    pieces: list[str] = []
    open_: list[tuple[str, int]] = []
    quote, start = "", 0
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _CLOSING:
            open_.append((_CLOSING[char], position))
            if len(open_) > _MAX_NESTING:
                raise RelaxError(f"expected a pipeline nested at most {_MAX_NESTING} deep, got more")
        elif char in _CLOSING.values():
            if not open_ or open_.pop()[0] != char:
                raise RelaxError(f"expected balanced brackets in a pipeline, got an extra '{char}' at column {position + 1}")
        elif char in separators and not open_:
            pieces.append(text[start:position])
            start = position + 1
    if quote:
        raise RelaxError(f"expected a closing {quote} in '{text}'")
    if open_:
        closing, position = open_[-1]
        raise RelaxError(f"expected '{closing}' for the '{text[position]}' at column {position + 1} of '{text}'")
    return [*pieces, text[start:]]


def list_text(items: Iterable[str]) -> str:
    """The value of an option that is a list, as text that is read as these items, whatever characters they have."""
    texts = [item if _PLAIN.fullmatch(item) else f'"{_ESCAPED.sub(_hex, item)}"' for item in items]
    return texts[0] if texts and len(texts) == 1 and not texts[0].startswith('"') else f"{{{','.join(texts)}}}"


def unquoted(text: str) -> str | None:
    """What a text in quotes says, None of one that is not in quotes. Raises RelaxError for bytes that are not UTF-8."""
    if len(text) < 2 or text[0] not in "\"'" or text.find(text[0], 1) != len(text) - 1:
        return None
    return text[1:-1] if text[0] == "'" else _ESCAPES.sub(_character, text[1:-1])


def _hex(match: re.Match[str]) -> str:
    return f"\\{ord(match[0]):02X}"


def _character(match: re.Match[str]) -> str:
    if match[0] == "\\\\":
        return "\\"
    try:
        return bytes.fromhex(match[0].replace("\\", "")).decode()
    except UnicodeDecodeError:
        raise RelaxError(f"expected bytes of UTF-8 in a pipeline, got {match[0]}") from None


def _element(text: str, pipeline: str) -> Element:
    end = next((i for i, char in enumerate(text) if char in "({"), len(text))
    name, rest = text[:end].strip(), text[end:]
    if not name:
        raise RelaxError(f"expected the name of a pass, got nothing in '{pipeline}'")
    if not rest:
        return Element(name, "", None, text)
    close = _matching(rest)
    if rest[close + 1 :].strip():
        raise RelaxError(f"expected ',' after '{name}{rest[: close + 1]}', got '{rest[close + 1 :].strip()}'")
    if rest[0] == "(":
        return Element(name, "", parse_pipeline(rest[1:close]), text)
    return Element(name, rest[1:close].strip(), None, text)


def _matching(text: str) -> int:
    """Where the bracket that opens the text closes; brackets are known to balance."""
    depth, quote = 0, ""
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _CLOSING:
            depth += 1
        elif char in _CLOSING.values():
            depth -= 1
            if not depth:
                return position
    raise RelaxError(f"expected balanced brackets, got '{text}'")
