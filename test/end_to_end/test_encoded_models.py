"""Models on quantized checkpoints: prepared from the file as it is, they compute what the dequantized model does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reports.checkpoint import CheckpointWeights
from relaxir.dialect.reports.kernels import KernelSection
from relaxir.weights import Checkpoint, write_safetensors
from relaxir.weights.formats.gguf_file import BLOCKS
from support import encoded_weights as write
from support import gguf_files

CONFIG = LlamaConfig(
    vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2
)
TOKENS = torch.tensor([[3, 14, 15, 92, 65]])


class Logits(torch.nn.Module):
    """A model of transformers under its own names."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        torch.manual_seed(0)
        whole = LlamaForCausalLM(CONFIG).eval().to(dtype)
        self.model, self.lm_head = whole.model, whole.lm_head

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.model(tokens, use_cache=False).last_hidden_state)


@cache
def imported(dtype: torch.dtype = torch.float32) -> tuple[Logits, rx.Module]:
    model = Logits(dtype)
    return model, rx.from_torch(torch.export.export(model, (TOKENS,)))


@cache
def compiled() -> rx.Executable:
    """The model for weights of f32."""
    return rx.compile(imported()[1])


def plain_weights() -> dict[str, np.ndarray]:
    """What the module takes, tables of the model's own among them."""
    model, module = imported()
    found = dict(model.named_buffers()) | dict(model.named_parameters())
    return {w.name: found[w.name].detach().numpy() for w in module.functions["main"].weights}


def checkpoint(
    path: Path, config: Mapping[str, Any], encode: Callable[[np.random.Generator, int, int], tuple[write.Arrays, np.ndarray]]
) -> dict[str, np.ndarray]:
    """A folder in which the matrices of all layers are encoded; what all weights mean, in f32."""
    rng = np.random.default_rng(1)
    tensors: write.Arrays = {}
    meaning: dict[str, np.ndarray] = {}
    for name, value in plain_weights().items():
        if "_proj." in name:
            parts, meaning[name] = encode(rng, *value.shape)
            tensors |= {name.removesuffix(".weight") + end: array for end, array in parts.items()}
        else:
            tensors[name] = meaning[name] = value
    write_safetensors(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps({"quantization_config": config}))
    return meaning


#: Formats whose own tensors are far from the matrix; :mod:`test_random_checkpoints` has all of them, in single layers.
CASES: dict[str, tuple[dict[str, Any], Callable[..., tuple[write.Arrays, np.ndarray]]]] = {
    "gptq-act-order": (
        {"quant_method": "gptq", "bits": 4, "group_size": 32},
        lambda rng, n, k: write.gptq(rng, n, k, symmetric=False, act_order=True),
    ),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, write.fp8),
}


def dequantized(weights: Mapping[str, np.ndarray], dtype: torch.dtype = torch.float32) -> np.ndarray:
    """The logits of the model with the weights that a checkpoint means."""
    model = imported(dtype)[0]
    with torch.no_grad():
        state = {n: torch.from_numpy(np.ascontiguousarray(w)).to(dtype) for n, w in weights.items()}
        return torch.func.functional_call(model, state, (TOKENS,)).float().numpy()


def test_prepared_from_the_file_as_it_is(tmp_path: Path) -> None:
    config, encode = CASES["gptq-act-order"]
    weights = checkpoint(tmp_path, config, encode)
    exe = compiled()
    report = exe.prepare(tmp_path, tmp_path / "prepared.safetensors")
    assert report.extra_weights == ()
    expected = dequantized(weights)
    # Sums of up to 128 products in another order, in f32.
    np.testing.assert_allclose(exe.bind(report)(TOKENS).numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", CASES)
def test_compiled_for_the_file(tmp_path: Path, name: str) -> None:
    config, encode = CASES[name]
    weights = checkpoint(tmp_path, config, encode)
    exe = rx.compile(imported()[1], checkpoint=tmp_path)
    report = exe.prepare(tmp_path, tmp_path / "prepared.safetensors")
    assert report.extra_weights == ()
    expected = dequantized(weights)
    # Sums of up to 128 products in another order, in f32.
    np.testing.assert_allclose(exe.bind(report)(TOKENS).numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), len(section.decoded)) == (7, 0)
    assert prepared_bytes(exe) <= stored_bytes(tmp_path)


def prepared_bytes(exe: rx.Executable) -> int:
    """Bytes of what products of layers read."""
    return sum(w.array.nbytes for n, w in exe.manifest.prepared_weights.items() if "_proj" in n)


