"""Inputs of models of ``relaxir.transformers.load``: what transformers takes, with its results, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from relaxir import RelaxError
from relaxir.transformers.cache_name import CACHE
from support.hf_folders import SMALL, T5, loaded, saved

TOKENS = torch.tensor([[3, 14, 15, 92, 65, 35], [5, 35, 8, 9, 79, 32]])
MASK = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])


@pytest.fixture(scope="module")
def qwen2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    folder = tmp_path_factory.mktemp("qwen2")
    model = saved("Qwen2ForCausalLM", "qwen2", SMALL | {"num_key_value_heads": 2}, folder)
    return loaded(folder, batch=2), model, folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp("bert")
    model = saved("BertForSequenceClassification", "bert", SMALL, folder)
    return loaded(folder), model


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp("t5")
    model = saved("T5ForConditionalGeneration", "t5", T5, folder)
    return loaded(folder, batch=2), model


def assert_same(models: tuple[Any, ...], **given: Any) -> None:
    """Sums in another order than torch's, of up to 64 products in single precision; the largest logits of T5 are 67."""
    with torch.no_grad():
        expected = models[1](**given).logits
    torch.testing.assert_close(models[0](**given).logits, expected, rtol=1e-4, atol=1e-5 * max(10, expected.abs().max().item()))


def refused(model: Any, **given: Any) -> str:
    with pytest.raises(RelaxError) as error:
        model(**given)
    return str(error.value)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.int64, torch.float32])
def test_masks_of_any_dtype(qwen2: tuple[Any, ...], bert: tuple[Any, Any], t5: tuple[Any, Any], dtype: torch.dtype) -> None:
    mask = MASK.to(dtype)
    assert_same(qwen2, input_ids=TOKENS, attention_mask=mask, position_ids=torch.arange(6)[None].int())
    assert_same(bert, input_ids=TOKENS.int(), attention_mask=mask)
    starts = {"decoder_input_ids": TOKENS[:, :3].int(), "decoder_attention_mask": MASK.flip(1)[:, 2:5].to(dtype)}
    assert_same(t5, input_ids=TOKENS.int(), attention_mask=mask, **starts)


def test_a_mask_of_all_tokens_so_far_counts_for_all(qwen2: tuple[Any, ...]) -> None:
    """Also for those that an earlier call has seen with another; no mask hides none."""
    for mask in (None, torch.cat([MASK.flip(0), torch.ones(2, 2)], 1)):
        results = list[torch.Tensor]()
        for model in (qwen2[1], qwen2[0]):
            with torch.no_grad():
                cache = getattr(model(TOKENS, attention_mask=MASK), CACHE)
                results.append(model(TOKENS[:, :2], attention_mask=mask, **{CACHE: cache}).logits)
        torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    message = "expected attention_mask of zeros and ones [2, 10], for each token so far, got int64 [2, 2]"
    assert refused(qwen2[0], input_ids=TOKENS[:, :2], attention_mask=MASK[:, :2], **{CACHE: cache}) == message


_CAUSAL = torch.triu(torch.full((6, 6), -1e9), 1)[None, None]


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (_CAUSAL, "float32 [1, 1, 6, 6]"),
        (torch.zeros(1, 1, 1, 6), "float32 [1, 1, 1, 6]"),
        (torch.zeros(1, 1, 1, 1), "float32 [1, 1, 1, 1]"),
        (_CAUSAL == 0, "bool [1, 1, 6, 6]"),
        (torch.ones(1, 6, 6), "float32 [1, 6, 6]"),
        (torch.ones(6), "float32 [6]"),
        (torch.ones(1, 1), "float32 [1, 1]"),
        (torch.ones(2, 6), "float32 [2, 6]"),
        ([[1] * 6], "list"),
    ],
)
def test_masks_that_are_refused(qwen2: tuple[Any, ...], t5: tuple[Any, Any], mask: Any, text: str) -> None:
    message = f" of zeros and ones [1, 6], for each token so far, got {text}"
    one = TOKENS[:1]
    assert refused(qwen2[0], input_ids=one, attention_mask=mask) == "expected attention_mask" + message
    assert refused(t5[0], input_ids=one, attention_mask=mask, decoder_input_ids=one) == "expected attention_mask" + message
    hidden = {"encoder_outputs": (torch.zeros(1, 6, 32),), "decoder_input_ids": one}
    assert refused(t5[0], attention_mask=mask, **hidden) == "expected attention_mask" + message
    assert refused(t5[0], decoder_attention_mask=mask, **hidden) == "expected decoder_attention_mask" + message


@pytest.mark.parametrize("other", [0.5, -1e9, float("nan"), 2.0])
def test_masks_of_other_numbers(qwen2: tuple[Any, ...], bert: tuple[Any, Any], other: float) -> None:
    mask = torch.full((2, 6), other)
    message = "expected attention_mask of zeros, for padding, and ones, got other numbers"
    assert refused(qwen2[0], input_ids=TOKENS, attention_mask=mask) == message
    assert refused(bert[0], input_ids=TOKENS, attention_mask=mask) == message


