"""A Llama-style decoder built with ``relaxir.Builder``, and random weights for it under Hugging Face's names.

The model reads token ids of one sequence, ``i64[n]``, and returns ``f32[n, vocab]``. Its weights are in PyTorch's layout,
``[out, in]``, in bf16; what turns them into what the kernels want is written as ordinary ops on weights, for lifting to find:
casts to f32, transposes, and the concatenation of the projections that read the same input.

Source: Touvron et al., LLaMA, arXiv:2302.13971; rotary embedding: Su et al., RoFormer, arXiv:2104.09864.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ..building.builder import Builder
from ..building.value import Value
from ..module import Module

__all__ = ["LlamaConfig", "LlamaLayers", "build_llama", "random_weights", "weight_shapes"]


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of the model; the defaults are SmolLM2-135M's, with 4 of its 30 layers.

    Source: https://huggingface.co/HuggingFaceTB/SmolLM2-135M/blob/main/config.json
    """

    vocab: int = 49152
    hidden: int = 576
    layers: int = 4
    heads: int = 9
    kv_heads: int = 3
    ffn: int = 1536
    rope_theta: float = 100000.0
    epsilon: float = 1e-5
    dtype: str = "bf16"

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    @property
    def kv_size(self) -> int:
        """Columns of the key projection, and of the value projection."""
        return self.kv_heads * self.head_size


def build_llama(config: LlamaConfig) -> Module:
    """The module with one function, ``main``: token ids and weights to logits."""
    b = Builder()
    with b.function("main"):
        tokens = b.input("tokens", ("n",), "i64")
        model = LlamaLayers(b, config)
        b.output(logits=model.logits(tokens))
    return b.build()


class LlamaLayers:
    """The layers, written once; each method takes and returns values of the function that is being built."""

    def __init__(self, builder: Builder, config: LlamaConfig):
        self.b = builder
        self.config = config
        self.shapes = weight_shapes(config)

    def logits(self, tokens: Value) -> Value:
        table = self.weight("model.embed_tokens.weight")
        x = self.b.astype(self.b.take(table, tokens), "f32")
        angles = self.rotary_angles()
        for i in range(self.config.layers):
            x = x + self.attention(self.norm(x, f"model.layers.{i}.input_layernorm"), f"model.layers.{i}.self_attn", angles)
            x = x + self.feed_forward(self.norm(x, f"model.layers.{i}.post_attention_layernorm"), f"model.layers.{i}.mlp")
        return self.linear(self.norm(x, "model.norm"), table)

    def weight(self, name: str) -> Value:
        return self.b.weight(name, self.shapes[name], self.config.dtype)

    def linear(self, x: Value, *weights: Value) -> Value:
        """``x @ w.T``; of several weights, one product with all of them side by side."""
        stacked = weights[0] if len(weights) == 1 else self.b.concat(weights, axis=0)
        return self.b.matmul(x, self.b.permute_dims(self.b.astype(stacked, "f32"), axes=[1, 0]))

    def norm(self, x: Value, name: str) -> Value:
        return self.b.rms_norm(x, self.b.astype(self.weight(f"{name}.weight"), "f32"), epsilon=self.config.epsilon)

    def rotary_angles(self) -> tuple[Value, Value]:
        """Cosine and sine of position times frequency, ``[n, head_size / 2]``."""
        half = self.config.head_size // 2
        frequencies = self.config.rope_theta ** (-np.arange(half, dtype=np.float64) / half)
        positions = self.b.reshape(self.b.arange("n", dtype="f32"), ("n", 1))
        angles = positions * self.b.constant(frequencies.astype(np.float32))
        return self.b.cos(angles), self.b.sin(angles)

    def rotate(self, x: Value, angles: tuple[Value, Value]) -> Value:
        """Turns each pair ``(x[i], x[i + head_size / 2])`` by its angle; ``x`` is ``[heads, n, head_size]``."""
        cos, sin = angles
        left, right = self.b.split(x, 2, axis=-1)
        return self.b.concat([left * cos - right * sin, right * cos + left * sin], axis=-1)

    def heads(self, x: Value, begin: int, count: int) -> Value:
        """Columns of the joint projection as ``[count, n, head_size]``."""
        size = self.config.head_size
        part = self.b.strided_slice(x, axes=[1], begin=[begin], end=[begin + count * size])
        return self.b.permute_dims(self.b.reshape(part, ("n", count, size)), axes=[1, 0, 2])

    def attention(self, x: Value, name: str, angles: tuple[Value, Value]) -> Value:
        c = self.config
        joint = self.linear(x, *(self.weight(f"{name}.{p}_proj.weight") for p in "qkv"))
        query = self.rotate(self.heads(joint, 0, c.heads), angles)
        key = self.rotate(self.heads(joint, c.hidden, c.kv_heads), angles)
        value = self.heads(joint, c.hidden + c.kv_size, c.kv_heads)
        mixed = self.b.permute_dims(self.b.attention(query, key, value, causal=True), axes=[1, 0, 2])
        return self.linear(self.b.reshape(mixed, ("n", c.hidden)), self.weight(f"{name}.o_proj.weight"))

    def feed_forward(self, x: Value, name: str) -> Value:
        both = self.linear(x, *(self.weight(f"{name}.{p}_proj.weight") for p in ("gate", "up")))
        gate, up = self.b.split(both, 2, axis=-1)
        return self.linear(self.b.silu(gate) * up, self.weight(f"{name}.down_proj.weight"))


def weight_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """Every weight of the model by its name in a Hugging Face checkpoint; the output projection is the embedding."""
    return dict(_weight_shapes(config))


def _weight_shapes(c: LlamaConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "model.embed_tokens.weight", (c.vocab, c.hidden)
    for layer in (f"model.layers.{i}" for i in range(c.layers)):
        yield f"{layer}.input_layernorm.weight", (c.hidden,)
        yield f"{layer}.self_attn.q_proj.weight", (c.hidden, c.hidden)
        yield f"{layer}.self_attn.k_proj.weight", (c.kv_size, c.hidden)
        yield f"{layer}.self_attn.v_proj.weight", (c.kv_size, c.hidden)
        yield f"{layer}.self_attn.o_proj.weight", (c.hidden, c.hidden)
        yield f"{layer}.post_attention_layernorm.weight", (c.hidden,)
        yield f"{layer}.mlp.gate_proj.weight", (c.ffn, c.hidden)
        yield f"{layer}.mlp.up_proj.weight", (c.ffn, c.hidden)
        yield f"{layer}.mlp.down_proj.weight", (c.hidden, c.ffn)
    yield "model.norm.weight", (c.hidden,)


def random_weights(config: LlamaConfig, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Weights in bf16: matrices scaled so that activations keep their size, norms near one."""
    random = np.random.default_rng(seed)
    weights: dict[str, np.ndarray[Any, Any]] = {}
    for name, shape in weight_shapes(config).items():
        values = random.standard_normal(shape, dtype=np.float32)
        values = 1 + 0.1 * values if len(shape) == 1 else values / np.float32(np.sqrt(shape[-1]))
        weights[name] = values.astype(ml_dtypes.bfloat16)
    return weights
