"""Models of transformers as they are stored: exported, prepared from the folder that save_pretrained writes, equal results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn

import relaxir as rx
from relaxir import RelaxError
from relaxir.weights.arrays import ArraySpec
from relaxir.weights.model_buffers import computed_buffer
from support import models

transformers.utils.logging.disable_progress_bar()

SMALL = {"vocab_size": 48, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
SMALL |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GROUPED = {**SMALL, "num_key_value_heads": 1}
GPT2 = {"vocab_size": 48, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 16, "bos_token_id": 1, "eos_token_id": 2}
T5 = {"vocab_size": 48, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2}

#: The class of each kind of model, and a configuration.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", GROUPED | {"tie_word_embeddings": True}),
    "qwen2": ("Qwen2ForCausalLM", GROUPED),
    "mistral": ("MistralForCausalLM", GROUPED),
    "phi": ("PhiForCausalLM", SMALL),
    "gpt_neox": ("GPTNeoXForCausalLM", SMALL),
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "bert": ("BertForMaskedLM", SMALL),
    "t5": ("T5EncoderModel", T5),
}
IDS = torch.tensor([[3, 14, 15, 9, 26]])


class First(nn.Module):
    """Ids of tokens to the first result: logits, or states. Names of weights begin with ``model.``."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(ids, return_dict=False)[0]


def model_of(kind: str) -> Any:
    torch.manual_seed(0)
    name, options = KINDS[kind]
    model = getattr(transformers, name)(transformers.AutoConfig.for_model(kind, **options)).eval()
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return model


def program_of(model: nn.Module) -> torch.export.ExportedProgram:
    with torch.no_grad(), models.quiet():
        return torch.export.export(First(model), (IDS.to(next(model.parameters()).device),))


def assert_agrees(exe: rx.Executable, weights: Any, model: nn.Module) -> None:
    """Sums in another order than torch's, of up to 48 products in single precision."""
    with torch.no_grad():
        torch.testing.assert_close(exe.bind(weights)(IDS), First(model)(IDS), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_folders_as_save_pretrained_writes_them(kind: str, tmp_path: Path) -> None:
    """In f32 and in shards; in bf16, which is widened; with the names that the wrapper adds."""
    model = model_of(kind)
    exe = rx.compile(rx.from_torch(program_of(model)))
    model.save_pretrained(tmp_path / "f32", max_shard_size="8KB")
    assert (tmp_path / "f32" / "model.safetensors.index.json").exists()
    report = exe.prepare(tmp_path / "f32", tmp_path / "out", rename={"^": "model."})
    assert not any("widened" in note for note in report.notes)
    assert_agrees(exe, report, model)
    narrow = model.to(torch.bfloat16)
    narrow.save_pretrained(tmp_path / "bf16")
    report = exe.prepare(tmp_path / "bf16", tmp_path / "out", rename=r"^=model.")
    assert any("widened from bf16 to f32" in note for note in report.notes)
    assert_agrees(exe, report, narrow.float())


@pytest.mark.parametrize("kind", ["llama", "gpt_neox", "bert"])
def test_a_program_on_the_meta_device(kind: str, tmp_path: Path) -> None:
    """What it has no values for is computed from config.json: frequencies, positions."""
    model = model_of(kind)
    model.save_pretrained(tmp_path)
    with torch.device("meta"):
        empty = model_of(kind)
    exe = rx.compile(rx.from_torch(program_of(empty)))
    prepared = exe.prepare(tmp_path, rename={"^": "model."})
    assert any("computed from config.json" in note for note in prepared.report.notes)
    assert_agrees(exe, prepared, model)


@contextmanager
def refused(text: str) -> Iterator[None]:
    with pytest.raises(RelaxError) as error:
        yield
    assert text in str(error.value)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, rx.Executable, Path]:
    """An untied model, its executable, its folder; the executable's names begin with ``model.``, those in the file do not."""
    folder = tmp_path_factory.mktemp("llama")
    model = model_of("mistral")
    model.save_pretrained(folder)
    return model, rx.compile(rx.from_torch(program_of(model))), folder


def test_names_that_differ_by_a_prefix(llama: tuple[Any, rx.Executable, Path], tmp_path: Path) -> None:
    model, exe, folder = llama
    hint = "all 12 match without the prefix 'model.' of the model's names: rename={\"^\": \"model.\"}, --rename '^=model.'"
    with refused("got 12 problems\n"):
        exe.prepare(folder)
    with refused(hint):
        exe.prepare(folder)
    tensors = load_file(folder / "model.safetensors")
    save_file({f"lora.base.model.{n}": t for n, t in tensors.items()}, tmp_path / "longer.safetensors")
    with refused(
        'all 12 match without the prefix \'lora.base.\' of the checkpoint\'s names: rename={"^lora\\\\.base\\\\.": ""}, '
        "--rename '^lora\\.base\\.='"
    ):
        exe.prepare(tmp_path / "longer.safetensors")
    assert_agrees(exe, exe.prepare(tmp_path / "longer.safetensors", rename=[r"^lora\.base\.="]), model)


