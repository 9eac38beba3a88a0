"""The README is true: its code blocks run as they stand, its links lead somewhere, its commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import relaxir as rx

ROOT = Path(__file__).parents[2]
READMES = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("*/README.md"))


def blocks(language: str, path: Path = ROOT / "README.md") -> list[str]:
    """The fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path) -> str:
    """Runs a command in a folder and returns what it prints."""
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"PATH": scripts})
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the first example has run."""
    path = tmp_path_factory.mktemp("readme")
    assert "prepared weights: 1" in run([sys.executable, "-c", blocks("python")[0]], path)
    return path


def test_first_example_writes_what_the_commands_read(folder: Path):
    assert {"model.mlir", "model.safetensors", "model.prepared.safetensors"} <= set(os.listdir(folder))


def test_commands(folder: Path):
    (session,) = blocks("console")
    commands = [line.removeprefix("$ ") for line in session.splitlines()]
    assert [c.split()[1] for c in commands[:4]] == ["compile", "info", "prepare", "run"]
    outputs = [run(shlex.split(command), folder) for command in commands]
    assert "symbols: n >= 1" in outputs[1]
    assert outputs[3] == "y: [16, 256] float32\nwrote out.npz\n"
    assert "@main_transform_params" in outputs[4]


def test_pytorch_example(tmp_path: Path):
    pytest.importorskip("torch")
    run([sys.executable, "-c", blocks("python")[1]], tmp_path)
    (command,) = re.findall(r"`(relaxir import [^`]+)`", (ROOT / "README.md").read_text())
    out = run(shlex.split(command), tmp_path)
    assert "@main" in out
    assert {"mlp.mlir", "mlp.safetensors"} <= set(os.listdir(tmp_path))


def test_api_tour(tmp_path: Path):
    out = run([sys.executable, "-c", blocks("python", ROOT / "python/README.md")[0]], tmp_path)
    lines = out.splitlines()
    assert lines[0] == "func @main(%x: f32[n, 4]) -> (f32[n, 4]) {"
    assert "('n',)" in lines
    assert "2., 4." in lines[-2]
    assert lines[-1].endswith("'relax.matmul' op expected equal inner dimensions, got [n, 4] and [n, 4]")


def test_dialect_example_parses():
    (text,) = blocks("mlir", ROOT / "dialect/README.md")
    assert list(rx.Module.parse(text).functions) == ["main"]


@pytest.mark.parametrize("path", READMES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path):
    links = [link for link in re.findall(r"\]\(([^)]+)\)", path.read_text()) if "://" not in link]
    assert not [link for link in links if not (path.parent / link.split("#")[0]).exists()]


@pytest.mark.parametrize("path", [p for p in READMES if p.name == "README.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_named_files_exist(path: Path):
    """Names of files and folders in backquotes, as ``ops/`` or ``op.py``, are true, relative to the file or to the root."""
    names = re.findall(r"`([\w./]+(?:\.py|\.md|/))`", path.read_text())
    missing = [n for n in names if not (path.parent / n).exists() and not (ROOT / n).exists()]
    assert not missing
