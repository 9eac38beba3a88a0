"""Tensors beside a quantized weight that would change it, and that nothing reads, are refused; harmless ones are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir import RelaxError
from relaxir.weights import write_safetensors
from relaxir.weights.companions import parameters_beside
from support import encoded_weights as write
from support import gguf_files

N, K = 24, 64
ONE = np.ones(1, np.float32)
FP8 = write.fp8(np.random.default_rng(1), N, K, "channel")[0]
INT8 = {".weight": np.ones((N, K), np.int8), ".SCB": np.ones(N, np.float32), ".weight_format": np.zeros((), np.uint8)}
FORMATS: dict[str, tuple[dict[str, Any] | None, write.Arrays]] = {
    "gptq": ({"bits": 4, "group_size": 32}, write.gptq(np.random.default_rng(1), N, K)[0]),
    "awq": ({"bits": 4, "group_size": 32}, write.awq(np.random.default_rng(1), N, K)[0]),
    "compressed-tensors": ({}, write.compressed(np.random.default_rng(1), N, K)[0]),
    "fp8": ({}, FP8),
    "bitsandbytes": ({}, write.nf4(np.random.default_rng(1), N, K)[0]),
    "llm-int8": ({"quant_method": "bitsandbytes"}, INT8),
    "no method": (None, {".weight": FP8[".weight"]}),
}


def module(name: str = "a.l.weight") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", K)), b.permute_dims(b.weight(name, (N, K)))))
    return b.build()


def folder(path: Path, form: str, others: write.Arrays) -> Path:
    config, tensors = FORMATS[form]
    write_safetensors(path / "model.safetensors", {f"a.l{e}": t for e, t in tensors.items()} | others)
    table = {} if config is None else {"quantization_config": {"quant_method": form, **config}}
    (path / "config.json").write_text(json.dumps(table))
    return path


@pytest.mark.parametrize("checkpoint", [False, True], ids=["decoded", "as it is"])
@pytest.mark.parametrize("form", FORMATS)
def test_a_parameter_that_nothing_reads(tmp_path: Path, form: str, checkpoint: bool) -> None:
    path = folder(tmp_path, form, {"a.l.pre_quant_scale": ONE})
    exe = rx.compile(module(), checkpoint=path if checkpoint else None)
    text = "expected none beside a quantized weight that nothing reads, got one that may change what the layer computes"
    with pytest.raises(RelaxError, match=f"tensor 'a.l.pre_quant_scale': {text}"):
        exe.prepare(path)


@pytest.mark.parametrize("form", FORMATS)
def test_what_changes_no_weight(tmp_path: Path, form: str) -> None:
    """Biases, scales of activations and caches, and parameters of layers that are not quantized, or not the program's."""
    names = ("a.l.bias", "a.l.input_scale", "a.l.act_scale", "a.l.output_zero_point", "a.k_scale", "a.norm.scale", "b.l.zeros")
    path = folder(tmp_path, form, dict.fromkeys(names, ONE))
    exe = rx.compile(module())
    report = exe.prepare(path).report
    assert {n for n in names if n != "a.l.input_scale"} <= set(report.extra_weights)  # which FP8 has beside each weight


def test_layers_that_are_not_read(tmp_path: Path) -> None:
    tensors = {f"{layer}{e}": t for layer in ("a.l", "b.l") for e, t in FORMATS["gptq"][1].items()}
    path = folder(tmp_path, "gptq", tensors | {"b.l.channel_scale": ONE})
    assert "b.l.channel_scale" in rx.compile(module()).prepare(path).report.extra_weights


def test_a_parameter_that_the_program_reads(tmp_path: Path) -> None:
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", K)) * b.weight("a.l.pre_quant_scale", (1,))
        b.output(b.matmul(x, b.permute_dims(b.weight("a.l.weight", (N, K)))))
    exe = rx.compile(b.build())
    exe.prepare(folder(tmp_path, "gptq", {"a.l.pre_quant_scale": ONE}))


def test_eight_bit_floats_that_are_plain(tmp_path: Path) -> None:
    exe = rx.compile(module())
    report = exe.prepare(folder(tmp_path, "no method", {"a.l.input_scale": ONE, "a.scale": ONE})).report
    assert report.notes == ("1 weights widened from f8E4M3FN to f32",)


def test_floats_that_no_method_reads(tmp_path: Path) -> None:
    """Blocks of which nothing says the size."""
    path = folder(tmp_path, "no method", {f"a.l{e}": t for e, t in write.fp8(np.random.default_rng(1), N, K)[0].items()})
    with pytest.raises(RelaxError, match=r"tensor 'a.l.weight_scale_inv': expected none beside a quantized weight"):
        rx.compile(module()).prepare(path)


