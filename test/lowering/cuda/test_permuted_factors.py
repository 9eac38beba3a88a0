"""Products of what was permuted when it runs: read where it is, as long as neighbours stay ones or steps of k become them."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from support.emulated_cuda import agrees, plans, random

AMPERE, HOPPER = "cuda:sm_80", "cuda:sm_90a"

Shape = tuple[int | str, ...]


def product(x: Shape, y: Shape, axes: tuple[list[int] | None, list[int] | None], dtype: str) -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        inputs = [b.input(name, shape, dtype) for name, shape in (("x", x), ("y", y))]
        left, right = (v if a is None else b.permute_dims(v, axes=a) for v, a in zip(inputs, axes, strict=True))
        b.output(b.matmul(left, right, out_dtype="f32"))
    return b.build()


@pytest.mark.parametrize(
    ("x", "y", "axes", "dtype", "target", "moved"),
    [
        ((2, "n", 3, 24), (2, "m", 3, 24), ([0, 2, 1, 3], [0, 2, 3, 1]), "bf16", AMPERE, 0),
        ((2, "n", 3, 32), (2, "m", 3, 32), ([0, 2, 1, 3], [0, 2, 3, 1]), "f16", HOPPER, 0),
        (("n", 16), ("m", 16), (None, [1, 0]), "f32", AMPERE, 0),
        ((1, 3, 1, 32), ("m", 3, 32), (None, [1, 2, 0]), "bf16", AMPERE, 0),  # a row: a stream
        ((3, "n", "m"), ("m", 3, 16), (None, [1, 0, 2]), "bf16", AMPERE, 0),
        ((24, "n"), (24, 32), ([1, 0], None), "bf16", HOPPER, 1),
    ],
    ids=["heads", "heads-by-warpgroups", "f32", "row", "values", "moved-to-copy-more"],
)
def test_permuted_factors(
    x: Shape, y: Shape, axes: tuple[list[int] | None, list[int] | None], dtype: str, target: str, moved: int
) -> None:
    """Each sum in f32 is off by half a unit of what magnitudes come to for each addition."""
    module, sizes = product(x, y, axes, dtype), {"n": 37, "m": 70}
    executable = rx.compile(module, target, device="emulated")
    assert len(plans(executable)) == 1 + moved, plans(executable)
    given = [random(tuple(sizes.get(s, s) for s in shape), dtype, i) for i, shape in enumerate((x, y))]
    (want,), (most,) = (rx.evaluate(module, "main", *values) for values in (given, [np.abs(v) for v in given]))
    assert (np.abs(np.asarray(executable(*given)) - want) <= 2 * 70 * 2.0**-24 * most).all()


@pytest.mark.parametrize("axes", [[0, 1, 2], [0, 2, 1]])
def test_the_first_part_of_something_longer(axes: list[int]) -> None:
    """As attention with sinks has it: of a softmax over one column more, the last is left out."""
    b = rx.Builder()
    with b.function("main"):
        x, y = b.input("x", (2, 5, 7) if axes[1] == 1 else (2, 7, 5)), b.input("y", (2, 6, 8))
        first = b.strided_slice(b.permute_dims(x, axes=axes), axes=[2], begin=[0], end=[6])
        b.output(b.matmul(first, y))
    agrees(b.build(), random((2, 5, 7) if axes[1] == 1 else (2, 7, 5)), random((2, 6, 8), seed=1))
