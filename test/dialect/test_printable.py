"""What terminals get to see of names."""

from __future__ import annotations

import pytest

from relaxir.dialect.errors import RelaxError, RelaxWarning
from relaxir.dialect.printable import joined_lines, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fc.weight", "fc.weight"),
        ("a\x1b[31m\r\x07\x00\x7f", r"a\x1b[31m\r\x07\x00\x7f"),
        ("a\tb\nc", "a\tb\\nc"),
        ("\x9b1m \u202e \u2066 \u200b \ufeff \u2028", r"\x9b1m \u202e \u2066 \u200b \ufeff \u2028"),
        (
            "größe 重み وزن\u200f \U0001f469\u200d\U0001f680 no\xa0break",
            "größe 重み وزن\u200f \U0001f469\u200d\U0001f680 no\xa0break",
        ),
        ("bytes \udcff of a file's name, \ue000", "bytes \udcff of a file's name, \ue000"),
    ],
)
def test_printable(text: str, shown: str):
    assert printable(text) == shown
    assert printable(shown) == shown


def test_lines():
    assert printable("a\r\nb", lines=True) == "a\\r\nb"
    assert joined_lines(["a\nb", "c"]) == "a\\nb\nc"


@pytest.mark.parametrize("kind", [RelaxError, RelaxWarning])
def test_errors_and_warnings(kind: type[RelaxError] | type[RelaxWarning]):
    error = kind("expected 'x\x1b[31m',\ngot more", "a\x1b\n.mlir:1:1")
    assert str(error) == "a\\x1b\\n.mlir:1:1: expected 'x\\x1b[31m',\ngot more"
