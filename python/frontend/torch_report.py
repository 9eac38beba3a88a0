"""Collects operators that cannot be imported, and says them all in one error."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from .alternatives import alternative

__all__ = ["ImportReport", "UnsupportedError"]

#: How many places of one unsupported operator an error lists.
_PLACES = 5


@dataclass
class ImportReport:
    """What could not be imported so far.

    Attributes:
        found: for each operator and reason, where it is: ``file:line`` and the module path, each empty when not known.
    """

    found: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict[tuple[str, str], list[tuple[str, str]]])

    def add(self, operator: str, reason: str, location: ir.Location) -> None:
        """Takes note of one operation."""
        self.found.setdefault((operator, reason), []).append(_place(location))

    @property
    def operators(self) -> set[str]:
        """The names of the operators."""
        return {operator for operator, _ in self.found}

    def raise_if_any(self) -> None:
        """Raises UnsupportedError when something was noted."""
        if self.found:
            raise UnsupportedError(self)


class UnsupportedError(RelaxError):
    """Operators of a model have no relax form: the message lists each with count, reason, source lines, module paths and what
    to write instead, and ends with what else can be done.

    Attributes:
        report: the same as data.
        remedies: what can be done about any operator.
    """

    remedies: tuple[str, ...] = (
        'relaxir.register_torch_op("namespace::name", function or relaxir.Extern) says what computes an operator',
        'torch.compile(model, backend="relaxir") leaves what cannot be imported to PyTorch',
    )

    def __init__(self, report: ImportReport):
        self.report = report
        lines = [f"expected operators that have a relax form, got {len(report.found)} that cannot be imported"]
        for (operator, reason), places in report.found.items():
            lines += [f"  {len(places)} x {operator}: {reason}", *_place_lines(places)]
            instead = alternative(operator, reason)
            lines += [f"      instead: {instead}"] if instead else []
        lines += [f"  or: {remedy}" for remedy in self.remedies]
        first = next(iter(report.found.values()))[0][0]
        super().__init__("\n".join(lines), first or None)

    def where_also(self, other: UnsupportedError) -> UnsupportedError:
        """This error with only those places that the other one names too; the other one when there is none.

        The other one is of the same model with more operators decomposed: what decomposing helped is gone from it, and what it
        did not help should be named as the user wrote it.
        """
        bad = {place for places in other.report.found.values() for place in places}
        kept = {key: [p for p in places if p in bad] for key, places in self.report.found.items()}
        kept = {key: places for key, places in kept.items() if places}
        return UnsupportedError(ImportReport(kept)) if kept else other


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
