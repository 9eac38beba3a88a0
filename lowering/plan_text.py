"""Plans as lines of text, ``tile=8x2x16 sums=fma``: fields of a record by name, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..dialect.errors import RelaxError

__all__ = ["Reader", "one_of", "positive", "positives", "print_fields", "read_fields"]

#: A value from its text; ValueError for a text that is none.
Reader = Callable[[str], object]


def print_fields(values: Iterable[tuple[str, object]]) -> str:
    """The line of some fields, which have Python's names."""
    return " ".join(f"{name.replace('_', '-')}={_text(value)}" for name, value in values)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "yes" if value is True else str(value)


def read_fields(
    text: str, readers: Mapping[str, Reader], examples: Mapping[str, str], required: Sequence[str]
) -> dict[str, object]:
    """The fields of a line.

    Args:
        text: the line.
        readers: what reads each field.
        examples: what a field's value may be, for messages.
        required: fields that must be there.

    Raises:
        RelaxError: a field is unknown, there twice, missing, or its value is none.
    """
    given = dict[str, object]()
    for item in text.split():
        name, equals, value = item.partition("=")
        field = name.replace("-", "_")
        if field not in readers or not equals or field in given:
            known = ", ".join(f.replace("_", "-") for f in readers)
            raise RelaxError(f"expected a plan of {known}, each once and with a value, got '{item}'")
        try:
            given[field] = readers[field](value)
        except ValueError:
            raise RelaxError(f"expected {examples[field]}, got '{item}'") from None
    missing = next((name for name in required if name not in given), None)
    if missing is not None:
        raise RelaxError(f"expected a plan with {missing.replace('_', '-')}, got '{text}'")
    return given


def positive(text: str) -> int:
    """A number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(text)
    return int(text)


def positives(text: str, separator: str = "x") -> list[int]:
    """Several, as in ``8x2x16``."""
    return [positive(part) for part in text.split(separator)]


def one_of(*values: str) -> Callable[[str], str]:
    """A reader of some words."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return read
