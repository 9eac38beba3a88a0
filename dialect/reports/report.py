"""What passes decided and why, as data: they add sections while someone collects; text for people, JSON for tools.

A pass that has something to tell adds a section, which goes to whoever collects around it, and nowhere otherwise::

    with report.collecting() as found:
        manager.run(module, "relax-lift-transform-params")
    print(found)

Collecting is local to a thread. Nothing here imports MLIR: compiled artifacts carry reports, and load without it.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast, get_args, get_origin, get_type_hints

from ..errors import RelaxError
from ..printable import joined_lines

__all__ = [
    "OtherSection", "Report", "Section", "add", "aligned", "bytes_text", "change", "collecting", "is_collecting", "plural",
]  # fmt: skip

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_KINDS: dict[str, type[Section]] = {}
#: Modules of this package that define sections without importing MLIR, by kind; they are imported when one is read.
_MODULES = {
    "cache": "cache",
    "checkpoint-weights": "checkpoint",
    "fixed-weights": "fixed",
    "kernels": "kernels",
    "lift": "lifting",
    "quantize-activations": "activations",
    "quantize-convolutions": "convolutions",
    "quantize-weights": "weights",
    "schedule-lazy-io": "lazy_io",
    "share-packed-weights": "shared_weights",
    "work": "work",
}


@dataclass(frozen=True)
class Section(ABC):
    """What one pass tells about one subject; a subclass has fields of str, int, float, None, tuples and dataclasses of these.

    Attributes:
        kind: names the class in JSON.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if cls.kind:
            _KINDS[cls.kind] = cls

    @property
    @abstractmethod
    def subject(self) -> str:
        """What it is about: a later section of this kind about the same replaces this one."""

    def following(self, earlier: Section) -> Section:
        """This section where an earlier one of its kind about the same subject goes; itself, unless a subclass merges them."""
        del earlier
        return self

    @abstractmethod
    def summary(self) -> list[str]:
        """A few lines."""

    @abstractmethod
    def lines(self) -> list[str]:
        """All of it, as lines of text."""

    def as_json(self) -> dict[str, Any]:
        """A JSON object: the kind and the fields, in order."""
        return {"kind": self.kind} | _plain(dataclasses.asdict(self))


@dataclass(frozen=True)
class OtherSection(Section):
    """A section of a kind that is not known here, kept as it was read."""

    data: Mapping[str, Any]

    @property
    def subject(self) -> str:
        return str(sorted(self.data))

    def summary(self) -> list[str]:
        return [f"{self.data.get('kind')}: a section of another version"]

    def lines(self) -> list[str]:
        return self.summary()

    def as_json(self) -> dict[str, Any]:
        return dict(self.data)


#: Lines of a summary that ``repr`` shows.
_SHOWN = 8


