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

import numpy as np
import pytest
import torch

import relaxir as rx
from relaxir.runtime.threads import find_runtime
from relaxir.tools import cli
from relaxir.weights import Checkpoint
from support.c_compiler import c_compiler

ROOT = Path(__file__).parents[2]
FOLDERS = ("dialect", "lowering", "python", "test", "tools")
READMES = sorted([*ROOT.glob("*.md"), *(p for folder in FOLDERS for p in (ROOT / folder).rglob("README.md"))])
PYTHON, FRONTEND = ROOT / "python/README.md", ROOT / "python/frontend/README.md"
WEIGHTS, RUNTIME = ROOT / "python/weights/README.md", ROOT / "python/runtime/README.md"


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
    found = run_names(blocks("python")[0])
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        rx.from_torch(found["program"]).run("relax-pack-weights{tile=32},relax-lift-transform-params").show()
    assert shown.getvalue() == blocks("text")[0]
    assert {"mlp.pt2", "mlp.safetensors", "mlp.prepared.safetensors", "mlp.relax"} <= set(os.listdir())
    (session,) = blocks("console")
    commands = [line.removeprefix("$ ") for line in session.splitlines()]
    assert [c.split()[1] for c in commands[:6]] == ["import", "compile", "info", "prepare", "verify", "run"]
    outputs = [type_in(command) for command in commands]
    assert "symbols: batch >= 0" in outputs[2]
    assert outputs[5] == "output0: [16, 64] float32\nwrote out.npz\n"
    assert "@main_transform_params" in outputs[6]
    assert outputs[7].startswith("prepare on 16 ranks, 1 job each: ")


def test_example_of_a_hugging_face_folder():
    import transformers

    config = transformers.Qwen2Config(
        vocab_size=48, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1
    )
    model = transformers.Qwen2ForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained("path/to/hf-folder", max_shard_size="10KB")
    assert os.path.exists("path/to/hf-folder/model.safetensors.index.json")
    found = run_names(blocks("python")[3])
    assert found["tokens"].shape == (1, 67)
    assert found["model"].executable().report


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's older exporter, which needs no package of its own
def test_onnx_example():
    execute(blocks("python")[2])


def test_compiling_by_torch():
    lines = execute(blocks("python")[1]).splitlines()[-2:]
    for line, sizes in zip(lines, ("", r", sizes s[0-9]+"), strict=True):
        assert re.fullmatch(rf"graph [0-9]+/[01]( \(.*\))? runs in relaxir: 5 operators{sizes}", line)


def test_builder_example_and_its_report():
    assert "prepared weights: 1" in execute(blocks("python", PYTHON)[0])
    (command, *shown) = blocks("text", PYTHON)[0].splitlines()
    name, *arguments = shlex.split(command.removeprefix("$ "))
    told = subprocess.run([Path(sys.executable).parent / name, *arguments], capture_output=True, text=True, check=True).stderr
    assert told.splitlines() == shown


def test_api_tour():
    lines = execute(blocks("python", PYTHON)[1]).splitlines()
    assert lines[0] == "func @main(%x: f32[n, 4]) -> (f32[n, 4]) {"
    assert "('n',)" in lines
    assert "2., 4." in lines[-2]
    assert re.match(
        r"README\.md:\d+:\d+: 'relax.matmul' op expected equal inner dimensions, got \[n, 4\] and \[n, 4\]$", lines[-1]
    )


def test_layers_example():
    wanted = [f"model.layers.{i}.{part}" for i in range(2) for part in ("weight", "bias")]
    assert execute(blocks("python", PYTHON)[2]).split() == wanted


def test_example_of_eight_bits():
    execute(blocks("python", PYTHON)[3])


def test_weights_example():
    assert "predicted peak" in execute(blocks("python", WEIGHTS)[0])


def test_generation_example():
    """And with a prompt of one token."""
    found = run_names(blocks("python", RUNTIME)[0])
    exe, one, generator = found["exe"], found["one"], found["Generator"](found["generator"].model, length=64)
    exe.reset_state()
    with torch.no_grad():
        torch.testing.assert_close(exe(one, entry="prefill"), generator(one), rtol=1e-4, atol=1e-4)
    weights = Checkpoint("llama.safetensors")
    assert "model.lm_head.weight" in weights
    assert not [name for name in weights if "keys" in name]


def test_deployment_from_python_and_c():
    """The artifact of the first example of weights, by both."""
    found = run_names(blocks("python", WEIGHTS)[0])
    weight = np.random.default_rng(0).standard_normal((256, 64), np.float32)
    found["exe"].prepare({"fc.weight": weight}, "prepared.safetensors")
    found["exe"].save("model.relax")
    y = run_names(blocks("python", RUNTIME)[1])["y"]
    np.testing.assert_allclose(y, np.ones((3, 64), np.float32) @ weight.T, rtol=1e-4, atol=1e-4)
    Path("main.c").write_text(blocks("c", RUNTIME)[0])
    (command, run) = blocks("sh", RUNTIME)[0].strip().split(" && ")
    command = command.replace("cc ", f"{c_compiler()} ", 1)
    subprocess.run(command, shell=True, check=True, env={**os.environ, "OMP": str(find_runtime())})
    done = subprocess.run([run], check=True, capture_output=True, text=True)
    assert done.stdout == f"0 {y[0, 0]:g}\n"


def test_gpu_example():
    execute(blocks("python", RUNTIME)[2])


def test_dialect_example_parses():
    (text,) = blocks("mlir", ROOT / "dialect/README.md")
    assert list(rx.Module.parse(text).functions) == ["main"]


@pytest.mark.parametrize("path", READMES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path):
    links = [link for link in re.findall(r"\]\(([^)]+)\)", path.read_text()) if "://" not in link]
    assert not [link for link in links if not (path.parent / link.split("#")[0]).exists()]


@pytest.mark.parametrize("path", [p for p in READMES if p.name == "README.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_named_files_exist(path: Path):
    """Names of files and folders in backquotes, as ``ops/`` or ``op.py``, are true, relative to a folder around the file."""
    names = re.findall(r"`([\w./]+(?:\.py|\.md|/))`", path.read_text())
    around = [p for p in path.parents if p.is_relative_to(ROOT)]
    assert not [n for n in names if not any((p / n).exists() for p in around)]
