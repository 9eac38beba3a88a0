"""``relaxir compile`` and ``import``: from a model's file to results, the commands a user types in a row."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.tools import cli
from relaxir.weights import write_safetensors

Cli = Callable[..., tuple[int, str, str]]
MODEL = """\
func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<6x4xbf16> {relax.name = "fc.weight"})
    -> (tensor<?x6xf32, {sym = ["n"]}> {relax.name = "y"})
    attributes {relax.num_input = 1 : i64, relax.symbol_ranges = {n = [1, 64]}} {
  %f = "relax.astype"(%w) {dtype = f32} : (tensor<6x4xbf16>) -> tensor<6x4xf32>
  %t = "relax.permute_dims"(%f) {axes = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x6xf32>) -> tensor<?x6xf32, {sym = ["n"]}>
  return %y : tensor<?x6xf32, {sym = ["n"]}>
}
"""
WEIGHT = np.arange(24).reshape(6, 4).astype(ml_dtypes.bfloat16)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def relaxir(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs the command line in a folder with a model, its weights and an input."""
    monkeypatch.chdir(tmp_path)
    Path("model.mlir").write_text(MODEL)
    write_safetensors("model.safetensors", {"fc.weight": WEIGHT})
    np.save("x.npy", X)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        return code, *capsys.readouterr()

    return call


def test_compile_prepare_run(relaxir: Cli):
    code, out, err = relaxir("compile", "model.mlir", "-o", "model.relax")
    assert (code, err) == (0, "")
    assert re.match(r"compiled model\.mlir to model\.relax in \d+\.\d\d s\n", out)
    assert "entry main(x: f32[n, 4]) -> (y: f32[n, 6])\n  symbols: 1 <= n <= 64\n" in out
    assert re.search(r"^  [\w, ]*permute_dims.*: 1 -> 1, 48 B -> ", out, re.MULTILINE)
    assert relaxir("info", "model.relax")[1] == out.split("\n", 1)[1]
    assert relaxir("prepare", "model.relax", "model.safetensors", "-o", "prepared.safetensors")[0] == 0
    arguments = ("run", "model.relax", "--weights", "prepared.safetensors", "--input", "x=x.npy", "-o", "out.npz")
    assert relaxir(*arguments) == (0, "y: [3, 6] float32\nwrote out.npz\n", "")
    with np.load("out.npz") as archive:
        np.testing.assert_allclose(archive["y"], X @ WEIGHT.astype(np.float32).T, rtol=1e-6)


def test_compile_without_lifting(relaxir: Cli):
    code, out, _ = relaxir("compile", "model.mlir", "-o", "model.relax", "--pipeline", "canonicalize")
    assert code == 0
    assert "  copy: 1 -> 1, 48 B -> 48 B (fc.weight)\n" in out
    assert relaxir("run", "model.relax", "--weights", "model.safetensors", "--random", "--dim", "n=2", "-o", "o.npz")[0] == 0


def test_compile_with_quantized_activations(relaxir: Cli):
    wide = """%z = "relax.full"() {value = 0 : i64} : () -> tensor<i8>
  %s = "relax.full"() {value = 0.5 : f64} : () -> tensor<f32>
  %f = "relax.dequantize"(%w, %s, %z) : (tensor<6x4xi8>, tensor<f32>, tensor<i8>) -> tensor<6x4xf32>"""
    text = re.sub("%f = .*", lambda _: wide, MODEL).replace("6x4xbf16", "6x4xi8")
    Path("narrow.mlir").write_text(text)
    code, out, _ = relaxir("compile", "narrow.mlir", "-o", "narrow.relax", "--activations", "int8")
    assert code == 0
    assert "@main: 1 product of int8 activations\n" in out


def test_compile_with_narrow_weights(relaxir: Cli):
    code, out, _ = relaxir("compile", "model.mlir", "-o", "model.relax", "--weights", "int8")
    assert code == 0
    assert "@main: 1 weight quantized, " in out


