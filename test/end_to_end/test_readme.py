"""The README is true: its code blocks run as they stand, its links lead somewhere, its commands exist."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import relaxir as rx
from relaxir.tools import cli
from relaxir.weights import Checkpoint

ROOT = Path(__file__).parents[2]
READMES = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("*/README.md"))


def blocks(language: str, path: Path = ROOT / "README.md") -> list[str]:
    """The fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


def execute(code: str) -> str:
    """Runs Python as a script of its own would run, in this process (importing torch again takes seconds); what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run_names(code)
    return out.getvalue()


def run_names(code: str) -> dict[str, Any]:
    """Runs Python in this process; the names that it leaves."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "README.md", "exec"), names)
    return names


def type_in(command: str) -> str:
    """Runs a command of the console, ``relaxir`` in this process; what it prints."""
    name, *arguments = shlex.split(command)
    if name != "relaxir":
        path = Path(sys.executable).parent / name
        return subprocess.run([path, *arguments], capture_output=True, text=True, check=True).stdout
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.run(arguments) == 0
    return out.getvalue()


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


def test_first_example_and_commands():
    assert "prepared weights: 1" in execute(blocks("python")[0])
    assert {"model.mlir", "model.safetensors", "model.prepared.safetensors"} <= set(os.listdir())
    (session,) = blocks("console")
    commands = [line.removeprefix("$ ") for line in session.splitlines()]
    assert [c.split()[1] for c in commands[:5]] == ["compile", "info", "prepare", "verify", "run"]
    outputs = [type_in(command) for command in commands]
    assert "symbols: n >= 0" in outputs[1]
    assert outputs[4] == "y: [16, 256] float32\nwrote out.npz\n"
    assert "@main_transform_params" in outputs[5]
    assert outputs[6].startswith("prepare on 16 ranks, 1 job each: ")
    (command, *shown) = blocks("text")[0].splitlines()
    name, *arguments = shlex.split(command.removeprefix("$ "))
    told = subprocess.run([Path(sys.executable).parent / name, *arguments], capture_output=True, text=True, check=True).stderr
    assert told.splitlines() == shown


def test_example_of_a_hugging_face_folder():
    import transformers

    config = transformers.Qwen2Config(
        vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1
    )
    model = transformers.Qwen2ForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained("path/to/hf-folder", max_shard_size="10KB")
    assert os.path.exists("path/to/hf-folder/model.safetensors.index.json")
    found = run_names(blocks("python")[1])
    assert found["tokens"].shape == (1, 67)
    assert found["model"].executable().report


def test_pytorch_example():
    pytest.importorskip("torch")
    execute(blocks("python")[2])
    (command,) = re.findall(r"`(relaxir import [^`]+)`", (ROOT / "README.md").read_text())
    assert "@main" in type_in(command)
    assert {"mlp.mlir", "mlp.safetensors"} <= set(os.listdir())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's older exporter, which needs no package of its own
def test_onnx_example():
    program, model = blocks("python")[2:4]
    execute(program + model)


def test_compiling_by_torch():
    lines = execute(blocks("python")[4]).splitlines()[-2:]
    for line, sizes in zip(lines, ("", r", sizes s[0-9]+"), strict=True):
        assert re.fullmatch(rf"graph [0-9]+/[01]( \(.*\))? runs in relaxir: 5 operators{sizes}", line)


def test_generation_example():
    pytest.importorskip("transformers")
    execute(blocks("python")[5])
    weights = Checkpoint("llama.safetensors")
    assert "model.lm_head.weight" in weights
    assert not [name for name in weights if "keys" in name]


def test_example_of_eight_bits():
    execute(blocks("python")[6])


def test_api_tour():
    lines = execute(blocks("python", ROOT / "python/README.md")[0]).splitlines()
    assert lines[0] == "func @main(%x: f32[n, 4]) -> (f32[n, 4]) {"
    assert "('n',)" in lines
    assert "2., 4." in lines[-2]
    assert re.match(
        r"README\.md:\d+:\d+: 'relax.matmul' op expected equal inner dimensions, got \[n, 4\] and \[n, 4\]$", lines[-1]
    )


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
