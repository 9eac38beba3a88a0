"""Reductions over outer axes on GPUs, and products of few rows: what is read lies contiguous along the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from support.emulated_cuda import TARGET, agrees, kernels, plans, random


def reduced(shape: tuple[int | str, ...], name: str, dtype: str = "f32") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(getattr(b, name)(b.input("x", shape, dtype), axis=[len(shape) - 2]))
    return b.build()


def product(rows: int, steps: int, columns: int) -> rx.Module:
    """A product, and what follows it element by element."""
    b = rx.Builder()
    with b.function("main"):
        x, w, y = (b.input(n, s) for n, s in (("x", (rows, steps)), ("w", (steps, columns)), ("y", (rows, columns))))
        b.output(b.add(b.silu(b.matmul(x, w)), y))
    return b.build()


@pytest.mark.parametrize("shape", [(40, 50), (256, 8), ("n", 33), ("n", "m"), (3, "n", 72), ("n", 2, 64)])
@pytest.mark.parametrize("name", ["sum", "max"])
def test_reductions_of_outer_axes(name: str, shape: tuple[int | str, ...]) -> None:
    executable = agrees(
        reduced(shape, name), random(tuple({"n": 70, "m": 37}.get(s, s) if isinstance(s, str) else s for s in shape))
    )
    assert plans(executable)[0].startswith("outer ")


def test_how_a_reduction_is_shared() -> None:
    def plan(shape: tuple[int | str, ...], dtype: str = "f32") -> str:
        return plans(rx.compile(reduced(shape, "sum", dtype), target=TARGET, device="emulated"))[0]

    assert plan((256, 64)) == "outer columns=32 width=4 parts=32 unroll=4"
    assert plan((100, 64), "bf16") == "outer columns=32 width=8 parts=64 unroll=1"
    assert plan(("n", "m")) == "outer columns=32 width=1 parts=32 unroll=1"


def test_what_is_no_number_is_found() -> None:
    x = random((64, 40))
    x[np.arange(40), np.arange(40)] = np.nan
    agrees(reduced((64, 40), "max"), x)


@pytest.mark.parametrize(("rows", "steps", "columns"), [(1, 256, 64), (3, 96, 40)])
def test_products_of_few_rows_with_what_is_no_weight(rows: int, steps: int, columns: int) -> None:
    executable = agrees(
        product(rows, steps, columns), random((rows, steps)), random((steps, columns), seed=1), random((rows, columns), seed=2)
    )
    assert any(plan.startswith("outer ") for plan in plans(executable)), plans(executable)


def test_many_rows_are_not_its() -> None:
    assert not any(p.startswith("outer") for p in plans(rx.compile(product(64, 64, 64), TARGET, device="emulated")))


def test_machine_code(tmp_path: Path) -> None:
    found = kernels(product(1, 512, 256), tmp_path).values()
    (kernel,) = (k for k in found if k.has("SHFL.BFLY"))
    kernel.check(has=["LDG.E.128"])
    for one in kernels(reduced((256, 64), "sum"), tmp_path / "sum").values():
        one.check(has=["LDG.E.128"])
