"""Rows that are reduced into one, read from first to last: around blocks, vectors and the sizes from which it is done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import relaxir as rx
from relaxir.building.value import Value
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reports.kernels import KernelSection
from support.naive import assert_close


def reduced(shape: tuple[int | str, ...], dtype: str, make: Callable[[rx.Builder, Value], tuple[Value, ...]]) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(*make(b, b.input("x", shape, dtype)))
    return b.build()


def first_but_one(rank: int) -> Callable[[rx.Builder, Value], tuple[Value, ...]]:
    """Sum, greatest element and where it is along the last axis but one, variance along all but the last."""

    def make(b: rx.Builder, x: Value) -> tuple[Value, ...]:
        axis, every = rank - 2, list(range(rank - 1))
        return b.sum(x, axis=[axis]), b.max(x, axis=[axis]), b.argmax(x, axis=axis), b.variance(x, axis=every)

    return make


def streams(module: rx.Module) -> int:
    """How many nests are streamed, by their plans."""
    sections = [s for s in rx.compile(module).report.sections if isinstance(s, KernelSection)]
    return sum((kernel.plan or "").count("streamed=yes") for section in sections for kernel in section.kernels)


@pytest.mark.parametrize("shape", [(16, 129), (17, 511), (33, 513), (40, 1031), (3, 40, 700), (100, 512), (1, 600)])
def test_any_number_of_threads_gives_the_same(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for sizes in (shape, tuple("nmk"[: len(shape)])):
        module = reduced(sizes, "f32", first_but_one(len(shape)))
        want = rx.evaluate(module, "main", x)
        executable = rx.compile(module)
        executable.threads = 1
        got = executable(x)
        for found, expected in zip(got, want, strict=True):
            assert_close(np.asarray(found), expected)
        for threads in (2, 3):
            executable.threads = threads
            for found, first in zip(executable(x), got, strict=True):
                np.testing.assert_array_equal(found, first)


@pytest.mark.parametrize("dtype", ["f64", "bf16", "i32", "i8"])
def test_dtypes(dtype: str) -> None:
    def make(b: rx.Builder, x: Value) -> tuple[Value, ...]:
        return b.sum(x, axis=[0]), b.min(x, axis=[0])

    module = reduced((50, 600), dtype, make)
    x = (np.random.default_rng(1).standard_normal((50, 600)) * 20).astype(numpy_dtype(dtype))
    for found, expected in zip(rx.compile(module)(x), rx.evaluate(module, "main", x), strict=True):
        assert_close(np.asarray(found), expected)


@pytest.mark.parametrize("shape", [(0, 700), (20, 0), (1, 700)])
def test_nothing_to_reduce(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    got = rx.compile(reduced(shape, "f32", lambda b, x: (b.sum(x, axis=[0]),)))(x)
    np.testing.assert_array_equal(got, x.sum(0))


@pytest.mark.parametrize(
    ("shape", "axes", "count"),
    [
        ((64, 1024), [0], 1),
        ((15, 1024), [0], 0),  # few rows
        ((64, 64), [0], 0),  # sums that fit registers
        ((64, 1024), [1], 0),  # along the vector
        ((8, 64, 1024), [0, 1], 1),
        (("n", "m"), [0], 1),
    ],
)
def test_what_is_streamed(shape: tuple[int | str, ...], axes: list[int], count: int) -> None:
    assert streams(reduced(shape, "f32", lambda b, x: (b.sum(x, axis=axes),))) == count
