"""Diagnostics as MLIR's tools print them: ``file:line:col: error: text``, the source line, and a caret under the column."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from ..dialect.errors import DiagnosticError, RelaxError, RelaxWarning
from ..dialect.printable import printable

if TYPE_CHECKING:
    from ..dialect.bindings import ir

__all__ = ["Diagnostic", "Printer", "Sink", "SourceText", "diagnostics_to", "of_error"]

# One `file:line:col` anywhere in a location: fused, named and call-site locations show the first one they hold.
_PLACE = re.compile(r"([^\s\[\](),]+):(\d+):(\d+)")
_WHOLE_PLACE = re.compile(r"([^\[\]()]+):(\d+):(\d+)(?: to [:\d]+)?")
# The pass manager hands on notes of ours as errors that say so.
_KIND_IN_TEXT = re.compile(r"(note|warning|remark): ")

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;35m", "remark": "\x1b[1;34m", "note": "\x1b[1;30m"}
_CARET = "\x1b[1;32m"


@dataclass(frozen=True)
class Diagnostic:
    """One message.

    Attributes:
        severity: ``error``, ``warning``, ``remark`` or ``note``.
        file: where, empty for an unknown place.
        line: from 1; 0 when only the file is known.
        column: in bytes, from 1.
        text: the message.
    """

    severity: str
    file: str
    line: int
    column: int
    text: str

    @staticmethod
    def at(severity: str, where: str, text: str) -> Diagnostic:
        """From a location as MLIR prints it, without ``loc(...)`` and quotes; one without a place is unknown."""
        kind = _KIND_IN_TEXT.match(text) if severity == "error" else None
        if kind:
            severity, text = kind[1], text[kind.end() :]
        place = _WHOLE_PLACE.fullmatch(where) or _PLACE.search(where)
        if place:
            return Diagnostic(severity, place[1], int(place[2]), int(place[3]), text)
        return Diagnostic(severity, where, 0, 0, text)


Sink = Callable[[Diagnostic], None]


@dataclass(frozen=True)
class SourceText:
    """A piece of input.

    Attributes:
        name: the file's name, ``<stdin>`` for standard input.
        text: the piece.
        skipped: how many lines of the file come before it.
    """

    name: str
    text: bytes
    skipped: int = 0

    @cached_property
    def lines(self) -> list[str]:
        return self.text.decode(errors="replace").split("\n")

    def line(self, number: int) -> str | None:
        """A line by its number in the file, None outside of the piece."""
        index = number - 1 - self.skipped
        return self.lines[index].rstrip("\r") if 0 <= index < len(self.lines) else None


class Printer:
    """Prints diagnostics of one source; counts the errors."""

    def __init__(self, source: SourceText, stream: TextIO | None = None):
        self.source = source
        self.stream = stream or sys.stderr
        self.errors = 0
        self._colours = self.stream.isatty()

    def __call__(self, diagnostic: Diagnostic) -> None:
        self.errors += diagnostic.severity == "error"
        place = self._styled(f"{printable(_place(diagnostic))}: ", _BOLD)
        text = printable(diagnostic.text, lines=True).replace("\n", "\n  ")  # what looks like a line of ours is none
        kind = self._styled(f"{diagnostic.severity}: ", _COLOURS[diagnostic.severity])
        print(f"{place}{kind}{self._styled(text, _BOLD)}", *self._context(diagnostic), sep="\n", file=self.stream)

    def _context(self, diagnostic: Diagnostic) -> list[str]:
        line = self.source.line(diagnostic.line) if diagnostic.file == self.source.name and diagnostic.line else None
        if line is None:
            return []
        before = line.encode()[: max(diagnostic.column - 1, 0)].decode(errors="ignore")
        return [printable(line), re.sub(r"[^\t]", " ", before) + self._styled("^", _CARET)]

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{_PLAIN}" if self._colours else text


@contextlib.contextmanager
def diagnostics_to(sink: Sink, context: ir.Context, name: str) -> Generator[None]:
    """Sends warnings, and remarks and notes of a context, to ``sink``; errors travel in exceptions (:func:`of_error`)."""

    def handle(diagnostic: ir.Diagnostic) -> bool:
        location = re.sub(r'"-":(?=\d)', lambda _: f'"{name}":', str(diagnostic.location))
        where = location[4:-1].replace('"', "") if location != "loc(unknown)" else ""
        sink(Diagnostic.at(diagnostic.severity.name.lower(), where, diagnostic.message))
        for note in diagnostic.notes:
            handle(note)
        return True

    others = warnings.showwarning

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        if not isinstance(message, RelaxWarning):
            others(message, *args, **kwargs)
            return
        sink(Diagnostic.at("warning", message.location or "", str(message.args[0])))

    handler = context.attach_diagnostic_handler(handle)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", RelaxWarning)
            warnings.showwarning = show
            yield
    finally:
        handler.detach()


def of_error(error: RelaxError) -> list[Diagnostic]:
    """The diagnostics that an error carries, in the order they were reported; its own notes come last."""
    notes = [Diagnostic.at("note", "", text) for text in getattr(error, "__notes__", ())]
    if isinstance(error, DiagnosticError):
        return [Diagnostic.at(severity, where, text) for severity, where, text in error.diagnostics] + notes
    return [Diagnostic.at("error", error.location or "", str(error.args[0])), *notes]


def _place(diagnostic: Diagnostic) -> str:
    if not diagnostic.file:
        return "<unknown>:0"
    return f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}" if diagnostic.line else diagnostic.file