def stored_bytes(path: Path) -> int:
    """Bytes of the layers in the file, where each zero point has a byte, and a scale that is decoded has four."""
    stored = Checkpoint(path)
    wider = {"qzeros": 2, "absmax": 4, "weight_scale_inv": 64}  # a scale of a block for each of its 64 rows
    names = [n for n in stored if "_proj" in n]
    return sum(stored.spec(n).nbytes * wider.get(n.rsplit(".", 1)[1], 1) for n in names)


GGUF_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def gguf_model(path: Path) -> dict[str, np.ndarray]:
    """The model as llama.cpp's converter writes it, in Q8_0 and Q4_0, and what its weights mean under their own names."""
    kinds = gguf.GGMLQuantizationType
    tensors: dict[str, Any] = {}
    meaning: dict[str, np.ndarray] = {}
    for name, value in plain_weights().items():
        if "inv_freq" in name:
            meaning[name] = value
            continue
        own = name.removesuffix(".weight").removeprefix("model.layers.0.")
        kind = kinds.F32 if value.ndim == 1 else kinds.Q4_0 if "mlp" in name else kinds.Q8_0 if "_proj" in name else kinds.F16
        heads = {"attn_q": 4, "attn_k": 2}.get(GGUF_NAMES[own], 1)
        meaning[name] = gguf.dequantize(gguf.quantize(value, kind), kind)
        stored = gguf_files.permuted(value, heads) if heads > 1 else value
        prefix = "blk.0." if "layers" in name else ""
        tensors[f"{prefix}{GGUF_NAMES[own]}.weight"] = (gguf.quantize(stored, kind), kind)
    gguf_files.write(path, tensors, "llama")
    return meaning


@pytest.mark.parametrize("is_compiled_for_it", [False, True], ids=["prepared", "compiled for it"])
def test_gguf_of_a_whole_model(tmp_path: Path, is_compiled_for_it: bool) -> None:
    path = tmp_path / "m.gguf"
    weights = gguf_model(path)
    exe = rx.compile(imported()[1], checkpoint=path) if is_compiled_for_it else compiled()
    exe.bind(exe.prepare(path))
    expected = dequantized(weights)
    # Sums of up to 128 products in another order, in f32.
    np.testing.assert_allclose(exe(TOKENS).numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("kind", "is_compiled_for_it"),
    [*(pytest.param(kind, True, id=kind) for kind in BLOCKS), pytest.param("Q6_K", False, id="Q6_K, decoded before")],
)
def test_products_with_blocks(tmp_path: Path, kind: str, is_compiled_for_it: bool) -> None:
    number = gguf.GGMLQuantizationType[kind]
    raw = gguf_files.blocks(np.random.default_rng(3), kind, 64, 512 // BLOCKS[kind].elements, usual=True)
    path = gguf_files.write(tmp_path / "m.gguf", {"t": (raw, number)})
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", 512)), b.permute_dims(b.weight("t", (64, 512)))))
    exe = rx.compile(b.build(), checkpoint=path if is_compiled_for_it else None)
    exe.bind(exe.prepare(path))
    weight, x = gguf.dequantize(raw, number), np.random.default_rng(1).standard_normal((7, 512), np.float32)
    # Sums of 512 products in another order, in f32.
    bound = 512 * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(weight).T)
    assert (np.abs(exe(x) - x @ weight.T) <= bound).all()
    if is_compiled_for_it:
        (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
        assert (len(section.kept), len(section.decoded)) == (1, 0)
        prepared = sum(w.array.nbytes for w in exe.manifest.prepared_weights.values())
        bits = {"Q4_0": 4 + 16 / 32, "Q8_0": 8 + 16 / 32, "Q4_K": 4 + 2 * (8 / 32 + 16 / 256)}
        bits |= {"IQ4_NL": 4 + 16 / 32, "MXFP4": 4 + 8 / 32, "IQ4_XS": 4 + 8 / 32 + 16 / 256}
        bits |= {"Q4_1": 4 + 2 * 16 / 32, "Q5_0": 5 + 16 / 32, "Q5_1": 5 + 2 * 16 / 32}
        bits |= {"Q2_K": 4 + 2 * (8 / 16 + 16 / 256), "Q3_K": 4 + 8 / 16 + 16 / 256}
        bits |= {"Q5_K": 5 + 2 * (8 / 32 + 16 / 256), "Q6_K": 6 + 8 / 16 + 16 / 256}
        assert prepared == bits[kind] / 8 * weight.size
        (kernels,) = [s.kernels for s in exe.report.sections if isinstance(s, KernelSection) and s.function == "main"]
        assert [k.kind for k in kernels] == ["contraction"]  # nothing makes the weight wide in memory


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("scales", [np.float16, write.BF16], ids=["f16 scales", "bf16 scales"])
def test_modules_of_narrow_floats(tmp_path: Path, dtype: str, scales: Any) -> None:
    """Scales of the module's dtype round a weight to that; with others, products read what the file means in f32."""
    tensors, weight = write.compressed(np.random.default_rng(2), 64, 64, dtype=scales)
    write_safetensors(tmp_path / "model.safetensors", {f"t{e}": t for e, t in tensors.items()})
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "compressed-tensors"}}))
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", ("n", 64), dtype)
        b.output(b.matmul(x, b.permute_dims(b.weight("t.weight", (64, 64), dtype)), out_dtype="f32"))
    narrow = numpy_dtype(dtype)
    exe = rx.compile(b.build(), checkpoint=tmp_path)
    exe.bind(exe.prepare(tmp_path))
    rounded = weight.astype(narrow).astype(np.float32) if np.dtype(scales) == narrow else weight
    x = np.random.default_rng(1).standard_normal((7, 64)).astype(narrow)
    wide = x.astype(np.float32)
    bound = 64 * np.finfo(np.float32).eps * (np.abs(wide) @ np.abs(rounded).T)
    assert (np.abs(exe(x) - wide @ rounded.T) <= bound).all()
    assert sum(w.array.nbytes for w in exe.manifest.prepared_weights.values()) <= 64 * 64 * 0.75


