"""One name, one thing: no two public classes of the package have the same name.

The emulator of GPUs is a machine of its own, whose modules, functions and instructions are PTX's: its names are apart.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("dialect", "lowering", "python", "tools")
EMULATOR = "lowering/cuda/emulator"


def classes(folders: tuple[str, ...], without: str = "nothing") -> dict[str, list[str]]:
    """The files that define each public class."""
    found = defaultdict[str, list[str]](list)
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    for path in (path for path in paths if (ROOT / without) not in path.parents):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))
    return found


def test_each_class_has_a_name_of_its_own() -> None:
    rest, emulator = classes(FOLDERS, without=EMULATOR), classes((EMULATOR,))
    assert len(rest) > 300
    found = [*rest.items(), *emulator.items()]
    assert {name: paths for name, paths in found if len(paths) > 1} == {}
