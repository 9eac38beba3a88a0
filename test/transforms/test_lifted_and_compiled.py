"""A lifted module compiled and run: what the passes promise about names and sharing is what preparation relies on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import relaxir

MODULE = Path(__file__).with_name("lift-transform-params-options.mlir")


@pytest.mark.parametrize("option", ["", "{shared=true}"])
def test_functions_that_share_weights(option, tmp_path):
    rng = np.random.default_rng(0)
    raw = {"w": rng.standard_normal((8, 4), np.float32), "b": rng.standard_normal(8, np.float32)}
    save_file(raw, tmp_path / "raw.safetensors")
    executable = relaxir.compile(relaxir.Module.load(MODULE), pipeline=f"relax-lift-transform-params{option}")
    executable.prepare(tmp_path / "raw.safetensors", tmp_path / "prepared.safetensors")
    executable.bind(tmp_path / "prepared.safetensors")
    assert set(load_file(tmp_path / "prepared.safetensors")) == {"w.permute_dims", "b.exp"}
    x = rng.standard_normal((2, 4), np.float32)
    np.testing.assert_allclose(executable(x, entry="prefill"), x @ raw["w"].T, rtol=1e-5)
    np.testing.assert_allclose(executable(x[:1], entry="decode"), x[:1] @ raw["w"].T + np.exp(raw["b"]), rtol=1e-5)
