"""``relaxir.transformers.load``: folders as ``save_pretrained`` writes them, to the tokens that transformers generates."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from relaxir import RelaxError
from relaxir.lowering import split_steps
from relaxir.lowering.manifest_steps import PartsSpec
from relaxir.runtime import memory_plan, prepare
from relaxir.runtime.memory_plan import MemoryPlan
from relaxir.tools import cli
from relaxir.transformers.cache_name import CACHE
from relaxir.weights import Checkpoint
from support import models
from support.hf_folders import SMALL, RoundedCache, loaded, saved

_WIDE = {"hidden_size": 128, "intermediate_size": 512}
GROUPED = SMALL | {"num_key_value_heads": 2}
GPT2 = {"vocab_size": 96, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 64, "bos_token_id": 1, "eos_token_id": 2}

PROMPT = torch.tensor([[3, 14, 15, 92, 65, 35]])
PROMPTS = torch.tensor([[0, 0, 0, 27, 18, 28], [3, 14, 15, 92, 65, 35], [0, 1, 61, 80, 33, 9]])
GREEDY = {"max_new_tokens": 12, "do_sample": False}


def assert_same_tokens(compiled: Any, model: Any, tokens: torch.Tensor = PROMPT, **options: Any) -> None:
    given = {"attention_mask": (tokens != 0).long(), "pad_token_id": 0} | GREEDY | options
    torch.manual_seed(0)
    expected = model.generate(tokens, **given)
    torch.manual_seed(0)
    with models.quiet():
        got = compiled.generate(tokens, **given)
    assert got.tolist() == expected.tolist()


@pytest.fixture(scope="module")
def qwen2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """The compiled model for three sequences, which is made for one when that comes, the original, and the folder."""
    folder = tmp_path_factory.mktemp("qwen2")
    model = saved("Qwen2ForCausalLM", "qwen2", GROUPED | {"tie_word_embeddings": True}, folder)
    assert (folder / "model.safetensors.index.json").exists()
    return loaded(folder, batch=3), model, folder


def test_a_batch_of_prompts_of_different_length(qwen2: tuple[Any, Any, Path]) -> None:
    assert_same_tokens(*qwen2[:2], PROMPTS)


def test_beams_and_samples(qwen2: tuple[Any, Any, Path]) -> None:
    assert_same_tokens(*qwen2[:2], PROMPT, num_beams=3)
    assert_same_tokens(*qwen2[:2], PROMPT, do_sample=True, num_return_sequences=3, top_k=5)


def test_streams_stop_rules_chunks_and_assistants(qwen2: tuple[Any, Any, Path]) -> None:
    """For one row, which is compiled here; of a prompt of one token, too."""
    compiled, model, _ = qwen2
    assert_same_tokens(compiled, model)
    assert_same_tokens(compiled, model, PROMPT[:, :1])
    assert_same_tokens(compiled, model, prefill_chunk_size=4)
    assert_same_tokens(compiled, model, assistant_model=compiled)
    assert_same_tokens(compiled, model, use_cache=False)

    class Streamed(list[int]):
        def put(self, value: torch.Tensor) -> None:
            self.extend(value.flatten().tolist())

        def end(self) -> None:
            self.append(-1)

    streamed = Streamed()
    tokens = compiled.generate(PROMPT, streamer=streamed, **GREEDY)
    assert streamed == [*tokens[0].tolist(), -1]
    stop = tokens[0, 8].item()
    assert_same_tokens(compiled, model, eos_token_id=stop)


def test_logits_of_calls(qwen2: tuple[Any, Any, Path]) -> None:
    """Sums in another order than torch's, of up to 64 products in single precision."""
    compiled, model, _ = qwen2
    first = compiled(PROMPT)
    with torch.no_grad():
        expected = model(torch.cat([PROMPT, PROMPT[:, :1]], 1)).logits
    torch.testing.assert_close(first.logits, expected[:, :-1], rtol=1e-4, atol=1e-4)
    then = compiled(PROMPT[:, :1], past_key_values=first.past_key_values, return_dict=False)
    torch.testing.assert_close(then[0], expected[:, -1:], rtol=1e-4, atol=1e-4)


