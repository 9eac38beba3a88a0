"""Kernels over rows on GPUs: softmax, norms and reductions in registers of warps and blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from support.emulated_cuda import agrees, kernels, plans, random


def norms(columns: int, dtype: str = "f32") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        x, g, c = b.input("x", ("n", columns), dtype), b.input("g", (columns,), dtype), b.input("c", (columns,), dtype)
        b.output(b.softmax(x), b.layer_norm(x, g, c, axes=[-1]), b.rms_norm(x, g, axes=[-1]))
    return b.build()


def reduced(shape: tuple[int | str, ...], axes: list[int], name: str = "sum", dtype: str = "f32") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(getattr(b, name)(b.input("x", shape, dtype), axis=axes))
    return b.build()


@pytest.mark.parametrize("columns", [2, 6, 31, 64, 100, 1024, 1028, 1500])
def test_norms_of_rows(columns: int) -> None:
    executable = agrees(norms(columns), *(random(s, seed=i) for i, s in enumerate([(5, columns), (columns,), (columns,)])))
    assert sum(plan.startswith("rows ") for plan in plans(executable)) >= 3


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_norms_of_narrow_rows(dtype: str) -> None:
    executable = agrees(norms(136, dtype), *(random(s, dtype, i) for i, s in enumerate([(3, 136), (136,), (136,)])))
    assert "rows columns=136 width=8 threads=32 rows-per-block=4" in plans(executable)


def test_how_rows_are_shared() -> None:
    """A warp per row while it has few vectors, then blocks, whose threads have some vectors each."""
    plan = {
        c: next(p for p in plans(rx.compile(norms(c), "cuda:sm_80", device="emulated")) if "rows" in p)
        for c in (512, 1024, 4096, 32768)
    }
    assert plan == {
        512: "rows columns=512 width=4 threads=32 rows-per-block=4",
        1024: "rows columns=1024 width=4 threads=64 rows-per-block=1",
        4096: "rows columns=4096 width=4 threads=256 rows-per-block=1",
        32768: "rows columns=32768 width=4 threads=1024 rows-per-block=1",
    }


def test_rows_with_a_mask_and_scale() -> None:
    b = rx.Builder()
    with b.function("main"):
        x, mask = b.input("x", (2, "n", 40)), b.input("mask", ("n", 40), "i1")
        b.output(b.softmax(b.where(mask, b.multiply(x, b.input("s", ())), b.full((), float("-inf"), "f32"))))
    mask = random((4, 40), "i1")
    mask[:, 0] = True
    agrees(b.build(), random((2, 4, 40)), mask, random((), seed=2))


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "mean"])
@pytest.mark.parametrize("shape", [(3, 50), (3, 2000), ("n", "m"), ("n", 7, "m")])
def test_reductions_of_rows(name: str, shape: tuple[int | str, ...]) -> None:
    x = random(tuple({"n": 3, "m": 77}.get(s, s) if isinstance(s, str) else s for s in shape))
    executable = agrees(reduced(shape, [len(shape) - 1], name), x)
    assert plans(executable)[0].startswith("rows ")


def test_reductions_to_one_number() -> None:
    executable = agrees(reduced((30, 40), [0, 1]), random((30, 40)))
    assert plans(executable)[0] == "rows columns=1200 width=4 threads=128 rows-per-block=1"


def test_integers_and_what_threads_cannot_combine() -> None:
    assert plans(agrees(reduced((5, 70), [1], dtype="i32"), random((5, 70), "i32")))[0].startswith("rows ")
    assert not plans(agrees(reduced((5, 70), [1], dtype="f64"), random((5, 70), "f64")))[0].startswith("rows ")


def test_not_a_number_is_found_whichever_thread_has_it() -> None:
    x = random((64, 100))
    x[np.arange(64), np.arange(64)] = np.nan
    agrees(reduced((64, 100), [1], "max"), x)
    agrees(norms(100), x, random((100,)), random((100,)))


def test_machine_code(tmp_path: Path) -> None:
    for name, kernel in kernels(norms(4096, "bf16"), tmp_path).items():
        kernel.check(has=["LDG.E.128", "SHFL.BFLY"])
        if name != "kernel_0":
            kernel.check(has_not=["LDG.E.U16", "STG.E.U16"])
