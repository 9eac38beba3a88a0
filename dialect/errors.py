"""The errors a user can cause, and warnings: one base class each, with the location when one is known."""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .printable import printable

if TYPE_CHECKING:  # running an artifact must not import MLIR, and it raises these errors too
    from .bindings import ir

__all__ = [
    "ContentError", "DiagnosticError", "RelaxError", "RelaxWarning", "UnknownNameError", "from_mlir_error", "interruptible",
    "location_text", "warn",
]  # fmt: skip

# `callsite(a at b)`, where a and b may have one level of parentheses: the innermost one of several.
_CALL_SITE = re.compile(r"callsite\(((?:[^()]|\([^()]*\))*) at ((?:[^()]|\([^()]*\))*)\)")


#: A line of a message is for people: a file that names a tensor with ten million letters does not fill their screen.
_LINE, _BEGIN, _END = 4000, 3000, 800


def _bounded(message: str) -> str:
    """A message whose long lines are without their middle."""
    if len(message) <= _LINE:
        return message
    lines = message.split("\n")
    return "\n".join(t if len(t) <= _LINE else f"{t[:_BEGIN]} ... {t[-_END:]}" for t in lines)


class RelaxError(Exception):
    """Base of every error that a user of relaxir can cause.

    Attributes:
        location: where it happened, as MLIR prints it (``file:line:col``), or None when no place is known.
    """

    def __init__(self, message: str, location: object | None = None):
        super().__init__(printable(_bounded(message), lines=True))
        self.location = None if location is None else printable(location_text(location))

    def __str__(self) -> str:
        text = Exception.__str__(self)
        return f"{self.location}: {text}" if self.location else text


@contextmanager
def interruptible() -> Generator[None]:
    """A ``KeyboardInterrupt`` in a function that MLIR calls stays one: the bindings make a ``RuntimeError`` of it."""
    try:
        yield
    except RuntimeError as error:
        if type(error) is RuntimeError and "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from None
        raise


class ContentError(RelaxError):
    """What files or tensors hold, or hold no more, is why it fails: work that was begun with them cannot go on."""


class UnknownNameError(RelaxError, KeyError):
    """A mapping has nothing of this name."""


class RelaxWarning(UserWarning):
    """Something that a user may not expect and that is no error; a Python warning, because MLIR's bindings emit errors alone.

    Attributes:
        location: as of :class:`RelaxError`.
    """

    def __init__(self, message: str, location: object | None = None):
        super().__init__(printable(message, lines=True))
        self.location = None if location is None else printable(location_text(location))

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.location}: {text}" if self.location else text


def warn(message: str, location: object | None = None) -> None:
    """Issues a RelaxWarning: ``relax-opt`` shows it as a diagnostic, elsewhere Python's ``warnings`` decide."""
    warnings.warn(RelaxWarning(message, location), stacklevel=2)


class DiagnosticError(RelaxError):
    """An error found in the IR.

    Attributes:
        diagnostics: every message with its location, in the order MLIR reported them, as ``(severity, location, text)``.
    """

    def __init__(self, diagnostics: list[tuple[str, str, str]]):
        self.diagnostics = diagnostics
        errors = [d for d in diagnostics if d[0] == "error"] or diagnostics
        _, location, first = errors[0] if errors else ("error", "", "unknown failure")
        lines = [first, *(f"{text} (at {where})" for _, where, text in errors[1:])]
        super().__init__("\n".join(lines), location or None)


def from_mlir_error(error: ir.MLIRError) -> DiagnosticError:
    """Turns the bindings' exception into ours, keeping every diagnostic and note."""
    found: list[tuple[str, str, str]] = []

    def collect(diagnostic: ir.DiagnosticInfo, severity: str) -> None:
        found.append((severity, location_text(diagnostic.location), diagnostic.message))
        for note in diagnostic.notes:
            collect(note, "note")

    for diagnostic in error.error_diagnostics:
        collect(diagnostic, "error")
    return DiagnosticError(found or [("error", "", str(error))])


def location_text(location: object) -> str:
    """``loc("f.mlir":3:5)`` as ``f.mlir:3:5``, that of an inlined op as ``f.mlir:3:5 (called at f.mlir:9:3)``.

    An unknown location is the empty string.
    """
    text = str(location)
    if not text.startswith("loc(") or not text.endswith(")"):
        return text
    inner = text[4:-1]
    if inner == "unknown":
        return ""
    inner, count = inner.replace('"', ""), 1
    while count:
        inner, count = _CALL_SITE.subn("\\1\0\\2\1", inner)
    return _callers(inner)


def _callers(text: str) -> str:
    """A place and who called it, one after the other, of ``place\\0caller\\1``, where either may have callers itself."""
    found, is_open = "", False
    for part in re.split("([\0\1])", text):
        if part == "\0":
            found += ") (called at " if is_open else " (called at "
        elif part == "\1":
            found += ")" * is_open
        else:
            found += part
        is_open = part == "\0" or (is_open and part != "\1")
    return found
