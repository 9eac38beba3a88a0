"""Models whose tokens choose experts, exported with a symbolic length: compiled, at that length and others, against torch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402
from support.hf_folders import SMALL as SMALL_FOLDER  # noqa: E402
from support.hf_folders import loaded, saved  # noqa: E402

SMALL = {"vocab_size": 48, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2,
         "num_key_value_heads": 1, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}  # fmt: skip
KINDS = {
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 16, "head_dim": 16},
}


class Logits(torch.nn.Module):
    """Ids of tokens to logits."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(ids, use_cache=False).logits


@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch(kind: str) -> None:
    torch.manual_seed(0)
    config: Any = transformers.AutoConfig.for_model(kind, **SMALL, **KINDS[kind])
    module = Logits(transformers.AutoModelForCausalLM.from_config(config)).eval()
    ids = torch.randint(0, 48, (2, 7))
    with torch.no_grad(), models.quiet():
        program = torch.export.export(module, (ids,), dynamic_shapes=[{1: torch.export.Dim("n", min=2, max=64)}])
    exe = rx.compile(rx.from_torch(program))
    exe.bind(exe.prepare(module.state_dict()))
    for length in (7, 2, 33):
        ids = torch.randint(0, 48, (2, length))
        with torch.no_grad():
            torch.testing.assert_close(exe(ids), module(ids), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weights", [None, "int4"])
def test_a_folder_is_as_many_products_however_many_experts(weights: str | None, tmp_path: Path) -> None:
    """Two of a layer and entry, each row with the matrix of its expert."""
    options = SMALL_FOLDER | {"num_experts": 12, "moe_intermediate_size": 64, "head_dim": 8, "hidden_size": 64}
    model: Any = saved("Qwen3MoeForCausalLM", "qwen3_moe", options | {"num_experts_per_tok": 3}, tmp_path)
    model.set_experts_implementation("eager")
    compiled = loaded(tmp_path, weights=weights)
    text = compiled.executable().module_text
    assert len(re.findall(r"relax\.(packed|quantized)_grouped_matmul", text)) == 4 * options["num_hidden_layers"]
    assert "scf.if" not in text
    prompt, greedy = torch.tensor([[3, 14, 15, 92, 65, 35]]), {"max_new_tokens": 4, "do_sample": False}
    if weights is None:
        assert compiled.generate(prompt, **greedy).tolist() == model.generate(prompt, **greedy).tolist()