class Lazy(dict[str, Any]):
    """Makes its tensors when they are asked for."""

    def __getitem__(self, name: str) -> Any:
        return dict.__getitem__(self, name)


@pytest.mark.parametrize("kind", [dict, Lazy])
def test_floats_of_a_mapping(kind: type[dict[str, Any]]) -> None:
    exe = rx.compile(module())
    tensors = kind({f"a.l{e}": t for e, t in FP8.items()})
    text = "tensor 'a.l.weight_scale': expected none beside a quantized weight.*\n?.*give the path of the file or folder"
    with pytest.raises(RelaxError, match=text):
        exe.prepare(tensors)


def test_experts_one_by_one_that_no_method_reads(tmp_path: Path) -> None:
    place = "model.layers.0.mlp.experts"
    tensors = {f"{place}.{i}.down_proj.weight": FP8[".weight"] for i in range(2)}
    tensors |= {f"{place}.{i}.down_proj.weight_scale_2": ONE for i in range(2)}
    write_safetensors(tmp_path / "model.safetensors", tensors)
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", (2, "n", N)), b.weight(f"{place}.down_proj", (2, N, K))))
    exe = rx.compile(b.build())
    with pytest.raises(RelaxError) as caught:
        exe.prepare(tmp_path)
    assert all(f"tensor '{place}.{i}.down_proj.weight_scale_2': expected none beside" in str(caught.value) for i in range(2))


def test_scales_of_a_gguf_file(tmp_path: Path) -> None:
    """As llama.cpp's BitNet has them: they multiply what a product gives."""
    raw = gguf_files.blocks(np.random.default_rng(1), "Q8_0", N, 2)
    one = (ONE.view(np.uint8), gguf.GGMLQuantizationType.F32)
    tensors = {"a.l.weight": (raw, gguf.GGMLQuantizationType.Q8_0), "a.l.scale": one, "a.l.input_scale": one}
    path = gguf_files.write(tmp_path / "m.gguf", tensors)
    with pytest.raises(RelaxError, match=r"tensor 'a.l.scale': expected none beside a quantized weight"):
        rx.compile(module()).prepare(path)


def test_divisors_of_activations(tmp_path: Path) -> None:
    """AutoAWQ divides what an activation gives where no layer before it takes the factor."""
    path = folder(tmp_path, "awq", {"a.act.scales": np.ones(K, np.float16)})
    with pytest.raises(RelaxError, match=r"tensor 'a.act.scales': expected none beside a quantized weight"):
        rx.compile(module()).prepare(path)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("l.scale_weight", True), ("l.weight_scale_2", True), ("l.weight.zeros", True), ("l.g_idx", True),
        ("l.input_perm", True),
        ("l.smooth_scales", True), ("l.hadamard_matrix", True), ("l.SCB", True), ("l.qscale_weight", True),
        ("l.weight_scalar", True),
        ("l.qscale_act", False), ("l.scale_input", False), ("l.input_scale_ub", False), ("l.input_global_scale", False),
        ("l.act_quant_scale", False), ("l.k_scale", False), ("l.bias", False), ("l.lora_A", False), ("m.scale", False),
        ("l.m.scale", False), ("scale", False),
    ],
)  # fmt: skip
def test_names_of_parameters(name: str, is_one: bool) -> None:
    assert parameters_beside([name], ["l.weight"]) == ([name] if is_one else [])


def test_other_layouts_of_eight_bits(tmp_path: Path) -> None:
    path = folder(
        tmp_path, "llm-int8", {"b.weight": INT8[".weight"], "b.SCB": INT8[".SCB"], "b.weight_format": np.ones((), np.uint8)}
    )
    with pytest.raises(RelaxError, match=r"tensor 'b.weight_format': expected 0, a matrix in rows, got 1"):
        rx.compile(module()).prepare(path)


def test_experts_in_one_tensor(tmp_path: Path) -> None:
    tensors = {f"a.experts.up{e}": t for e, t in write.mxfp4(np.random.default_rng(1), 2, N, K)[0].items()}
    write_safetensors(tmp_path / "model.safetensors", tensors | {"a.experts.up_global_scale": ONE.astype(ml_dtypes.bfloat16)})
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "mxfp4"}}))
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", (2, "n", K)), b.weight("a.experts.up", (2, K, N))))
    with pytest.raises(RelaxError, match=r"tensor 'a.experts.up_global_scale': expected none beside a quantized weight"):
        rx.compile(b.build()).prepare(tmp_path)
