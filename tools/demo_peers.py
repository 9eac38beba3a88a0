"""What the demo's model takes otherwise: without lifting, in four bits, and in PyTorch where that is installed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..module import Module
    from .llama import LlamaConfig as DemoConfig

__all__ = ["Variant", "best_of_some", "gain", "variants"]

Array = np.ndarray[Any, Any]

#: Calls that are timed at most, and how long.
_CALLS, _SECONDS = 20, 0.5


@dataclass(frozen=True)
class Variant:
    """One way to run the model.

    Attributes:
        name: for people.
        seconds: of a call, for each number of tokens, the best of some.
        weight_bytes: that a call reads.
    """

    name: str
    seconds: tuple[float, ...]
    weight_bytes: int


def variants(
    config: DemoConfig, module: Module, weights: Mapping[str, Array], lengths: Sequence[int]
) -> Iterator[Variant]:  # fmt: skip
    """All but the one that the demo is about, in order."""
    from .. import compile

    tokens = [np.random.default_rng(n).integers(0, config.vocab, n) for n in lengths]
    for name, made in (
        ("the same in four bits (int4)", compile(module, weights="int4")),
        ("without lifting", compile(module, pipeline="relax-canonicalize,cse")),
    ):
        made.bind(made.prepare(weights))
        size = sum(w.array.nbytes for w in made.manifest.prepared_weights.values())
        yield Variant(name, _times(made, tokens), size)
    if find_spec("torch") is not None and find_spec("transformers") is not None:
        yield _in_torch(config, weights, tokens)


def gain(lifted: Variant, others: Sequence[Variant], lengths: Sequence[int]) -> str:
    """What lifting did, in a sentence."""
    plain = next((v for v in others if v.name == "without lifting"), None)
    if plain is None:
        return ""
    before, after = 1e3 * plain.seconds[0], 1e3 * lifted.seconds[0]
    times = f" ({before / after:.1f} times faster)" if before > after else ""
    tokens = "1 token" if lengths[0] == 1 else f"{lengths[0]} tokens"
    return (
        "Lifting casts, transposes and packs the weights once, when they are prepared, and not in each call: "
        f"a call with {tokens} takes {after:.1f} ms with it, and {before:.1f} ms without{times}."
    )


def best_of_some(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the least wall time of some calls, behind one that only warms up: others may have the cores meanwhile."""
    result, end = call(), time.perf_counter() + _SECONDS
    times: list[float] = []
    while len(times) < 3 or (len(times) < _CALLS and time.perf_counter() < end):
        started = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - started)
    return result, min(times)


def _times(call: Callable[[Any], Any], tokens: Sequence[Any]) -> tuple[float, ...]:
    return tuple(best_of_some(lambda t=t: call(t))[1] for t in tokens)


def _in_torch(config: DemoConfig, weights: Mapping[str, Array], tokens: Sequence[Array]) -> Variant:
    """PyTorch's eager mode, by transformers' model, in f32 as relaxir computes."""
    from ..frontend.torch_warnings import without_logs

    with without_logs():
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

    made: Any = LlamaConfig(
        vocab_size=config.vocab, hidden_size=config.hidden, num_hidden_layers=config.layers, num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads, intermediate_size=config.ffn, rms_norm_eps=config.epsilon, use_cache=False,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta}, tie_word_embeddings=True,
    )  # fmt: skip
    model: Any = LlamaForCausalLM(made).eval()
    state = {name: torch.from_numpy(array.astype(np.float32)) for name, array in weights.items()}
    model.load_state_dict(state, strict=False)
    with torch.no_grad():
        seconds = _times(model, [torch.from_numpy(t)[None] for t in tokens])
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    return Variant("PyTorch, eager, f32", seconds, size)
