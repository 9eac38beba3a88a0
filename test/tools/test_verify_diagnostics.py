"""Designators of --verify-diagnostics, one rule of upstream's at a time."""

from __future__ import annotations

import pytest

from relaxir.tools.diagnostics import Diagnostic, SourceText
from relaxir.tools.verify_diagnostics import DiagnosticVerifier

NAME = "t.mlir"


def check(text: str, *got: tuple[str, int, str], skipped: int = 0, only_expected: bool = False) -> list[str]:
    """Reports on ``(severity, line, text)`` diagnostics; line 0 is an unknown place."""
    reports: list[Diagnostic] = []
    verifier = DiagnosticVerifier(SourceText(NAME, text.encode(), skipped), reports.append, only_expected)
    for severity, line, message in got:
        verifier(Diagnostic(severity, NAME if line else "", line, 1, message))
    verifier.finish()
    return [f"{r.line}: {r.text}" for r in reports]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op // expected-error {{bad}}", 1),
        ("op // expected-error{{bad}}", 1),
        ("// expected-error@+1 {{bad}}\nop", 2),
        ("// expected-error @+2 {{bad}}\n\nop", 3),
        ("op\n// expected-error@-1 {{bad}}", 1),
        ("op\n// expected-error@above {{bad}}", 1),
        ("op\n// expected-note@above {{note}}\n// expected-error@above {{bad}}", 1),
        ("// expected-error@below {{bad}}\nop", 2),
        ("// expected-error@below {{bad}}\n// expected-note@below {{note}}\nop", 3),
        ("// expected-error@unknown {{bad}}", 0),
        ("op // expected-error {{bad}}  \t", 1),
        ("op // expected-error-re {{^b{{a+}}d$}}", 0),
    ],
)
def test_where_a_designator_points(text: str, line: int) -> None:
    notes = [("note", line, "note")] if "note" in text else []
    found = check(text, ("error", line, "bad"), *notes)
    if "-re" in text:  # ^ and $ are no regular expression outside of {{ }}
        assert found[-1] == '1: expected error "^b{{a+}}d$" was not produced'
        return
    assert found == []


def test_text_is_a_part_of_the_message() -> None:
    assert check("op // expected-error {{a.b}}", ("error", 1, "x a.b y")) == []
    assert check("op // expected-error {{a.b}}", ("error", 1, "x aab y")) != []


def test_regular_expression_parts() -> None:
    text = "op // expected-error-re {{got {{[0-9]+}} of (x)}}"
    assert check(text, ("error", 1, "got 12 of (x)")) == []
    assert check(text, ("error", 1, "got no of (x)")) != []


def test_a_designator_ends_its_line() -> None:
    assert check("op // expected-error {{bad}} and more", ("error", 1, "bad")) == ["1: unexpected error: bad"]


def test_missing_and_unexpected() -> None:
    assert check("op // expected-error {{bad}}") == ['1: expected error "bad" was not produced']
    assert check("op", ("warning", 1, "odd")) == ["1: unexpected warning: odd"]
    assert check("op", ("warning", 1, "odd"), only_expected=True) == []


def test_another_kind_is_a_near_miss() -> None:
    reports = check("op // expected-warning {{bad}}", ("error", 1, "bad"))
    assert reports[0] == "1: 'error' diagnostic emitted when expecting a 'warning'"


def test_one_designator_takes_every_diagnostic_it_matches() -> None:
    assert check("op // expected-error {{bad}}", ("error", 1, "bad"), ("error", 1, "very bad")) == []


def test_the_note_with_the_operation_is_left_out() -> None:
    note = ("note", 1, "see current operation: x")
    assert check("op // expected-error {{bad}}", ("error", 1, "bad"), note) == []


def test_another_file_is_never_expected() -> None:
    reports: list[Diagnostic] = []
    verifier = DiagnosticVerifier(SourceText(NAME, b"op // expected-error {{bad}}"), reports.append)
    verifier(Diagnostic("error", "model.py", 1, 1, "bad"))
    verifier.finish()
    assert [r.file for r in reports] == ["model.py", NAME]


def test_lines_are_those_of_the_file() -> None:
    assert check("// expected-error@+1 {{bad}}\nop", ("error", 12, "bad"), skipped=10) == []
