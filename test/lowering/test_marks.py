"""Lowering's own attributes have one definition each, in ``marks.py``, which names who writes and who reads them."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaxir.dialect import ops  # noqa: F401  fills the dialect
from relaxir.dialect.relax import Relax
from relaxir.lowering import marks

LOWERING = Path(__file__).resolve().parents[2] / "lowering"
SOURCES = {path.relative_to(LOWERING).with_suffix("").as_posix(): path for path in sorted(LOWERING.rglob("*.py"))}
ATTRIBUTE = re.compile(r"(relax|bufferization)\.\w+")
#: Operations, not attributes.
MLIR_OPS = {"bufferization.alloc_tensor", "bufferization.materialize_in_destination", "bufferization.to_tensor"}
NAMES = {name: getattr(marks, name) for name in marks.__all__ if isinstance(getattr(marks, name), str)}


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """What a file's code consists of."""
    return list(ast.walk(ast.parse(path.read_text())))


def strings(path: Path) -> Iterator[str]:
    """The strings of a file's code that are no documentation."""
    documentation = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


@functools.cache
def imported(path: Path) -> set[str]:
    """The marks that a file imports."""
    imports = [n for n in nodes(path) if isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[-1] == "marks"]
    return {alias.name for node in imports for alias in node.names if alias.name in NAMES}


def documented(name: str) -> tuple[set[str], set[str]]:
    """The files that write and that read a mark, by its comment."""
    text = (LOWERING / "marks.py").read_text()
    (comment,) = re.findall(rf'((?:#:.*\n)+){name} = "', text)
    comment = re.sub(r"\n#:", "", comment)
    writers, readers = re.findall(r"Written by (.*?); read by (.*?)\.(?:\s|$)", comment)[0]
    return set(re.split(r",\s*", writers)), set(re.split(r",\s*", readers)) - {"MLIR"}


def test_no_attribute_is_named_outside_of_marks() -> None:
    operations = MLIR_OPS | {op.OPERATION_NAME for op in Relax.operations}
    named = {(s, file) for file, path in SOURCES.items() if file != "marks" for s in strings(path) if ATTRIBUTE.fullmatch(s)}
    wrong = sorted(pair for pair in named if pair[0] not in operations)
    assert not wrong, f"define these in lowering/marks.py, or import dialect's definition: {wrong}"


def test_every_mark_has_a_name_of_its_own() -> None:
    assert len(set(NAMES.values())) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_comments_name_writers_and_readers(name: str) -> None:
    writers, readers = documented(name)
    assert writers | readers == {file for file, path in SOURCES.items() if name in imported(path)}


@pytest.mark.parametrize("name", NAMES)
def test_a_mark_has_one_writer(name: str) -> None:
    """But a plan: those of contractions, of other loops, and of products on GPUs are different lines."""
    assert len(documented(name)[0]) == (3 if name == "PLAN" else 1)
