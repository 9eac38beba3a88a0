"""Copies to places that indices say on GPUs: along any axis, of any number of indices, the last of equal ones."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from support.emulated_cuda import agrees, plans, random


def module(shape: tuple[int | str, ...], axis: int, count: int | str, dtype: str = "i64", of: str = "f32") -> rx.Module:
    """A function that puts slices into its first input."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", shape, of)
        values = b.input("values", tuple(count if i == axis else size for i, size in enumerate(shape)), of)
        b.output(b.index_copy(x, b.input("indices", (count,), dtype), values, axis=axis))
    return b.build()


@pytest.mark.parametrize(
    ("shape", "axis", "dtype", "of"),
    [((2, 16, "m"), 1, "i64", "f32"), (("m", 7), 0, "i32", "bf16"), ((3, 2, 9), 2, "ui8", "i8"), ((8,), 0, "i64", "f32")],
)
def test_slices_along_an_axis(shape: tuple[int | str, ...], axis: int, dtype: str, of: str) -> None:
    sizes = [600 if size == "m" and i != axis else 9 if size == "m" else int(size) for i, size in enumerate(shape)]
    indices = np.array([3, 0, 5, 3, 1], dtype={"ui8": "uint8", "i32": "int32", "i64": "int64"}[dtype])
    given = [5 if i == axis else size for i, size in enumerate(sizes)]
    executable = agrees(module(shape, axis, "k", dtype, of), random(tuple(sizes), of), random(tuple(given), of, 1), indices)
    assert "index-copy threads=128" in plans(executable)


def test_the_last_of_many_equal_indices_counts() -> None:
    indices = np.random.default_rng(2).integers(-4, 4, 300)
    agrees(module((4, 3), 0, "k"), random((4, 3)), random((300, 3), seed=1), indices)


def test_a_single_index_needs_no_loop() -> None:
    made = module((2, 5, 3), 1, 1)
    executable = agrees(made, random((2, 5, 3)), random((2, 1, 3), seed=1), np.array([-2]))
    assert "index-copy threads=128" in plans(executable)


def test_one_index_and_none() -> None:
    for count in (0, 1):
        agrees(module((4, 3), 0, "k"), random((4, 3)), random((count, 3), seed=1), np.arange(count))
