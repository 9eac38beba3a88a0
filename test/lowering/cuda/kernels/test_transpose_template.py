"""Elementwise kernels with inputs that lie across on GPUs: cut tiles, other dimensions, several inputs, dtypes."""

from __future__ import annotations

import pytest

import relaxir as rx
from support.emulated_cuda import agrees, plans, random

TILES = "tile=32x32"


@pytest.mark.parametrize(("rows", "columns"), [(20, 24), (32, 64), ("n", 33), ("n", "m")])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
def test_matrices(rows: int | str, columns: int | str, dtype: str) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.permute_dims(b.input("x", (rows, columns), dtype), axes=[1, 0]))
    size = {"n": 45, "m": 70}
    executable = agrees(b.build(), random(tuple(size.get(str(d)) or int(d) for d in (rows, columns)), dtype))
    assert plans(executable) == [f"transpose along=1 across=0 {TILES}"]


@pytest.mark.parametrize("axes", [[0, 2, 1], [2, 1, 0], [2, 0, 1], [1, 2, 0]])
def test_other_dimensions(axes: list[int]) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.permute_dims(b.input("x", (9, "n", 40), "f32"), axes=axes))
    assert TILES in plans(agrees(b.build(), random((9, 12, 40))))[0]


def test_what_is_computed_on_the_way() -> None:
    b = rx.Builder()
    with b.function("main"):
        x, y, z = b.input("x", (40, "n"), "f32"), b.input("y", (40, "n"), "bf16"), b.input("z", ("n", 40), "f32")
        turned = b.permute_dims(b.relu(b.add(x, b.astype(y, "f32"))), axes=[1, 0])
        b.output(b.multiply(turned, b.add(z, b.input("bias", (40,), "f32"))))
    shapes = ((40, 35), "f32"), ((40, 35), "bf16"), ((35, 40), "f32"), ((40,), "f32")
    executable = agrees(b.build(), *(random(shape, dtype, i) for i, (shape, dtype) in enumerate(shapes)))
    assert plans(executable) == [f"transpose along=1 across=0 {TILES}"]


def test_short_directions_and_nothing() -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.permute_dims(b.input("x", ("n", 3), "f32"), axes=[1, 0]))
    assert "elementwise" in plans(agrees(b.build(), random((50, 3))))[0]
    b = rx.Builder()
    with b.function("main"):
        b.output(b.permute_dims(b.input("x", ("n", "m"), "f32"), axes=[1, 0]))
    agrees(b.build(), random((0, 5)))
