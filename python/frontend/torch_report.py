"""Collects operators that cannot be imported, and says them all in one error."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError

__all__ = ["Report", "UnsupportedError"]

#: How many places of one unsupported operator an error lists.
_PLACES = 5


class UnsupportedError(RelaxError):
    """Operators of a model have no relax form.

    Attributes:
        operators: their names, e.g. ``aten.topk``.
    """

    def __init__(self, message: str, location: str | None, operators: frozenset[str]):
        super().__init__(message, location)
        self.operators = operators


@dataclass
class Report:
    """What could not be imported so far.

    Attributes:
        found: for each operator and reason, where it is: ``file:line`` and the module path, each empty when not known.
    """

    found: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict[tuple[str, str], list[tuple[str, str]]])

    def add(self, operator: str, reason: str, location: ir.Location) -> None:
        """Takes note of one operation."""
        self.found.setdefault((operator, reason), []).append(_place(location))

    def raise_if_any(self) -> None:
        """Raises UnsupportedError listing every operator with count, reason and places, at the first of them."""
        if not self.found:
            return
        lines = [f"expected operators that have a relax form, got {len(self.found)} that cannot be imported"]
        for (operator, reason), places in self.found.items():
            lines += [f"  {len(places)} x {operator}: {reason}", *_place_lines(places)]
        first = next(iter(self.found.values()))[0][0]
        raise UnsupportedError("\n".join(lines), first or None, frozenset(name for name, _ in self.found))


def _place(location: ir.Location) -> tuple[str, str]:
    """``file:line`` and the module path of a location that the importer made."""
    if isinstance(location, ir.NameLoc):
        return _place(location.child_loc)[0], location.name_str
    if isinstance(location, ir.FileLineColLoc):
        return f"{location.filename}:{location.start_line}", ""
    return "", ""


def _place_lines(places: list[tuple[str, str]]) -> list[str]:
    distinct = list(dict.fromkeys(places))
    lines = [f"      at {place or 'an unknown line'}{f' in {path}' if path else ''}" for place, path in distinct[:_PLACES]]
    if len(distinct) > _PLACES:
        lines.append(f"      and {len(distinct) - _PLACES} more places")
    return lines
