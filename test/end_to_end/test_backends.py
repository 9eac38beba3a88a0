"""A second backend is one table entry: the same calls, preparation, state and artifacts, on code that is none of a CPU's.

Its kernels are the ops' NumPy semantics, so that its executables are exact, and tell what is wrong with compiled ones.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from end_to_end.test_quantized import model, weights
from end_to_end.test_state import STEP, at, rows

import relaxir as rx
from relaxir.lowering import backend as backends
from support import models
from support.models import weights_of
from support.reference_backend import BACKEND

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = """
func.func @main(%x: tensor<?x24xf32, {sym = ["n"]}> {relax.name = "x"}, %w: tensor<40x24xf32> {relax.name = "w"})
    -> tensor<?x40xf32, {sym = ["n"]}> attributes {relax.num_input = 1 : i64} {
  %t = "relax.permute_dims"(%w) : (tensor<40x24xf32>) -> tensor<24x40xf32>
  %y = "relax.matmul"(%x, %t) : (tensor<?x24xf32, {sym = ["n"]}>, tensor<24x40xf32>) -> tensor<?x40xf32, {sym = ["n"]}>
  return %y : tensor<?x40xf32, {sym = ["n"]}>
}
"""
TAKE = """
func.func @main(%x: tensor<?xf32, {sym = ["n"]}>, %i: tensor<1xi64>) -> tensor<1xf32> {
  %y = "relax.take"(%x, %i) {axis = 0 : i64} : (tensor<?xf32, {sym = ["n"]}>, tensor<1xi64>) -> tensor<1xf32>
  return %y : tensor<1xf32>
}
"""


@pytest.fixture(autouse=True)
def _entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table entry, which a package of its own brings as an entry point (test/packaging)."""
    monkeypatch.setitem(backends._BACKENDS, "reference", BACKEND)


def both(module: rx.Module, raw: dict[str, np.ndarray], **options: Any) -> list[rx.Executable]:
    """Executables of both backends with weights that each has prepared."""
    made = [rx.compile(module, target, **options) for target in ("reference", "cpu")]
    return [e.bind(e.prepare(raw)) for e in made]


def agree(want: object, got: object, rtol: float = 1e-4) -> None:
    results = [r if isinstance(r, tuple) else (r,) for r in (want, got)]
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(np.asarray(b), a, rtol=0, atol=rtol * max(1, np.abs(np.asarray(a)).max()))


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "resnet18", "mlp"])
def test_models(name: str) -> None:
    tiny = getattr(models, name)()
    program = tiny.export()
    module = rx.from_torch(program)
    raw = weights_of(program, module)
    reference = rx.compile(module, "reference")
    reference.bind(reference.prepare(raw))
    inputs = tiny.inputs(2)
    agree(tuple(tiny.eager(inputs)), reference(**{k: v.numpy() for k, v in inputs.items()}))


def test_quantized_weights_and_sums_of_integers() -> None:
    module, raw = rx.Module.parse(model("None", 96, "n")), weights(96)
    reference, compiled = both(module, raw, activations="int8")
    assert "quantized_matmul" in reference.module_text
    ids = np.random.default_rng(3).integers(0, 50, 7)
    agree(reference(ids), compiled(ids), rtol=1e-5)


def test_preparation_is_exact_and_belongs_to_its_backend(tmp_path: Path) -> None:
    """Weights that only move are prepared to the same bits; a file says whose they are by its fingerprint."""
    module = rx.Module.parse(PRODUCT)
    raw = {"w": np.random.default_rng(0).standard_normal((40, 24), np.float32)}
    made = {target: rx.compile(module, target, cache=False) for target in ("reference", "cpu")}
    prepared = {target: e.prepare(raw) for target, e in made.items()}
    unpacked = {target: np.sort(np.asarray(p["w.permute_dims.pack_weight"]), axis=None) for target, p in prepared.items()}
    count = raw["w"].size
    for array in unpacked.values():
        np.testing.assert_array_equal(np.sort(array[array != 0]), np.sort(raw["w"], axis=None)[:count])
    made["reference"].prepare(raw, tmp_path / "prepared.safetensors", jobs=2)
    made["reference"].bind(tmp_path / "prepared.safetensors")


