"""A small decoder of Llama's kind with a cache, for tests: grouped queries, gated feed-forward, two entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaxir import Builder, Module
from relaxir.building.value import Value
from relaxir.dialect.bindings import ir
from relaxir.dialect.functions import STATE, argument_names, find_function

Array = np.ndarray


@dataclass(frozen=True)
class Decoder:
    """Its sizes. ``joint``: gate and up are one matrix, cut in the middle."""

    layers: int = 4
    hidden: int = 64
    heads: int = 8
    groups: int = 4
    inner: int = 96
    vocabulary: int = 96
    length: int = 16
    joint: bool = False

    @property
    def size(self) -> int:
        return self.hidden // self.heads

    def weights(self, seed: int = 0) -> dict[str, Array]:
        random = np.random.default_rng(seed)
        made = {name: random.standard_normal(shape, np.float32) for name, shape in self._shapes().items()}
        return {n: (w / np.sqrt(w.shape[-1])).astype(np.float32) if w.ndim > 1 else 1 + w / 8 for n, w in made.items()}

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        keys = self.groups * self.size
        found: dict[str, tuple[int, ...]] = {"embed": (self.vocabulary, self.hidden), "head": (self.vocabulary, self.hidden)}
        rows = (("q", self.hidden), ("k", keys), ("v", keys), ("o", self.hidden))
        for i in range(self.layers):
            found |= {f"{i}.{n}": (size, self.hidden) for n, size in rows}
            found |= {f"{i}.q_bias": (self.hidden,), f"{i}.norm": (self.hidden,), f"{i}.down": (self.hidden, self.inner)}
            joint = {f"{i}.gate_up": (2 * self.inner, self.hidden)}
            found |= joint if self.joint else {f"{i}.{n}": (self.inner, self.hidden) for n in ("gate", "up")}
        return found

    def module(self) -> Module:
        """``@prefill`` of any number of tokens and ``@decode`` of one: logits of the last one, and the caches as state."""
        b = Builder()
        for name, tokens in (("prefill", "n"), ("decode", 1)):
            with b.function(name):
                _Entry(b, self, tokens).build()
        module = b.build()
        with module.ir.context:
            for name in ("prefill", "decode"):
                function = find_function(module.ir, name)
                kinds = dict(zip(argument_names(function), function.arguments, strict=True))
                state = {n: v.type for n, v in kinds.items() if n is not None and n.startswith(("keys", "values", "past"))}
                first = {n: ir.Attribute.parse(f"dense<0{'' if n == 'past' else '.0'}> : {t}") for n, t in state.items()}
                function.attributes[STATE] = ir.DictAttr.get(first)
        return module


class _Entry:
    def __init__(self, b: Builder, decoder: Decoder, count: int | str):
        self.b, self.d, self.count, self.shapes = b, decoder, count, decoder._shapes()
        self.state: dict[str, Value] = {}

    def build(self) -> None:
        b, d = self.b, self.d
        tokens = b.input("tokens", (self.count,), "i64")
        past = b.input("past", (), "i64")
        caches = {
            f"{k}_{i}": b.input(f"{k}_{i}", (d.groups, d.length, d.size)) for i in range(d.layers) for k in ("keys", "values")
        }
        self.places = b.arange(0, self.count) + past
        mask = b.less_equal(b.reshape(b.arange(0, d.length), (1, 1, d.length)), b.reshape(self.places, (1, self.count, 1)))
        x = b.take(self.weight("embed"), tokens, axis=0)
        for i in range(d.layers):
            x = x + self.attention(self.norm(x, i), i, caches, mask)
            x = x + self.feed_forward(self.norm(x, i), i)
        last = b.take(x, b.shape_value(self.count) - b.full((), 1, "i64"), axis=0)
        logits = b.matmul(b.reshape(last, (1, d.hidden)), self.transposed("head"))
        b.output(logits=logits, past=past + b.shape_value(self.count), **self.state)

    def weight(self, name: str) -> Value:
        return self.b.weight(name, self.shapes[name])

    def transposed(self, name: str) -> Value:
        return self.b.permute_dims(self.weight(name), axes=[1, 0])

    def norm(self, x: Value, i: int) -> Value:
        return self.b.rms_norm(x, self.weight(f"{i}.norm"))

    def heads(self, x: Value, count: int) -> Value:
        return self.b.permute_dims(self.b.reshape(x, (self.count, count, self.d.size)), axes=[1, 0, 2])

    def attention(self, x: Value, i: int, caches: dict[str, Value], mask: Value) -> Value:
        b, d = self.b, self.d
        query = self.heads(b.matmul(x, self.transposed(f"{i}.q")) + self.weight(f"{i}.q_bias"), d.heads)
        for kind, name in (("keys", "k"), ("values", "v")):
            new = self.heads(b.matmul(x, self.transposed(f"{i}.{name}")), d.groups)
            self.state[f"{kind}_{i}"] = b.index_copy(caches[f"{kind}_{i}"], self.places, new, axis=1)
        mixed = b.attention(query, self.state[f"keys_{i}"], self.state[f"values_{i}"], mask)
        joined = b.reshape(b.permute_dims(mixed, axes=[1, 0, 2]), (self.count, d.hidden))
        return b.matmul(joined, self.transposed(f"{i}.o"))

    def feed_forward(self, x: Value, i: int) -> Value:
        b = self.b
        if self.d.joint:
            gate, up = b.split(b.matmul(x, self.transposed(f"{i}.gate_up")), 2, axis=-1)
        else:
            gate, up = (b.matmul(x, self.transposed(f"{i}.{n}")) for n in ("gate", "up"))
        return b.matmul(b.silu(gate) * up, self.transposed(f"{i}.down"))
