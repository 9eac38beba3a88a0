"""Reductions over outer axes on GPUs, and products of few rows: what is read lies contiguous along the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from relaxir.runtime.executable import Executable
from support.emulated_cuda import TARGET, agrees, kernels, plans, random
from support.naive import assert_close


def reduced(shape: tuple[int | str, ...], name: str, dtype: str = "f32") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(getattr(b, name)(b.input("x", shape, dtype), axis=[len(shape) - 2]))
    return b.build()


def product(rows: int, steps: int, columns: int, dtype: str) -> rx.Module:
    """A product with a weight, and what follows it element by element."""
    b = rx.Builder()
    with b.function("main"):
        x, y = b.input("x", (rows, steps), dtype), b.input("y", (rows, columns), dtype)
        weight = b.permute_dims(b.weight("w", (columns, steps), dtype), axes=[1, 0])
        b.output(b.add(b.silu(b.matmul(x, weight)), y))
    return b.build()


def bound(module: rx.Module, weight: np.ndarray, target: str, weights: str | None) -> Executable:
    device = {} if target == "cpu" else {"device": "emulated"}
    executable = rx.compile(module, target=target, weights=weights, **device)
    executable.bind(executable.prepare({"w": weight}))
    return executable


@pytest.mark.parametrize("shape", [(40, 50), (256, 8), ("n", 33), ("n", "m"), (3, "n", 72), ("n", 2, 64)])
@pytest.mark.parametrize("name", ["sum", "max"])
def test_reductions_of_outer_axes(name: str, shape: tuple[int | str, ...]) -> None:
    executable = agrees(
        reduced(shape, name), random(tuple({"n": 70, "m": 37}.get(s, s) if isinstance(s, str) else s for s in shape))
    )
    assert plans(executable)[0].startswith("outer ")


def test_how_a_reduction_is_shared() -> None:
    def plan(shape: tuple[int | str, ...], dtype: str = "f32") -> str:
        return plans(rx.compile(reduced(shape, "sum", dtype), target=TARGET))[0]

    assert plan((256, 64)) == "outer columns=32 width=4 parts=32 unroll=4"
    assert plan((100, 64), "bf16") == "outer columns=32 width=8 parts=64 unroll=1"
    assert plan(("n", "m")) == "outer columns=32 width=1 parts=32 unroll=1"


def test_what_is_no_number_is_found() -> None:
    x = random((64, 40))
    x[np.arange(40), np.arange(40)] = np.nan
    agrees(reduced((64, 40), "max"), x)


@pytest.mark.parametrize("weights", [None, "int8", "int4"])
@pytest.mark.parametrize(("rows", "steps", "columns", "dtype"), [(1, 256, 64, "bf16"), (3, 96, 40, "f32")])
def test_products_of_few_rows(rows: int, steps: int, columns: int, dtype: str, weights: str | None) -> None:
    """The same as on the CPU, where weights are rounded alike."""
    module, weight = product(rows, steps, columns, dtype), random((columns, steps), dtype, 1)
    executable = bound(module, weight, TARGET, weights)
    inputs = random((rows, steps), dtype), random((rows, columns), dtype, 2)
    assert_close(
        np.asarray(executable(*inputs)), bound(module, weight, "cpu", weights)(*inputs), 1e-2 if dtype == "bf16" else 1e-4
    )
    taken = "outer " if dtype == "f32" or weights else "tile="  # tensor cores have what they can multiply
    assert any(plan.startswith(taken) for plan in plans(executable)), plans(executable)


def test_many_rows_are_not_its() -> None:
    assert not any(p.startswith("outer") for p in plans(rx.compile(product(64, 64, 64, "f32"), target=TARGET)))


def test_machine_code(tmp_path: Path) -> None:
    found = kernels(product(1, 512, 256, "f32"), tmp_path).values()
    (kernel,) = (k for k in found if k.has("SHFL.BFLY"))
    kernel.check(has=["LDG.E.128"])
    for one in kernels(reduced((256, 64), "sum"), tmp_path / "sum").values():
        one.check(has=["LDG.E.128"])
