"""Models on quantized checkpoints: prepared from the file as it is, they compute what the dequantized model does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import relaxir as rx
from relaxir.dialect.reports.checkpoint import CheckpointWeights
from relaxir.weights import Checkpoint, write_safetensors
from support import encoded_weights as write

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


CASES: dict[str, tuple[dict[str, Any], Callable[..., tuple[write.Arrays, np.ndarray]]]] = {
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 32}, write.gptq),
    "gptq-act-order": (
        {"quant_method": "gptq", "bits": 4, "group_size": 32},
        lambda rng, n, k: write.gptq(rng, n, k, symmetric=False, act_order=True),
    ),
    "gptq-8": ({"quant_method": "gptq", "bits": 8, "group_size": 32}, lambda rng, n, k: write.gptq(rng, n, k, bits=8)),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 32}, write.awq),
    "compressed-tensors": ({"quant_method": "compressed-tensors"}, write.compressed),
    "fp8": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, write.fp8),
    "nf4": ({"quant_method": "bitsandbytes"}, write.nf4),
}


def dequantized(weights: Mapping[str, np.ndarray], dtype: torch.dtype = torch.float32) -> np.ndarray:
    """The logits of the model with the weights that a checkpoint means."""
    model = imported(dtype)[0]
    with torch.no_grad():
        state = {n: torch.from_numpy(np.ascontiguousarray(w)).to(dtype) for n, w in weights.items()}
        return torch.func.functional_call(model, state, (TOKENS,)).float().numpy()


@pytest.mark.parametrize("name", CASES)
def test_prepared_from_the_file_as_it_is(tmp_path: Path, name: str) -> None:
    config, encode = CASES[name]
    weights = checkpoint(tmp_path, config, encode)
    exe = compiled()
    report = exe.prepare(tmp_path, tmp_path / "prepared.safetensors")
    assert report.extra_weights == ()
    expected = dequantized(weights)
    # Sums of up to 128 products in another order, in f32.
    np.testing.assert_allclose(exe.bind(report)(TOKENS).numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    plain = exe.prepare(weights)
    for key, value in exe.prepare(tmp_path).items():
        np.testing.assert_array_equal(value, plain[key])


#: Cases whose matrices no kernel reads as the file has them.
DECODED = {"gptq-act-order", "fp8", "nf4"}


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
    assert (len(section.kept), len(section.decoded)) == ((0, 7) if name in DECODED else (7, 0))
    assert name in DECODED or prepared_bytes(exe) <= stored_bytes(tmp_path)


def prepared_bytes(exe: rx.Executable) -> int:
    """Bytes of what products of layers read."""
    return sum(w.array.nbytes for n, w in exe.manifest.prepared_weights.items() if "_proj" in n)


def stored_bytes(path: Path) -> int:
    """Bytes of the layers in the file, where scales have four bytes and each zero point has one."""
    stored = Checkpoint(path)
    wider = {"scales": 2, "weight_scale": 2, "qzeros": 2, "qweight": 1, "weight_packed": 1}
    names = [n for n in stored if "_proj" in n]
    return sum(stored.spec(n).nbytes * wider.get(n.rsplit(".", 1)[1], 0) for n in names)
