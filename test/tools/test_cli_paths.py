"""Commands write over nothing that they read, and no output over another: what a line refuses leaves all files as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import relaxir as rx
from relaxir.tools import cli

LOST = "expected another place to write to than what is read"
TWICE = "expected two places to write to"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in all forms, with weights, prepared ones and an input."""
    folder = tmp_path_factory.mktemp("files")
    model = torch.nn.Linear(4, 3).eval()
    program = torch.export.export(model, (torch.randn(2, 4),))
    rx.save_program(program, folder / "m.pt2")
    rx.save_weights(program, folder / "w.safetensors")
    module = rx.from_torch(program)
    module.save(folder / "m.mlir")
    executable = rx.compile(module)
    executable.save(folder / "m.relax")
    executable.prepare(folder / "w.safetensors", folder / "p.safetensors")
    np.save(folder / "x.npy", np.ones((2, 4), np.float32))
    (folder / "link.mlir").symlink_to("m.mlir")
    os.link(folder / "x.npy", folder / "hard.npy")
    return folder


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import m.pt2 -o m.pt2", LOST),
        ("import main=m.pt2 -o ./m.pt2", LOST),
        ("import m.pt2 -o y.mlir --weights m.pt2", LOST),
        ("import m.pt2 -o y.mlir --weights y.mlir", TWICE),
        ("import m.pt2 -o y.mlir --weights ./y.mlir", TWICE),
        ("compile m.mlir -o m.mlir", LOST),
        ("compile m.relax/module.mlir -o m.relax", LOST),
        ("compile m.mlir -o y.relax --dump y.relax", TWICE),
        ("compile m.mlir --checkpoint w.safetensors -o w.safetensors", LOST),
        ("prepare m.relax w.safetensors -o w.safetensors", LOST),
        ("prepare m.relax w.safetensors -o m.relax/module.so", LOST),
        ("run m.relax --weights p.safetensors --random -o p.safetensors", LOST),
        ("run m.relax --weights p.safetensors --input input=x.npy -o x.npy", LOST),
        ("run m.relax --weights p.safetensors --input input=x.npy -o hard.npy", LOST),
        ("profile m.mlir --random --seconds 0.1 -o m.mlir", LOST),
        ("profile m.relax --random --seconds 0.1 -o m.relax/module.mlir", LOST),
        ("profile m.relax --random --seconds 0.1 -o a.html --trace a.html", TWICE),
        ("profile m.relax --weights p.safetensors --random --seconds 0.1 --trace p.safetensors", LOST),
        ("view m.relax -o m.relax/manifest.json", LOST),
        ("view m.mlir -o link.mlir", LOST),
        ("reduce m.mlir --error x -o m.mlir", LOST),
        ("tune m.mlir --target cuda:sm_80 --device emulated -o m.mlir", LOST),
    ],
)
def test_what_would_be_lost(
    line: str, message: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(files, folder, symlinks=True)
    (folder / "hard.npy").unlink()
    os.link(folder / "x.npy", folder / "hard.npy")
    monkeypatch.chdir(folder)
    before = _contents(folder)
    assert cli.run(line.split()) == 1
    assert message in capsys.readouterr().err
    assert _contents(folder) == before


@pytest.mark.parametrize(
    "line",
    [
        "prepare m.relax w.safetensors -o m.relax/p.safetensors",
        "view m.relax -o m.relax/view.html",
        "view m.mlir --format svg -o -",
        "view m.mlir -o /dev/null",
        "compile m.mlir -o m.relax",
    ],
)
def test_what_loses_nothing(line: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(files, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    assert cli.run(line.split()) == 0


def test_an_input_elsewhere_of_the_output_s_name(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home folder in a path is the same as its place, wherever a path is."""
    shutil.copytree(files, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setenv("HOME", str(tmp_path / "copy"))
    assert cli.run(["view", "m.mlir", "-o", "~/m.mlir"]) == 1
    assert cli.run(["view", "m.mlir", "-o", str(tmp_path / "m.mlir")]) == 0
    line = ["run", "~/m.relax", "--weights", "~/p.safetensors", "--input", "input=~/x.npy", "-o", "~/out.npz"]
    assert cli.run(line) == 0
    assert (tmp_path / "copy" / "out.npz").exists()


@pytest.mark.parametrize(
    "line",
    [
        "profile m.mlir --random --trace -",
        "import m.pt2 -o y.mlir --weights -",
        "compile m.mlir -o y.relax --dump -",
        "view m.mlir -o - --json",
    ],
)
def test_what_goes_to_no_standard_output(
    line: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(files, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    assert cli.run(line.split()) == 2
    assert not Path("-").exists()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "begin"), [("v.svg", "<svg"), ("v.dot", "digraph"), ("v.gv", "digraph"), ("v.json", "{"), ("v.html", "<!")]
)
def test_a_view_s_name_says_its_format(
    name: str, begin: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["view", str(files / "m.mlir"), "-o", name]) == 0
    assert begin in Path(name).read_text()[:200]


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_paths_with_a_sign_of_equality(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(files / "m.pt2", "a=b.pt2")
    for path in ("a=b.pt2", "./a=b.pt2", "main=./a=b.pt2"):
        assert cli.run(["import", path, "-o", "y.mlir"]) == 0
    assert cli.run(["import", "a=b.pt2", "-o", "a=b.pt2"]) == 1


def test_standard_input_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["view", "-", "-", "-o", "x.html"]) == 1
    assert "expected '-', standard input, once, got it twice" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"PK no archive", b"text"])
def test_what_is_no_program_is_said_in_one_line(content: bytes, tmp_path: Path) -> None:
    """In a process of its own: torch's logs have the standard errors that there were when it was imported."""
    (tmp_path / "m.pt2").write_bytes(content)
    command = [sys.executable, "-m", "relaxir", "import", "m.pt2", "-o", "y.mlir"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: 'm.pt2': expected a program saved by torch.export.save, got ")
    assert done.stderr.count("\n") == 1
