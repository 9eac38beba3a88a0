"""Vocabularies and scaled rotary embeddings of exported GGUF files: read by the format's own package, against transformers."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf.vocab import SpecialVocab
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from relaxir.dialect.errors import RelaxError
from relaxir.weights.arrays import ArraySpec
from relaxir.weights.formats.gguf_layout import GgufTensor, plan_gguf
from relaxir.weights.formats.gguf_metadata import architecture_values, rope_factors
from relaxir.weights.formats.gguf_vocabulary import Vocabulary, read_vocabulary

QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = QWEN.replace(r"\p{N}| ", r"\p{N}{1,3}| ")
CONFIG: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "vocab_size": 12, "rope_theta": 5e5,
}  # fmt: skip


def bytes_tokenizer(expression: str | None) -> Tokenizer:
    """As Llama 3, Qwen and GPT-2 have it: five tokens, merges, and two that have a role."""
    vocabulary = {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("a", "b"), ("Ġ", "ab")]))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=expression is None)
    split = [] if expression is None else [pre_tokenizers.Split(_regex(expression), "isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, level])
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.add_tokens(["<tool>"])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A $B", [("<s>", 5)])
    return tokenizer


def _regex(expression: str) -> Any:
    from tokenizers import Regex

    return Regex(expression)


def pieces_tokenizer() -> Tokenizer:
    """As Llama 2, Mistral and Gemma have it: pieces of SentencePiece, with bytes for what is none."""
    vocabulary = {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "▁": 3, "a": 4, "b": 5, "ab": 6, "▁ab": 7}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("a", "b"), ("▁", "ab")], unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback()])
    tokenizer.add_special_tokens(["<unk>", "<s>"])
    return tokenizer


def written(folder: Path, vocabulary: Vocabulary) -> dict[str, Any]:
    """What the format's own package reads of a file with it."""
    values = {**architecture_values(CONFIG, "config"), **vocabulary.values}
    layout = plan_gguf({"w": GgufTensor("float32", (1,))}, values, "m.gguf")
    path = folder / "m.gguf"
    path.write_bytes(layout.prefix.ljust(layout.size, b"\0"))
    fields = gguf.GGUFReader(path).fields
    return {n.removeprefix("tokenizer."): f.contents() for n, f in fields.items() if n.startswith("tokenizer.")}


@pytest.mark.parametrize(("expression", "name"), [(LLAMA3, "llama-bpe"), (QWEN, "qwen2"), (None, "gpt-2")])
def test_bytes(tmp_path: Path, expression: str | None, name: str) -> None:
    bytes_tokenizer(expression).save(str(tmp_path / "tokenizer.json"))
    options = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": "{{x}}"}
    options |= {"add_bos_token": False} if name == "gpt-2" else {}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    found = written(tmp_path, read_vocabulary(str(tmp_path), CONFIG))
    own = SpecialVocab(tmp_path, load_merges=True, n_vocab=12)
    assert own.special_token_ids == {"bos": 5, "eos": 6}
    assert found == {
        "ggml.model": "gpt2", "ggml.pre": name, "ggml.merges": own.merges, "ggml.bos_token_id": 5, "ggml.eos_token_id": 6,
        "ggml.tokens": ["a", "b", "Ġ", "ab", "Ġab", "<s>", "</s>", "<tool>", "[PAD8]", "[PAD9]", "[PAD10]", "[PAD11]"],
        "ggml.token_type": [1, 1, 1, 1, 1, 3, 3, 4, 5, 5, 5, 5], "ggml.add_bos_token": own.add_special_token["bos"],
        "chat_template": "{{x}}",
    }  # fmt: skip


def test_a_vocabulary_without_merges(tmp_path: Path) -> None:
    """llama.cpp asks for texts there, though there are none."""
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    vocabulary = read_vocabulary(str(tmp_path), CONFIG | {"vocab_size": 2})
    assert written(tmp_path, vocabulary)["ggml.merges"] == []
    key = b"tokenizer.ggml.merges"
    assert key + struct.pack("<IIQ", 9, 8, 0) in (tmp_path / "m.gguf").read_bytes()  # a list, of texts, none


def test_pieces(tmp_path: Path) -> None:
    pieces_tokenizer().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text("{{y}}")
    found = written(
        tmp_path, read_vocabulary(str(tmp_path), CONFIG | {"vocab_size": 8, "bos_token_id": 1, "eos_token_id": [3, 4]})
    )
    assert found == {
        "ggml.model": "llama", "ggml.pre": "default", "ggml.add_space_prefix": True, "ggml.bos_token_id": 1,
        "ggml.tokens": ["<unk>", "<s>", "<0x0A>", "▁", "a", "b", "ab", "▁ab"], "ggml.token_type": [2, 3, 6, 1, 1, 1, 1, 1],
        "ggml.scores": [0, 0, 0, 0, 0, 0, 0, -1], "ggml.eos_token_id": 3, "chat_template": "{{y}}",
    }  # fmt: skip


def test_what_is_no_vocabulary_is_told(tmp_path: Path) -> None:
    assert "no tokenizer.json" in str(read_vocabulary(str(tmp_path), CONFIG).problem)
    bytes_tokenizer("x+").save(str(tmp_path / "tokenizer.json"))
    assert "splits texts as none of llama-bpe, qwen2, gpt-2" in str(read_vocabulary(str(tmp_path), CONFIG).problem)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "Unigram"}}')
    assert "a model of type 'Unigram', not BPE" in str(read_vocabulary(str(tmp_path), CONFIG).problem)
    for text, message in (("[]", "expected a JSON object, got list"), ("{", "expected JSON, got JSONDecodeError")):
        (tmp_path / "tokenizer.json").write_text(text)
        with pytest.raises(RelaxError, match=message):
            read_vocabulary(str(tmp_path), CONFIG)


def test_frequencies_of_llama3_are_transformers_own() -> None:
    scaling = {
        "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip
    found = rope_factors(CONFIG | {"head_dim": 128, "rope_scaling": scaling}, "config")
    assert found is not None
    assert ArraySpec.of(found) == ArraySpec(np.dtype(np.float32), (64,))
    config = LlamaConfig(**CONFIG | {"head_dim": 128, "rope_scaling": scaling})
    scaled = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0].numpy()
    plain = 5e5 ** (-np.arange(0, 128, 2) / 128)
    np.testing.assert_allclose(plain / found, scaled, rtol=2e-6)


def test_scaling_that_keys_tell() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    values = architecture_values(CONFIG | {"rope_scaling": yarn}, "config")
    assert {n.removeprefix("llama.rope.scaling."): v for n, v in values.items() if "scaling" in n} == {
        "type": "yarn", "factor": 4.0, "original_context_length": 32768,
    }  # fmt: skip
    values = architecture_values(CONFIG | {"rope_scaling": {"type": "linear", "factor": 2}}, "config")
    assert values["llama.rope.scaling.factor"] == 2.0
    assert rope_factors(CONFIG, "config") is None
