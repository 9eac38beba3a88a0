"""Whole models on an emulated GPU: imported from PyTorch, prepared on the CPU, run by the PTX and host code of an artifact.

Each for one kind of GPU at least; what differs between them most for both, one after the other: these share what is imported,
and what it is compared with. Each op and each kernel has tests of its own on both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmark.decode import Generator
from transformers import LlamaConfig, LlamaForCausalLM, ViTConfig, ViTModel

import relaxir as rx
from support import models
from support.device_cases import TARGETS
from support.emulated_cuda import plans
from support.models import Model, quiet, weights_of

SM_80, SM_90A = TARGETS

#: f32 sums in another order, over at most 128 terms and a few layers; what is seen is below 1e-6.
F32 = 1e-5


def on_gpu(module: rx.Module, target: str, folder: Path, **options: str) -> rx.Executable:
    """Through an artifact on disk: what is deployed has this code and nothing else."""
    rx.compile(module, target, **options).save(folder / "m.relax")
    return rx.load(folder / "m.relax", device="emulated")


def agree(want: list[np.ndarray], got: object, bound: float = F32) -> None:
    results = got if isinstance(got, tuple) else (got,)
    for a, b in zip(want, results, strict=True):
        b = np.asarray(b, np.float64)
        assert np.abs(b - a).max() < bound * max(1.0, np.abs(a).max())


def vit() -> Model:
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=32, patch_size=8)
    module = models._built(lambda: ViTModel(ViTConfig(**small, attn_implementation="sdpa"), add_pooling_layer=False))
    return Model("vit-tiny", module, lambda batch, size: {"pixel_values": torch.randn(batch, 3, size, size)}, False, (2, 32))


def resnet() -> Model:
    """Of images whose sizes are odd when halved thrice (40, 20, 10, 5, 3, 2), and which are emulated in half the time of 64."""
    return replace(models.resnet18(), shape=(2, 40))


@functools.cache
def imported(make: Callable[[], Model]) -> tuple[rx.Module, Mapping[str, np.ndarray], dict[str, np.ndarray], list[np.ndarray]]:
    """A model's module and weights, inputs of other sizes than it was exported with, and what torch makes of these."""
    tiny = make()
    program = tiny.export()
    module = rx.from_torch(program)
    inputs = tiny.inputs(3, 7 if tiny.dynamic and "input_ids" in tiny.inputs() else None) if tiny.dynamic else tiny.inputs()
    return module, weights_of(program, module), {k: v.numpy() for k, v in inputs.items()}, tiny.eager(inputs)


@pytest.mark.parametrize(
    ("model", "target"),
    [(models.bert, SM_80), (models.gpt2, SM_90A), (models.llama, SM_80), (models.llama, SM_90A), (resnet, SM_90A), (vit, SM_80),
     (vit, SM_90A)],
)  # fmt: skip
def test_models(model: Callable[[], Model], target: str, tmp_path: Path) -> None:
    """Of any batch and length where the model takes such; calls only launch, so the host waits for their results alone."""
    module, weights, inputs, want = imported(model)
    executable = on_gpu(module, target, tmp_path)
    executable.prepare(weights, tmp_path / "prepared.safetensors")
    executable.bind(tmp_path / "prepared.safetensors")
    if model is not resnet:
        assert any(plan.startswith("attention ") for plan in plans(executable))
    assert executable.manifest.data["cuda"]["graphs"] == ["relaxir_main"]
    agree(want, executable(**inputs))


@functools.cache
def generator() -> tuple[rx.Module, dict[str, Any], np.ndarray]:
    """A Llama with a cache as entries for a prompt and for a token, its weights, and a prompt."""
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2)  # fmt: skip
    model, prompt = Generator(LlamaForCausalLM(config).eval(), 16).eval(), torch.tensor([[3, 14, 15, 92, 65]])
    with quiet(), torch.no_grad():
        programs = {
            "prefill": torch.export.export(model, (prompt,), dynamic_shapes=[{1: torch.export.Dim("n", min=2, max=16)}]),
            "decode": torch.export.export(model, (torch.tensor([[1]]),)),
        }
    model.reset()
    return rx.from_torch(programs), dict(model.state_dict()) | dict(model.named_buffers()), prompt.numpy()


_TOKENS = [np.array([[token]]) for token in (35, 89, 79)]
_STATES = ("keys_0", "values_1")


@functools.cache
def on_host(weights: str | None) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What compiled code of the CPU gives for the prompt and each token, and the state that it leaves."""
    module, raw, prompt = generator()
    host = rx.compile(module, weights=weights)
    host.bind(host.prepare(raw))
    logits = [np.array(host(prompt, entry="prefill")), *(np.array(host(token, entry="decode")) for token in _TOKENS)]
    return logits, [np.array(host.state[name]) for name in _STATES]


@pytest.mark.parametrize(("weights", "target"), [(None, SM_80), ("bf16", SM_80), ("bf16", SM_90A), ("int4", SM_90A)])
def test_prompt_and_tokens_with_a_cache_on_the_device(weights: str | None, target: str, tmp_path: Path) -> None:
    """Against compiled code of the CPU with weights as narrow: how narrow weights are rounded is tested there."""
    module, raw, prompt = generator()
    device = on_gpu(module, target, tmp_path, **({} if weights is None else {"weights": weights}))
    device.bind(device.prepare(raw))
    # bf16: the CPU's sums of products round elsewhere than the GPU's where activations are rounded to bf16 again.
    bound = 2e-2 if weights == "bf16" else 1e-4
    assert any(plan.startswith("attention ") for plan in plans(device))
    mine, (logits, states) = device.new_state(), on_host(weights)
    agree(logits[:1], device(prompt, entry="prefill", state=mine), bound)
    for want, token in zip(logits[1:], _TOKENS, strict=True):
        agree([want], device(token, entry="decode", state=mine), bound)
    for want, name in zip(states, _STATES, strict=True):
        agree([want], mine[name], bound)
    assert not device.state["keys_0"].any()
