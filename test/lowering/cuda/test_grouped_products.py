"""Rows in groups, each with the matrix of its group, on the emulator: every template, numbers as NumPy's, and no finding.

Groups are empty, of one row, ragged, of more rows than a tile, or all of one; rows behind the last group give 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from support.emulated_cuda import agrees, plans

AMPERE, HOPPER = "cuda:sm_80", "cuda:sm_90a"
#: Beyond a tile and within one, without rows, and fewer rows than there are.
SIZES = ([67, 0, 1, 18], [0, 0, 0, 90], [5, 4, 3, 2])


@dataclass(frozen=True)
class Grouped:
    """A grouped product.

    Attributes:
        rows: of activations, or the name of their number.
        steps, columns: of the matrix of each of so many groups.
        weights: how these are stored, as :func:`relaxir.compile` has it.
        follows: whether a bias and an activation follow.
        result: its dtype.
    """

    rows: int | str
    steps: int
    columns: int
    groups: int = 4
    dtype: str = "bf16"
    weights: str | None = None
    follows: bool = False
    result: str = "f32"

    def module(self) -> rx.Module:
        b = rx.Builder()
        with b.function("main"):
            x, ends = b.input("x", (self.rows, self.steps), self.dtype), b.input("ends", (self.groups,), "i64")
            w = b.reshape(b.weight("w", (self.groups, self.columns, self.steps), self.dtype), (self.groups * self.columns, -1))
            y = b.grouped_matmul(x, b.permute_dims(w, axes=[1, 0]), ends, out_dtype=self.result)
            b.output(b.relu(b.add(y, b.weight("b", (self.columns,), self.result))) if self.follows else y)
        return b.build()

    def compiled(self, target: str, weights: dict[str, np.ndarray]) -> rx.Executable:
        executable = rx.compile(self.module(), target, weights=self.weights, device="emulated")
        executable.bind(executable.prepare(weights))
        return executable

    def numbers(self) -> dict[str, np.ndarray]:
        """Weights that integers hold exactly where they are stored as such: the largest of a group is 127, or -8."""
        rng, kind = np.random.default_rng(0), numpy_dtype(self.dtype)
        shape = (self.groups, self.columns, self.steps)
        w = rng.standard_normal(shape)
        if self.weights is not None:
            most = 8 if self.weights == "int4" else 127
            w = rng.integers(-most, most, shape).astype(np.float64)
            w[..., :: 32 if self.weights == "int4" else self.steps] = -8 if self.weights == "int4" else 127
        found = {"w": w.astype(kind)}
        return found | ({"b": rng.standard_normal(self.columns).astype(numpy_dtype(self.result))} if self.follows else {})


def check(product: Grouped, executable: rx.Executable, weights: dict[str, np.ndarray], sizes: Sequence[int], rows: int) -> None:
    """Sums are off by the rounding of k additions, each by at most half a unit of what magnitudes come to; of bf16, twice."""
    x = (np.random.default_rng(1).standard_normal((rows, product.steps)) + 1).astype(numpy_dtype(product.dtype))
    ends, w = np.cumsum(np.array(sizes, np.int64)), weights["w"].astype(np.float64)
    want, most = np.zeros((rows, product.columns)), np.zeros((rows, product.columns))
    for group, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        want[begin:end] = x[begin:end].astype(np.float64) @ w[group].T
        most[begin:end] = abs(x[begin:end].astype(np.float64)) @ abs(w[group].T)
    if product.follows:
        want, most = np.maximum(want + weights["b"].astype(np.float64), 0), most + abs(weights["b"].astype(np.float64))
    rounding = 2.0**-8 if product.result == "bf16" else 0.0
    got = np.asarray(executable(x, ends)).astype(np.float64)
    assert (abs(got - want) <= ((product.steps + 2) * 2.0**-24 + rounding) * most).all()


def run(
    product: Grouped, target: str, kernel: str, sizes: Sequence[Sequence[int]] = SIZES, rows: Sequence[int] = (90,)
) -> None:
    weights = product.numbers()
    executable = product.compiled(target, weights)
    assert any(p.startswith(kernel) for p in plans(executable)), plans(executable)
    for count in rows:
        for own in sizes:
            check(product, executable, weights, np.minimum(own, count), count)


@pytest.mark.parametrize(
    ("product", "target", "kernel"),
    [
        (Grouped("n", 72, 40), AMPERE, "tile="),
        (Grouped("n", 136, 72, follows=True, result="bf16"), HOPPER, "warpgroups="),
        (Grouped("n", 72, 40, dtype="f16", weights="int8"), AMPERE, "tile="),
        (Grouped("n", 96, 40, weights="int4", follows=True), HOPPER, "tile="),
        (Grouped("n", 36, 20, dtype="f32"), AMPERE, "tile="),
    ],
    ids=["mma", "wgmma", "int8", "int4", "f32"],
)
def test_tiles(product: Grouped, target: str, kernel: str) -> None:
    run(product, target, kernel)


@pytest.mark.parametrize(
    ("product", "target"),
    [(Grouped(6, 264, 20, follows=True), AMPERE), (Grouped(6, 256, 20, weights="int4"), HOPPER)],
    ids=["bf16", "int4"],
)
def test_few_rows_read_the_matrices_of_their_groups_alone(product: Grouped, target: str) -> None:
    run(product, target, "columns=", ([2, 0, 1, 3], [0, 0, 0, 6], [1, 1, 0, 1]), (6,))


def test_shapes_without_a_template_and_of_one() -> None:
    """A single group, row, step of k or column, f64, ends of 32 bits: all in one module."""
    b, rng = rx.Builder(), np.random.default_rng(0)
    shapes = [("bf16", 5, 72, 24, 1), ("f32", 1, 72, 24, 3), ("f32", 5, 1, 24, 3), ("f32", 5, 72, 1, 3), ("f64", 5, 8, 3, 2)]
    inputs, made = list[np.ndarray](), list[object]()
    with b.function("main"):
        for i, (dtype, rows, steps, columns, groups) in enumerate(shapes):
            x, w = b.input(f"x{i}", (rows, steps), dtype), b.input(f"w{i}", (steps, columns * groups), dtype)
            made.append(b.grouped_matmul(x, w, b.input(f"ends{i}", (groups,), "i32")))
            factors = (rng.standard_normal(s).astype(numpy_dtype(dtype)) for s in ((rows, steps), (steps, columns * groups)))
            inputs += [*factors, np.minimum(np.arange(1, groups + 1) * 2, rows).astype(np.int32)]
        b.output(*made)
    agrees(b.build(), *inputs)
