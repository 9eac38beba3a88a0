"""The wheel: it holds every module of the checkout, installs into an empty environment, and its tools run there."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
#: Folder of the checkout by the package it becomes; their sub-folders follow.
FOLDERS = {ROOT / folder: package for package, folder in CONFIG["package-dir"].items()}


def modules() -> dict[str, Path]:
    """Paths in the wheel, and in the checkout, of every Python file."""
    found: dict[str, Path] = {}
    for folder, package in FOLDERS.items():
        for path in folder.rglob("*.py"):
            found["/".join([*package.split("."), *path.relative_to(folder).parts])] = path
    return found


def test_pyproject_lists_every_package_folder() -> None:
    packages = {".".join(Path(path).parent.parts) for path in modules()}
    assert sorted(packages) == sorted(CONFIG["packages"])
    assert CONFIG["packages"] == sorted(CONFIG["packages"])


def test_every_package_folder_has_an_init() -> None:
    folders = {path.parent for path in modules().values()}
    assert [str(f.relative_to(ROOT)) for f in sorted(folders) if not (f / "__init__.py").exists()] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building in the checkout would take old files from build/ along."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for folder in FOLDERS:
        shutil.copytree(folder, source / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", out, source)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts' folder of a new environment with only the wheel; its dependencies are those of the running one."""
    home = tmp_path_factory.mktemp("env")
    venv.create(home, with_pip=False)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    pip("--python", scripts / "python", "install", "--no-deps", "--no-index", wheel)
    (packages,) = home.glob("**/site-packages")
    # A .pth file adds the folder but not the .pth files in it, so the editable install there stays out of sight.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return scripts


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def output(*command: object) -> str:
    """What a command prints, run outside of the checkout."""
    done = subprocess.run([str(c) for c in command], cwd="/", check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_holds_every_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert sorted(set(modules()) - names) == []
    assert {n for n in names if n.endswith(".py")} == set(modules())
    assert {"relaxir/py.typed", "relaxir/tools/upstream_passes.txt"} <= names
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_tools_run_from_the_wheel(installed: Path) -> None:
    assert output(installed / "relax-opt", "--version").startswith("relax-opt (relaxir) ")
    assert "relax-lift-transform-params" in output(installed / "relax-opt", "--list-passes")


def test_every_module_imports_from_the_wheel(installed: Path) -> None:
    names = sorted(p.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for p in modules())
    code = "import importlib, sys; [importlib.import_module(n) for n in sys.argv[1:]]; import relaxir; print(relaxir.__file__)"
    imported = output(installed / "python", "-c", code, *names).strip()
    assert Path(imported).is_relative_to(installed.parent)
