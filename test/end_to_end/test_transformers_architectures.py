"""``relaxir.transformers.load`` of architectures that count, hide or look up positions in ways of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import relaxir as rx
from relaxir.dialect.errors import RelaxError, RelaxWarning
from support import models
from support.hf_folders import SMALL, loaded, saved

TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
ROPE = {"rope_theta": 10000.0}
LONG = {"original_max_position_embeddings": 16, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4, "factor": 4.0}
DECODERS = {
    "gpt_neo": (
        "GPTNeoForCausalLM",
        {"vocab_size": 96, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 64, "window_size": 4}
        | {"attention_types": [[["global", "local"], 1]]}
        | TOKENS,
    ),
    "opt": (
        "OPTForCausalLM",
        {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "ffn_dim": 48}
        | {"max_position_embeddings": 64, "word_embed_proj_dim": 32}
        | TOKENS,
    ),
    # Its configuration has no token for padding, nor a place for it.
    "codegen": (
        "CodeGenForCausalLM",
        {"vocab_size": 96, "n_embd": 32, "n_layer": 1, "n_head": 4, "n_positions": 64, "n_ctx": 64, "rotary_dim": 4}
        | {"bos_token_id": 1, "eos_token_id": 2},
    ),
    "roberta": ("RobertaForCausalLM", SMALL | {"is_decoder": True}),
    # torch.export needs of its sizes what it cannot prove.
    "llama4_text": (
        "Llama4ForCausalLM",
        SMALL | {"num_hidden_layers": 2, "num_local_experts": 2, "num_key_value_heads": 2, "head_dim": 8},
    ),
    # Its configuration refuses None for the token that pads.
    "modernbert-decoder": (
        "ModernBertDecoderForCausalLM",
        SMALL | {"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"], "local_attention": 8},
    ),
    # Prompts of 6 tokens have the short factors, the end of what is generated the long ones.
    "phi3": (
        "Phi3ForCausalLM",
        SMALL | {"original_max_position_embeddings": 16, "rope_parameters": ROPE | {"rope_type": "longrope"} | LONG},
    ),
    "llama": ("LlamaForCausalLM", SMALL | {"rope_parameters": ROPE | {"rope_type": "dynamic", "factor": 2.0}}),
}
PADDED = torch.tensor([[0, 0, 0, 27, 18, 28], [3, 14, 15, 92, 65, 35]])
MASK = (PADDED != 0).long()
SEQ2SEQ = {"vocab_size": 96, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4}
SEQ2SEQ |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 40}
VISION = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 48, "image_size": 16}
VISION |= {"patch_size": 8}


@pytest.mark.parametrize("kind", DECODERS)
def test_decoders(kind: str, tmp_path: Path) -> None:
    """Logits of calls without positions, of rows that are padded on the left, too, and tokens behind them."""
    name, options = DECODERS[kind]
    model = saved(name, kind, options, tmp_path)
    compiled = loaded(tmp_path, batch=2)
    with torch.no_grad():
        expected, whole = model(PADDED, attention_mask=MASK).logits, model(PADDED[1:]).logits
    near = {"rtol": 1e-4, "atol": 1e-5 * expected.abs().max().item()}
    got = compiled(PADDED, attention_mask=MASK).logits
    torch.testing.assert_close(got[MASK == 1], expected[MASK == 1], **near)
    torch.testing.assert_close(compiled(PADDED[1:]).logits, whole, **near)
    given = {"attention_mask": MASK, "min_new_tokens": 20, "max_new_tokens": 20, "do_sample": False}
    with models.quiet():
        assert compiled.generate(PADDED, **given).tolist() == model.generate(PADDED, **given).tolist()


def test_heads_of_encoders_generate_where_the_configuration_says_so(tmp_path: Path) -> None:
    """Without is_decoder transformers lets tokens see those behind them, and generates all the same."""
    saved("BertLMHeadModel", "bert", SMALL, tmp_path)
    message = r"^expected is_decoder as true in config.json of BertLMHeadModel, whose tokens see those behind them without it$"
    with pytest.raises(RelaxError, match=message):
        loaded(tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("MarianMTModel", "marian", SEQ2SEQ | {"pad_token_id": 95, "decoder_start_token_id": 95, "eos_token_id": 2}),
        ("M2M100ForConditionalGeneration", "m2m_100", SEQ2SEQ | TOKENS | {"decoder_start_token_id": 2}),
    ],
)
def test_positions_that_are_computed(name: str, kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Marian's sines are in no file; M2M100 looks for padding in the tokens."""
    model = saved(name, kind, options, tmp_path)
    compiled = loaded(tmp_path, batch=2)
    sources = PADDED.flip(1)
    given = {"input_ids": sources, "attention_mask": MASK.flip(1), "min_new_tokens": 8, "max_new_tokens": 8, "do_sample": False}
    with models.quiet():
        assert compiled.generate(**given).tolist() == model.generate(**given).tolist()


