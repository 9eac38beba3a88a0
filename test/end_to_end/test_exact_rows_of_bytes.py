"""Rows of f32 times integers with few scales to a column, where instructions multiply bytes: right to the rounding of f32."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.compiler import default_pipeline
from relaxir.dialect.dtypes import numpy_dtype
from support.emulation import compile_for
from support.integer_products import RANGES
from support.stages import target_named

Array = np.ndarray[Any, Any]

#: With tile registers, with vectors, and with bytes of either sign.
TARGETS = ("sapphirerapids", "znver4", "neoverse-n1")
#: What an element of a row may be off by, by the largest of its row: what three bytes leave, and the sums' own rounding.
EXACT = 2.0**-22
ROWS = (1, 2, 3, 5, 6, 11, 16, 33)


@dataclass(frozen=True)
class Products:
    """Functions ``main`` of many rows and ``step`` of one, of the same weight.

    Attributes:
        bits: of an integer of the weight.
        groups: how many rows of it have a scale each.
        matrix: what the weight means, f64 [k, n].
        largest: what its elements are at most, whichever sign their parts have.
    """

    module: rx.Module
    weights: dict[str, Array]
    bits: int
    groups: int
    matrix: Array
    largest: Array
    outer: tuple[int, ...]
    rows: int | str
    is_relu: bool


def products(seed: int) -> Products:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    k, n, dtype = (
        rng.choice((4, 12, 64, 100, 132, 256, 384)),
        rng.choice((1, 31, 64, 256, 257, 272, 289, 300, 320)),
        rng.choice(("i8", "ui8", "i4", "ui4")),
    )
    groups = rng.choice([1, *(g for g in (2, 3, 4, 8) if k % (16 * g) == 0)])
    outer, rows = rng.choice(((), (), (1,), (2,), (3, 2), (0,))), rng.choice((*ROWS, "m", "m", 0))
    q = numbers.integers(*RANGES[dtype], (n, k)).astype(numpy_dtype(dtype))
    s, shape = (numbers.uniform(0.1, 1, (n, groups)) / k).astype(np.float32), (n, groups)
    z = np.full(shape, rng.choice((0, 0, 7)), numpy_dtype(dtype))
    has_zeros, is_relu = rng.random() < 0.3, rng.random() < 0.5
    if has_zeros:
        z = numbers.integers(0, 100 if "8" in dtype else 8, shape).astype(numpy_dtype(dtype))
    builder = rx.Builder()
    for name, count in (("main", rows), ("step", 1)):
        with builder.function(name):
            x = builder.input("x", (*outer, count, k), "f32")
            zero = builder.weight("z", shape, dtype) if has_zeros else builder.full((), int(z[0, 0]), dtype)
            wide = builder.dequantize(builder.weight("q", (n, k), dtype), builder.weight("s", shape, "f32"), zero)
            result = builder.matmul(x, builder.permute_dims(wide, axes=[1, 0]))
            builder.output(builder.relu(result) if is_relu else result)
    wide_q, wide_z, wide_s = q.astype(np.float64), *(v.astype(np.float64).repeat(k // groups, 1) for v in (z, s))
    matrix, largest = ((wide_q - wide_z) * wide_s).T, ((np.abs(wide_q) + np.abs(wide_z)) * wide_s).T
    return Products(builder.build(), {"q": q, "s": s, "z": z}, int(dtype[-1]), groups, matrix, largest, outer, rows, is_relu)


@pytest.mark.parametrize("seed", range(90))
def test_right_to_the_rounding_of_f32(seed: int) -> None:
    made = products(seed)
    executable = compile_for(made.module, TARGETS[seed % len(TARGETS)])
    executable.bind(executable.prepare({name: made.weights[name] for name in executable.manifest.raw_weights}))
    numbers = np.random.default_rng(seed)
    for rows in ROWS if isinstance(made.rows, str) else (made.rows,):
        for name, count in (("main", rows), ("step", 1)):
            x = numbers.standard_normal((*made.outer, count, len(made.matrix))) * 10.0 ** numbers.integers(-3, 3, (count, 1))
            x = x.astype(np.float32)
            found, exact = executable(x, entry=name), x.astype(np.float64) @ made.matrix
            exact = np.maximum(exact, 0) if made.is_relu else exact
            bound = EXACT * np.abs(x).max(-1, keepdims=True) * made.largest.sum(0) if x.size else np.zeros(exact.shape)
            assert found.shape == exact.shape
            assert (np.abs(found - exact) <= bound + 1e-30).all()


def test_these_are_products_of_integers() -> None:
    for seed in range(90):
        made, layouts = products(seed), target_named(f"cpu:{TARGETS[seed % len(TARGETS)]}").weight_layouts
        text = str(made.module.with_weight_layouts(layouts).run(default_pipeline()))
        (k, n), is_byte = made.matrix.shape, made.bits == 8
        fits = k // made.groups % (4 if is_byte else 8) == 0
        is_cheap = fits and n >= 256 and ((is_byte and made.groups == 1) or k // made.groups >= layouts.int8_exact)
        is_one = fits and not is_byte  # one row of four bits is always
        ones = 1 + (made.rows == 1 and made.outer in ((), (1,))) if made.outer in ((), (1,)) else 0
        assert text.count("relax.quantized_matmul") == (2 if is_cheap else ones if is_one else 0), seed


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("target", TARGETS)
def test_a_row_that_is_not_finite_leaves_the_others(target: str, value: float) -> None:
    builder = rx.Builder()
    with builder.function("main"):
        x, q = builder.input("x", (9, 64), "f32"), builder.weight("q", (256, 64), "i8")
        wide = builder.dequantize(q, builder.weight("s", (256, 1), "f32"), builder.full((), 0, "i8"))
        builder.output(builder.matmul(x, builder.permute_dims(wide, axes=[1, 0])))
    executable = compile_for(builder.build(), target)
    executable.bind(executable.prepare({"q": np.ones((256, 64), np.int8), "s": np.ones((256, 1), np.float32)}))
    x = np.ones((9, 64), np.float32)
    x[4, 3] = value
    found = executable(x)
    assert not np.isfinite(found[4]).any()
    np.testing.assert_allclose(np.delete(found, 4, axis=0), 64, rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_one_row_and_many_read_the_same_weight(target: str) -> None:
    """As of a prompt and of the tokens behind it: the weight is prepared once."""
    builder = rx.Builder()
    for entry, rows in (("prefill", "m"), ("decode", 1)):
        with builder.function(entry):
            x = builder.input("x", (rows, 64))
            builder.output(builder.matmul(x, builder.weight("w", (64, 256), "f32")))
    executable = compile_for(builder.build(), target, default_pipeline("int8"))
    prepared = executable.prepare({"w": np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)})
    stored = "int8" if target == "neoverse-n1" else "uint8"
    assert sorted(np.asarray(a).dtype.name for a in prepared.values()) == ["float32", stored]
