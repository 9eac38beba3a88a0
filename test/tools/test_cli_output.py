"""What commands tell: as JSON, quietly, step by step; and paths that begin at home."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.tools import cli, relax_opt
from relaxir.weights import write_safetensors

Json = Callable[..., dict]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    b = rx.Builder()
    with b.function("main"):
        b.output(y=b.matmul(b.input("x", ("n", 4)), b.permute_dims(b.weight("w", (3, 4)))))
    b.build().save(folder / "model.mlir")
    write_safetensors(folder / "raw.safetensors", {"w": np.eye(3, 4, dtype=np.float32)})
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    yield tmp_path
    logger = logging.getLogger("relaxir")
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert cli.run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_command_tells_json_and_more_or_less():
    commands = cli._parser()._subparsers._group_actions[0].choices
    assert {"bisect", "compile", "info", "prepare", "run", "view"} < set(commands)
    for command in commands.values():
        flags = {flag for action in command._actions for flag in action.option_strings}
        assert {"--json", "-q", "--quiet", "-v", "--verbose"} <= flags


def test_a_way_through_in_json(folder: Path, capsys: pytest.CaptureFixture[str]):
    made = told(capsys, "compile", "model.mlir", "-o", "model.relax")
    assert made["output"] == "model.relax"
    assert made["seconds"] > 0
    assert made["entries"]["main"]["inputs"] == {"x": "f32[n, 4]"}
    assert told(capsys, "info", "~/model.relax") == {k: v for k, v in made.items() if k not in ("output", "seconds")}
    assert told(capsys, "info", "model.mlir")["functions"][0]["operations"] == {"permute_dims": 1, "matmul": 1}
    assert told(capsys, "plan", "model.relax")["ranks"][0]["reads"] == 48
    report = told(capsys, "prepare", "model.relax", "raw.safetensors", "-o", "p.safetensors")
    assert report["path"] == "p.safetensors"
    assert report["times"]["compute"] > 0
    assert told(capsys, "verify", "model.relax", "p.safetensors")["verified"] == 1
    call = ["run", "model.relax", "--weights", "p.safetensors", "--random", "--dim", "n=2", "-o", "out.npz"]
    assert told(capsys, *call)["outputs"] == [{"name": "y", "shape": [2, 3], "dtype": "float32"}]
    assert told(capsys, "view", "model.relax", "-o", "view.html")["nodes"]["main"] == 4
    assert told(capsys, "compile", "model.mlir", "--print-pipeline")["pipeline"].startswith("builtin.module(")
    (folder / "bad.mlir").write_text("module {")
    reduced = told(capsys, "reduce", "bad.mlir", "--error", "", "-o", "small.mlir")
    assert reduced["characters"] <= reduced["characters_before"] == 8


def test_quiet_and_verbose(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["compile", "model.mlir", "-o", "model.relax", "-q"]) == 0
    assert cli.run(["prepare", "model.relax", "raw.safetensors", "-o", "p.safetensors", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert cli.run(["info", "model.relax", "-q"]) == 0
    assert capsys.readouterr().out.startswith("entry main")  # that was asked for
    assert cli.run(["prepare", "model.relax", "raw.safetensors", "-o", "q.safetensors", "--verbose"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("relaxir.load: loaded model.relax, code for ")
    assert "relaxir.prepare: prepared w.permute_dims.pack_weight, step 1 of 1" in lines
    assert cli.run(["info", "model.relax"]) == 0  # the next one is silent again
    assert capsys.readouterr().err == ""


def test_warnings_are_lines_of_the_command(tmp_path: Path) -> None:
    """Not of Python, with a place in our sources."""
    call = "%0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>"
    body = f"(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  {call}\n  return %0 : tensor<4xf32>\n}}\n"
    text = f"func.func private @f{body}func.func @main{body}"
    (tmp_path / "recursive.mlir").write_text(text)
    command = [sys.executable, "-m", "relaxir", "compile", "recursive.mlir", "-o", "r.relax"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr.splitlines()
    assert told[0] == "warning: recursive.mlir:1:1: 'func.func' op is recursive, calls of @f are not inlined"
    assert told[1].startswith("error: recursive.mlir:1:1: ")


def test_a_picture_and_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]):
    from xml.etree import ElementTree

    assert cli.run(["view", "model.mlir", "--format", "svg", "-o", "-"]) == 0
    texts = ["".join(e.itertext()) for e in ElementTree.fromstring(capsys.readouterr().out).iter() if e.tag.endswith("}text")]
    assert texts == [
        "@main", "input x f32[n, 4]", "weight w f32[3, 4]", "permute_dims f32[4, 3]", "matmul f32[n, 3]", "result y f32[n, 3]",
    ]  # fmt: skip


def test_large_pictures_have_closed_modules():
    from relaxir.inspection.graph import FunctionGraph, GraphNode
    from relaxir.inspection.svg import svg_text

    nodes = [GraphNode("exp", f"layers.{i // 100}", "f32[2]", 8, 2, "", "", "", (i - 1,) if i else ()) for i in range(1000)]
    text = svg_text([FunctionGraph("main", False, None, tuple(nodes))])
    assert text.count(">100 nodes<") == 9
    assert text.count(">exp<") == 100


def test_notebooks_show_the_page(folder: Path):
    shown = rx.Module.load("model.mlir")._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<script" not in shown  # but escaped, in the frame's own page
    assert "sandbox=" in shown


#: Names that would steer a terminal, or look like lines of ours.
STEERING = r"""
func.func @"f\1B[31mRED\0D\0Aerror: fake"(%x: tensor<4xf32> {relax.name = "x\1B]0;title\07\0Aforged"})
    -> (tensor<4xf32> {relax.name = "y\C2\9B\E2\80\AE"}) attributes {relax.num_input = 1 : i64} {
  %0 = "relax.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_names_do_not_steer_the_terminal(folder: Path, capfd: pytest.CaptureFixture[str]):
    (folder / "named.mlir").write_text(STEERING)
    for code, *arguments in (
        (0, "info", "named.mlir"),
        (0, "compile", "named.mlir", "-o", "named.relax", "-v"),
        (0, "run", "named.relax", "--random", "-o", "out.npz"),
        (0, "compare", "named.mlir", "--values"),
        (0, "profile", "named.relax", "--random", "--seconds", "0.01"),
        (0, "view", "named.mlir", "-o", "named.html"),
        (1, "run", "named.relax", "-o", "out.npz"),
    ):
        assert cli.run(arguments) == code
        told = "".join(capfd.readouterr())
        assert {c for c in told if not c.isprintable()} <= {"\n"}, arguments
        assert [line for line in told.splitlines() if line.startswith(("error: fake", "forged"))] == [], arguments
        assert r"f\x1b[31mRED\r" in told or r"x\x1b]0;title\x07" in told or r"y\x9b\u202e" in told
    assert cli.run(["info", "named.mlir", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["functions"][0]["name"] == "f\x1b[31mRED\r\nerror: fake"


def test_relax_opt_shows_names_as_they_are_written(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "named.mlir").write_text(STEERING.replace("relax.exp", "relax.exp\x1b").replace("@", "\x1b@"))
    assert relax_opt.run(["named.mlir"]) == 1
    assert "\x1b" not in capsys.readouterr().err
    (folder / "named.mlir").write_text(STEERING)
    assert relax_opt.run(["named.mlir", "--emit=script"]) == 0
    assert r"func @f\x1b[31mRED\r\nerror: fake(" in capsys.readouterr().out
    assert relax_opt.run(["named.mlir", '--relax-inline=functions={"a\\1B\\0Aerror: fake"}']) == 1
    assert "got @a\\x1b\n  error: fake" in capsys.readouterr().err