def assert_same_results(compiled: Any, model: Any, **given: torch.Tensor) -> None:
    with torch.no_grad():
        expected = model(**given)
    got = compiled(**given)
    for key, value in got.items():
        torch.testing.assert_close(value, expected[key], rtol=1e-4, atol=1e-4)


def test_padding_that_a_model_hides_by_itself(tmp_path: Path) -> None:
    model = saved("DPRQuestionEncoder", "dpr", SMALL, tmp_path)
    compiled, right = loaded(tmp_path), PADDED.flip(1)
    assert_same_results(compiled, model, input_ids=right)
    assert_same_results(compiled, model, input_ids=right, attention_mask=MASK.flip(1))


def test_as_many_first_tokens_as_are_no_padding(tmp_path: Path) -> None:
    """XLM counts tokens where it has no mask, and takes so many first ones, on whichever side the padding is."""
    options = {"vocab_size": 96, "emb_dim": 32, "n_layers": 1, "n_heads": 4, "pad_index": 0, "pad_token_id": 0}
    model = saved("XLMModel", "xlm", options | {"max_position_embeddings": 64}, tmp_path)
    compiled = loaded(tmp_path)
    for tokens in (PADDED, PADDED.flip(1)):
        assert_same_results(compiled, model, input_ids=tokens)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float32])
def test_masks_and_tokens_of_other_dtypes(dtype: torch.dtype, tmp_path: Path) -> None:
    model = saved("BertModel", "bert", SMALL, tmp_path)
    assert_same_results(loaded(tmp_path), model, input_ids=PADDED.flip(1).int(), attention_mask=MASK.flip(1).to(dtype))


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("CLIPModel", "clip", {"text_config": SMALL, "vision_config": VISION, "projection_dim": 16}),
        ("SiglipModel", "siglip", {"text_config": SMALL, "vision_config": VISION}),
    ],
)
def test_texts_and_images_of_different_numbers(name: str, kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    model, compiled = saved(name, kind, options, tmp_path), loaded(tmp_path)
    for images in (1, 2, 5):
        given = {"input_ids": PADDED.flip(1), "pixel_values": torch.randn(images, 3, 16, 16)}
        assert compiled(**given).logits_per_image.shape == (images, 2)
        with torch.no_grad():
            expected = model(**given).logits_per_image
        torch.testing.assert_close(compiled(**given).logits_per_image, expected, rtol=1e-4, atol=1e-4)


def test_results_of_another_class_than_is_told(tmp_path: Path) -> None:
    text = SMALL | {"encoder_hidden_size": 32, "projection_dim": 16, "sep_token_id": 2}
    options = {"text_config": text, "vision_config": VISION}
    model = saved("BlipForImageTextRetrieval", "blip", options, tmp_path)
    given = {"input_ids": PADDED.flip(1), "attention_mask": MASK.flip(1), "pixel_values": torch.randn(2, 3, 16, 16)}
    compiled = loaded(tmp_path)
    assert "itm_score" in compiled(**given)
    assert_same_results(compiled, model, **given)


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    saved("BertModel", "bert", SMALL | {"output_hidden_states": True}, tmp_path / "bert")
    with pytest.warns(RelaxWarning, match=r"^BertModel: results have no hidden_states, which config.json asks for$"):
        rx.transformers.load(tmp_path / "bert")
    options = {"text_config": SMALL | {"model_type": "llama"}, "vision_config": VISION | {"model_type": "clip_vision_model"}}
    saved("LlavaForConditionalGeneration", "llava", options, tmp_path / "llava")
    message = r"^LlavaForConditionalGeneration: what is compiled generates from tokens alone, without images$"
    with pytest.warns(RelaxWarning, match=message):
        rx.transformers.load(tmp_path / "llava", max_length=32)
