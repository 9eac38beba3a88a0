"""``relaxir.transformers.load`` of models that are called once: tokens, images, heads, pipelines, as transformers has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from relaxir import RelaxError
from support.hf_folders import SMALL, loaded, saved

VIT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "image_size": 32}


#: A safetensors file without tensors.
EMPTY = b"\x02\0\0\0\0\0\0\0{}"


def assert_same(compiled: Any, model: Any, **given: torch.Tensor) -> None:
    """Sums in another order than torch's, of up to 768 products in single precision."""
    with torch.no_grad():
        expected = model(**given)
    got = compiled(**given)
    assert type(got) is type(expected)
    assert list(got) == list(expected)
    for name in expected:
        torch.testing.assert_close(got[name], expected[name], rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    folder = tmp_path_factory.mktemp("bert")
    options = SMALL | {"id2label": {0: "low", 1: "middle", 2: "high"}}
    model = saved("BertForSequenceClassification", "bert", options, folder)
    return loaded(folder), model


@pytest.mark.parametrize("shape", [(2, 7), (1, 1), (3, 32)])
def test_sequences_of_any_number_and_length(bert: tuple[Any, Any], shape: tuple[int, int]) -> None:
    tokens = torch.randint(3, 96, shape)
    mask, types = torch.ones_like(tokens), torch.zeros_like(tokens)
    mask[1:, shape[1] // 2 :] = 0
    types[:, shape[1] // 3 :] = 1
    assert_same(*bert, input_ids=tokens, attention_mask=mask, token_type_ids=types)
    assert_same(*bert, input_ids=tokens)


def test_arguments_and_results_as_transformers_has_them(bert: tuple[Any, Any]) -> None:
    compiled, model = bert
    tokens = torch.tensor([[3, 14, 15]])
    with torch.no_grad():
        expected = model(tokens, return_dict=False)
    (got,) = compiled(tokens, torch.ones_like(tokens), return_dict=False, output_attentions=None)
    torch.testing.assert_close(got, expected[0], rtol=1e-4, atol=1e-4)
    assert compiled.config.id2label == {0: "low", 1: "middle", 2: "high"}
    assert compiled.executable().manifest.entries["main"].symbols[1].max == 32
    names = "input_ids, attention_mask, token_type_ids"
    with pytest.raises(RelaxError, match=f"^expected inputs {names}, got labels$"):
        compiled(tokens, labels=torch.tensor([0]))
    with pytest.raises(RelaxError, match=f"^expected inputs {names}, got no input_ids$"):
        compiled(attention_mask=torch.ones_like(tokens))
    with pytest.raises(RelaxError, match=f"^expected inputs {names}, got 4$"):
        compiled(tokens, tokens, tokens, tokens)


TOKENIZER = transformers.BertTokenizer(
    vocab={t: i for i, t in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"])}
)


@pytest.mark.parametrize("head", ["BertForQuestionAnswering", "BertForTokenClassification"])
def test_heads_for_spans_and_tokens(tmp_path: Path, head: str) -> None:
    model = saved(head, "bert", SMALL, tmp_path)
    tokens = torch.randint(3, 96, (2, 7))
    mask = torch.ones_like(tokens)
    mask[1, 4:] = 0
    assert_same(loaded(tmp_path), model, input_ids=tokens, attention_mask=mask)


def test_words_under_a_mask(tmp_path: Path) -> None:
    both = saved("BertForMaskedLM", "bert", SMALL, tmp_path), loaded(tmp_path)
    expected, got = (
        transformers.pipeline("fill-mask", model=m, tokenizer=TOKENIZER, targets=["a", "b", "c"])("a [MASK] c") for m in both
    )
    assert [word["token"] for word in got] == [word["token"] for word in expected]
    assert [word["score"] for word in got] == pytest.approx([word["score"] for word in expected], rel=1e-4)


def test_features_of_an_encoder(tmp_path: Path) -> None:
    """``AutoModel``: what a pipeline makes of its last hidden state."""
    both = saved("BertModel", "bert", SMALL, tmp_path), loaded(tmp_path)
    expected, got = (transformers.pipeline("feature-extraction", model=m, tokenizer=TOKENIZER)("a b c") for m in both)
    torch.testing.assert_close(torch.tensor(got), torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_a_pipeline(bert: tuple[Any, Any]) -> None:
    """Of two texts of different length at once."""
    texts = ["a b c", "h g f e d"]
    results = [transformers.pipeline("text-classification", model=m, tokenizer=TOKENIZER)(texts, batch_size=2) for m in bert]
    for got, expected in zip(*results, strict=True):
        assert got["label"] == expected["label"]
        assert got["score"] == pytest.approx(expected["score"], rel=1e-4)


def test_images(tmp_path: Path) -> None:
    """A patch is a convolution, of which torch writes the first values itself."""
    model = saved("ViTForImageClassification", "vit", VIT, tmp_path)
    compiled = loaded(tmp_path, max_length=None)
    for count in (1, 3):
        assert_same(compiled, model, pixel_values=torch.randn(count, 3, 32, 32))
    message = r"^expected a model that generates tokens where kv_cache is given, got ViTForImageClassification$"
    with pytest.raises(RelaxError, match=message):
        loaded(tmp_path, kv_cache="f16")


def test_an_architecture_that_nobody_has(tmp_path: Path) -> None:
    """And of whose kind transformers has two."""
    transformers.FunnelConfig(architectures=["NoSuchModel"]).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(EMPTY)
    with pytest.raises(RelaxError, match=r"expected an architecture that transformers has, got NoSuchModel$"):
        loaded(tmp_path)


def test_a_model_that_wants_other_inputs_too(tmp_path: Path) -> None:
    """Sounds beside tokens: its own code fails without them."""
    transformers.ClvpConfig(architectures=["ClvpModelForConditionalGeneration"]).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(EMPTY)
    message = r"expected a model that torch.export takes, got ClvpModelForConditionalGeneration: conv1d\(\) received"
    with pytest.raises(RelaxError, match=message):
        loaded(tmp_path)


def test_models_of_states_instead_of_keys_and_values(tmp_path: Path) -> None:
    transformers.MambaConfig(architectures=["MambaForCausalLM"], num_hidden_layers=1, hidden_size=32).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(EMPTY)
    message = r"^expected a model whose layers keep keys and values, or states of .* or Mamba 2, got MambaForCausalLM$"
    with pytest.raises(RelaxError, match=message):
        loaded(tmp_path)


SOUND = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "conv_dim": (16, 16, 16),
    "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3), "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 3, "vocab_size": 20, "classifier_proj_size": 16,
}  # fmt: skip


@pytest.mark.parametrize(("head", "kind"), [("Wav2Vec2ForCTC", "wav2vec2"), ("WavLMForSequenceClassification", "wavlm")])
def test_sounds_of_any_number_and_length(tmp_path: Path, head: str, kind: str) -> None:
    model = saved(head, kind, SOUND, tmp_path)
    compiled = loaded(tmp_path, max_length=3000)
    for shape in [(2, 1600), (1, 60), (3, 3000)]:
        sounds, mask = torch.randn(shape), torch.ones(shape, dtype=torch.int64)
        mask[1:, shape[1] // 2 :] = 0
        assert_same(compiled, model, input_values=sounds)
        assert_same(compiled, model, input_values=sounds * mask, attention_mask=mask)
    with pytest.raises(RelaxError, match=r"3001"):
        compiled(torch.randn(1, 3001))
    with pytest.raises(RelaxError, match=r"^expected max_length from 60 on, of which 2 vectors are made, got 59$"):
        loaded(tmp_path, max_length=59)


def test_a_single_length(tmp_path: Path) -> None:
    """The fewest samples as the most, and one token as the most."""
    model, sounds = saved("Wav2Vec2ForCTC", "wav2vec2", SOUND, tmp_path / "sounds"), torch.randn(3, 60)
    assert_same(loaded(tmp_path / "sounds", max_length=60), model, input_values=sounds)
    tokens = torch.tensor([[5], [9], [7]])
    model = saved("BertForSequenceClassification", "bert", SMALL, tmp_path / "tokens")
    assert_same(loaded(tmp_path / "tokens", max_length=1), model, input_ids=tokens)


def test_models_that_are_none_of_these(tmp_path: Path) -> None:
    transformers.EncodecConfig(architectures=["EncodecModel"]).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(EMPTY)
    message = r"^expected a model of tokens, images or samples of sound, got EncodecModel of input_values$"
    with pytest.raises(RelaxError, match=message):
        loaded(tmp_path)
