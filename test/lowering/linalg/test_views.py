"""What reads parts of a tensor sees through what moved its elements there: attention on heads as models make them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
import pytest

import relaxir as rx
from relaxir.building.value import Value
from relaxir.dialect.bindings import passmanager
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.linalg.to_linalg import relax_to_linalg
from relaxir.runtime.executable import Executable
from support.naive import assert_close


@dataclass(frozen=True)
class Projected:
    """Attention on what one product gives for all heads: split, reshaped and permuted, as models have it.

    ``together`` is one weight for query, key and value. ``last``: in the product, heads are next to each other. ``twice``: the
    result is also read as it is.
    """

    heads: int
    groups: int
    rows: int | str
    width: int
    together: bool = False
    last: bool = False
    twice: bool = False
    dtype: str = "f32"

    def module(self) -> rx.Module:
        b = rx.Builder()
        counts = (self.heads, self.groups, self.groups)
        with b.function("main"):
            x = b.input("x", (2, self.rows, 8), self.dtype)
            if self.together:
                every = b.matmul(x, b.input("w", (8, sum(counts) * self.width), self.dtype))
                first = [sum(counts[:i]) * self.width for i in range(3)]
                products = [
                    b.strided_slice(every, axes=[2], begin=[f], end=[f + n * self.width])
                    for f, n in zip(first, counts, strict=True)
                ]
            else:
                weights = [b.input(name, (8, n * self.width), self.dtype) for name, n in zip("qkv", counts, strict=True)]
                products = [b.matmul(x, w) for w in weights]
            heads = [self._heads(b, p, n) for p, n in zip(products, counts, strict=True)]
            made = b.attention(*heads, causal=True)
            turned = b.permute_dims(made, axes=[0, 2, 1, 3])
            result = b.reshape(turned, shape=(2, self.rows, self.heads * self.width))
            b.output(*([made] if self.twice else []), result)
        return b.build()

    def inputs(self, rows: int) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        sizes = [self.heads * self.width] + [self.groups * self.width] * 2
        shapes = [(2, rows, 8), *([(8, sum(sizes))] if self.together else [(8, s) for s in sizes])]
        return [rng.standard_normal(s).astype(numpy_dtype(self.dtype)) for s in shapes]

    def _heads(self, b: rx.Builder, x: Value, heads: int) -> Value:
        if self.last:
            return b.permute_dims(b.reshape(x, shape=(2, self.rows, self.width, heads)), axes=[0, 3, 1, 2])
        return b.permute_dims(b.reshape(x, shape=(2, self.rows, heads, self.width)), axes=[0, 2, 1, 3])


@functools.cache
def compiled(case: Projected) -> tuple[rx.Module, Executable]:
    """With rows of any number it is the same for all numbers."""
    module = case.module()
    return module, rx.compile(module)


@pytest.mark.parametrize("rows", [1, 5, 33])
@pytest.mark.parametrize(
    "case",
    [
        Projected(4, 4, 0, 8),
        Projected(4, 2, 0, 7),
        Projected(4, 2, 0, 8, together=True),
        Projected(3, 3, 0, 16, together=True, twice=True),
        Projected(4, 2, 0, 8, last=True),
        Projected(1, 1, 0, 8, last=True),
        Projected(4, 2, 0, 8, dtype="bf16"),
        Projected(4, 1, 0, 8, together=True, dtype="f16"),
    ],
    ids=str,
)
def test_attention_on_heads_of_products(case: Projected, rows: int) -> None:
    for size in (rows, "n"):
        module, executable = compiled(replace(case, rows=size))
        inputs = case.inputs(rows)
        want = rx.evaluate(module, "main", *inputs)
        got = executable(*inputs)
        for found, expected in zip(got if isinstance(got, tuple) else [got], want, strict=True):
            assert_close(found, expected)


def copies(module: rx.Module) -> int:
    """How many ops of @main are not products or attention: packing of weights, and what moves elements."""
    operation = module.ir.operation.clone()
    relax_to_linalg(operation, tile=16)
    with operation.context:
        passmanager.PassManager.parse("builtin.module(canonicalize)").run(operation)
    text = str(operation)
    main = text[text.index("func.func @main") :]
    return main[: main.index("return")].count("linalg.generic")


@pytest.mark.parametrize(
    ("case", "left"),
    [
        (Projected(4, 2, 5, 8), 0),
        (Projected(4, 2, "n", 8), 0),
        (Projected(4, 2, 1, 8), 0),
        (Projected(4, 2, 40, 8, together=True), 0),
        (Projected(4, 2, 5, 8, twice=True), 1),
        (Projected(4, 2, 5, 8, last=True), 3),
    ],
    ids=str,
)
def test_what_is_moved(case: Projected, left: int) -> None:
    weights = 1 if case.together else 3
    assert copies(case.module()) == weights + left