def test_state_is_updated_in_place() -> None:
    module = rx.Module.parse(STEP.format(name="prefill", first=1) + STEP.format(name="decode", first=1))
    reference, compiled = both(module, {})
    for executable in (reference, compiled):
        mine = executable.new_state()
        assert executable(rows(1), at(0), entry="prefill").tolist() == [1] * 4
        assert executable(rows(2), at(1), entry="decode").tolist() == [3] * 4
        assert executable(rows(5), at(1), entry="decode", state=mine).tolist() == [5] * 4
        assert (executable.state["n"], mine["n"]) == (3, 2)
        executable.reset_state()
        assert executable.state["n"] == 1


def test_results_in_memory_of_the_caller_and_refused_calls() -> None:
    reference, compiled = both(rx.Module.parse(PRODUCT), {"w": np.ones((40, 24), np.float32)})
    out = np.empty((3, 40), np.float32)
    for executable in (reference, compiled):
        assert executable(np.ones((3, 24), np.float32), out=out) is out
        assert (out == 24).all()
        with pytest.raises(rx.RelaxError, match="expected dtype f32, got f64"):
            executable(np.ones((3, 24)))
    checked = [rx.compile(rx.Module.parse(TAKE), target) for target in ("reference", "cpu")]
    for executable in checked:
        assert executable(np.arange(4, dtype=np.float32), np.array([3])).tolist() == [3]
        with pytest.raises(rx.RelaxError, match="expected ind"):
            executable(np.arange(4, dtype=np.float32), np.array([9]))


def test_artifacts(tmp_path: Path) -> None:
    module, raw = rx.Module.parse(PRODUCT), {"w": np.random.default_rng(0).standard_normal((40, 24), np.float32)}
    reference, compiled = both(module, raw)
    path, x = tmp_path / "m.relax", np.random.default_rng(1).standard_normal((5, 24), np.float32)
    reference.save(path)
    data = json.loads((path / "manifest.json").read_text())
    assert data["target"]["backend"] == "reference"
    assert data["reference"] == {"functions": ["main", "main_transform_params.step0"]}
    assert data["code"]["file"] == "module.reference.mlir"
    loaded = rx.load(path)
    loaded.bind(loaded.prepare(raw))
    agree(loaded(x), compiled(x))
    loaded.save(tmp_path / "again.relax")
    again = rx.load(tmp_path / "again.relax")
    np.testing.assert_array_equal(again.bind(again.prepare(raw))(x), loaded(x))
    data["entries"][0]["checks"] = ["edited"]
    (path / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(rx.RelaxError, match="expected the manifest it was compiled with"):
        rx.load(path)


def test_code_comes_out_of_the_cache_of_its_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "cache"))
    module = rx.Module.parse(PRODUCT)
    made = [rx.compile(module, target) for target in ("reference", "cpu", "reference", "cpu")]
    assert [e.manifest.target.backend for e in made] == ["reference", "cpu"] * 2
    assert sum(1 for p in (tmp_path / "cache" / "objects").rglob("*") if p.is_file()) == 2


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("gpu", "expected target 'cpu' or 'cuda' or 'reference', got 'gpu'"),
        ("cpu:z80", "expected target 'cpu', or 'cpu:' and one of x86-64, .*, got 'cpu:z80'"),
    ],
)
def test_targets_of_nobody(target: str, message: str) -> None:
    with pytest.raises(rx.RelaxError, match=message):
        rx.compile(rx.Module.parse(TAKE), target)


def test_code_of_a_backend_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rx.compile(rx.Module.parse(TAKE), "reference").save(tmp_path / "m.relax")
    monkeypatch.delitem(backends._BACKENDS, "reference")
    with pytest.raises(rx.RelaxError, match=r"of a backend that is installed \(cpu, cuda\), got code of 'reference'"):
        rx.load(tmp_path / "m.relax")


def test_nobody_outside_of_a_backend_names_it() -> None:
    """But for its table entry, the manifest's default for what version 1 wrote before there were others, and code for GPUs,
    whose host is a CPU."""
    sources = {p: p.read_text() for folder in ("python", "tools", "lowering") for p in (ROOT / folder).rglob("*.py")}
    own = (ROOT / "lowering" / "cpu", ROOT / "python" / "runtime" / "cpu.py", ROOT / "lowering" / "cuda")
    own += (ROOT / "python" / "runtime" / "cuda",)
    naming = {
        str(p.relative_to(ROOT))
        for p, text in sources.items()
        if re.search(r"(?:import|from) [\w.]*\bcpu\b|CpuCompiler|CpuRuntime", text)
        and not any(o in (p, *p.parents) for o in own)
    }
    assert naming == {"lowering/backend.py"}