def embedding(rows: int) -> rx.Module:
    """A look-up, and the product with the same matrix."""
    b = rx.Builder()
    with b.function("main"):
        ids, weight = b.input("ids", ("n",), "i64"), b.weight("model.embed_tokens.weight", (rows, 64))
        b.output(b.matmul(b.take(weight, ids, axis=0), b.permute_dims(weight)))
    return b.build()


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0"])
def test_tied_embeddings(tmp_path: Path, kind: str) -> None:
    number = gguf.GGMLQuantizationType[kind]
    raw = gguf_files.blocks(np.random.default_rng(3), kind, 96, 2, usual=True)
    path = gguf_files.write(tmp_path / "m.gguf", {"token_embd.weight": (raw, number)}, "llama")
    weight, ids = gguf.dequantize(raw, number), np.array([3, 95, 0])
    exe = rx.compile(embedding(96), checkpoint=path)
    exe.bind(exe.prepare(path, tmp_path / "prepared.safetensors"))
    # Sums of 64 products in another order, in f32.
    bound = 64 * np.finfo(np.float32).eps * (np.abs(weight[ids]) @ np.abs(weight).T)
    assert (np.abs(exe(ids) - weight[ids] @ weight.T) <= bound).all()
    (section,) = [s for s in exe.report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), len(section.decoded)) == (1, 0)
    prepared = sum(w.array.nbytes for w in exe.manifest.prepared_weights.values())
    assert prepared == raw.nbytes + (weight.size // 2 if kind == "Q4_0" else 0)  # words of rows, and words for products


def test_two_entries_prepare_a_weight_once(tmp_path: Path) -> None:
    tensors, weight = write.gptq(np.random.default_rng(0), 64, 64, symmetric=False)
    write_safetensors(tmp_path / "model.safetensors", {f"t{e}": t for e, t in tensors.items()})
    config = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": config}))
    b = rx.Builder()
    for name, rows in (("prefill", "n"), ("decode", 1)):
        with b.function(name):
            b.output(b.matmul(b.input("x", (rows, 64)), b.permute_dims(b.weight("t.weight", (64, 64)))))
    exe = rx.compile(b.build(), checkpoint=tmp_path)
    exe.bind(exe.prepare(tmp_path))
    assert len(exe.manifest.prepared_weights) == 3
    x = np.random.default_rng(1).standard_normal((5, 64), np.float32)
    np.testing.assert_allclose(exe(x, entry="prefill"), x @ weight.T, rtol=0, atol=1e-5)
    np.testing.assert_allclose(exe(x[:1], entry="decode"), x[:1] @ weight.T, rtol=0, atol=1e-5)


def test_wrong_checkpoints_are_refused(tmp_path: Path) -> None:
    raw = gguf_files.blocks(np.random.default_rng(3), "Q8_0", 96, 2, usual=True)
    tensors = {"token_embd.weight": (raw, gguf.GGMLQuantizationType.Q8_0)}
    path = gguf_files.write(tmp_path / "m.gguf", tensors, "llama")
    with pytest.raises(
        rx.RelaxError, match=r"m.gguf': weight 'model.embed_tokens.weight': expected shape \[95, 64\], got \[96, 64\]"
    ):
        rx.compile(embedding(95), checkpoint=path)
    with pytest.raises(rx.RelaxError, match=r"expected weights as int8, int4 or None for what .* has wide, got 'bf16'"):
        rx.compile(embedding(96), checkpoint=path, weights="bf16")


def gptq_layer(path: Path, **options: Any) -> np.ndarray:
    """A folder with one layer ``t``, and what it means."""
    tensors, weight = write.gptq(np.random.default_rng(0), 64, 64, **options)
    write_safetensors(path / "model.safetensors", {f"t{e}": t for e, t in tensors.items()})
    config = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    (path / "config.json").write_text(json.dumps({"quantization_config": config}))
    return weight


def product(name: str) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", ("n", 64)), b.permute_dims(b.weight(name, (64, 64)))))
    return b.build()


def test_renamed_checkpoints(tmp_path: Path) -> None:
    weight, rename = gptq_layer(tmp_path), {"^": "model."}
    exe = rx.compile(product("model.t.weight"), checkpoint=tmp_path, rename=rename)
    exe.bind(exe.prepare(tmp_path, rename=rename))
    assert sum(w.array.nbytes for w in exe.manifest.prepared_weights.values()) < weight.size
    x = np.random.default_rng(1).standard_normal((5, 64), np.float32)
    np.testing.assert_allclose(exe(x), x @ weight.T, rtol=0, atol=1e-5)
    with pytest.raises(rx.RelaxError, match=r"expected a checkpoint whose tensors to rename, got none"):
        rx.compile(product("t.weight"), rename=rename)
    with pytest.raises(rx.RelaxError, match=r"expected rename 'y' to match a name, got none of"):
        rx.compile(product("t.weight"), checkpoint=tmp_path, rename={"y": "x"})


@pytest.mark.parametrize("other", [{"version": 2}, {"symmetric": False, "act_order": True}, {"bits": 8}])
def test_what_is_prepared_is_encoded_as_what_was_compiled_for(tmp_path: Path, other: dict[str, Any]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    gptq_layer(tmp_path / "a")
    gptq_layer(tmp_path / "b", **other)
    if "bits" in other:
        (tmp_path / "b" / "config.json").write_text(
            json.dumps({"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": 32}})
        )
    exe = rx.compile(product("t.weight"), checkpoint=tmp_path / "a")
    exe.prepare(tmp_path / "a")
    with pytest.raises(rx.RelaxError, match=r"weight 't.weight': expected it encoded as in the checkpoint that .* compile for"):
        exe.prepare(tmp_path / "b")


@pytest.mark.parametrize("columns", [40, 64])
def test_experts_of_four_bit_floats(columns: int, tmp_path: Path) -> None:
    """Matrices of several experts in one weight stay four bits in memory, in whole panels of columns."""
    tensors, weight = write.mxfp4(np.random.default_rng(2), 3, columns, 64)
    write_safetensors(tmp_path / "model.safetensors", {f"e{e}": t for e, t in tensors.items()})
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "mxfp4"}}))
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", (3, "n", 64)), b.weight("e", weight.shape)))
    exe = rx.compile(b.build(), checkpoint=tmp_path)
    exe.bind(exe.prepare(tmp_path))
    size = sum(w.array.nbytes for w in exe.manifest.prepared_weights.values())
    assert weight.size * (4 + 8 / 32) / 8 <= size <= 3 * 64 * 64 * (4 + 8 / 32) / 8
    x = np.random.default_rng(1).standard_normal((3, 5, 64), np.float32)
    bound = 64 * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(weight))
    assert (np.abs(exe(x) - x @ weight) <= bound).all()


@pytest.mark.parametrize("kind", ["Q4_K", "IQ4_NL", "MXFP4"])
def test_general_kernels_of_gpus_read_blocks(tmp_path: Path, kind: str) -> None:
    number = gguf.GGMLQuantizationType[kind]
    raw = gguf_files.blocks(np.random.default_rng(3), kind, 32, 256 // BLOCKS[kind].elements, usual=True)
    path = gguf_files.write(tmp_path / "m.gguf", {"t": (raw, number)})
    b = rx.Builder()
    with b.function("main"):
        b.output(b.matmul(b.input("x", (6, 256)), b.permute_dims(b.weight("t", (32, 256)))))
    exe = rx.compile(b.build(), "cuda:sm_80", device="emulated", checkpoint=path)
    exe.bind(exe.prepare(path))
    weight, x = gguf.dequantize(raw, number), np.random.default_rng(1).standard_normal((6, 256), np.float32)
    bound = 256 * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(weight).T)
    assert (np.abs(exe(x) - x @ weight.T) <= bound).all()
