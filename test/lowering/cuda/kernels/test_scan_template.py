"""Running sums, products and extremes on GPUs: lines of any length and dtype, along any axis, exclusive or not."""

from __future__ import annotations

import numpy as np
import pytest

import relaxir as rx
from support.emulated_cuda import agrees, plans, random

LINE, LINES = "scan threads=", "scan lines=32 rows=8"


def module(shape: tuple[int | str, ...], dtype: str, *kinds: tuple[int, bool], op: str = "cumsum") -> rx.Module:
    """A function that gives the running sums of its input along some axes, exclusive or not, or what another op gives."""
    b = rx.Builder()
    with b.function("main"):
        x = b.input("x", shape, dtype)
        b.output(**{f"y{i}": getattr(b, op)(x, axis=axis, exclusive=exclusive) for i, (axis, exclusive) in enumerate(kinds)})
    return b.build()


@pytest.mark.parametrize(("length", "threads"), [(33, 64), (256, 256), (700, 256), ("n", 256)])
def test_lines_of_neighbours(length: int | str, threads: int) -> None:
    made = module((3, length), "f32", (1, False), (1, True))
    size = 300 if length == "n" else length
    assert plans(agrees(made, random((3, int(size))))) == [f"{LINE}{threads}"] * 2


@pytest.mark.parametrize("dtype", ["bf16", "i8", "i64", "f64"])
def test_dtypes(dtype: str) -> None:
    made = module(("n", 70), dtype, (0, False), (0, True), (1, False), (1, True))
    assert plans(agrees(made, random((40, 70), dtype))) == [LINES, LINES, f"{LINE}128", f"{LINE}128"]


@pytest.mark.parametrize("shape", [("n", 2, 5), (3, "n", 40), (33, 2, "n")])
def test_lines_that_are_neighbours(shape: tuple[int | str, ...]) -> None:
    made = module(shape, "f32", (0, False), (1, False), (1, True), (2, False))
    executable = agrees(made, random(tuple(35 if dim == "n" else int(dim) for dim in shape)))
    assert all(plan.startswith("scan") for plan in plans(executable))


def test_no_lines_and_no_elements() -> None:
    made = module(("n", "m"), "f32", (0, False), (1, True))
    agrees(made, random((0, 4)))
    agrees(made, random((4, 0)))


def test_what_is_no_number_stays_behind_its_place() -> None:
    x = np.ones((2, 600), np.float32)
    x[0, 300], x[1, 40] = np.inf, np.nan
    agrees(module((2, "n"), "f32", (1, False), (1, True)), x)
    agrees(module(("n", 2), "f32", (0, False), (0, True)), x.T.copy())


@pytest.mark.parametrize("op", ["cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "ui8", "i64", "f64"])
def test_products_and_extremes(op: str, dtype: str) -> None:
    made = module(("n", 70), dtype, (0, False), (0, True), (1, False), (1, True), op=op)
    x = random((40, 70), dtype)
    if op == "cumprod" and dtype.startswith(("f", "b")):
        x = (1 + x.astype(np.float32) / 16).astype(x.dtype)
    assert plans(agrees(made, x)) == [LINES, LINES, f"{LINE}128", f"{LINE}128"]


@pytest.mark.parametrize("op", ["cummax", "cummin"])
def test_extremes_behind_what_is_no_number(op: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 600)).astype(np.float32)
    x[0, 300], x[1, 40], x[2, 0] = np.inf, np.nan, -np.inf
    agrees(module((3, "n"), "f32", (1, False), (1, True), op=op), x)
    agrees(module(("n", 3), "f32", (0, False), (0, True), op=op), x.T.copy())
