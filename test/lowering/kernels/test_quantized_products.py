"""Products with quantized weights: for any number of rows the result is the reference's, and memory holds narrow weights."""

from __future__ import annotations

import os

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from support.narrow_products import RANGES, WEIGHTS, Weight, build, check

#: Whether each weight meets each number of rows and each target: `.ci/run` says so.
SWEEP = bool(os.environ.get("RELAXIR_SWEEP"))


@pytest.mark.parametrize("rows", [1, 33])
def test_rows(rows: int) -> None:
    check(rows, WEIGHTS, [rows])


@pytest.mark.parametrize(("first", "rows"), enumerate([2, 6, 7]))
def test_rows_of_few_tiles(first: int, rows: int) -> None:
    """Each weight with one of these; with all in the sweep."""
    check(rows, WEIGHTS if SWEEP else WEIGHTS[first::3], [rows])


def test_rows_known_at_run_time() -> None:
    check("n", WEIGHTS[::2], [1, 2, 5, 7, 13, 64])


@pytest.mark.parametrize("columns", [1, 17, 127, 513])
def test_columns(columns: int) -> None:
    check(1, [Weight("i4", columns, 64, 32), Weight("i8", columns, 31), Weight("ui4", columns, 96, 96, zeros=True)], [1])


@pytest.mark.parametrize("depth", [1, 9, 1031])
def test_depths(depth: int) -> None:
    check(1, [Weight(dtype, 256, depth, zeros=True) for dtype in RANGES], [1])


def test_sums_in_blocks() -> None:
    """Blocks of k are whole groups, or parts of one."""
    weights = [
        Weight("i4", 40, 1152, 96),
        Weight("ui8", 35, 1152, zeros=True),
        Weight("i8", 33, 1152, 576),
        Weight("ui4", 17, 1100, 44, zeros=True),
        Weight("f8E4M3FN", 33, 1100),
        Weight("ui4", 35, 1152, 96, low=True),
        Weight("ui4", 33, 1152, 64, codes=True),
    ]
    check("n", weights, [1, 8, 20, 40])
    check("n", weights[:2], [129, 137])
    check(130, weights[:2], [130])


@pytest.mark.parametrize("rows", [9, 16, 25, "n"])
def test_the_first_tile_computes_the_weight_for_the_others(rows: int | str) -> None:
    weights = [
        Weight("i4", 70, 96, 32),
        Weight("ui4", 33, 40, zeros=True),
        Weight("i8", 50, 33),
        Weight("ui8", 33, 33, 11, zeros=True),
    ]
    check(rows, weights, [9, 12, 31, 65] if rows == "n" else [int(rows)])
    check(rows, weights[:3], [6, 7, 9, 32] if rows == "n" else [int(rows)], "x86-64-v3")


@pytest.mark.parametrize(("first", "target"), enumerate(["x86-64", "x86-64-v4", "aarch64", "neoverse-v1", "sapphirerapids"]))
def test_targets(first: int, target: str) -> None:
    """Every other weight; all of them in the sweep."""
    weights = [Weight("i4", 530, 64, 32), Weight("ui4", 260, 40, zeros=True), Weight("i8", 270, 33), Weight("bf16", 513, 20)]
    weights += [Weight("ui4", 260, 64, 32, low=True), Weight("ui4", 33, 32, 16, codes=True)]
    weights += [Weight("ui5", 260, 64, 32, low=True), Weight("ui6", 300, 48, 16)]
    check("n", weights if SWEEP else weights[first % 2 :: 2], [1, 2, 9], target)


def test_nothing_is_wider_in_memory_than_the_manifest_says() -> None:
    module, arrays = build(1, [Weight("i4", 512, 1024, 32), Weight("ui4", 100, 1000)])
    executable = rx.compile(module)
    prepared = executable.prepare(arrays)
    words = [array for name, array in prepared.items() if "pack_nibbles" in name]
    assert [array.dtype for array in words] == [np.uint32] * 2
    assert sum(array.nbytes for array in words) <= (512 * 1024 + 128 * 1000) // 2


@pytest.mark.parametrize(("weight", "bits"), [(Weight("ui5", 512, 1024, 32, low=True), 5), (Weight("ui6", 512, 1024, 16), 6)])
def test_five_and_six_bits_are_no_bytes(weight: Weight, bits: int) -> None:
    module, arrays = build(1, [weight])
    prepared = rx.compile(module).prepare(arrays)
    words = [array for name, array in prepared.items() if array.dtype == np.uint32]
    assert (len(words), sum(array.nbytes for array in words)) == (2, 512 * 1024 * bits // 8)


def test_a_weight_of_two_products_is_held_once() -> None:
    b = rx.Builder()
    rng = np.random.default_rng(1)
    arrays = {
        "q": rng.integers(-8, 8, (256, 256)).astype(numpy_dtype("i4")),
        "s": rng.uniform(0.1, 1, (256, 8)).astype(np.float32),
    }
    with b.function("main"):
        x = b.input("x", (1, 256))
        q, s = b.weight("q", (256, 256), "i4"), b.weight("s", (256, 8), "f32")
        w = b.permute_dims(b.dequantize(q, s, b.full((), 0, "i4")), axes=[1, 0])
        b.output(y=b.matmul(b.matmul(x, w), w))
    module = b.build()
    executable = rx.compile(module)
    prepared = executable.prepare(arrays)
    assert sum(a.nbytes for a in prepared.values()) == 256 * 256 // 2 + arrays["s"].nbytes
    executable.bind(prepared)
    x = rng.normal(size=(1, 256)).astype(np.float32)
    (want,) = rx.evaluate(module, "main", x, weights=arrays)
    np.testing.assert_allclose(executable(x), want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_large_activations() -> None:
    """Sums are taken per group: what overflows must overflow in the reference, too."""
    module, arrays = build(1, [Weight("i4", 256, 64, 32), Weight("i8", 256, 64)])
    executable = rx.compile(module)
    executable.bind(executable.prepare(arrays))
    x = np.random.default_rng(1).normal(size=(1, 64)).astype(np.float32) * np.float32(1e30)
    for got, want in zip(executable(x), rx.evaluate(module, "main", x, weights=arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max())
