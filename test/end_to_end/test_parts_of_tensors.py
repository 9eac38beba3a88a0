"""Many parts of one tensor, whose sizes are known or not, each computed with alike: compiled code reads the right ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

import relaxir as rx
from relaxir.building.builder import Builder
from relaxir.dialect.bindings import ir

_FUNCTIONS = 12


def _function(b: Builder, name: str, rng: random.Random) -> list[np.ndarray]:
    """A sum of what is computed with parts along one dimension; returns inputs for it."""
    sizes = [rng.choice([1, 2, 3, 6, 7]) for _ in range(rng.choice([2, 3, 4]))]
    axis, count, width = rng.randrange(len(sizes)), rng.choice([2, 4, 5]), rng.choice([1, 1, 2])
    sizes[axis] = count * width + rng.choice([0, 1])
    symbols = iter("abcdefgh")
    shape = [n if i == axis or rng.random() < 0.4 else next(symbols) for i, n in enumerate(sizes)]
    squeezes, reshapes = width == 1 and rng.random() < 0.6, rng.random() < 0.3
    places = rng.sample(range(count), count)
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    with b.function(name):
        x = b.input("x", tuple(shape), "f32")
        y = b.input("y", (), "f32")
        total: ir.Value | None = None
        for pair in zip(places[::2], places[1::2], strict=False):
            parts = [b.strided_slice(x, axes=[axis], begin=[p * width], end=[(p + 1) * width], strides=[1]) for p in pair]
            if squeezes:
                parts = [b.squeeze(part, axis=[axis]) for part in parts]
            if reshapes:
                parts = [b.expand_dims(part, axis=[0]) for part in parts]
            made = b.multiply(b.add(parts[0], y), b.exp(b.multiply(parts[1], b.full((), 0.1, "f32"))))
            made = b.matmul(b.permute_dims(made), made) if len(made.shape) == 2 and rng.random() < 0.5 else b.sum(made)
            made = b.sum(made) if len(made.shape) else made
            total = made if total is None else b.add(total, made)
        b.output(total)
    return [numbers.integers(-9, 9, sizes).astype(np.float32), np.array(3, np.float32)]


@pytest.mark.parametrize("seed", range(4))
def test_parts_along_a_dimension(seed: int) -> None:
    rng, builder = random.Random(seed), rx.Builder()
    inputs = [_function(builder, f"f{i}", rng) for i in range(_FUNCTIONS)]
    module = builder.build()
    executable = rx.compile(module)
    for i, given in enumerate(inputs):
        expected = np.asarray(rx.evaluate(module, f"f{i}", *given)[0])
        np.testing.assert_allclose(executable(*given, entry=f"f{i}"), expected, rtol=1e-4, atol=1e-4, err_msg=f"{seed} f{i}")


@pytest.mark.parametrize("count", [64, 65, 200])
@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("is_open", [False, True])
def test_many_tensors_side_by_side(is_open: bool, rows: int, count: int) -> None:
    """In groups: each part is in its place, whatever sizes are known."""
    b = Builder()
    with b.function("main"):
        x, y = b.input("x", ("n" if is_open else rows, 3), "f32"), b.input("y", ("n" if is_open else rows, "m"), "f32")
        b.output(b.concat([b.add(x if i % 5 else y, float(i)) for i in range(count)], axis=1))
    arrays = np.ones((rows, 3), np.float32), np.zeros((rows, 2), np.float32)
    want = np.concatenate([arrays[0 if i % 5 else 1] + np.float32(i) for i in range(count)], axis=1)
    np.testing.assert_array_equal(rx.compile(b.build())(*arrays), want)
