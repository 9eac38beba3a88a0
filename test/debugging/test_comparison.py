"""``relaxir compare``: equal models, what brings a difference, where values begin to differ, and each mistake."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import relaxir as rx
from relaxir.debugging import compare, difference
from relaxir.dialect.reference import apply, registry
from relaxir.tools import cli

MODEL = """
func.func @main(%x: tensor<?x8xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<8x8xf32> {relax.name = "w"})
    -> (tensor<?x8xf32, {sym = ["n"]}> {relax.name = "y"}) attributes {relax.num_input = 1 : i64} {
  %h = "relax.matmul"(%x, %w) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %t = "relax.tanh"(%h) : (tensor<?x8xf32, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  %y = "relax.exp"(%t) : (tensor<?x8xf32, {sym = ["n"]}>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %y : tensor<?x8xf32, {sym = ["n"]}>
}
"""
NARROW = "relax-canonicalize,relax-to-mixed-precision{dtype=bf16},relax-lift-transform-params"


class Counting(torch.nn.Module):
    """Calls change what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(8, 4)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.count.add_(1)
        y = torch.tanh(self.fc(x)) * self.count
        return torch.exp(y), y.bfloat16()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("model.mlir").write_text(MODEL)
    return tmp_path


def make_tanh_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = registry.families_loaded()["tanh"]
    wrong = replace(right, function=lambda x, **rest: right.function(x, **rest) + np.float32(0.5))
    known = apply._reference
    monkeypatch.setattr(apply, "_reference", lambda name: wrong if name == "tanh" else known(name))


@pytest.fixture
def wrong_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference semantics of one op are off by a bit."""
    make_tanh_wrong(monkeypatch)


def write_onnx(path: str) -> None:
    w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 8), np.float32), "w")
    nodes = [("MatMul", ["x", "w"], "h"), ("Tanh", ["h"], "t"), ("Exp", ["t"], "y")]
    made = [helper.make_node(op, inputs, [output], name=f"node_{output}") for op, inputs, output in nodes]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 8]) for n in "xy")
    graph = helper.make_graph(made, "g", [x], [y], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def test_code_equals_the_reference(files: Path, capsys: pytest.CaptureFixture[str]):
    np.save("x.npy", np.ones((3, 8), np.float32))
    assert cli.run(["compare", "model.mlir", "--values", "--input", "x=x.npy"]) == 0
    out = capsys.readouterr().out
    assert "@main y: 0 of 24 differ" in out
    assert "values inside: 3 compared, 0 differ\nequal\n" in out


def test_passes_that_change_results_are_found(files: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["compare", "model.mlir", "--pipeline", NARROW, "--dim", "n=7", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["culprit"] == "pass 2 of 3: relax-to-mixed-precision{dtype=bf16}"
    assert told["results"][0]["difference"]["elements"] == 56
    assert told["first"]["name"] == "relax.matmul f32[n, 8]"
    assert told["first"]["where"] == "model.mlir:4:8"


def test_an_op_whose_code_is_wrong_is_found(wrong_tanh: None):
    comparison = compare(rx.Module.parse(MODEL))
    assert not comparison.equal
    assert comparison.culprit == "lowering of relax.tanh f32[n, 8]"
    assert [v.difference.equal for v in comparison.values] == [True, False, False]
    assert comparison.first is not None
    assert comparison.first.difference.max_abs == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("name", ["a b", "a,b", "a{b", "a}b", "a(b", "a'b", r"a\22b", "@a", r"a\5Cb"])
def test_functions_of_any_name(name: str):
    module = rx.Module.parse(MODEL.replace("@main", f'@"{name}"'))
    comparison = compare(module, values=True)
    assert comparison.equal
    assert len(comparison.values) == 3


def test_two_modules(files: Path, capsys: pytest.CaptureFixture[str]):
    Path("other.mlir").write_text(MODEL.replace("relax.tanh", "relax.sin"))
    assert cli.run(["compare", "model.mlir", "other.mlir"]) == 1
    assert "values inside: 2 compared, 1 differ\nfirst: @main relax.exp f32[n, 8] at " in capsys.readouterr().out
    Path("narrow.mlir").write_text(MODEL.replace('"y"', '"z"'))
    assert cli.run(["compare", "model.mlir", "narrow.mlir"]) == 1
    assert "@main y: there is no such result" in capsys.readouterr().out


def test_torch(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    torch.manual_seed(0)
    program = torch.export.export(Counting().eval(), (torch.ones(3, 8),))
    torch.export.save(program, "model.pt2")
    assert cli.run(["compare", "model.pt2", "--values"]) == 0
    assert "values inside: 6 compared, 0 differ\nequal\n" in capsys.readouterr().out
    rx.compile(rx.from_torch(program)).save("model.relax")
    assert cli.run(["compare", "model.pt2", "model.relax"]) == 0
    make_tanh_wrong(monkeypatch)
    comparison = compare("model.pt2")
    assert comparison.first is not None
    assert (comparison.first.name, comparison.equal) == ("tanh", False)


def test_onnx(files: Path, wrong_tanh: None):
    write_onnx("model.onnx")
    comparison = compare("model.onnx")
    assert not comparison.equal
    assert [(v.name, v.where, v.difference.equal) for v in comparison.values] == [
        ("h", "MatMul node_h", True), ("t", "Tanh node_t", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "the following arguments are required: A"),
        (["model.mlir", "model.mlir", "--pipeline", "cse"], 2, "--pipeline: expected a module alone"),
        (["model.mlir", "model.mlir", "--target", "cpu"], 2, "--target: expected a module alone, without --pipeline"),
        (["m.onnx", "--weights", "w"], 2, "--weights: m.onnx has its own"),
        (["m.relax", "model.mlir"], 2, "expected a module, a .pt2 or an .onnx file first, got the artifact m.relax"),
        (["model.mlir", "--input", "x"], 2, "expected --input NAME=FILE.npy, got 'x'"),
        (["model.mlir", "--dim", "n=-1"], 2, "expected a size for --dim n, got '-1'"),
        (["gone.mlir"], 1, "cannot read 'gone.mlir'"),
    ],
)
def test_mistakes(files: Path, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]):
    assert cli.run(["compare", *arguments]) == code
    assert message in capsys.readouterr().err


def test_onnxruntime_is_named_where_it_is_missing_or_refuses(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    write_onnx("model.onnx")
    np.save("x.npy", np.ones((3, 9), np.float32))
    assert cli.run(["compare", "model.onnx", "--input", "x=x.npy"]) == 1
    assert "error: onnxruntime: " in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert cli.run(["compare", "model.onnx"]) == 1
    assert "expected onnx and onnxruntime to be installed, got no onnxruntime" in capsys.readouterr().err


def test_inputs_that_an_entry_lacks_are_refused():
    with pytest.raises(rx.RelaxError, match="expected inputs out of x, got 'z'"):
        compare(rx.Module.parse(MODEL), inputs={"z": np.ones(3)})


def test_what_would_be_random_without_a_word_is_refused():
    module, other = rx.Module.parse(MODEL), rx.Module.parse(MODEL.replace('relax.name = "w"', 'relax.name = "v"'))
    with pytest.raises(rx.RelaxError, match="expected the raw weights of @main, got others without 'w'"):
        compare(module, weights={"v": np.ones((8, 8), np.float32)})
    with pytest.raises(rx.RelaxError, match="expected sizes out of n, got 'q'"):
        compare(module, sizes={"q": 3})
    with pytest.raises(
        rx.RelaxError, match="expected weights of the same names in both modules, got 'v' in @main of one alone"
    ):
        compare(module, other)


def test_differences_of_tensors():
    assert difference(np.zeros(3, np.float32), np.zeros(3)).reason == "expected dtype float32, got float64"
    assert difference(np.zeros(3), np.zeros((3, 1))).reason == "expected shape [3], got [3, 1]"
    wide = np.arange(1 << 19, dtype=np.float32).reshape(2, -1)
    other = wide.copy()
    other[1, 5] += 100
    told = difference(wide, other)
    assert (told.unequal, told.max_abs, told.place) == (1, 100.0, (1, 5))
    large = np.array([2**60, 5], np.int64)
    assert difference(large, large + np.array([1, 0])).unequal == 1
    odd = np.array([np.nan, np.inf, 1, -np.inf], np.float32)
    assert difference(odd, odd).equal
    told = difference(odd, np.array([np.nan, np.inf, np.nan, -np.inf], np.float32))
    assert (told.unequal, told.nan_expected, told.nan_found, told.place) == (1, 1, 2, (2,))
    assert str(told) == "1 of 4 differ, max abs 0, rel 0, ulp 0, NaN 1 -> 2, worst at [2]: 1.0 -> nan"
    narrow = np.array([1, 2], ml_dtypes.bfloat16)
    assert difference(narrow, np.array([1 + 2**-7, 2], ml_dtypes.bfloat16)).max_ulp == 1.0
    assert difference(np.zeros((0, 2)), np.zeros((0, 2))).equal


def test_results_without_a_number_are_told():
    nothing = np.full(3, np.nan, np.float32)
    assert str(difference(nothing, nothing)) == "all 3 are NaN on both sides: nothing was compared"
