"""A JSON object in, its fields out, checked: every error has the field's path, ``manifest.entries[0].inputs[1].dtype``."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from ..dialect.errors import RelaxError

__all__ = ["Reader"]

_T = TypeVar("_T")


class Reader:
    """Reads fields of one JSON object."""

    def __init__(self, data: object, where: str):
        if not isinstance(data, Mapping):
            raise RelaxError(f"{where}: expected an object, got {type(data).__name__}")
        self.data = cast("Mapping[str, Any]", data)
        self.where = where

    def value(self, key: str) -> Any:
        if key not in self.data:
            raise RelaxError(f"{self.where}.{key}: expected a value, got none")
        return self.data[key]

    def text(self, key: str) -> str:
        value = self.value(key)
        if not isinstance(value, str):
            raise RelaxError(f"{self.where}.{key}: expected a string, got {value!r}")
        return value

    def base64(self, key: str) -> bytes:
        text = self.text(key)
        try:
            return b64decode(text, validate=True)
        except ValueError:
            raise RelaxError(f"{self.where}.{key}: expected base64, got {text!r}") from None

    def identifier(self, key: str) -> str:
        value = self.text(key)
        if not (value.isascii() and value.isidentifier()):
            raise RelaxError(f"{self.where}.{key}: expected a C identifier, got {value!r}")
        return value

    def size(self, key: str) -> int:
        value = self.value(key)
        if type(value) is not int or value < 0:
            raise RelaxError(f"{self.where}.{key}: expected a number of 0 or more, got {value!r}")
        return value

    def limit(self, key: str) -> int | None:
        value = self.data.get(key)
        if value is not None and type(value) is not int:
            raise RelaxError(f"{self.where}.{key}: expected a number or null, got {value!r}")
        return value

    def flag(self, key: str) -> bool:
        """A truth value, false where the field is missing: version 1 had none at first."""
        value = self.data.get(key, False)
        if type(value) is not bool:
            raise RelaxError(f"{self.where}.{key}: expected true or false, got {value!r}")
        return value

    def items(self, key: str) -> list[Any]:
        value = self.value(key)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise RelaxError(f"{self.where}.{key}: expected a list, got {value!r}")
        return list(cast("Sequence[Any]", value))

    def texts(self, key: str) -> tuple[str, ...]:
        """Strings; none where the field is missing."""
        items = self.items(key) if key in self.data else []
        if not all(isinstance(i, str) for i in items):
            raise RelaxError(f"{self.where}.{key}: expected a list of strings, got {items!r}")
        return tuple(items)

    def child(self, key: str) -> Reader:
        return Reader(self.value(key), f"{self.where}.{key}")

    def records(self, key: str, make: Callable[[Reader], _T]) -> list[_T]:
        return [make(Reader(item, f"{self.where}.{key}[{i}]")) for i, item in enumerate(self.items(key))]
