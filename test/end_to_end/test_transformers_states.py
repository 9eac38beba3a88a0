"""``relaxir.transformers.load`` of models whose layers keep states beside, or in place of, keys and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from relaxir import RelaxError
from support import models
from support.hf_folders import SMALL, loaded, saved

_DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
_TWO = SMALL | {"num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 200}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "lfm2": ("Lfm2ForCausalLM", _TWO | {"layer_types": ["conv", "full_attention"], "block_multiple_of": 8}),
    "qwen3_5_text": ("Qwen3_5ForCausalLM", _TWO | _DELTA | {"layer_types": ["linear_attention", "full_attention"]}),
    # Keys and a state in one layer.
    "falcon_h1": (
        "FalconH1ForCausalLM",
        _TWO | {"num_hidden_layers": 1, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
    ),
}
#: More than a block, and no multiple of one; the first row is padded on the left.
TOKENS = torch.randint(3, 90, (2, 150), generator=torch.Generator().manual_seed(0))
MASK = torch.ones_like(TOKENS)
MASK[0, :70] = 0


@pytest.fixture(params=MODELS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """A model of transformers, and the compiled one."""
    name, options = MODELS[request.param]
    return saved(name, request.param, options, tmp_path), loaded(tmp_path, batch=2, max_length=180)


def test_models_with_states(pair: tuple[Any, Any]) -> None:
    """Logits of long prompts at once and in pieces, a cache that begins again, tokens behind, beams."""
    model, compiled = pair
    with torch.no_grad():
        wanted = model(TOKENS, attention_mask=MASK).logits
    near = {"rtol": 1e-3, "atol": 1e-4 * wanted.abs().max().item()}
    whole = compiled(TOKENS, attention_mask=MASK)
    torch.testing.assert_close(whole.logits[MASK == 1], wanted[MASK == 1], **near)
    torch.testing.assert_close(compiled(TOKENS, attention_mask=MASK, logits_to_keep=80).logits, whole.logits[:, -80:], **near)
    cache, pieces = None, list[torch.Tensor]()
    for begin, end in ((0, 5), (5, 6), (6, 71), (71, 150)):
        found = compiled(TOKENS[:, begin:end], attention_mask=MASK[:, :end], past_key_values=cache)
        cache = found.get("cache", found.get("past_key_values"))
        pieces.append(found.logits)
    torch.testing.assert_close(torch.cat(pieces, 1)[MASK == 1], wanted[MASK == 1], **near)
    assert cache is not None
    cache.reset()
    again = compiled(TOKENS, attention_mask=MASK, past_key_values=cache).logits
    torch.testing.assert_close(again[MASK == 1], wanted[MASK == 1], **near)
    for beams in (1, 2):
        given: dict[str, Any] = {"attention_mask": MASK, "min_new_tokens": 12, "max_new_tokens": 12, "num_beams": beams}
        with models.quiet():
            assert compiled.generate(TOKENS, **given, do_sample=False).tolist() == model.generate(TOKENS, **given).tolist()
    with pytest.raises(RelaxError, match=r"^expected a cache of keys and values alone, of which tokens can be taken back, got"):
        cache.crop(-1)
    assert not cache.is_croppable
