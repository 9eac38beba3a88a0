"""Who may import whom: arrows point dialect <- lowering <- python <- tools, and running an artifact needs no MLIR."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What each folder must not import from.
FORBIDDEN = {"dialect": ("lowering", "python", "tools"), "lowering": ("python", "tools"), "python": ("tools",), "tools": ()}
PACKAGES = {"dialect": "relaxir.dialect", "lowering": "relaxir.lowering", "python": "relaxir", "tools": "relaxir.tools"}


def imports(path: Path, package: str) -> Iterator[str]:
    """Absolute names of the modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def files() -> Iterator[tuple[str, Path, str]]:
    for folder, package in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield folder, path, ".".join([package, *path.parent.relative_to(ROOT / folder).parts])


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
        for node in ast.walk(ast.parse(path.read_text()))
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
