"""Tokens per second of ``relaxir.transformers.load`` beside transformers eager and llama.cpp.

``python test/benchmark/generate.py [FOLDER] [--hidden 896] [--layers 4] [--prompt 64] [--tokens 32] [--rounds 3]
[--weights int4 [--activations int8]] [--kv-cache f16]`` prints tokens per second of each, of a folder or of a random Qwen2, as
medians over alternating rounds, with the ratio (above 1: ours is faster): of all tokens, with the prompt's time, and of those
behind the first. One thread each, processor time; transformers in f32, ours as narrow as asked for, llama.cpp as ours: in F32,
BF16, Q8_0, Q4_0, its cache, too. Where ours is not narrower, its tokens are compared with transformers' in every round.

llama.cpp is there where ``llama_cpp`` and ``gguf`` are installed (README.md), for a Llama or a Qwen2.

``--warm-load`` prints seconds that loading takes instead: the first time, and in processes of their own when code and prepared
weights are kept; imports are not counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from comparison import gguf_file

import relaxir as rx

#: A prompt and a number of tokens to all tokens, and the processor time when each of those behind the prompt was there.
_Generate = Callable[[torch.Tensor, int], tuple[list[int], list[float]]]


class Clock(list[float]):
    """Notes when tokens come, as a streamer of transformers; first comes the prompt."""

    def put(self, value: torch.Tensor) -> None:
        self.append(time.process_time())

    def end(self) -> None:
        """Nothing follows."""


def save_random_model(folder: Path, hidden: int, layers: int) -> None:
    """A Qwen2 in several bf16 shards."""
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        hidden_size=hidden, num_hidden_layers=layers, intermediate_size=5 * hidden, num_attention_heads=hidden // 64,
        num_key_value_heads=2, vocab_size=32000, tie_word_embeddings=True,
    )  # fmt: skip
    transformers.Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder, max_shard_size="100MB")


def of_transformers(model: Any) -> _Generate:
    """Greedy tokens by a model's ``generate``, the prompt's among them."""

    def generate(prompt: torch.Tensor, count: int) -> tuple[list[int], list[float]]:
        clock = Clock()
        tokens = model.generate(prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False, streamer=clock)
        return tokens[0].tolist(), clock[1:]

    return generate


def of_llama_cpp(model: Any, weights: str | None, kv_cache: str | None, path: Path, length: int) -> _Generate:
    """The same by llama.cpp, of which the model is written to a file."""
    from llama_cpp import Llama

    gguf_file.write_model(model, weights or "f32", path)
    kept = {None: 0, "f16": 1, "bf16": 30}[kv_cache]  # GGML_TYPE_F32, _F16, _BF16
    theirs = Llama(str(path), n_ctx=length, n_threads=1, n_threads_batch=1, type_k=kept, type_v=kept, verbose=False)

    def generate(prompt: torch.Tensor, count: int) -> tuple[list[int], list[float]]:
        tokens, clock = prompt[0].tolist(), Clock()
        theirs.reset()
        fed = tokens
        for _ in range(count):
            theirs.eval(fed)
            fed = [theirs.sample(temp=0.0)]
            tokens = tokens + fed
            clock.append(time.process_time())
        return tokens, clock

    return generate


def timed(generate: _Generate, prompt: torch.Tensor, count: int) -> tuple[tuple[float, float], list[int]]:
    """Processor time for so many tokens, for those behind the first one, and which they are."""
    started = time.process_time()
    tokens, times = generate(prompt, count)
    return (times[-1] - started, times[-1] - times[0]), tokens


def loaded(arguments: argparse.Namespace, folder: str, length: int) -> tuple[Any, float]:
    """Our model, and seconds."""
    load = rx.transformers.load  # imports transformers' models: seconds
    started = time.perf_counter()
    model = load(folder, arguments.weights, activations=arguments.activations, kv_cache=arguments.kv_cache, max_length=length)
    return model, time.perf_counter() - started


def generators(arguments: argparse.Namespace, folder: str, files: Path) -> tuple[dict[str, _Generate], int]:
    """What is measured, by name, and the size of the vocabulary."""
    length = arguments.prompt + arguments.tokens
    ours, _ = loaded(arguments, folder, length)
    ours.executable().threads = 1
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    found = {"relaxir": of_transformers(ours), "transformers": of_transformers(theirs)}
    if theirs.config.model_type not in gguf_file.ARCHITECTURES:
        print(f"llama.cpp: no row, expected one of {', '.join(gguf_file.ARCHITECTURES)}, got {theirs.config.model_type}")
    elif not all(map(importlib.util.find_spec, ("llama_cpp", "gguf"))):
        print("llama.cpp: no row, expected llama-cpp-python and gguf to be installed")
    else:
        found["llama.cpp"] = of_llama_cpp(theirs, arguments.weights, arguments.kv_cache, files / "model.gguf", length)
    return found, theirs.config.vocab_size


def measure(arguments: argparse.Namespace, folder: str, files: Path) -> None:
    found, vocabulary = generators(arguments, folder, files)
    prompt = torch.randint(3, vocabulary, (1, arguments.prompt))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    tokens: dict[str, list[int]] = {}
    for _ in range(arguments.rounds + 1):  # the first is warm-up
        for name, generate in found.items():
            seconds, tokens[name] = timed(generate, prompt, arguments.tokens)
            times[name].append(seconds)
        if arguments.weights is arguments.kv_cache is None and tokens["relaxir"] != tokens["transformers"]:
            raise SystemExit(f"expected the tokens of transformers, got others: {tokens}")
    medians = {name: [statistics.median(part) for part in zip(*taken[1:], strict=True)] for name, taken in times.items()}
    for name, (whole, later) in medians.items():
        same = sum(a == b for a, b in zip(tokens[name], tokens["transformers"], strict=True)) - arguments.prompt
        ratios = [ours / theirs for ours, theirs in zip((whole, later), medians["relaxir"], strict=True)]
        print(
            f"{name}: {arguments.tokens / whole:.1f} tokens/s, ratio {ratios[0]:.2f}; behind the first "
            f"{(arguments.tokens - 1) / later:.1f}, ratio {ratios[1]:.2f}; {same} of {arguments.tokens} tokens as transformers"
        )


def measure_loading(arguments: argparse.Namespace, folder: str) -> None:
    given = {name: getattr(arguments, name) for name in ("prompt", "tokens", "weights", "activations", "kv_cache")}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None]
    command = [sys.executable, __file__, folder, "--load-once", *options]
    rounds = range(arguments.rounds + 1)
    seconds = [float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.split()[-1]) for _ in rounds]
    print(f"load: first {seconds[0]:.2f} s, then {statistics.median(seconds[1:]):.3f} s")


def run(arguments: argparse.Namespace, folder: str, files: Path) -> None:
    if arguments.load_once:
        print(loaded(arguments, folder, arguments.prompt + arguments.tokens)[1])
    elif arguments.warm_load:
        measure_loading(arguments, folder)
    else:
        measure(arguments, folder, files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    for name, default in (("hidden", 896), ("layers", 4), ("prompt", 64), ("tokens", 32), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--weights", choices=["bf16", "int8", "int4"])
    parser.add_argument("--activations", choices=["int8"])
    parser.add_argument("--kv-cache", choices=["f16", "bf16"])
    parser.add_argument("--warm-load", action="store_true")
    parser.add_argument("--load-once", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as files:
        if arguments.folder is None:
            save_random_model(Path(files, "model"), arguments.hidden, arguments.layers)
        run(arguments, arguments.folder or str(Path(files, "model")), Path(files))


if __name__ == "__main__":
    main()