def test_a_cache_that_is_full(qwen2: tuple[Any, Any, Path]) -> None:
    compiled = qwen2[0]
    with pytest.raises(RelaxError, match=r"^expected at most 32 tokens in a sequence .*, got a prompt and new ones of 33$"):
        compiled.generate(PROMPT, max_new_tokens=27)
    with pytest.raises(RelaxError, match=r"^expected at most 32 tokens in a sequence \(max_length= of load\), got 33$"):
        compiled(torch.ones(1, 33, dtype=torch.int64))
    with pytest.raises(RelaxError, match=r"^expected 1 rows of tokens, as the cache has, got 3$"):
        compiled(PROMPTS, past_key_values=compiled(PROMPT).past_key_values)
    assert compiled.generate(PROMPT, min_new_tokens=26, max_new_tokens=26).shape == (1, 32)


@pytest.mark.parametrize(("dtype", "rounded"), [("f16", torch.float16), ("bf16", torch.bfloat16)])
def test_a_cache_of_sixteen_bits(qwen2: tuple[Any, Any, Path], dtype: str, rounded: torch.dtype) -> None:
    """Logits are those of transformers where its cache is rounded, and others than where it is not; beams move rows."""
    _, model, folder = qwen2
    compiled = loaded(folder, kv_cache=dtype, batch=2)
    expected = model.generate(PROMPT, num_beams=2, **{CACHE: RoundedCache(rounded)}, **GREEDY)
    with models.quiet():
        assert compiled.generate(PROMPT, num_beams=2, **GREEDY).tolist() == expected.tolist()
    first = compiled(PROMPT)
    then = compiled(PROMPT[:, :1], past_key_values=first.past_key_values)
    assert {2} == {array.itemsize for array in first.past_key_values.state.values()}
    tokens = torch.cat([PROMPT, PROMPT[:, :1]], 1)
    with torch.no_grad():
        near, wide = model(tokens, **{CACHE: RoundedCache(rounded)}).logits, model(tokens).logits
    got = torch.cat([first.logits, then.logits], 1)
    torch.testing.assert_close(got, near, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(got, wide, rtol=1e-4, atol=1e-4)


def test_a_mixture_of_experts(tmp_path: Path) -> None:
    """Experts, one by one in the files, become two tensors; what an attention's window hides is hidden."""
    model = saved(
        "MixtralForCausalLM",
        "mixtral",
        GROUPED | {"num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 4},
        tmp_path,
    )
    model.set_experts_implementation("eager")
    compiled = loaded(tmp_path)
    assert_same_tokens(compiled, model)
    assert "model.model.layers.0.mlp.experts.gate_up_proj" in compiled.executable().manifest.raw_weights
    assert "relax.packed_grouped_matmul" in compiled.executable().module_text  # an expert that no token chose is not read


@pytest.mark.parametrize("held", [1 << 20, 1 << 30])
@pytest.mark.parametrize("jobs", [1, 2])
def test_each_matrix_of_an_expert_is_read_once(
    jobs: int, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """And let go of once: not all of a layer for each of them, of which there may be hundreds.

    Where all of a layer are much, they are prepared a few at a time, in memory for these.
    """
    monkeypatch.setattr(memory_plan, "_HELD_BYTES", held)
    monkeypatch.setattr(split_steps, "PIECE_BYTES", 1 << 20)
    plans, plan = list[MemoryPlan](), prepare.plan_memory
    monkeypatch.setattr(prepare, "plan_memory", lambda *given: plans.append(plan(*given)) or plans[-1])
    size = GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 1, "num_hidden_layers": 2} | _WIDE
    model = saved("MixtralForCausalLM", "mixtral", size, tmp_path)
    read, released = Counter[str](), Counter[str]()
    get, release = Checkpoint.get, Checkpoint.release

    def counting_get(source: Checkpoint, name: str) -> Any:
        read[name] += 1
        return get(source, name)

    def counting_release(source: Checkpoint, name: str) -> None:
        released[name] += 1
        release(source, name)

    monkeypatch.setattr(Checkpoint, "get", counting_get)
    monkeypatch.setattr(Checkpoint, "release", counting_release)
    compiled = loaded(tmp_path, jobs=jobs)
    assert_same_tokens(compiled, model)
    (most,) = {plan.each for plan in plans}
    joined = 4 * 2 * 128 * 512 * 4  # the first matrices of all experts of a layer, and what is made of them
    assert (most < 2 * joined) == (held == 1 << 20)
    for counted in (read, released):
        experts = {name: count for name, count in counted.items() if ".experts." in name}
        assert len(experts) == 2 * 4 * 3
        assert set(experts.values()) == {1}


def test_a_large_table_is_widened_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms of an embedding would take more than all that decoding needs."""
    monkeypatch.setattr(memory_plan, "_HELD_BYTES", 1 << 10)
    monkeypatch.setattr(memory_plan, "_COPY_BYTES", 1 << 10)
    plans, plan = list[MemoryPlan](), prepare.plan_memory
    monkeypatch.setattr(prepare, "plan_memory", lambda *given: plans.append(plan(*given)) or plans[-1])
    model = saved("LlamaForCausalLM", "llama", GROUPED, tmp_path)
    assert_same_tokens(loaded(tmp_path), model)
    (parts,) = (p for made in plans for sets, p in made.parts.items() if "embed_tokens" in sets[0])
    assert isinstance(parts, PartsSpec)
    assert parts.count == 12  # 96 rows of 128 bytes


def test_experts_of_four_bits(tmp_path: Path) -> None:
    """Each weight is off by up to 1/8 of its group's largest: what comes is near, and far from what no weights give."""
    model = saved("MixtralForCausalLM", "mixtral", GROUPED | {"num_local_experts": 2, "num_experts_per_tok": 1}, tmp_path)
    compiled = loaded(tmp_path, weights="int4")
    report = str(compiled.executable().report)
    assert re.search(r"experts\.gate_up_proj .* 4 bits in groups of 32\n", report)
    with torch.no_grad():
        expected = model(PROMPT).logits
    assert (compiled(PROMPT).logits - expected).norm() < 0.5 * expected.norm()


def test_learned_positions_and_buffers_of_their_own(tmp_path: Path) -> None:
    model = saved("GPT2LMHeadModel", "gpt2", GPT2, tmp_path)
    assert_same_tokens(loaded(tmp_path), model)


def save_tokenizer(folder: Path) -> None:
    """Of characters, by their codes from ``!`` on; behind ``~`` what stands for a space and a new line."""
    vocabulary = {chr(33 + i): i for i in range(94)} | {"\u0120": 94, "\u010a": 95}
    transformers.Qwen2Tokenizer(vocab=vocabulary, merges=[]).save_pretrained(folder)


def test_weights_of_four_bits_on_the_command_line_and_what_is_kept(
    qwen2: tuple[Any, Any, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code and weights are found again: nothing is exported, and no file of the cache changes."""
    monkeypatch.setenv("RELAXIR_CACHE_DIR", str(tmp_path / "cache"))
    options = {"weights": "int4", "kv_cache": "bf16"}
    first = loaded(qwen2[2], **options)
    assert "embed_tokens.weight               12.0 KiB -> 1.7 KiB  4 bits" in str(first.executable().report)
    tokens = first.generate(PROMPT, **GREEDY)
    kept = [p for p in (tmp_path / "cache").rglob("*") if p.is_file() and p.suffix != ".lock" and p.name != "used"]
    files = {p: p.stat().st_ino for p in kept}
    assert len(files) == 2
    monkeypatch.setattr(torch.export, "export", lambda *_, **__: pytest.fail("exported again"))
    again = loaded(qwen2[2], **options)
    assert again.generate(PROMPT, **GREEDY).tolist() == tokens.tolist()
    assert {p: p.stat().st_ino for p in files} == files
    command = ["generate", str(qwen2[2]), "--weights", "int4", "--kv-cache", "bf16", "--max-length", "32"]
    command += ["--max-new-tokens", "12", "--prompt"]
    capsys.readouterr()
    assert cli.run([*command, "text"]) == 1
    assert capsys.readouterr().err.endswith(
        "expected a tokenizer (tokenizer.json, tokenizer_config.json, tokenizer.model), got none\n"
    )
    save_tokenizer(qwen2[2])
    assert cli.run([*command, "".join(chr(33 + i) for i in PROMPT[0].tolist())]) == 0
    out, err = capsys.readouterr()
    tokenizer = transformers.AutoTokenizer.from_pretrained(qwen2[2])
    assert out == tokenizer.decode(tokens[0, 6:]) + "\n"
    assert re.search(r"\nprompt of 6 tokens and the first new one: [0-9.]+ s; then 11 tokens: [0-9.]+ tokens/s\n$", err)
    pipeline = transformers.pipeline("text-generation", model=again, tokenizer=tokenizer)
    assert pipeline(tokenizer.decode(PROMPT[0]), return_full_text=False, **GREEDY)[0]["generated_text"] + "\n" == out
    assert "not supported" not in capsys.readouterr().err
    assert cli.run([*command, "".join(chr(33 + i) for i in PROMPT[0].tolist()), "--temperature", "0"]) == 0
    assert capsys.readouterr().out == out
    assert cli.run([*command, ""]) == 1
    assert capsys.readouterr().err.endswith("error: expected a prompt of one token or more, got none\n")


def test_folders_that_are_none(qwen2: tuple[Any, Any, Path], tmp_path: Path) -> None:
    folder = qwen2[2]
    with pytest.raises(RelaxError, match=r"^expected a folder with config.json and weights, got '.*nowhere'$"):
        loaded(tmp_path / "nowhere")
    with pytest.raises(RelaxError, match=r"got 'some/model': huggingface_hub.snapshot_download\('some/model'\) gives one, if"):
        loaded(Path("some/model"))
    with pytest.raises(RelaxError, match=r"^'.*': expected a folder with config.json, got none$"):
        loaded(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(RelaxError, match=r"got none: an adapter of a model; peft's merge_and_unload\(\) makes one"):
        loaded(tmp_path)
    (tmp_path / "adapter_config.json").unlink()
    (tmp_path / "config.json").write_text('{"model_type": "nothing"}')
    with pytest.raises(RelaxError, match=r"^'.*': expected a folder that transformers can read, got .*nothing"):
        loaded(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(RelaxError, match=r"^'.*': expected model.safetensors or model.safetensors.index.json in the folder"):
        loaded(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "int3"}, "expected weights as bf16, int8, int4, q8_0, q4_0 or None, got 'int3'"),
        ({"max_length": 65}, "expected max_length up to 64, the model's max_position_embeddings, got 65"),
        ({"max_length": 0}, "expected a number of tokens from 1 on as max_length, got 0"),
        ({"batch": 0}, "expected a number of sequences from 1 on, got 0"),
        ({"threads": 0}, "expected a number of threads from 1 on, got 0"),
        ({"kv_cache": "int8"}, "expected kv_cache as f16, bf16 or None, got 'int8'"),
        ({"kv_cache": ["f16"]}, "expected kv_cache as f16, bf16 or None, got ['f16']"),
    ],
)
def test_options_that_are_none(qwen2: tuple[Any, Any, Path], options: dict[str, Any], message: str) -> None:
    with pytest.raises(RelaxError) as error:
        loaded(qwen2[2], **options)
    assert str(error.value) == message