def test_compile_with_direct_convolutions(relaxir: Cli):
    Path("image.mlir").write_text("""
func.func @main(%x: tensor<1x8x8x16xf32>, %w: tensor<3x3x16x16xf32> {relax.name = "w"}) -> tensor<1x6x6x16xf32>
    attributes {relax.num_input = 1 : i64} {
  %y = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"}
      : (tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<1x6x6x16xf32>
  return %y : tensor<1x6x6x16xf32>
}""")
    code, out, _ = relaxir("compile", "image.mlir", "-o", "image.relax", "--convolutions", "direct")
    assert code == 0
    assert "winograd" not in (Path("image.relax") / "module.mlir").read_text()
    code, out, _ = relaxir("compile", "image.mlir", "-o", "image.relax")
    assert code == 0
    assert "winograd" in (Path("image.relax") / "module.mlir").read_text()
    assert re.search(r"pack_weight.*: 1 -> 1, 9\.0 KiB -> 32\.0 KiB", out)
    code, out, _ = relaxir("compile", "image.mlir", "--print-pipeline")
    assert code == 0
    assert "relax-winograd-convolutions{gainful=true},relax-pack-weights" in out


def test_compile_replaces_an_artifact_and_nothing_else(relaxir: Cli):
    for _ in range(2):
        assert relaxir("compile", "model.mlir", "-o", "model.relax")[0] == 0
    _, _, err = relaxir("compile", "model.mlir", "-o", "x.npy")
    assert re.fullmatch(r"error: cannot write '.*x\.npy': expected nothing or an artifact there, got something else\n", err)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"relax.matmul"', '"relax.matmull"', "bad.mlir:6:8: .*'relax.matmull'.*"),
        ("array<i64: 1, 0>", "array<i64: 0, 1>",
         "bad.mlir:5:8: 'relax.permute_dims' op expected result tensor<6x4xf32>, got tensor<4x6xf32>"),
        ("relax.num_input = 1", "relax.num_input = 3",
         "bad.mlir:1:1: 'func.func' op expected relax.num_input between 0 and 2, got 3 : i64"),
        ("[1, 64]", "[64, 1]", "bad.mlir:1:1: 'func.func' op expected relax.symbol_ranges such as .*"),
        ("@main", "private @main", "expected a public function to compile, got none"),
    ],
)  # fmt: skip
def test_wrong_models(relaxir: Cli, old: str, new: str, message: str):
    Path("bad.mlir").write_text(MODEL.replace(old, new, 1))
    code, out, err = relaxir("compile", "bad.mlir", "-o", "bad.relax")
    assert (code, out) == (1, "")
    assert re.match(rf"error: {message if '.*' in message else re.escape(message)}\n", err)
    assert not Path("bad.relax").exists()


def test_import_compile_prepare_run(relaxir: Cli):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    batch = torch.export.Dim("batch")
    torch.export.save(torch.export.export(model, (torch.ones(3, 4),), dynamic_shapes=[{0: batch}]), "mlp.pt2")
    code, out, _ = relaxir("import", "mlp.pt2", "-o", "mlp.mlir", "--weights", "mlp.safetensors")
    assert code == 0
    assert re.search(r"^imported mlp\.pt2 to mlp\.mlir\n  @main: \w+: f32\[\w+, 4\]; 4 weights\n", out)
    assert out.endswith("wrote the weights to mlp.safetensors\n")
    (name,) = (s.name for s in rx.Module.load("mlp.mlir").functions["main"].inputs)
    assert relaxir("compile", "mlp.mlir", "-o", "mlp.relax")[0] == 0
    assert relaxir("prepare", "mlp.relax", "mlp.safetensors", "-o", "p.safetensors")[0] == 0
    assert relaxir("run", "mlp.relax", "--weights", "p.safetensors", "--input", f"{name}=x.npy", "-o", "out.npz")[0] == 0
    with np.load("out.npz") as archive, torch.no_grad():
        (result,) = archive.values()
        np.testing.assert_allclose(result, model(torch.from_numpy(X)).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x80\x04."])
def test_import_refuses_other_files(relaxir: Cli, content: bytes):
    pytest.importorskip("torch")
    Path("bad.pt2").write_bytes(content)
    code, out, err = relaxir("import", "bad.pt2", "-o", "bad.mlir")
    assert (code, out) == (1, "")
    assert re.search(r"^error: 'bad\.pt2': expected a program saved by torch\.export\.save, got \w+", err, re.MULTILINE)
    assert not Path("bad.mlir").exists()


def test_import_without_torch(relaxir: Cli, monkeypatch: pytest.MonkeyPatch):
    import sys

    Path("model.pt2").touch()
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    _, _, err = relaxir("import", "model.pt2", "-o", "m.mlir")
    assert err == "error: expected torch to be installed; pip install relaxir[torch]\n"
