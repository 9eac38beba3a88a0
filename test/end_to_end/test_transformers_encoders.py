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


def test_a_pipeline(bert: tuple[Any, Any]) -> None:
    """Of two texts of different length at once."""
    tokenizer = transformers.BertTokenizer(
        vocab={t: i for i, t in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"])}
    )
    texts = ["a b c", "h g f e d"]
    results = [transformers.pipeline("text-classification", model=m, tokenizer=tokenizer)(texts, batch_size=2) for m in bert]
    for got, expected in zip(*results, strict=True):
        assert got["label"] == expected["label"]
        assert got["score"] == pytest.approx(expected["score"], rel=1e-4)


def test_images(tmp_path: Path) -> None:
    """A patch is a convolution, of which torch writes the first values itself."""
    model = saved("ViTForImageClassification", "vit", VIT, tmp_path)
    compiled = loaded(tmp_path, max_length=None)
    for count in (1, 3):
        assert_same(compiled, model, pixel_values=torch.randn(count, 3, 32, 32))


def test_models_that_are_none_of_these(tmp_path: Path) -> None:
    transformers.Wav2Vec2Config(architectures=["Wav2Vec2ForCTC"]).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    with pytest.raises(RelaxError, match=r"^expected a model of tokens or images, got Wav2Vec2ForCTC of input_values$"):
        loaded(tmp_path)
