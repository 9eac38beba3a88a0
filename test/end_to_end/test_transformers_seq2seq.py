"""``relaxir.transformers.load`` of models with an encoder and a decoder: the tokens that transformers generates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from relaxir import RelaxError
from relaxir.transformers.cache_name import CACHE
from support import models
from support.hf_folders import T5, RoundedCache, loaded, saved

WHISPER = {"vocab_size": 96, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4}
WHISPER |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_mel_bins": 8, "pad_token_id": 0}
WHISPER |= {"max_source_positions": 16, "max_target_positions": 64, "eos_token_id": 2, "decoder_start_token_id": 2}

TOKENS = torch.tensor([[5, 6, 7, 8, 9, 2], [11, 12, 13, 2, 0, 0]])


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp("t5")
    model = saved("T5ForConditionalGeneration", "t5", T5, folder)
    return loaded(folder, batch=2), model


def assert_same_tokens(compiled: Any, model: Any, **options: Any) -> None:
    given = {"max_new_tokens": 10, "do_sample": False} | options
    with models.quiet():
        assert compiled.generate(**given).tolist() == model.generate(**given).tolist()


def test_a_batch_of_padded_sources(t5: tuple[Any, Any]) -> None:
    mask = (TOKENS != 0).long()
    assert_same_tokens(*t5, input_ids=TOKENS, attention_mask=mask)
    assert_same_tokens(*t5, input_ids=TOKENS, attention_mask=mask, use_cache=False)
    assert_same_tokens(*t5, input_ids=TOKENS, attention_mask=mask, decoder_input_ids=torch.tensor([[2, 5, 9], [2, 7, 8]]))


def test_beams(t5: tuple[Any, Any]) -> None:
    """Two rows of the decoder for one source, whose keys and values are moved with them."""
    assert_same_tokens(*t5, input_ids=TOKENS[:1], num_beams=2)


def test_logits_of_calls(t5: tuple[Any, Any]) -> None:
    """In single precision, the largest logit being 67: of the same model in double precision ours are off by 2.4e-4, torch's
    by 2.2e-4, and by 4.6e-4 from one another."""
    compiled, model = t5
    with torch.no_grad():
        expected = model(input_ids=TOKENS, decoder_input_ids=TOKENS[:, :3])
    near = {"rtol": 0.0, "atol": 1e-5 * expected.logits.abs().max().item()}
    got = compiled(input_ids=TOKENS, decoder_input_ids=TOKENS[:, :2])
    torch.testing.assert_close(got.logits, expected.logits[:, :2], **near)
    torch.testing.assert_close(got.encoder_last_hidden_state, expected.encoder_last_hidden_state, rtol=1e-4, atol=1e-4)
    then = compiled(
        encoder_outputs=(got.encoder_last_hidden_state,), decoder_input_ids=TOKENS[:, 2:3], past_key_values=got.past_key_values
    )
    torch.testing.assert_close(then.logits, expected.logits[:, 2:], **near)


def test_what_is_refused(t5: tuple[Any, Any]) -> None:
    compiled = t5[0]
    with pytest.raises(RelaxError, match=r"^expected decoder_input_ids, got none$"):
        compiled(input_ids=TOKENS)
    with pytest.raises(RelaxError, match=r"^expected input_ids and a mask, got no such input$"):
        compiled(decoder_input_ids=TOKENS)
    with pytest.raises(RelaxError, match=r"^expected input_ids and a mask, got output_attentions$"):
        compiled.get_encoder()(TOKENS, output_attentions=True)
    with pytest.raises(RelaxError, match=r"^expected at most 32 tokens in a sequence \(max_length= of load\), got 33$"):
        compiled(input_ids=TOKENS, decoder_input_ids=torch.ones(2, 33, dtype=torch.int64))
    with pytest.raises(RelaxError, match=r"^expected at most 32 tokens in a sequence .*, got a prompt and new ones of 40$"):
        compiled.generate(TOKENS, max_new_tokens=39)


def test_caches_of_sixteen_bits(tmp_path: Path) -> None:
    """Of the decoder's own tokens, and of the encoder's results; beams move the rows of both."""
    model = saved("T5ForConditionalGeneration", "t5", T5, tmp_path)
    compiled = loaded(tmp_path, batch=2, kv_cache="f16")
    assert_same_tokens(compiled, model, input_ids=TOKENS[:1], num_beams=2)
    got = compiled(input_ids=TOKENS, decoder_input_ids=TOKENS[:, :2])
    assert {2} == {array.itemsize for array in got.past_key_values.state.values()}
    both = transformers.EncoderDecoderCache(RoundedCache(torch.float16), RoundedCache(torch.float16))
    with torch.no_grad():
        near = model(input_ids=TOKENS, decoder_input_ids=TOKENS[:, :2], **{CACHE: both}).logits
        wide = model(input_ids=TOKENS, decoder_input_ids=TOKENS[:, :2]).logits
    most = wide.abs().max().item()
    torch.testing.assert_close(got.logits, near, rtol=0.0, atol=1e-5 * most)
    assert (got.logits - wide).abs().max() > 1e-4 * most


def test_sounds(tmp_path: Path) -> None:
    """Features of a fixed size, without a mask; positions of the decoder are learned."""
    model = saved("WhisperForConditionalGeneration", "whisper", WHISPER, tmp_path)
    compiled = loaded(tmp_path, batch=2)
    features = torch.randn(2, 8, 32)
    with models.quiet():
        expected = transformers.GenerationMixin.generate(model, features, max_new_tokens=10, do_sample=False)
        tokens = compiled.generate(features, max_new_tokens=10, do_sample=False)
    assert tokens.tolist() == expected.tolist()
