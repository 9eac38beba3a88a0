"""One row of floats times integers of four bits: computed as rows of bytes, right to the rounding of f32, for whatever row."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.dtypes import numpy_dtype
from support.emulation import compile_for
from support.stages import target_named

Array = np.ndarray[Any, Any]

#: What an element of a row may be off by, by the largest of its group: what the rows leave, and the sums' own rounding.
EXACT = {"f32": 2.0**-22, "bf16": 2.0**-15, "f16": 2.0**-15}
#: Of a result that is rounded once.
ROUNDED = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}

ROWS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda rng, k: rng.standard_normal(k),
    "some are large": lambda rng, k: rng.standard_normal(k) * 10.0 ** rng.integers(-4, 4, k),
    "one is large": lambda rng, k: np.where(np.arange(k) % 32 == 7, 1e4, 1.0) * rng.standard_normal(k),
    "groups of zeros": lambda rng, k: rng.standard_normal(k) * (np.arange(k) // 16 % 2),
    "zeros": lambda rng, k: np.zeros(k),
    "negative": lambda rng, k: -rng.random(k),
    "whole numbers": lambda rng, k: rng.integers(-127, 128, k).astype(float),
}


@dataclass(frozen=True)
class Product:
    """A product of a row by integers.

    Attributes:
        weights: integers ``q`` [n, k], their scales ``s`` and zero points ``z`` [n, groups].
        group: how many elements share a scale.
        shape: of the row; floats: its dtype.
        is_silu: whether the result is that of SiLU, of the product and a quarter.
    """

    module: rx.Module
    weights: dict[str, Array]
    group: int
    shape: tuple[int, ...]
    floats: str
    is_silu: bool

    def row(self, kind: str) -> Array:
        return ROWS[kind](np.random.default_rng(0), self.shape[-1]).astype(numpy_dtype(self.floats)).reshape(self.shape)

    def matrix(self, sign: int) -> Array:
        """The matrix [n, k] in f64; with a sign of 1 what its elements are at most, whichever sign their parts have."""
        q, s, z = (self.weights[name].astype(np.float64) for name in ("q", "s", "z"))
        q = q.reshape(len(q), -1, self.group)
        parts = q - z[..., None] if sign < 0 else np.abs(q) + np.abs(z)[..., None]
        return (parts * s[..., None]).reshape(len(q), -1)

    def result(self, x: Array) -> Array:
        product = self.matrix(-1) @ x.astype(np.float64).ravel()
        return (product + 0.25) / (1 + np.exp(np.minimum(-product - 0.25, 500))) if self.is_silu else product

    def bound(self, x: Array) -> Array:
        """What a result is off by at most: SiLU has slopes of at most 1.1, and narrow floats are rounded three times."""
        largest = np.abs(x.astype(np.float64).reshape(-1, self.group)).max(-1).repeat(self.group)
        rounded = ROUNDED[self.floats] * (np.abs(self.matrix(-1) @ x.astype(np.float64).ravel()) + 1)
        return 1.1 * EXACT[self.floats] * (self.matrix(1) @ largest) + 4 * rounded


def product(seed: int) -> Product:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    group, groups, n = rng.choice((8, 16, 32, 64)), rng.choice((1, 1, 2, 5, 9)), rng.choice((2, 31, 32, 33, 64, 100, 300))
    k, dtype, floats = group * groups, rng.choice(("i4", "ui4")), rng.choice(("f32", "f32", "bf16", "f16"))
    shape, is_silu = (*rng.choice(((), (1,), (1, 1))), 1, k), rng.random() < 0.5
    weights = {
        "q": numbers.integers(*((-8, 8) if dtype == "i4" else (0, 16)), (n, k)).astype(numpy_dtype(dtype)),
        "s": (numbers.uniform(0.1, 1, (n, groups)) / k).astype(numpy_dtype(floats)),
        "z": np.full((n, groups), rng.choice((0, 3)), numpy_dtype(dtype)),
    }
    builder = rx.Builder()
    with builder.function("main"):
        x = builder.input("x", shape, floats)
        q, s = builder.weight("q", (n, k), dtype), builder.weight("s", (n, groups), floats)
        if rng.random() < 0.4:
            weights["z"] = numbers.integers(0, 8, (n, groups)).astype(numpy_dtype(dtype))
            wide = builder.dequantize(q, s, builder.weight("z", (n, groups), dtype))
        else:
            wide = builder.dequantize(q, s, builder.full((), int(weights["z"][0, 0]), dtype))
        result = builder.matmul(x, builder.permute_dims(wide, axes=[1, 0]))
        builder.output(builder.silu(builder.add(result, builder.full((), 0.25, floats))) if is_silu else result)
    return Product(builder.build(), weights, group, shape, floats, is_silu)


@functools.lru_cache(maxsize=1)
def compiled(seed: int, target: str = "znver4") -> tuple[Product, rx.Executable]:
    made = product(seed)
    executable = compile_for(made.module, target)
    executable.bind(executable.prepare({name: made.weights[name] for name in executable.manifest.raw_weights}))
    return made, executable


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("seed", range(24))
def test_a_row_is_as_exact_as_f32(seed: int, kind: str) -> None:
    made, executable = compiled(seed)
    x = made.row(kind)
    assert (np.abs(executable(x).astype(np.float64).ravel() - made.result(x)) <= made.bound(x)).all()


def test_these_are_products_of_integers() -> None:
    layouts = target_named("cpu:znver4").weight_layouts
    for seed in range(24):
        text = str(product(seed).module.with_weight_layouts(layouts).run(default_pipeline()))
        assert text.count("relax.quantized_matmul") == 1, seed


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_gives_no_number(value: float) -> None:
    """The product of floats gives infinities of some sign, or NaN."""
    made, executable = compiled(0)
    x = np.ones(made.shape, numpy_dtype(made.floats))
    x[..., 3] = value
    assert not np.isfinite(executable(x).astype(np.float64)).any()


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "neoverse-v1"])
def test_other_targets(name: str) -> None:
    """Where no instruction multiplies bytes, products stay those of floats."""
    for seed in (0, 3, 5):
        made, executable = compiled(seed, name)
        x = made.row("normal")
        assert (np.abs(executable(x).astype(np.float64).ravel() - made.result(x)) <= made.bound(x)).all()


def test_one_row_and_many_read_the_same_weight() -> None:
    """As of a prompt and of the tokens behind it: one copy of the weight is prepared, as either alone has it."""
    rng, modules = np.random.default_rng(0), list[rx.Module]()
    weights = {"w": rng.standard_normal((64, 96)).astype(np.float32)}
    for entries in (("prefill", "decode"), ("prefill",), ("decode",)):
        builder = rx.Builder()
        for entry in entries:
            with builder.function(entry):
                x = builder.input("x", (1 if entry == "decode" else "m", 64))
                builder.output(builder.matmul(x, builder.weight("w", (64, 96), "f32")))
        modules.append(builder.build())
    executables = [compile_for(m, "znver4", default_pipeline("int4")) for m in modules]
    prepared = [{name: np.asarray(a) for name, a in e.prepare(weights).items()} for e in executables]
    assert len(prepared[0]) == 2
    for other in prepared[1:]:
        assert other.keys() == prepared[0].keys()
        for name, array in other.items():
            np.testing.assert_array_equal(array, prepared[0][name])
