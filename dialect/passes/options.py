"""Pass options: the text between a pipeline element's braces in, a pass object with typed fields out."""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Callable
from typing import Any, get_type_hints

from ..errors import RelaxError
from .base import Pass
from .pipeline_text import split_top_level, unquoted

__all__ = ["KINDS", "Option", "options_of", "parse_options"]


@dataclasses.dataclass(frozen=True)
class Option:
    """A declared option: its name in pipelines, its field, what it expects, and the field's default, if it has one.

    The name has dashes for the field's underscores, and none for the last one of a field named like a keyword of Python.
    """

    name: str
    field: str
    expected: str
    default: Any
    read: Callable[[str], Any]

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is dataclasses.MISSING


def _boolean(text: str) -> bool:
    values = {"true": True, "1": True, "": True, "false": False, "0": False}
    return values[text.lower()]


def _string(text: str) -> str:
    inner = _unbraced(text)
    found = unquoted(inner)
    return inner if found is None else found


def _strings(text: str) -> tuple[str, ...]:
    """Items between commas, each of which may be in quotes, and all of them in braces or, as MLIR has it, quotes."""
    inner = _unbraced(text) if unquoted(text) is None else text[1:-1]
    return tuple(_item(item.strip()) for item in split_top_level(inner, ",") if item.strip())


def _item(text: str) -> str:
    name = text.lstrip("@")
    found = unquoted(name)
    return name if found is None else found


def _unbraced(text: str) -> str:
    return text[1:-1] if text.startswith("{") and text.endswith("}") else text


#: The types that options can be of, what they expect, and how they are read.
KINDS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    bool: ("true or false", _boolean),
    int: ("an integer", int),
    int | None: ("an integer", int),
    bool | None: ("true or false", _boolean),
    float: ("a number", float),
    str: ("a string", _string),
    tuple[str, ...]: ("a comma-separated list", _strings),
}


@functools.cache
def options_of(pass_class: type[Pass]) -> tuple[Option, ...]:
    """The options that a class declares, one that :func:`..pass_class.check_class` has seen, in order."""
    hints = get_type_hints(pass_class)
    found: list[Option] = []
    for field in (f for f in dataclasses.fields(pass_class) if f.init):
        expected, read = KINDS[hints[field.name]]
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        found.append(Option(field.name.rstrip("_").replace("_", "-"), field.name, expected, default, read))
    return tuple(found)


def parse_options(pass_class: type[Pass], text: str) -> Pass:
    """Makes a pass from ``a=1 b=x,y flag``.

    Raises:
        RelaxError: an option the pass does not have, given twice, or with a value that does not fit; a required one is absent.
    """
    declared = {option.name: option for option in options_of(pass_class)}
    values: dict[str, Any] = {}
    for item in split_top_level(text, " \t\n"):
        if not item:
            continue
        name, equals, value = item.partition("=")
        option = declared.get(name.replace("_", "-"))
        if option is None:
            raise RelaxError(_unknown(pass_class.name, name, list(declared)))
        if option.field in values:
            raise RelaxError(f"expected option '{option.name}' of pass '{pass_class.name}' once, got it again")
        values[option.field] = _read(pass_class.name, option, value, bool(equals))
    missing = next((o.name for o in declared.values() if o.is_required and o.field not in values), None)
    if missing is not None:
        raise RelaxError(f"expected option '{missing}' of pass '{pass_class.name}', got none")
    return pass_class(**values)


def _read(pass_name: str, option: Option, value: str, given: bool) -> Any:
    is_text = option.read in (_string, _strings)
    plain = value if is_text else _string(value)
    try:
        if not plain and not (is_text if given else option.read is _boolean):
            raise ValueError(value)
        return option.read(plain)
    except (KeyError, ValueError):
        got = f"'{value}'" if given else "no value"
        raise RelaxError(f"expected {option.expected} for option '{option.name}' of pass '{pass_name}', got {got}") from None


def _unknown(pass_name: str, name: str, declared: list[str]) -> str:
    close = difflib.get_close_matches(name, declared, 1)
    hint = f", did you mean '{close[0]}'" if close else ""
    known = ", ".join(declared) or "none"
    return f"pass '{pass_name}' has no option named '{name}'{hint} (options: {known})"