@pytest.mark.parametrize(
    "kept", [1, 4, 9, -2, torch.tensor([0, 3]), torch.tensor([4, 1, 1, -1]), torch.tensor([True, False] * 3)], ids=str
)
def test_logits_of_some_tokens(qwen2: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, kept: Any) -> None:
    """Also where a call takes several of the executable's."""
    assert_same(qwen2, input_ids=TOKENS, logits_to_keep=kept)
    monkeypatch.setattr(qwen2[0], "_at_once", 2)
    assert_same(qwen2, input_ids=TOKENS, logits_to_keep=kept)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (-6, "expected logits_to_keep of some of 6 tokens, got -6"),
        (torch.tensor([6]), "expected logits_to_keep of some of 6 tokens, got [6]"),
        (torch.tensor([1.0]), "expected logits_to_keep of some of 6 tokens, got [1.0]"),
        (torch.tensor(2), "expected logits_to_keep as a number or a tensor of one dimension, got int64 []"),
        ("2", "expected logits_to_keep as a number or a tensor of one dimension, got str"),
    ],
    ids=str,
)
def test_logits_of_no_tokens(qwen2: tuple[Any, ...], kept: Any, message: str) -> None:
    assert refused(qwen2[0], input_ids=TOKENS, logits_to_keep=kept) == message


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (None, "as integers [rows, tokens], one or more, got none"),
        (TOKENS[:, :0], "as integers [rows, tokens], one or more, got int64 [2, 0]"),
        (TOKENS[:0], "as integers [rows, tokens], one or more, got int64 [0, 6]"),
        (TOKENS[0], "as integers [rows, tokens], one or more, got int64 [6]"),
        (TOKENS.float(), "as integers [rows, tokens], one or more, got float32 [2, 6]"),
        ([[3]], "as integers [rows, tokens], one or more, got list"),
        (TOKENS - 100, "from 0 on, got -97"),
    ],
    ids=str,
)
def test_tokens_that_are_none(qwen2: tuple[Any, ...], t5: tuple[Any, Any], tokens: Any, message: str) -> None:
    assert refused(qwen2[0], input_ids=tokens) == f"expected input_ids {message}"
    if tokens is not None:
        assert refused(t5[0], input_ids=TOKENS, decoder_input_ids=tokens) == f"expected decoder_input_ids {message}"
        assert refused(t5[0], input_ids=tokens, decoder_input_ids=TOKENS) == f"expected input_ids {message}"


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        (torch.arange(3)[None], "int64 [1, 3]"),
        (torch.arange(9)[None], "int64 [1, 9]"),
        (torch.arange(6), "int64 [6]"),
        (torch.zeros(3, 2, 6, dtype=torch.int64), "int64 [3, 2, 6]"),
        (torch.zeros(2, 6), "float32 [2, 6]"),
    ],
)
def test_positions_that_are_none(qwen2: tuple[Any, ...], positions: torch.Tensor, text: str) -> None:
    message = f"expected position_ids as integers [2, 6], one for each of input_ids, got {text}"
    assert refused(qwen2[0], input_ids=TOKENS, position_ids=positions) == message


@pytest.mark.parametrize("other", ["labels", "inputs_embeds", "output_hidden_states", "output_attentions"])
def test_inputs_that_others_take(qwen2: tuple[Any, ...], bert: tuple[Any, Any], t5: tuple[Any, Any], other: str) -> None:
    names = f"input_ids, attention_mask, position_ids, {CACHE}, logits_to_keep"
    given = {"input_ids": TOKENS, other: True}
    assert refused(qwen2[0], **given) == f"expected inputs {names}, got {other}"
    names = f"input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, encoder_outputs, {CACHE}"
    assert refused(t5[0], **given, decoder_input_ids=TOKENS) == f"expected inputs {names}, got {other}"
    assert refused(bert[0], **given) == f"expected inputs input_ids, attention_mask, token_type_ids, got {other}"
    assert_same(qwen2, input_ids=TOKENS, **{other: None})


def test_caches_of_other_models(qwen2: tuple[Any, ...], t5: tuple[Any, Any]) -> None:
    cache = getattr(qwen2[0](TOKENS), CACHE)
    message = f"expected {CACHE} of an earlier call, got "
    assert refused(qwen2[0], input_ids=TOKENS, **{CACHE: object()}) == message + "object"
    given = {"input_ids": TOKENS, "decoder_input_ids": TOKENS, CACHE: cache}
    assert refused(t5[0], **given) == message + "ExecutableCache"


def test_an_encoders_inputs_have_their_names(bert: tuple[Any, Any]) -> None:
    assert bert[0].executable().manifest.entries["main"].inputs[0].name == "input_ids"
    message = refused(bert[0], input_ids=TOKENS, token_type_ids=TOKENS[:, :3])
    assert message.startswith("input 'token_type_ids': expected shape [batch, length] = [2, 6]")
    assert refused(bert[0], input_ids=TOKENS[:, :0]) == "input 'input_ids': expected 'length' (dimension 1) from 1 to 32, got 0"
    assert refused(bert[0], input_ids=-TOKENS) == "expected input_ids from 0 on, got -92"
    assert refused(bert[0], input_ids=[[3]]) == "expected input_ids as a tensor, got list"


def test_a_compiled_model_is_not_saved(qwen2: tuple[Any, ...], bert: tuple[Any, Any], tmp_path: Path) -> None:
    for model, name in ((qwen2[0], "Qwen2ForCausalLM"), (bert[0], "BertForSequenceClassification")):
        message = f"^expected a model with parameters to save, got a compiled {name}: the folder that it was loaded from is"
        for save in (model.save_pretrained, model.push_to_hub):
            with pytest.raises(RelaxError, match=message):
                save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("length", [2, 3])
def test_the_fewest_tokens(qwen2: tuple[Any, ...], length: int) -> None:
    compiled = loaded(qwen2[2], max_length=length)
    assert_same((compiled, qwen2[1]), input_ids=TOKENS[:1, :length])
    assert_same((compiled, qwen2[1]), input_ids=TOKENS[:1, :length], logits_to_keep=1)
    with pytest.raises(RelaxError, match=r"^expected max_length from 2 on, a token of a prompt and a new one, got 1$"):
        loaded(qwen2[2], max_length=1)
