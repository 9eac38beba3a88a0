"""Results of another dtype than what an op computes with (``out_dtype``): compiled code gives what the reference gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype

FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "ui8", "ui64")

#: Of the sum of a few products of numbers near 1: results are rounded to the narrower one of both dtypes.
TOLERANCES = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}


def _products(b: rx.Builder, n: Any, dtype: str, out: str) -> Iterator[Any]:
    x, w = b.input("x", (n, 6, 6, 4), dtype), b.input("w", (3, 3, 1, 4), dtype)
    nchw = b.permute_dims(x, [0, 3, 1, 2])
    yield b.matmul(b.reshape(x, (n, 36, 4)), b.reshape(w, (9, 4)).T, out_dtype=out)
    if dtype not in FLOATS:
        return
    rest = {"padding": [1, 1, 1, 1], "out_dtype": out}
    yield b.conv2d(x, w, groups=4, data_layout="NHWC", kernel_layout="HWIO", **rest)
    yield b.conv2d(nchw, b.permute_dims(w, [3, 2, 0, 1]), groups=4, **rest)
    yield b.conv2d(nchw, b.permute_dims(b.concat([w, w], axis=2), [3, 2, 0, 1]), groups=2, **rest)
    yield b.conv2d(nchw, b.permute_dims(b.concat([w] * 4, axis=2), [3, 2, 0, 1]), **rest)
    yield b.conv2d(nchw, b.reshape(w, (9, 4, 1, 1)), out_dtype=out)


@pytest.mark.parametrize("size", [2, "n"])
@pytest.mark.parametrize(
    ("dtype", "out"), [(d, o) for kind in (FLOATS, INTEGERS) for d in kind for o in kind if d != o and d != "ui64"]
)
def test_products(dtype: str, out: str, size: int | str) -> None:
    rng = np.random.default_rng(0)
    arrays = [(rng.uniform(0.5, 2, s) * (1 if dtype in FLOATS else 50)) for s in ((2, 6, 6, 4), (3, 3, 1, 4))]
    _check(lambda b: _products(b, size, dtype, out), [a.astype(numpy_dtype(dtype)) for a in arrays], dtype, out)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("out", FLOATS)
def test_dequantized_numbers(dtype: str, out: str) -> None:
    def results(b: rx.Builder) -> Iterator[Any]:
        x, scale, zero = b.input("x", ("n", 4), "i8"), b.input("s", (4,), dtype), b.input("z", (4,), "i8")
        yield b.dequantize(x, scale, zero, out_dtype=out)
        yield b.dequantize(x, scale, b.astype(zero, dtype), out_dtype=out)

    rng = np.random.default_rng(1)
    x, zero = rng.integers(-128, 128, (3, 4), np.int8), rng.integers(-128, 128, 4, np.int8)
    _check(results, [x, rng.uniform(0.5, 2, 4).astype(numpy_dtype(dtype)), zero], dtype, out)


def _check(results: Callable[[rx.Builder], Iterator[Any]], arrays: list[Any], dtype: str, out: str) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(*results(b))
    module = b.build()
    got, want = rx.compile(module)(*arrays), rx.evaluate(module, "main", *arrays)
    for a, e in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        assert a.dtype == e.dtype == numpy_dtype(out)
        if out in INTEGERS:
            np.testing.assert_array_equal(a, e)
            continue
        rtol = max(TOLERANCES[out], TOLERANCES["f64" if dtype == "f64" else "f32"])
        np.testing.assert_allclose(a.astype("f8"), e.astype("f8"), rtol=rtol)


def test_floats_without_infinity_or_zero() -> None:
    """f8E8M0FNU has neither, nor a sign: padding is no element of a window, and rows of no group are 0 as it has it."""
    b = rx.Builder()
    with b.function("main"):
        x, w, ends = b.input("x", (1, 1, 2, 2), "f8E8M0FNU"), b.input("w", (2, 2)), b.input("ends", (2,), "i32")
        rows = b.grouped_matmul(b.full((3, 2), 1.0), w, ends, out_dtype="f8E8M0FNU")
        b.output(b.max_pool2d(x, [2, 2], padding=[1, 1, 0, 0]), rows)
    module = b.build()
    image = np.array([[[[1, 2], [4, 8]]]], np.float32).astype(numpy_dtype("f8E8M0FNU"))
    arrays = image, np.ones((2, 2), np.float32), np.array([1, 2], np.int32)
    for found in (rx.compile(module)(*arrays), rx.evaluate(module, "main", *arrays)):
        pooled, grouped = (f.astype(np.float32) for f in found)
        np.testing.assert_array_equal(pooled, [[[[1, 2], [4, 8]]]])
        np.testing.assert_array_equal(grouped, [[2], [2], [np.nan]])
