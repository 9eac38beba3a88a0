"""``relaxir.transformers.load`` of quantized folders: products read the files' own integers, under the model's names."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from relaxir import RelaxError
from relaxir.dialect.reports.checkpoint import CheckpointWeights
from relaxir.weights import write_safetensors
from support import encoded_weights as write
from support.hf_folders import SMALL, loaded

#: What the configuration says, and what writes a weight of so many outputs and inputs, by method.
METHODS: dict[str, tuple[dict[str, Any], Callable[..., tuple[write.Arrays, np.ndarray]]]] = {
    "gptq": ({"bits": 4, "group_size": 32}, partial(write.gptq, symmetric=False, act_order=False)),
    "awq": ({"bits": 4, "group_size": 32, "version": "gemm"}, write.awq),
    "compressed-tensors": ({}, write.compressed),
    "fp8": ({"weight_block_size": [16, 16]}, partial(write.fp8, block=16)),
    "torchao": ({}, write.torchao),
    "bitsandbytes": ({"load_in_4bit": True}, write.nf4),
}


@pytest.fixture(scope="module", params=METHODS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder of a causal language model of which the plain one is asked for, and that one with the weights that it means."""
    said, writer = METHODS[request.param]
    path = tmp_path_factory.mktemp(request.param)
    config = transformers.LlamaConfig(**SMALL | {"hidden_size": 64, "architectures": ["LlamaModel"]})
    torch.manual_seed(0)
    model = transformers.LlamaModel(config).eval()
    rng, tensors = np.random.default_rng(1), write.Arrays()
    for name, parameter in model.named_parameters():
        value = parameter.detach().numpy()
        if "_proj." not in name:
            tensors[f"model.{name}"] = value
            continue
        parts, meaning = writer(rng, *value.shape)
        tensors |= {f"model.{name}".removesuffix(".weight") + end: array for end, array in parts.items()}
        parameter.data = torch.from_numpy(np.ascontiguousarray(meaning)).float()
    write_safetensors(path / "model.safetensors", tensors)
    (path / "config.json").write_text(
        json.dumps(config.to_dict() | {"quantization_config": {"quant_method": request.param, **said}})
    )
    return path, model


def test_integers_stay_as_narrow_as_the_file_has_them(folder: tuple[Path, Any]) -> None:
    """Sums of up to 64 products in another order, in f32."""
    path, model = folder
    compiled = loaded(path)
    tokens = torch.tensor([[3, 14, 15, 92, 65]])
    with torch.no_grad():
        expected = model(tokens).last_hidden_state
    got = compiled(tokens).last_hidden_state
    torch.testing.assert_close(got, expected, rtol=0.0, atol=1e-5 * expected.abs().max().item())
    (section,) = [s for s in compiled.executable().report.sections if isinstance(s, CheckpointWeights)]
    assert (len(section.kept), len(section.decoded)) == (7, 0)


def test_narrow_floats_have_no_place_beside_them(folder: tuple[Path, Any]) -> None:
    message = r"^expected weights as int8, int4 or None for what a quantized checkpoint has wide, got 'bf16'$"
    with pytest.raises(RelaxError, match=message):
        loaded(folder[0], weights="bf16")


@pytest.mark.parametrize("method", ["awq"])  # of others a forward pass, above
def test_a_language_model_generates_what_the_wide_one_does(tmp_path: Path, method: str) -> None:
    said, writer = METHODS[method]
    config = transformers.LlamaConfig(**SMALL | {"hidden_size": 64, "architectures": ["LlamaForCausalLM"]})
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    rng, tensors = np.random.default_rng(1), write.Arrays()
    for name, parameter in model.named_parameters():
        parts, meaning = writer(rng, *parameter.shape) if "_proj." in name else ({".weight": parameter.detach().numpy()}, None)
        tensors |= {name.removesuffix(".weight") + end: array for end, array in parts.items()}
        if meaning is not None:
            parameter.data = torch.from_numpy(np.ascontiguousarray(meaning)).float()
    write_safetensors(tmp_path / "model.safetensors", tensors)
    quantization = {"quantization_config": {"quant_method": method, **said}}
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict() | quantization))
    tokens = torch.tensor([[3, 14, 15, 92, 65]])
    expected = model.generate(tokens, max_new_tokens=6, do_sample=False)
    torch.testing.assert_close(loaded(tmp_path).generate(tokens, max_new_tokens=6, do_sample=False), expected)
