"""Weights that the module knows: buffers that no checkpoint holds, in texts, passes, artifacts, preparation and reference."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import relaxir as rx
from relaxir import RelaxError
from relaxir.weights import Checkpoint, write_safetensors

TEXT = """
module attributes {relax.constants = {%s}} {
  func.func @main(%%x: tensor<4xf32> {relax.name = "x"}, %%w: tensor<4xf32> {relax.name = "w"},
                  %%s: tensor<4xf32> {relax.name = "s"}) -> tensor<4xf32> attributes {relax.num_input = 1 : i64} {
    %%0 = "relax.exp"(%%s) : (tensor<4xf32>) -> tensor<4xf32>
    %%1 = "relax.multiply"(%%w, %%0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %%2 = "relax.add"(%%x, %%1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %%2 : tensor<4xf32>
  }
}
"""
SCALES = "s = dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>"
X = np.arange(4, dtype=np.float32)
W = np.ones(4, np.float32)
EXPECTED = X + W * np.exp(X)


def test_from_text_to_call(tmp_path: Path) -> None:
    module = rx.Module.parse(TEXT % SCALES)
    np.testing.assert_allclose(rx.evaluate(module, "main", X, weights={"w": W})[0], EXPECTED, rtol=1e-6)
    rx.compile(module).save(tmp_path / "m.relax")
    exe = rx.load(tmp_path / "m.relax")
    write_safetensors(tmp_path / "w.safetensors", {"w": W})
    report = exe.prepare(tmp_path / "w.safetensors", tmp_path / "out")
    np.testing.assert_allclose(exe.bind(report)(X), EXPECTED, rtol=1e-6)


def test_what_the_module_knows_goes_before_the_file() -> None:
    """As transformers does with frequencies that old checkpoints have, rounded."""
    exe = rx.compile(rx.Module.parse(TEXT % SCALES))
    prepared = exe.prepare({"w": W, "s": np.zeros(4, np.float32)})
    np.testing.assert_allclose(exe.bind(prepared)(X), EXPECTED, rtol=1e-6)


def test_bound_where_nothing_is_prepared() -> None:
    exe = rx.compile(rx.Module.parse(TEXT % SCALES), pipeline="relax-canonicalize")
    np.testing.assert_allclose(exe.bind({"w": W})(X), EXPECTED, rtol=1e-6)


def test_a_value_that_is_the_same_everywhere() -> None:
    exe = rx.compile(rx.Module.parse(TEXT % "s = dense<1.0> : tensor<4xf32>"))
    np.testing.assert_allclose(exe.bind(exe.prepare({"w": W}))(X), X + np.exp(1), rtol=1e-6)


def test_other_values_are_another_preparation() -> None:
    one, other = (rx.compile(rx.Module.parse(TEXT % f"s = dense<{v}> : tensor<4xf32>")) for v in ("1.0", "2.0"))
    assert one.fingerprint != other.fingerprint
    with pytest.raises(RelaxError, match="expected weights prepared for this executable"):
        other.bind(one.prepare({"w": W}))


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        (
            "s = 1.0 : f32",
            r"'builtin.module' op expected relax.constants such as {w = dense<0.0> : tensor<8xf32>}, got {s = 1.0",
        ),
        ("s = dense<0.0> : tensor<5xf32>", r"expected a value of f32\[4\] in relax.constants for weight 's', got f32\[5\]"),
    ],
)
def test_refused_values(constants: str, message: str) -> None:
    with pytest.raises(RelaxError, match=message):
        rx.compile(rx.Module.parse(TEXT % constants))


def test_refused_digests() -> None:
    text = (TEXT % "s = dense<1.0> : tensor<4xf32>").replace(
        "relax.constants", "relax.fixed_weights = {t = 1 : i64}, relax.constants"
    )
    message = 'expected relax.fixed_weights such as {t = "f32 0f1e2d3c"}, got {t = 1 : i64}'
    with pytest.raises(RelaxError, match=message):
        rx.compile(rx.Module.parse(text))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("A", r"raw_weights\[1\].value: expected base64, got 'A'"),
        ("AAAA", "value: expected 16 bytes or one element, got 3 bytes"),
    ],
)
def test_edited_values(tmp_path: Path, value: str, message: str) -> None:
    rx.compile(rx.Module.parse(TEXT % SCALES)).save(tmp_path / "m.relax")
    path = tmp_path / "m.relax" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["raw_weights"] = [w | {"value": value} if "value" in w else w for w in manifest["raw_weights"]]
    path.write_text(json.dumps(manifest))
    with pytest.raises(RelaxError, match=message):
        rx.load(tmp_path / "m.relax")


class Buffers(nn.Module):
    """A parameter, a buffer that is stored, one that is not, one that is not and large, a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4))
        self.register_buffer("kept", torch.rand(4))
        self.register_buffer("derived", torch.rand(4), persistent=False)
        self.register_buffer("large", torch.rand(600, 600), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + self.kept * self.derived + self.large.sum() + torch.tensor([1.0, 2.0, 3.0, 4.0])


def test_of_torch_the_small_ones_that_no_checkpoint_holds(tmp_path: Path) -> None:
    model, x = Buffers().eval(), torch.rand(4)
    program = torch.export.export(model, (x,))
    exe = rx.compile(rx.from_torch(program))
    assert {n for n, w in exe.manifest.raw_weights.items() if w.value is not None} == {"derived", "lifted_tensor_0"}
    with pytest.raises(RelaxError, match=r"weight 'large': expected f32\[600, 600\], got none$"):
        exe.prepare(dict(model.state_dict()))
    rx.save_weights(program, tmp_path / "all.safetensors")
    assert set(Checkpoint(tmp_path / "all.safetensors")) >= {"weight", "kept", "derived", "large"}
    prepared = exe.prepare({**model.state_dict(), "large": model.large})
    torch.testing.assert_close(exe.bind(prepared)(x), model(x).detach(), rtol=1e-4, atol=1e-4)  # a sum of 360,000