def test_names_that_match_nothing_or_twice(llama: tuple[Any, rx.Executable, Path], tmp_path: Path) -> None:
    _, exe, folder = llama
    tensors = {f"model.{n}": t for n, t in load_file(folder / "model.safetensors").items()}
    tensors["model.model.layers.0.self_attention.q_proj.weight"] = tensors.pop("model.model.layers.0.self_attn.q_proj.weight")
    save_file(tensors, tmp_path / "other.safetensors")
    near = "weight 'model.model.layers.0.self_attn.q_proj.weight': expected f32[32, 32], got none (near: "
    with refused(near + "model.model.layers.0.self_attention.q_proj.weight"):
        exe.prepare(tmp_path / "other.safetensors")
    with refused("expected rename 'self_atn' to match a name, got none of 12"):
        exe.prepare(tmp_path / "other.safetensors", rename={"self_atn": "self_attn"})
    with refused("expected names that differ after rename, got 'model.model.layers.0.mlp.x_proj.weight' for"):
        exe.prepare(tmp_path / "other.safetensors", rename={"(gate|up)_proj": "x_proj"})
    exe.prepare(tmp_path / "other.safetensors", rename={"self_attention": "self_attn"})


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        (3, "expected rename as a mapping or as texts 'regex=replacement', got int"),
        (["model."], "expected rename as 'regex=replacement', got 'model.'"),
        ([3], "expected rename as 'regex=replacement', got 3"),
        ({"(": "a"}, "expected a regular expression and its replacement, got '(': 'a': "),
        ({"a": r"\1"}, "expected a regular expression and its replacement, got 'a': '\\\\1': "),
        ({"a": 1}, "expected rename as texts, got 'a': 1"),
    ],
)
def test_rules_that_are_none(llama: tuple[Any, rx.Executable, Path], rename: Any, message: str) -> None:
    with refused(message):
        llama[1].prepare(llama[2], rename=rename)


def test_one_of_two_tied_weights(tmp_path: Path) -> None:
    """A program that was exported with two tensors reads both from the one in the file; not where they are not tied."""
    untied = model_of("mistral")
    exe = rx.compile(rx.from_torch(program_of(untied)))
    untied.lm_head.weight = untied.model.embed_tokens.weight
    untied.config.tie_word_embeddings = True
    untied.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors.pop("lm_head.weight", None)
    save_file(tensors, tmp_path / "model.safetensors")
    prepared = exe.prepare(tmp_path, rename={"^": "model."})
    assert "'model.lm_head.weight' read from 'model.model.embed_tokens.weight'" in prepared.report.notes
    assert_agrees(exe, prepared, untied)
    config = json.loads((tmp_path / "config.json").read_text()) | {"tie_word_embeddings": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with refused("weight 'model.lm_head.weight': expected f32[48, 32], got none"):
        exe.prepare(tmp_path, rename={"^": "model."})


ROPES: list[dict[str, Any]] = [
    {"rope_type": "default", "rope_theta": 10000.0},
    {"rope_type": "default", "rope_theta": 1e6},
    {"rope_type": "linear", "rope_theta": 5e5, "factor": 4.0},
    {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 256},
]  # fmt: skip


@pytest.mark.parametrize("rope", ROPES)
def test_frequencies_are_those_of_transformers(rope: dict[str, Any]) -> None:
    """But for the last bit of a power, which numpy and torch round differently, and what five operations make of it."""
    config = transformers.LlamaConfig(hidden_size=256, num_attention_heads=2, rope_parameters=rope)
    expected = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config).inv_freq.numpy()
    spec = ArraySpec(np.dtype(np.float32), (64,))
    got = computed_buffer("model.rotary_emb.inv_freq", spec, config.to_dict())
    assert got is not None
    np.testing.assert_array_max_ulp(got, expected, 4)
    older = {"rope_theta": rope["rope_theta"], "rope_scaling": {"type": rope["rope_type"], **rope}, "head_dim": 128}
    assert np.array_equal(computed_buffer("rotary_emb.inv_freq", spec, older), got)
    assert computed_buffer("rotary_emb.inv_freq", ArraySpec(np.dtype(np.float32), (32,)), older) is None
    assert computed_buffer("rotary_emb.inv_freq", spec, {**older, "rope_scaling": {"type": "yarn"}}) is None