@dataclass(repr=False)
class Report:
    """The sections that passes added, in order; ``str()`` of it is all of them to read, ``repr()`` a few lines.

    Attributes:
        sections: the sections; :meth:`add` and :meth:`extended` keep one per kind and subject.
    """

    sections: list[Section] = field(default_factory=list[Section])

    def add(self, section: Section) -> None:
        """Appends a section. One of the same kind about the same subject goes."""
        key = (section.kind, section.subject)
        for earlier in self.sections:
            if (earlier.kind, earlier.subject) == key:
                section = section.following(earlier)
        self.sections[:] = [s for s in self.sections if (s.kind, s.subject) != key]
        self.sections.append(section)

    def extended(self, other: Report) -> Report:
        """A report with the sections of both, the other's later."""
        result = Report(list(self.sections))
        for section in other.sections:
            result.add(section)
        return result

    def summary(self) -> list[str]:
        """A few lines for each section."""
        return [line for section in self.sections for line in section.summary()]

    def as_json(self) -> dict[str, Any]:
        """A JSON object that :meth:`of_json` reads."""
        return {"sections": [s.as_json() for s in self.sections]}

    @staticmethod
    def of_json(data: object, where: str = "report") -> Report:
        """Reads a report. Sections of unknown kinds, and fields that are not known, do no harm.

        Raises:
            RelaxError: a field of a known section is missing or wrong.
        """
        return Report([_section(s, f"{where}.sections[{i}]") for i, s in enumerate(Report.sections_of(data, where))])

    @staticmethod
    def sections_of(data: object, where: str = "report") -> list[object]:
        """The sections of a report's JSON object, not read. Raises RelaxError when it has none."""
        items = cast("Mapping[str, Any]", data).get("sections") if isinstance(data, Mapping) else None
        if not isinstance(items, list):
            raise RelaxError(f"{where}.sections: expected a list, got {items!r}")
        return cast("list[object]", items)

    def __str__(self) -> str:
        return joined_lines(line for section in self.sections for line in section.lines()) or "nothing to report"

    def __repr__(self) -> str:
        lines = self.summary()
        more = [f"  ... {len(lines) - _SHOWN} lines more"] if len(lines) > _SHOWN else []
        head = f"<{type(self).__name__} of {plural(len(self.sections), 'section')}; print() shows all>"
        return joined_lines([head, *(f"  {line}" for line in lines[:_SHOWN]), *more])

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary, and all of it to open."""
        summary = "\n".join(html.escape(line) for line in self.summary())
        return f"<pre>{summary}</pre><details><summary>all</summary><pre>{html.escape(str(self))}</pre></details>"


S = TypeVar("S", bound=Section)

_CURRENT: ContextVar[Report | None] = ContextVar("relaxir_report", default=None)


@contextmanager
def collecting() -> Generator[Report]:
    """What passes add inside of the block, in this thread, goes to the report it gives."""
    report = Report()
    token = _CURRENT.set(report)
    try:
        yield report
    finally:
        _CURRENT.reset(token)


def is_collecting() -> bool:
    """Whether anyone wants to know: what only a section needs is not worked out otherwise."""
    return _CURRENT.get() is not None


def add(section: Section) -> None:
    """Gives a section to whoever collects."""
    report = _CURRENT.get()
    if report is not None:
        report.add(section)


def change(kind: type[S], changed: Callable[[S], S]) -> None:
    """Replaces the sections of a kind that were added so far: what a later step knows of what an earlier one told."""
    report = _CURRENT.get()
    for i, section in enumerate(report.sections if report is not None else ()):
        if report is not None and isinstance(section, kind):
            report.sections[i] = changed(section)


def bytes_text(count: float) -> str:
    """A size for people: ``81.0 MiB``."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count:.0f} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def plural(count: int, noun: str) -> str:
    """``1 weight``, ``2 weights``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def aligned(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Lines with columns one under the other.

    Args:
        rows: texts, equally many in each row.
        right: which columns are aligned at their right side.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    at_right = set(right)
    lines = [[text.rjust(w) if i in at_right else text.ljust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))]
             for row in rows]  # fmt: skip
    return ["  ".join(line).rstrip() for line in lines]


def _plain(value: Any) -> Any:
    """The value with lists for tuples, as it comes back from JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}
    return [_plain(item) for item in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def _section(data: object, where: str) -> Section:
    kind = cast("Mapping[str, Any]", data).get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str):
        raise RelaxError(f"{where}.kind: expected a string, got {kind!r}")
    if kind in _MODULES:
        importlib.import_module(f".{_MODULES[kind]}", __package__)
    cls = _KINDS.get(kind)
    return OtherSection(cast("Mapping[str, Any]", data)) if cls is None else _read(cls, data, where)


# A model has a section's class once per weight, and evaluating the hints of one takes 0.1 ms.
@functools.cache
def _fields(section: type) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    hints = get_type_hints(section)
    return {f.name: hints[f.name] for f in dataclasses.fields(section)}


def _read(type_: Any, value: Any, where: str) -> Any:
    """A value of one of the types that sections have, from JSON."""
    if dataclasses.is_dataclass(type_):
        if not isinstance(value, Mapping):
            raise RelaxError(f"{where}: expected an object, got {value!r}")
        given = cast("Mapping[str, Any]", value)
        fields = _fields(cast("type", type_)).items()
        return cast("Any", type_)(**{name: _read(kind, given.get(name), f"{where}.{name}") for name, kind in fields})
    if get_origin(type_) is tuple:
        if not isinstance(value, list):
            raise RelaxError(f"{where}: expected a list, got {value!r}")
        return tuple(_read(get_args(type_)[0], v, f"{where}[{i}]") for i, v in enumerate(cast("list[Any]", value)))
    allowed = get_args(type_) or (type_,)
    if type(value) not in allowed and not (float in allowed and type(value) is int):
        names = " or ".join("null" if t is type(None) else t.__name__ for t in allowed)
        raise RelaxError(f"{where}: expected {names}, got {value!r}")
    return value
