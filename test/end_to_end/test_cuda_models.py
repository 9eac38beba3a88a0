"""Whole models on an emulated GPU: imported from PyTorch, prepared on the CPU, run by the PTX and host code of an artifact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmark.decode import Generator
from transformers import LlamaConfig, LlamaForCausalLM, ViTConfig, ViTModel

import relaxir as rx
from support import models
from support.emulated_cuda import plans
from support.models import Model, quiet, weights_of

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


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (models.bert, "cuda:sm_80"), (models.gpt2, "cuda:sm_90a"), (models.llama, "cuda:sm_80"),
        (models.resnet18, "cuda:sm_90a"), (vit, "cuda:sm_80"),
    ],
)  # fmt: skip
def test_models(model, target: str, tmp_path: Path) -> None:
    tiny = model()
    program = tiny.export()
    module = rx.from_torch(program)
    executable = on_gpu(module, target, tmp_path)
    executable.prepare(weights_of(program, module), tmp_path / "prepared.safetensors")
    executable.bind(tmp_path / "prepared.safetensors")
    if model is not models.resnet18:
        assert any(plan.startswith("attention ") for plan in plans(executable))
    inputs = tiny.inputs(3, 7 if tiny.dynamic and "input_ids" in tiny.inputs() else None) if tiny.dynamic else tiny.inputs()
    agree(tiny.eager(inputs), executable(**{k: v.numpy() for k, v in inputs.items()}))


def generator() -> Generator:
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2)  # fmt: skip
    return Generator(LlamaForCausalLM(config).eval(), 16).eval()


@pytest.mark.parametrize(("weights", "target"), [(None, "cuda:sm_80"), ("bf16", "cuda:sm_90a"), ("int4", "cuda:sm_80")])
def test_prompt_and_tokens_with_a_cache_on_the_device(weights: str | None, target: str, tmp_path: Path) -> None:
    """Against compiled code of the CPU with weights as narrow: how narrow weights are rounded is tested there."""
    model, prompt = generator(), torch.tensor([[3, 14, 15, 92, 65]])
    with quiet(), torch.no_grad():
        programs = {
            "prefill": torch.export.export(model, (prompt,), dynamic_shapes=[{1: torch.export.Dim("n", min=2, max=16)}]),
            "decode": torch.export.export(model, (torch.tensor([[1]]),)),
        }
    model.reset()
    module = rx.from_torch(programs)
    raw = dict(model.state_dict()) | dict(model.named_buffers())
    options = {} if weights is None else {"weights": weights}
    host, device = rx.compile(module, **options), on_gpu(module, target, tmp_path, **options)
    for executable in (host, device):
        executable.bind(executable.prepare(raw))
    # bf16: the CPU's sums of products round elsewhere than the GPU's where activations are rounded to bf16 again.
    bound = 2e-2 if weights == "bf16" else 1e-4
    assert any(plan.startswith("attention ") for plan in plans(device))
    mine, tokens = device.new_state(), [np.array([[t]]) for t in (35, 89, 79)]
    agree([host(prompt.numpy(), entry="prefill")], device(prompt.numpy(), entry="prefill", state=mine), bound)
    for token in tokens:
        agree([host(token, entry="decode")], device(token, entry="decode", state=mine), bound)
    for name in ("keys_0", "values_1"):
        agree([host.state[name]], mine[name], bound)
    assert not device.state["keys_0"].any()
