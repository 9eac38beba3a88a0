"""``relaxir bench``: calls in turns beside other programs, and each mistake."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.profiling import turns
from relaxir.tools import cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    onnx = pytest.importorskip("onnx")
    path = tmp_path_factory.mktemp("bench")
    layer = torch.nn.Linear(8, 4).eval()
    torch.export.save(torch.export.export(layer, (torch.randn(3, 8),)), path / "model.pt2")
    rx.from_torch(str(path / "model.pt2")).save(path / "model.mlir")
    weights = [onnx.numpy_helper.from_array(t.detach().numpy(), n) for n, t in (("w", layer.weight), ("b", layer.bias))]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)], "g",
        [value("x", 1, [3, 8])], [value("y", 1, [3, 4])], weights,
    )  # fmt: skip
    onnx.save(
        onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 18)]), path / "model.onnx"
    )
    (path / "bad.onnx").write_bytes(b"nothing")
    return path


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_a_model_beside_torch_and_onnxruntime(capsys: pytest.CaptureFixture[str]):
    call = ["bench", "model.pt2", "--peers", "model.onnx", "--threads", "1", "--seconds", "0", "--json"]
    assert cli.run(call) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [r["name"].split()[0] for r in runs] == ["relaxir", "torch", "onnxruntime"]
    assert all(0 < r["least_seconds"] <= r["median_seconds"] <= r["p90_seconds"] for r in runs)
    assert [r["error"] is not None and r["error"] < 1e-5 for r in runs] == [False, True, True]


def test_a_model_of_dictionaries_and_keywords(capsys: pytest.CaptureFixture[str]):
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def forward(self, pair, scale):
            return {"sum": (pair["a"] + pair["b"]) * scale, "rest": [pair["a"] - pair["b"]]}

    pair = {"a": torch.randn(3, 8), "b": torch.randn(3, 8)}
    torch.export.save(torch.export.export(Model(), (pair,), {"scale": torch.randn(8)}), "nested.pt2")
    assert cli.run(["bench", "nested.pt2", "--threads", "1", "--seconds", "0", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [r["name"].split()[0] for r in runs] == ["relaxir", "torch"]
    assert runs[1]["error"] < 1e-6


def test_a_module_with_random_weights(capsys: pytest.CaptureFixture[str]):
    assert cli.run(["bench", "model.mlir", "--seconds", "0", "--threads", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "@main(input: [3, 8]), 1 threads"
    assert lines[2].split()[0] == "relaxir"


def test_results_of_random_weights_are_not_compared(capsys: pytest.CaptureFixture[str]):
    rx.save_weights(str(Path("model.pt2")), "weights.safetensors")
    call = ["bench", "model.mlir", "--peers", "model.pt2", "--seconds", "0", "--threads", "1"]
    assert cli.run(call) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("weights are random")
    assert "--weights" in lines[1]
    assert cli.run([*call, "--json"]) == 0
    assert [run["error"] for run in json.loads(capsys.readouterr().out)["runs"]] == [None, None]
    assert cli.run([*call, "--json", "--weights", "weights.safetensors"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][1]["error"] < 1e-5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.pt2", "--weights", "w.safetensors"], "expected no --weights for 'model.pt2', which has its own"),
        (["model.mlir", "--peers", "model.mlir"], "expected a .pt2 or .onnx file to compare with, got 'model.mlir'"),
        (["model.mlir", "--peers", "none.onnx"], "cannot read 'none.onnx': No such file or directory"),
        (["model.mlir", "--peers", "bad.onnx"], "'bad.onnx': expected a model that onnxruntime loads, got "),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["bench", *arguments, "--seconds", "0"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_onnxruntime_may_be_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert cli.run(["bench", "model.mlir", "--peers", "model.onnx", "--seconds", "0"]) == 1
    assert capsys.readouterr().err == "error: expected onnxruntime to be installed: pip install onnxruntime\n"


def test_results_that_differ_are_told():
    zero, one = np.zeros(3, np.float32), np.ones(3, np.float32)
    timed = turns.timed_in_turns({"a": lambda: [one], "b": lambda: [zero], "c": lambda: [np.ones(2)]}, 0)
    assert [t.error for t in timed] == [None, 1.0, float("inf")]
    assert turns.table_of(timed)[2].endswith("1.0e+00")
