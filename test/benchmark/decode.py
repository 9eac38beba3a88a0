"""Tokens per second of a Llama that generates with a static cache, against torch eager with the same cache and weights.

``python test/benchmark/decode.py [--hidden 1024] [--layers 4] [--cache 512] [--prompt 128] [--tokens 16] [--rounds 5]
[--weights int4 [--activations int8]]`` prints the times of the prompt and of a token, ours and torch's, as medians over
alternating rounds, and the ratios (above 1: ours is faster). One thread each, processor time, weights random and in f32, ours
as narrow as asked for; where they are not, tokens of both are compared in every round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

import relaxir as rx

PARTS = ("keys", "values", "cumulative_length")


class Generator(torch.nn.Module):
    """A model with its cache as buffers; tokens in, logits of the next one out."""

    def __init__(self, model: Any, length: int):
        super().__init__()
        self.model, config = model, model.config
        self.cache = StaticCache(config=config, max_cache_len=length)
        self.cache.early_initialization(1, config.num_key_value_heads, config.head_dim, model.dtype, model.device)
        for i, layer in enumerate(self.cache.layers):
            for name in PARTS:
                self.register_buffer(f"{name}_{i}", getattr(layer, name), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.cache.layers):
            for name in PARTS:
                setattr(layer, name, getattr(self, f"{name}_{i}"))
        return self.model(tokens, past_key_values=self.cache).logits[:, -1]

    def reset(self) -> None:
        for value in self.buffers():
            if value.dtype == torch.int64 or value.dim() == 4:
                value.zero_()


def generator_of(options: argparse.Namespace) -> Generator:
    """The model, with the proportions of Llama 3.2 1B."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=options.vocab, hidden_size=options.hidden, intermediate_size=4 * options.hidden,
        num_hidden_layers=options.layers, num_attention_heads=options.hidden // 64, num_key_value_heads=options.hidden // 256,
        max_position_embeddings=options.cache,
    )  # fmt: skip
    return Generator(LlamaForCausalLM(config).eval(), options.cache).eval()


def compiled(generator: Generator, options: argparse.Namespace) -> rx.Executable:
    """Both uses of the model in one executable, with its weights."""
    n = torch.export.Dim("n", min=2, max=options.cache)
    programs = {
        "prefill": torch.export.export(generator, (torch.zeros(1, 8, dtype=torch.int64),), dynamic_shapes=[{1: n}]),
        "decode": torch.export.export(generator, (torch.zeros(1, 1, dtype=torch.int64),)),
    }
    generator.reset()
    executable = rx.compile(rx.from_torch(programs), weights=options.weights, activations=options.activations)
    weights = {k: v for k, v in generator.state_dict().items()} | dict(generator.named_buffers())
    executable.bind(executable.prepare(weights))
    executable.threads = 1
    return executable


Step = Callable[[torch.Tensor], torch.Tensor]


def generate(prefill: Step, decode: Step, prompt: torch.Tensor, count: int) -> tuple[list[int], float, list[float]]:
    """The tokens, the seconds of the prompt, and those of each further token."""
    start = time.process_time()
    tokens = [int(prefill(prompt).argmax())]
    first, each = time.process_time() - start, []
    while len(tokens) < count:
        start = time.process_time()
        tokens.append(int(decode(torch.tensor([tokens[-1:]])).argmax()))
        each.append(time.process_time() - start)
    return tokens, first, each


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (
        ("hidden", 1024),
        ("layers", 4),
        ("vocab", 8192),
        ("cache", 512),
        ("prompt", 128),
        ("tokens", 16),
        ("rounds", 5),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--weights", choices=["bf16", "int8", "int4"], help="of ours")
    parser.add_argument("--activations", choices=["int8"], help="of ours")
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = generator_of(options)
    executable = compiled(generator, options)
    prompt = torch.randint(options.vocab, (1, options.prompt), generator=torch.Generator().manual_seed(1))
    sides: dict[str, tuple[Step, Step, Callable[[], None]]] = {
        "relaxir": (
            lambda t: executable(t, entry="prefill"),
            lambda t: executable(t, entry="decode"),
            executable.reset_state,
        ),
        "torch": (generator, generator, generator.reset),
    }
    firsts: dict[str, list[float]] = {name: [] for name in sides}
    rest: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        said: list[list[int]] = []
        for name, (prefill, decode, reset) in sides.items():
            reset()
            tokens, first, each = generate(prefill, decode, prompt, options.tokens)
            said.append(tokens)
            firsts[name].append(first)
            rest[name] += each
        if options.weights is None and said[0] != said[1]:
            raise SystemExit(f"expected the tokens {said[1]}, got {said[0]}")
    for what, times in (("prompt", firsts), ("token", rest)):
        median, best = ({n: f(t) for n, t in times.items()} for f in (statistics.median, min))
        print(
            f"{what:6}  relaxir {1e3 * median['relaxir']:8.2f} ms  torch {1e3 * median['torch']:8.2f} ms  "
            f"ratio of medians {median['torch'] / median['relaxir']:.2f}, of the best {best['torch'] / best['relaxir']:.2f}"
        )
    speed = {name: 1 / statistics.median(times) for name, times in rest.items()}
    print(f"tokens per second: relaxir {speed['relaxir']:.1f}, torch {speed['torch']:.1f}")


if __name__ == "__main__":
    main()
