"""Output layers that are tied to embeddings, or not: by what the configuration and the files say together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

import relaxir as rx

TOKENS = torch.tensor([[3, 14, 15, 92, 65, 35]])


def edited(folder: Path, config: dict[str, Any], dropped: str | None = None) -> Path:
    """A small Llama with an output layer of its own, then with other settings, or without a tensor."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4}
    LlamaForCausalLM(LlamaConfig(**sizes, max_position_embeddings=64)).save_pretrained(folder)
    found = json.loads((folder / "config.json").read_text())
    found.pop("tie_word_embeddings", None)
    (folder / "config.json").write_text(json.dumps(found | config))
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(dropped, None)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@torch.no_grad()
@pytest.mark.parametrize("weights", [None, "int8"])
def test_layers_that_differ_are_both_taken(weights: str | None, tmp_path: Path) -> None:
    folder = edited(tmp_path, {"tie_word_embeddings": True})
    with pytest.warns(rx.RelaxWarning, match=r"config.json ties .*lm_head.* which differ there: both are taken"):
        model = rx.transformers.load(folder, max_length=16, weights=weights)
    wanted = LlamaForCausalLM.from_pretrained(folder).eval()(TOKENS).logits
    off = (model(TOKENS).logits - wanted).abs().max() / wanted.abs().max()
    assert off < (1e-4 if weights is None else 5e-2)


def test_a_layer_that_is_missing_is_told(tmp_path: Path) -> None:
    """Llama's class ties nothing, where the configuration does not say so."""
    with pytest.raises(rx.RelaxError, match=r"lm_head.weight': expected f32\[97, 32\], got none"):
        rx.transformers.load(edited(tmp_path, {}, "lm_head.weight"), max_length=16)


@torch.no_grad()
def test_tied_layers_are_one(tmp_path: Path) -> None:
    folder = edited(tmp_path, {"tie_word_embeddings": True}, "lm_head.weight")
    wanted = LlamaForCausalLM.from_pretrained(folder).eval()(TOKENS).logits
    torch.testing.assert_close(rx.transformers.load(folder, max_length=16)(TOKENS).logits, wanted, rtol=1e-4, atol=1e-4)
