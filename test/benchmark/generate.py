"""Tokens per second of ``relaxir.transformers.load`` beside transformers eager, of a folder or of a Qwen2 with random weights.

``python test/benchmark/generate.py [FOLDER] [--hidden 896] [--layers 4] [--prompt 64] [--tokens 32] [--rounds 3]
[--weights int4 [--activations int8]]`` prints seconds for loading twice (the second time code and weights are in the cache),
and tokens per second of both as medians over alternating rounds, with the ratio (above 1: ours is faster). One thread each,
processor time; both in f32, ours as narrow as asked for; where it is not, tokens are compared in every round.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import transformers

import relaxir as rx


def save_random_model(folder: Path, hidden: int, layers: int) -> None:
    """A Qwen2 in several bf16 shards."""
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        hidden_size=hidden, num_hidden_layers=layers, intermediate_size=5 * hidden, num_attention_heads=hidden // 64,
        num_key_value_heads=2, vocab_size=32000, tie_word_embeddings=True,
    )  # fmt: skip
    transformers.Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder, max_shard_size="100MB")


def timed(model: Any, prompt: torch.Tensor, count: int) -> tuple[float, list[int]]:
    """Processor time for so many tokens, and which."""
    started = time.process_time()
    tokens = model.generate(prompt, max_new_tokens=count, min_new_tokens=count, do_sample=False)
    return time.process_time() - started, tokens[0].tolist()


def loaded(arguments: argparse.Namespace, folder: str, length: int) -> Any:
    started = time.perf_counter()
    model = rx.transformers.load(folder, arguments.weights, activations=arguments.activations, max_length=length)
    print(f"load: {time.perf_counter() - started:.2f} s")
    model.executable().threads = 1
    return model


def measure(arguments: argparse.Namespace, folder: str) -> None:
    length = arguments.prompt + arguments.tokens
    loaded(arguments, folder, length)
    ours = loaded(arguments, folder, length)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompt = torch.randint(3, theirs.config.vocab_size, (1, arguments.prompt))
    times: list[tuple[float, float]] = []
    for _ in range(arguments.rounds + 1):  # the first is warm-up
        (mine, tokens), (other, expected) = (timed(m, prompt, arguments.tokens) for m in (ours, theirs))
        if arguments.weights is None and tokens != expected:
            raise SystemExit(f"expected the tokens of transformers, got others: {tokens} instead of {expected}")
        times.append((mine, other))
    mine, other = (statistics.median(t[i] for t in times[1:]) for i in (0, 1))
    rates = [f"{arguments.tokens / seconds:.1f}" for seconds in (mine, other)]
    print(f"tokens/s: relaxir {rates[0]}, transformers {rates[1]}, ratio {other / mine:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    for name, default in (("hidden", 896), ("layers", 4), ("prompt", 64), ("tokens", 32), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--weights", choices=["bf16", "int8", "int4"])
    parser.add_argument("--activations", choices=["int8"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.folder is not None:
        measure(arguments, arguments.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        save_random_model(Path(folder), arguments.hidden, arguments.layers)
        measure(arguments, folder)


if __name__ == "__main__":
    main()
