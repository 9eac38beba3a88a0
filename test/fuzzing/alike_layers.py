"""Layers of one form that differ in sizes, whose kernels lowering makes one of: compiled code gives what ``evaluate`` gives.

A module has three to six layers of each of some forms: products with weights that lie either way, in f32 or as integers with
scales; convolutions; norms and elementwise operations over the last dimension; concatenations. Sizes are around those from
which they may become arguments, and around multiples of vectors and panels; rows are constant or a symbol.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

import relaxir as rx
from fuzzing.targets import compiled
from relaxir.building.value import Value
from support.small_parts import small_parts, small_splits

__all__ = ["check"]

Weights = dict[str, np.ndarray[Any, Any]]
#: What layers make; nothing first, when their inputs are made, which come before any weight.
Layers = Iterator[list[Value]]

SIZES = (1, 7, 16, 31, 32, 33, 40, 48, 63, 64, 65, 80, 96, 97, 128, 160, 192, 300, 352, 520, 544)
ROWS = (1, 2, 5, 8, 24, 50, 64, 130, 197)


class _Maker:
    """A module in the making.

    Attributes:
        weights: by name.
        inputs: shapes by name, as they are called.
    """

    def __init__(self, seed: int):
        self.rng, self.b = random.Random(seed), rx.Builder()
        self.numbers = np.random.default_rng(seed)
        self.weights: Weights = {}
        self.inputs: list[np.ndarray[Any, Any]] = []
        self.rows = self.rng.choice(ROWS)
        self.dim: int | str = self.rng.choice([self.rows, self.rows, "n"])

    def sizes(self) -> list[int]:
        return [self.rng.choice(SIZES) for _ in range(self.rng.randint(3, 6))]

    def input(self, *shape: int | str) -> Value:
        called = [self.rows if isinstance(d, str) else d for d in shape]
        self.inputs.append(self.numbers.standard_normal(called, np.float32))
        return self.b.input(f"x{len(self.inputs)}", shape, "f32")

    def weight(self, *shape: int, dtype: str = "f32") -> Value:
        name = f"w{len(self.weights)}"
        values = self.numbers.standard_normal(shape, np.float32)
        self.weights[name] = values if dtype == "f32" else (20 * values).clip(-127, 127).astype(np.int8)
        return self.b.weight(name, shape, dtype)

    def products(self) -> Layers:
        several = isinstance(self.dim, int) and self.rng.random() < 0.5
        inputs = [self.input(self.rng.choice(ROWS) if several else self.dim, depth) for depth in self.sizes()]
        wide, turned, narrow = self.rng.choice([8, 32, 48, 100, 128, 0]), self.rng.random() < 0.6, self.rng.random() < 0.3
        yield []
        for x in inputs:
            outputs = wide or 32 * self.rng.randint(1, 20)
            shape = (outputs, x.shape[1]) if turned else (x.shape[1], outputs)
            w = self.weight(*shape, dtype="i8" if narrow else "f32")
            if narrow:
                scale = self.weight(*(outputs, 1) if turned else (1, outputs))
                w = self.b.dequantize(w, scale, self.b.full((), 0, "i8"))
            y = self.b.matmul(x, self.b.permute_dims(w, axes=[1, 0]) if turned else w)
            yield [self.b.relu(self.b.add(y, self.weight(outputs))) if self.rng.random() < 0.5 else y]

    def convolutions(self) -> Layers:
        outputs, kernel, side = self.rng.choice([16, 32, 40, 64]), self.rng.choice([1, 1, 3]), self.rng.choice([5, 7, 8, 0])
        sides = [side or self.rng.choice([7, 14, 16]) for _ in range(8)]
        inputs = [self.input(1, channels, n, n) for channels, n in zip(self.sizes(), sides, strict=False)]
        yield []
        for x in inputs:
            w, strides = self.weight(outputs, x.shape[1], kernel, kernel), [self.rng.choice([1, 1, 2])] * 2
            yield [self.b.conv2d(x, w, padding=[kernel // 2] * 4, strides=strides)]

    def rows_of(self) -> Layers:
        inputs, form = [self.input(self.dim, 3, size) for size in self.sizes()], self.rng.choice(["norm", "affine", "softmax"])
        yield []
        for x in inputs:
            size = x.shape[2]
            if form == "norm":
                yield [self.b.layer_norm(x, self.weight(size), self.weight(size), axes=[2])]
            elif form == "affine":
                yield [self.b.relu(self.b.add(self.b.multiply(x, self.weight(size)), self.weight(size)))]
            else:
                yield [self.b.softmax(x, axis=2)]

    def concatenations(self) -> Layers:
        axis, batch = self.rng.choice([1, 2]), self.rng.choice([1, 2])
        whole, *parts = [self.input(batch, *((size, 40) if axis == 1 else (3, size))) for size in self.sizes()]
        yield []
        for part in parts:
            whole = self.b.concat([whole, part], axis=axis)
            yield [whole]


def check(seed: int) -> None:
    """Raises AssertionError for numbers that are not those of ``evaluate``."""
    maker = _Maker(seed)
    forms = [maker.products, maker.convolutions, maker.rows_of, maker.concatenations]
    with maker.b.function("main"):
        layers = [form() for form in maker.rng.sample(forms, maker.rng.randint(1, 3))]
        values = [v for form in [*map(next, layers), *itertools.chain.from_iterable(layers)] for v in form]
        maker.b.output(**{f"y{i}": v for i, v in enumerate(values)})
    module = maker.b.build()
    wanted = rx.evaluate(module, "main", *maker.inputs, weights=maker.weights)
    with small_parts(maker.rng.choice((1, 8, 64))), small_splits() if maker.rng.random() < 0.5 else nullcontext():
        executable = compiled(module)
    if maker.weights:
        executable.bind(executable.prepare(maker.weights))
    found = executable(*maker.inputs)
    for got, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        # Sums of up to 9 * 520 products in another order.
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(want).max())))
