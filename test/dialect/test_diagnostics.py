"""Every message of the dialect has a test that provokes it: in a lit file for passes and ops, anywhere for the rest."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Messages that no test can provoke, with the reason.
UNREACHABLE = {
    re.escape("expected balanced brackets, got '") + ".*'": "brackets are checked before they are matched",
    re.escape("expected growth of weights to sink within ")
    + ".*"
    + re.escape(" sweeps, got more"): "each sweep moves growth on",
}


def pattern(node: ast.AST) -> str | None:
    """A regular expression of the texts that a string expression can have."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(re.escape(v.value) if isinstance(v, ast.Constant) else ".*" for v in node.values)
    return None


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and pattern of what looks like a message: ``expected ...``, as they all begin."""
    tree = ast.parse(path.read_text())
    inside = {id(v) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for v in node.values}
    for node in ast.walk(tree):
        found = pattern(node) if id(node) not in inside else None
        if found is not None and "\n" not in found and re.search(r"(^|op\\ )expected\\ ", found):
            yield node.lineno, found


def texts(suffixes: tuple[str, ...], wanted: str = "") -> str:
    """The lines of test files, those that contain a text."""
    files = [p for p in sorted((ROOT / "test").rglob("*")) if p.suffix in suffixes and p != Path(__file__)]
    return "\n".join(line for p in files for line in p.read_text().splitlines() if wanted in line)


LIT = texts((".mlir",))
ALL = texts((".mlir", ".py"))


@pytest.mark.parametrize("folder", ["dialect/ops", "dialect/transforms"])
def test_messages_of_ops_and_passes_have_lit_tests(folder):
    missing = [
        f"{path.name}:{line}: {message}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, message in messages(path)
        if not re.search(message, LIT) and message not in UNREACHABLE
    ]
    assert not missing, "\n".join(missing)


def test_messages_of_the_rest_are_tested():
    missing = [
        f"{path.name}:{line}: {message}"
        for folder in ("", "analysis", "passes", "reports")
        for path in sorted((ROOT / "dialect" / folder).glob("*.py"))
        for line, message in messages(path)
        if not re.search(message, ALL) and not _tested_in_part(message) and message not in UNREACHABLE
    ]
    assert not missing, "\n".join(missing)


def _tested_in_part(message: str) -> bool:
    """Whether a test looks for the longest fixed part of a message; tests escape what is special in their patterns."""
    pieces = [re.sub(r"\\(.)", r"\1", piece) for piece in message.split(".*")]
    longest = max((part for piece in pieces for part in re.split(r"[^\w ',:@-]", piece)), key=len)
    return len(longest) >= 12 and longest.strip() in ALL


def test_there_are_messages():
    assert sum(1 for path in (ROOT / "dialect" / "ops").glob("*.py") for _ in messages(path)) > 50
