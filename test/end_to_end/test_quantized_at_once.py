"""What is quantized in one kernel, and dequantized there, too: limits, ties, zero points of every kind, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from relaxir.building.value import Value
from relaxir.dialect.dtypes import numpy_dtype

# Ties, their neighbours, limits of every dtype, what no integer holds, zeros of both signs, a NaN.
STEPS = np.arange(-300, 301, dtype=np.float32) / 2
EDGES = np.array(
    [*STEPS, *np.nextafter(STEPS, np.float32(9e9)), 254.5, 255.5, 32767.5, -32768.5, 65535.5, 3e9, -3e9, 1e30, -1e30,
     np.inf, -np.inf, 0.0, -0.0, 1e-40, np.nan], np.float32,
)  # fmt: skip
INTEGERS = ["i4", "ui4", "i8", "ui8", "i16", "ui16"]


def zero_points(dtype: str) -> list[int]:
    """In the middle and at the limits."""
    bits = int(dtype.lstrip("ui"))
    low = 0 if dtype.startswith("u") else -(1 << bits - 1)
    return [0, 1, low, low + (1 << bits) - 1]


def is_same(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", ["known", "given", "wide", "rows"])
def test_numbers(dtype: str, kind: str) -> None:
    """Zero points that the module knows, that calls give, also in 32 bits, and one for each row; scales of both signs."""
    points = zero_points(dtype)
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", (len(points), len(EDGES)))
        stored = "i32" if kind == "wide" else dtype
        given = [b.input(f"z{i}", (len(points),) if kind == "rows" else (), stored) for i in range(len(points))]
        results = list[Value]()
        for i, point in enumerate(points):
            zero = b.full((), point, dtype) if kind == "known" else given[i]
            for scale in (1.0, 0.37, -0.5):
                step = b.full((), scale, "f32")
                q = b.quantize(x, step, zero, axis=0, dtype=dtype)
                results += [q, b.dequantize(q, step, zero, axis=0)]
        b.output(*results)
    module = b.build()
    xs, wide = np.stack([EDGES] * len(points)), numpy_dtype("i32" if kind == "wide" else dtype)
    zeros = [np.full((len(points),), p).astype(wide) if kind == "rows" else np.array(p).astype(wide) for p in points]
    want = rx.evaluate(module, "main", xs, *zeros)
    executable = rx.compile(module)
    executable.bind(executable.prepare({}))
    for expected, found in zip(want, executable(xs, *zeros), strict=True):
        known = ~np.isnan(xs)  # a NaN has no defined result
        assert is_same(np.asarray(found)[known], np.asarray(expected)[known])


@pytest.mark.parametrize("dtype", ["i8", "ui8"])
def test_sums_behind_a_known_scale(dtype: str) -> None:
    """Integers are scaled, a bias and a residual are added, and the sum is quantized: one off only near a tie."""
    rng = np.random.default_rng(5)
    b = rx.Builder()
    with b.function("main"):
        x, r = b.input("x", (64, 48), "i32"), b.input("r", (64, 48), dtype)
        m, bias, scale = b.weight("m", (48,)), b.weight("bias", (48,)), b.weight("scale", ())
        first = b.quantize(b.add(b.multiply(b.astype(x, dtype="f32"), m), bias), scale, b.weight("z", (), dtype), dtype=dtype)
        mine = b.dequantize(first, scale, b.full((), 3, dtype))
        other = b.dequantize(r, b.weight("t", ()), b.full((), 0, dtype))
        b.output(first, b.quantize(b.add(mine, other), b.weight("u", ()), b.full((), 5, dtype), dtype=dtype))
    module = b.build()
    weights = {
        "m": rng.random(48, np.float32) * 1e-4, "bias": rng.standard_normal(48).astype(np.float32), "scale": np.float32(0.0213),
        "z": np.array(7).astype(numpy_dtype(dtype)), "t": np.float32(0.0131719), "u": np.float32(0.0340117),
    }  # fmt: skip
    weights = {name: np.asarray(value) for name, value in weights.items()}
    inputs = [rng.integers(-40_000, 40_000, (64, 48), np.int32), rng.integers(0, 100, (64, 48)).astype(numpy_dtype(dtype))]
    want = rx.evaluate(module, "main", *inputs, weights=weights)
    executable = rx.compile(module)
    executable.bind(executable.prepare(weights))
    for expected, found in zip(want, executable(*inputs), strict=True):
        off = np.abs(np.asarray(found, np.int64) - np.asarray(expected, np.int64))
        assert off.max() <= 1
        assert np.count_nonzero(off) <= 2  # of 3072 sums, none of which is a tie by the choice of scales


@pytest.mark.parametrize("scale", [0.031, -0.031, 1e-42, 1e30])
@pytest.mark.parametrize("dtype", ["i8", "ui8", "i16"])
def test_the_largest_of_integers(dtype: str, scale: float) -> None:
    """As of what they are dequantized to, to the bit, whatever the sign of the scale; padding never wins."""
    rng, size = np.random.default_rng(3), numpy_dtype(dtype)
    b = rx.Builder()
    with b.function("main"):
        x, s, z = b.input("x", (2, 5, 9, 8), dtype), b.weight("s", ()), b.weight("z", (), dtype)
        window = {"pool_size": [3, 2], "strides": [2, 1], "padding": [1, 1, 1, 0]}
        pooled = b.max_pool2d(b.dequantize(x, s, z), **window)
        b.output(pooled, b.quantize(pooled, s, z, dtype=dtype))
    module = b.build()
    limits = np.iinfo(size)
    image = rng.integers(limits.min, limits.max + 1, (2, 5, 9, 8)).astype(size)
    weights = {"s": np.array(scale, np.float32), "z": np.array(3).astype(size)}
    want = rx.evaluate(module, "main", image, weights=weights)
    executable = rx.compile(module)
    executable.bind(executable.prepare(weights))
    for expected, found in zip(want, executable(image), strict=True):
        assert is_same(np.asarray(found), np.asarray(expected))
