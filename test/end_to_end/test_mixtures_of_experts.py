"""Models whose tokens choose experts, exported with a symbolic length: compiled, at that length and others, against torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import relaxir as rx  # noqa: E402
from support import models  # noqa: E402

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
