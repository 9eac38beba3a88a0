"""One name, one thing: no two public classes of the package have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("dialect", "lowering", "python", "tools")


def classes(folders: tuple[str, ...]) -> dict[str, list[str]]:
    """The files that define each public class."""
    found = defaultdict[str, list[str]](list)
    for path in (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))
    return found


def test_each_class_has_a_name_of_its_own() -> None:
    found = classes(FOLDERS)
    assert len(found) > 300
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
