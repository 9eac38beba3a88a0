"""Who may import whom: arrows point dialect <- lowering <- python <- tools, and running an artifact needs no MLIR."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What each folder must not import from.
FORBIDDEN = {"dialect": ("lowering", "python", "tools"), "lowering": ("python", "tools"), "python": ("tools",), "tools": ()}
PACKAGES = {"dialect": "relaxir.dialect", "lowering": "relaxir.lowering", "python": "relaxir", "tools": "relaxir.tools"}


@functools.cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a file, wherever in it."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path: Path, package: str) -> Iterator[str]:
    """Absolute names of the modules that a file imports."""
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            parents = package.split(".")
            base = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def files() -> Iterator[tuple[str, Path, str]]:
    for folder, package in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield folder, path, ".".join([package, *path.parent.relative_to(ROOT / folder).parts])


def module_name(path: Path, package: str) -> str:
    return package if path.stem == "__init__" else f"{package}.{path.stem}"


def circles(arrows: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Groups of modules each of which imports the others, directly or not: what is left when all that can go first has gone."""
    left = dict(arrows)
    while free := [m for m, wanted in left.items() if not left.keys() & wanted]:
        for module in free:
            del left[module]
    found: list[list[str]] = []
    for module in left:
        ring = sorted(m for m in left if m in reached(module, left) and module in reached(m, left))
        if ring and ring not in found:
            found.append(ring)
    return found


def reached(module: str, arrows: Mapping[str, Collection[str]]) -> set[str]:
    found, pending = set[str](), [module]
    while pending:
        new = set(arrows.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return found


def test_no_modules_import_each_other() -> None:
    """Imports for types alone, and inside of functions, count: what needs each other is one thing, or has a third one in it.

    Packages' own files do not: they show what is in their modules.
    """
    known = {module_name(path, package): (path, package) for _, path, package in files() if path.stem != "__init__"}
    arrows: dict[str, set[str]] = {}
    for module, (path, package) in known.items():
        named = {n for name in imports(path, package) for n in (name, name.rpartition(".")[0])}
        arrows[module] = named & known.keys()
    assert circles(arrows) == []


def test_circles_are_found() -> None:
    arrows = {"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": [], "e": ["a"]}
    assert circles(arrows) == [["b", "c"]]


def folder_of(module: str) -> str | None:
    """The checkout's folder that a module of relaxir is in."""
    for folder in ("dialect", "lowering", "tools"):
        if module == f"relaxir.{folder}" or module.startswith(f"relaxir.{folder}."):
            return folder
    return "python" if module == "relaxir" or module.startswith("relaxir.") else None


def test_arrows_point_one_way() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder, path, package in files()
        for name in imports(path, package)
        if folder_of(name) in FORBIDDEN[folder]
    ]
    assert wrong == []


def test_only_one_module_names_the_bindings() -> None:
    found = {
        str(p.relative_to(ROOT)) for _, p, package in files() for n in imports(p, package) if n.split(".")[0] == "torch_mlir"
    }
    assert found == {"dialect/bindings.py"}


def test_imports_between_folders_are_relative() -> None:
    absolute = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for _, path, _ in files()
        for node in statements(path)
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "relaxir"
    ]
    assert absolute == []


@pytest.mark.parametrize(
    "statement",
    [
        "import relaxir",
        "import relaxir.tools",
        "from relaxir import RelaxError, load",
        "from relaxir.dialect import dtypes, symbolic",
    ],
)
def test_no_mlir_and_no_torch(statement: str) -> None:
    code = f"import sys; {statement}; print([m for m in ('torch_mlir', 'torch', 'llvmlite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
