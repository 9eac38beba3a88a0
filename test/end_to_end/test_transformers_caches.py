"""Caches that calls hand back: generation that goes on with one, rows of it, copies, tokens that are taken back."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

import relaxir as rx


def llama(folder: Path, seed: int = 0, **more: Any) -> Any:
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2} | more
    config = LlamaConfig(vocab_size=97, intermediate_size=48, num_hidden_layers=2, max_position_embeddings=64, **sizes)
    config.eos_token_id = config.bos_token_id = None
    model = LlamaForCausalLM(config).eval()
    for p in model.parameters():
        p.data.normal_(0, 0.2) if p.dim() > 1 else None
    model.save_pretrained(folder)
    return model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """transformers' own model, and ours."""
    folder = tmp_path_factory.mktemp("llama")
    return llama(folder), rx.transformers.load(folder, max_length=48)


def tokens(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(1, 97, shape, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
@pytest.mark.parametrize("more", [[5], [7, 8, 9]])
@pytest.mark.parametrize("masked", [False, True])
def test_generation_goes_on_with_a_cache(models: tuple[Any, Any], more: list[int], masked: bool) -> None:
    """All tokens and the cache of the first ones, as a chat's next turn is."""
    found = []
    for model in models:
        first = model.generate(tokens(1, 6), max_new_tokens=4, do_sample=False, return_dict_in_generate=True)
        every = torch.cat([first.sequences, torch.tensor([more])], 1)
        mask = {"attention_mask": torch.ones_like(every)} if masked else {}
        found.append(model.generate(every, past_key_values=first.past_key_values, max_new_tokens=6, do_sample=False, **mask))
    torch.testing.assert_close(found[1], found[0])


def change(cache: Any, how: str) -> Any:
    if how == "copied":
        return copy.deepcopy(cache)
    getattr(cache, how)({"batch_repeat_interleave": 2, "crop": -5}.get(how, torch.tensor([1, 0, 1])))
    return cache


@torch.no_grad()
@pytest.mark.parametrize("how", ["batch_select_indices", "batch_repeat_interleave", "copied", "crop", "reorder_cache"])
def test_changed_caches(models: tuple[Any, Any], how: str) -> None:
    found = []
    for model in models:
        cache = change(model(tokens(2, 4), use_cache=True).past_key_values, how)
        rows = {"batch_select_indices": 3, "batch_repeat_interleave": 4, "reorder_cache": 3}.get(how, 2)
        mask = torch.ones(rows, 2 if how == "crop" else 6, dtype=torch.long)
        found.append(model(tokens(rows, 2, seed=2), past_key_values=cache, attention_mask=mask).logits)
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_copy_goes_on_by_itself(models: tuple[Any, Any]) -> None:
    _, model = models
    cache = model(tokens(1, 4), use_cache=True).past_key_values
    other = copy.copy(cache)
    wanted = model(tokens(1, 1, seed=3), past_key_values=copy.deepcopy(cache)).logits
    model(tokens(1, 5, seed=4), past_key_values=cache)
    torch.testing.assert_close(model(tokens(1, 1, seed=3), past_key_values=other).logits, wanted)
    assert (cache.get_seq_length(), other.get_seq_length(), other.batch_size) == (9, 5, 1)


@torch.no_grad()
def test_the_cache_of_another_model_is_refused(models: tuple[Any, Any], tmp_path: Path) -> None:
    _, model = models
    llama(tmp_path, hidden_size=16, num_attention_heads=2, num_key_value_heads=1)
    other = rx.transformers.load(tmp_path, max_length=48)
    cache = other(tokens(1, 4), use_cache=True).past_key_values
    with pytest.raises(rx.RelaxError, match=r"state 'keys_0': expected f32\[1, 2, 48, 8\], got .*, of another executable"):
        model(tokens(1, 1), past_key_values=cache)


@torch.no_grad()
def test_rows_of_a_cache_of_encoder_and_decoder(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = T5Config(vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0)
    plain = T5ForConditionalGeneration(config).eval()
    plain.save_pretrained(tmp_path)
    found = []
    for model in (plain, rx.transformers.load(tmp_path, max_length=32)):
        source, rows = tokens(2, 5), torch.tensor([1, 1, 0])
        encoded = model.get_encoder()(source)
        first = model(encoder_outputs=encoded, decoder_input_ids=tokens(2, 3), use_cache=True)
        cache = copy.deepcopy(first.past_key_values)
        cache.batch_select_indices(rows)
        encoded.last_hidden_state = encoded.last_hidden_state[rows]
        found.append(model(encoder_outputs=encoded, decoder_input_ids=tokens(3, 1), past_key_values=cache).logits)
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_token_that_is_none_leaves_the_cache_as_it_was(models: tuple[Any, Any]) -> None:
    """Of several blocks, too: the second one fails."""
    _, model = models
    cache = model(tokens(1, 4), use_cache=True).past_key_values
    wanted = model(tokens(1, 2, seed=5), past_key_values=copy.deepcopy(cache)).logits
    many = tokens(1, 40, seed=6)
    many[0, -1] = 97
    for wrong in (torch.tensor([[3, 97]]), many):
        with pytest.raises(rx.RelaxError, match="expected indices in"):
            model(wrong, past_key_values=cache)
        assert cache.get_seq_length() == 4
    torch.testing.assert_close(model(tokens(1, 2, seed=5), past_key_values=cache).logits, wanted)
