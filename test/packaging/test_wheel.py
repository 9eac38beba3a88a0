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


#: A wheel of the folder it runs in, as pip has it made, which starts three processes for it.
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


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
    subprocess.run([sys.executable, "-c", BUILD, out], cwd=source, check=True, capture_output=True, text=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts' folder of a new environment with only the wheel; its dependencies are those of the running one."""
    home = tmp_path_factory.mktemp("env")
    venv.create(home, with_pip=False)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    pip("--python", scripts / "python", "install", "--no-compile", "--no-deps", "--no-index", wheel)
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
    assert {"relaxir/py.typed", "relaxir/dialect/passes/upstream_passes.txt"} <= names
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_tools_run_from_the_wheel(installed: Path) -> None:
    assert output(installed / "relax-opt", "--version").startswith("relax-opt (relaxir) ")
    assert "relax-lift-transform-params" in output(installed / "relax-opt", "--list-passes")


#: Imports what imports most, then everything else.
IMPORTS = """
import importlib, sys
import relaxir.transformers
print("and then", file=sys.stderr)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(relaxir.__file__)
"""


@pytest.fixture(scope="module")
def imported(installed: Path) -> subprocess.CompletedProcess[str]:
    """A new interpreter that imports every module."""
    names = sorted(p.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for p in modules())
    command = [str(installed / "python"), "-c", IMPORTS, *names]
    return subprocess.run(command, cwd="/", check=False, capture_output=True, text=True)


def test_every_module_imports_from_the_wheel(installed: Path, imported: subprocess.CompletedProcess[str]) -> None:
    assert imported.returncode == 0, imported.stderr
    (line,) = imported.stdout.splitlines()
    assert Path(line).is_relative_to(installed.parent)


def test_the_import_of_transformers_says_nothing(imported: subprocess.CompletedProcess[str]) -> None:
    """Whatever the packages under it log of themselves."""
    assert imported.stderr.startswith("and then\n")


@pytest.fixture
def bare(wheel: Path, tmp_path: Path) -> Path:
    """The scripts' folder of an environment with the wheel, numpy, ml-dtypes and OpenMP: as README's Deploy installs it."""
    venv.create(tmp_path / "bare", with_pip=False)
    scripts = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin")
    pip("--python", scripts / "python", "install", "--no-compile", "--no-deps", "--no-index", wheel)
    (packages,) = (tmp_path / "bare").glob("**/site-packages")
    for name in ("numpy", "numpy.libs", "ml_dtypes", "cmeel", "cmeel.prefix"):
        found = next((Path(p) / name for p in site.getsitepackages() if (Path(p) / name).exists()), None)
        if found is not None:
            (packages / name).symlink_to(found)
    return scripts


def test_an_artifact_runs_without_mlir_and_llvm(bare: Path, tmp_path: Path) -> None:
    import numpy as np

    import relaxir as rx
    from relaxir.weights import write_safetensors

    b = rx.Builder()
    with b.function("main"):
        b.output(y=b.matmul(b.input("x", ("n", 4)), b.permute_dims(b.weight("w", (3, 4)))))
    rx.compile(b.build()).save(tmp_path / "model.relax")
    write_safetensors(tmp_path / "w.safetensors", {"w": np.eye(3, 4, dtype=np.float32)})
    np.save(tmp_path / "x.npy", np.arange(8, dtype=np.float32).reshape(2, 4))
    relaxir, model, prepared, out = bare / "relaxir", tmp_path / "model.relax", tmp_path / "p.safetensors", tmp_path / "out.npz"
    output(relaxir, "info", model)
    output(relaxir, "prepare", model, tmp_path / "w.safetensors", "-o", prepared)
    output(relaxir, "verify", model, prepared)
    output(relaxir, "run", model, "--weights", prepared, "--input", f"x={tmp_path / 'x.npy'}", "-o", out)
    np.testing.assert_array_equal(np.load(out)["y"], [[0, 1, 2], [4, 5, 6]])
    missing = "import importlib.util as u; print([n for n in ('torch_mlir', 'llvmlite', 'torch', 'rich') if u.find_spec(n)])"
    assert output(bare / "python", "-c", missing).strip() == "[]"
    refused = subprocess.run([bare / "relaxir", "compile", "-o", "x", os.devnull], check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "needs the package torch-mlir, which is not installed" in refused.stderr
