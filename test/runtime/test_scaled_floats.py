"""Eight-bit floats with scales of which no ``quantization_config`` tells: ComfyUI's, NVIDIA modelopt's, plain files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.weights import write_safetensors
from support import encoded_weights as write

N, K = 24, 64
ONE = np.float32(0.013).reshape(1)


def module() -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", K)), b.permute_dims(b.weight("l.weight", (N, K)))))
    return b.build()


def assert_is_read(path: Path, want: np.ndarray) -> None:
    """Decoded, and as it is: products of unit vectors."""
    for exe in (rx.compile(module()), rx.compile(module(), checkpoint=path)):
        exe.bind(exe.prepare(path))
        np.testing.assert_allclose(exe(np.eye(K, dtype=np.float32)).T, want, rtol=1e-6)


def floats(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """A weight, and a scale for all of it or for each row."""
    rng = np.random.default_rng(1)
    return write.fp8(rng, N, K)[0][".weight"], rng.uniform(0.001, 0.02, shape).astype(np.float32)


@pytest.mark.parametrize("others", [(), ("l.input_scale", "l.scale_input", "l.comfy_quant", "scaled_fp8")])
@pytest.mark.parametrize(
    ("end", "shape"),
    [("weight_scale", s) for s in ((), (1,), (N, 1), (N,))] + [("scale_weight", ()), ("scale_weight", (1,))],
)  # fmt: skip
def test_files_without_configuration(tmp_path: Path, end: str, shape: tuple[int, ...], others: tuple[str, ...]) -> None:
    weight, scale = floats(shape)
    path = tmp_path / "fp8.safetensors"
    write_safetensors(path, {"l.weight": weight, f"l.{end}": scale, **dict.fromkeys(others, ONE)})
    assert_is_read(path, weight.astype(np.float32) * (scale.reshape(-1, 1) if shape else scale))


@pytest.mark.parametrize(
    ("end", "scale"),
    [
        ("weight_scale", np.ones((N, K // 32), np.float32)),  # blocks, of which nothing says the size
        ("weight_scale", np.ones((), np.uint8)),
        ("weight_scale_inv", np.ones((1, 1), np.float32)),
        ("scale_weight", np.ones(N, np.float32)),
        ("scale", ONE),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path: Path, end: str, scale: np.ndarray) -> None:
    path = tmp_path / "fp8.safetensors"
    write_safetensors(path, {"l.weight": floats(())[0], f"l.{end}": scale})
    for exe in (rx.compile(module()), rx.compile(module(), checkpoint=path)):
        with pytest.raises(RelaxError, match=f"tensor 'l.{end}': expected none beside a quantized weight"):
            exe.prepare(path)


def test_two_scales_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fp8.safetensors"
    write_safetensors(path, {"l.weight": floats(())[0], "l.weight_scale": ONE, "l.scale_weight": ONE})
    with pytest.raises(RelaxError, match=r"tensor 'l.\w+': expected one scale of a weight, got 'l.\w+', too"):
        rx.compile(module()).prepare(path)


def test_a_module_that_reads_the_file_s_own_tensors(tmp_path: Path) -> None:
    """Also of prepared weights, whose names are the same."""
    weight, scale = floats(())
    write_safetensors(tmp_path / "fp8.safetensors", {"l.weight": weight, "l.weight_scale": scale})
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", K))
        wide = b.astype(b.weight("l.weight", (N, K), "f8E4M3FN"), "f32") * b.weight("l.weight_scale", ())
        b.output(b.matmul(x, b.permute_dims(wide)))
    exe = rx.compile(b.build())
    exe.prepare(tmp_path / "fp8.safetensors", tmp_path / "prepared.safetensors")
    exe.bind(tmp_path / "prepared.safetensors", verify=True)
    np.testing.assert_allclose(exe(np.eye(K, dtype=np.float32)).T, weight.astype(np.float32) * scale, rtol=1e-6)


def modelopt(path: Path, algorithm: object, tensors: dict[str, Any], inside: bool) -> Path:
    write_safetensors(path / "model.safetensors", tensors)
    table = {"quant_algo": algorithm, "kv_cache_quant_algo": None, "exclude_modules": ["lm_head"]}
    config = {"quantization_config": {"quant_method": "modelopt", **table}} if inside else {}
    (path / "config.json").write_text(json.dumps({"model_type": "x", **config}))
    if not inside:
        (path / "hf_quant_config.json").write_text(json.dumps({"producer": {"name": "modelopt"}, "quantization": table}))
    return path


@pytest.mark.parametrize("inside", [False, True], ids=["hf_quant_config.json", "config.json"])
@pytest.mark.parametrize(
    ("algorithm", "shape"), [("FP8", ()), ("FP8_PER_CHANNEL_PER_TOKEN", (N,)), ("FP8_PB_WO", (1, 1)), ("fp8_pb_wo", (1, 1))]
)
def test_modelopt(tmp_path: Path, algorithm: str, shape: tuple[int, ...], inside: bool) -> None:
    weight, scale = floats(shape)
    tensors = {"l.weight": weight, "l.weight_scale": scale, "l.input_scale": ONE, "k_proj.k_scale": ONE}
    assert_is_read(
        modelopt(tmp_path, algorithm, tensors, inside), weight.astype(np.float32) * (scale.reshape(-1, 1) if shape else scale)
    )


@pytest.mark.parametrize("inside", [False, True], ids=["hf_quant_config.json", "config.json"])
@pytest.mark.parametrize("algorithm", ["NVFP4", "MIXED_PRECISION", "W4A8_AWQ", None, 3])
def test_other_algorithms_of_modelopt(tmp_path: Path, algorithm: object, inside: bool) -> None:
    tensors = {"l.weight": np.zeros((N, K // 2), np.uint8), "l.weight_scale": np.zeros((N, K // 16), ml_dtypes.float8_e4m3fn)}
    path = modelopt(tmp_path, algorithm, tensors, inside)
    text = f"quantization_config.quant_algo: expected one out of FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, got {algorithm!r}"
    with pytest.raises(RelaxError, match=text):
        rx.compile(module()).prepare(path)


@pytest.mark.parametrize("text", ["[]", "{}", '{"quantization": 1}'])
def test_configurations_that_are_none(tmp_path: Path, text: str) -> None:
    path = modelopt(tmp_path, "FP8", {"l.weight": floats(())[0]}, inside=False)
    (path / "hf_quant_config.json").write_text(text)
    with pytest.raises(RelaxError, match=r"hf_quant_config.json': expected (a configuration as )?a JSON object"):
        rx.compile(module()).prepare(path)
