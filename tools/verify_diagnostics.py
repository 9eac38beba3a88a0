"""``--verify-diagnostics``: comments say which diagnostics a source must cause; what is missing or unexpected is an error.

    // expected-error@+1 {{expected operands of one dtype}}
    %0 = "relax.add"(%a, %b) : ...

Designators are MLIR's: ``expected-(error|warning|remark|note)``, ``-re`` for text with ``{{regular expressions}}`` in it, and
``@+N``, ``@-N``, ``@above``, ``@below`` or ``@unknown`` for another place than the comment's own line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..dialect.errors import RelaxError
from .diagnostics import Diagnostic, Sink, SourceText

__all__ = ["DiagnosticVerifier"]

# As upstream's: one designator per line, and it ends the line.
_DESIGNATOR = re.compile(r"expected-(error|note|remark|warning)(-re)? *(?:@([+-]\d+|above|below|unknown))? *\{\{(.*)\}\}$")
_REGEX_PART = re.compile(r"\{\{(.*?)\}\}")


@dataclass
class _Expected:
    kind: str
    text: str
    pattern: re.Pattern[str]
    written: tuple[int, int]
    line: int | None
    matched: bool = False


class DiagnosticVerifier:
    """Compares the diagnostics of one source with its designators.

    Args:
        source: what is processed.
        report: receives an error for each mismatch.
        only_expected: diagnostics that no designator speaks of are ignored.
    """

    def __init__(self, source: SourceText, report: Sink, only_expected: bool = False):
        self._source = source
        self._report = report
        self._only_expected = only_expected
        self._expected = _designators(source)

    def __call__(self, diagnostic: Diagnostic) -> None:
        """Takes one diagnostic. The note in which MLIR prints the op itself need not be expected."""
        if diagnostic.text.startswith("see current operation:"):
            return
        line = self._line(diagnostic)
        near = [e for e in self._expected if e.line == line and e.pattern.search(diagnostic.text)]
        same = next((e for e in near if e.kind == diagnostic.severity), None)
        if same:
            same.matched = True
        elif near:
            wrong = f"'{diagnostic.severity}' diagnostic emitted when expecting a '{near[-1].kind}'"
            self._report(Diagnostic("error", self._source.name, *near[-1].written, wrong))
        elif not self._only_expected:
            text = f"unexpected {diagnostic.severity}: {diagnostic.text}"
            self._report(Diagnostic("error", diagnostic.file, diagnostic.line, diagnostic.column, text))

    def finish(self) -> None:
        """Reports every designator that nothing matched."""
        for expected in self._expected:
            if not expected.matched:
                text = f'expected {expected.kind} "{expected.text}" was not produced'
                self._report(Diagnostic("error", self._source.name, *expected.written, text))

    def _line(self, diagnostic: Diagnostic) -> int | None:
        """The line in the source, None for an unknown place, -1 for one in another file."""
        if not diagnostic.line:
            return None
        return diagnostic.line if diagnostic.file == self._source.name else -1


def _designators(source: SourceText) -> list[_Expected]:
    found: list[_Expected] = []
    waiting: list[_Expected] = []
    above = source.skipped + 1
    for number, line in enumerate(source.lines, source.skipped + 1):
        match = _DESIGNATOR.search(line.rstrip())
        if not match:
            for expected in waiting:
                expected.line = number
            waiting, above = [], number
            continue
        kind, regex, place, text = match.groups()
        written = (number, len(line[: match.start()].encode()) + 1)
        pattern = _pattern(text, regex is not None, f"{source.name}:{written[0]}:{written[1]}")
        found.append(_Expected(kind, text, pattern, written, _target(place, number, above)))
        if place == "below":
            waiting.append(found[-1])
    return found


def _target(place: str | None, number: int, above: int) -> int | None:
    if place == "unknown":
        return None
    if place == "above":
        return above
    return number + int(place) if place and place != "below" else number


def _pattern(text: str, regex: bool, where: str) -> re.Pattern[str]:
    """What a message must contain: the text, in which ``{{...}}`` parts are regular expressions if ``regex``."""
    pieces = _REGEX_PART.split(text) if regex else [text]
    try:
        return re.compile("".join(f"(?:{piece})" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces)))
    except re.error as error:
        raise RelaxError(f"expected a valid regular expression in '{text}': {error}", where) from None
