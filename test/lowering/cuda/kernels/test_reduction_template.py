"""Reductions of much to little on GPUs: more blocks than results, any type, any axes, any sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaxir as rx
from support.emulated_cuda import TARGET, agrees, kernels, plans, random

Shape = tuple[int | str, ...]


def reduced(shape: Shape, name: str, axis: list[int], dtype: str = "f32") -> rx.Module:
    b = rx.Builder()
    with b.function("main"):
        b.output(getattr(b, name)(b.input("x", shape, dtype), axis=axis))
    return b.build()


def scaled_least(shape: Shape) -> rx.Module:
    """The least of all elements, each times its column's scale: loops that do not merge."""
    b = rx.Builder()
    with b.function("main"):
        x, scale = b.input("x", shape), b.input("scale", shape[-1:])
        b.output(b.min(b.multiply(x, scale), axis=list(range(len(shape)))))
    return b.build()


def sizes(shape: Shape, **known: int) -> tuple[int, ...]:
    return tuple(known.get(s, 0) if isinstance(s, str) else s for s in shape)


def plan(module: rx.Module) -> str:
    return plans(rx.compile(module, target=TARGET, device="emulated"))[0]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "ui8", "i32", "i64"])
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_every_type_to_one_number(name: str, dtype: str) -> None:
    executable = agrees(reduced((137, 260), name, [0, 1], dtype), random((137, 260), dtype))
    assert plans(executable)[0].startswith("reduction "), plans(executable)


@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 6, 9, 31), [0, 2, 3]), ((3, 50, 2, 40), [1, 3]), ((5, 300), [1]), ((2, 7, 11, 13), [0, 1, 2, 3])]
)
def test_any_axes(shape: Shape, axis: list[int]) -> None:
    agrees(reduced(shape, "sum", axis, "i64"), random(sizes(shape), "i64"))


@pytest.mark.parametrize(
    ("shape", "axis"), [(("n", 6, "m"), [0, 2]), (("n",), [0]), ((2, "n", "m"), [1, 2]), (("n", 3, 5), [0, 1, 2])]
)
@pytest.mark.parametrize(("n", "m"), [(70, 37), (1, 1), (5000, 2)])
def test_open_sizes(shape: Shape, axis: list[int], n: int, m: int) -> None:
    agrees(reduced(shape, "sum", axis, "i64"), random(sizes(shape, n=n, m=m), "i64"))


@pytest.mark.parametrize("shape", [(12, 96), (3, 40, 33), ("n", 96), ("n", "m"), (2, "n", 64)])
def test_loops_that_do_not_merge(shape: Shape) -> None:
    executable = agrees(scaled_least(shape), random(sizes(shape, n=90, m=70)), random(sizes(shape[-1:], m=70), seed=1))
    assert plans(executable)[0].startswith("reduction "), plans(executable)


def test_nothing_is_reduced_to_where_it_begins() -> None:
    x = np.zeros((0, 6, 4), np.float32)
    agrees(reduced(("n", 6, "m"), "sum", [0, 2]), x)
    agrees(reduced(("n", 6, "m"), "sum", [0, 2]), np.zeros((3, 6, 0), np.float32))


def test_what_is_no_number_is_found() -> None:
    x = random((40, 200))
    x[31, 177] = np.nan
    agrees(scaled_least((40, 200)), x, random((200,), seed=1))


@pytest.mark.parametrize("shape", [(1, 3000), (3, 1000), ("n", 500)])
def test_positions_of_extremes(shape: Shape) -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.argmax(b.input("x", shape), axis=1))
    x = np.round(random(sizes(shape, n=4)) * 2)  # the first of several equal ones
    agrees(b.build(), x)


def test_how_many_blocks_a_result_has() -> None:
    assert plan(reduced((128, 768), "max", [0, 1])) == "reduction parts=12 threads=256 width=4"
    assert plan(reduced((128, 768), "sum", [0, 1], "i64")) == "reduction parts=24 threads=256 width=2"
    assert plan(reduced((100,), "sum", [0], "i64")) == "reduction parts=1 threads=32 width=2"
    assert plan(reduced(("n", "m"), "sum", [0, 1])) == "reduction parts=any threads=256 width=1"
    assert plan(reduced((2, 1 << 20), "max", [1])) == "reduction parts=128 threads=256 width=4"


def test_rows_that_one_block_each_keeps_busy_are_not_its() -> None:
    assert plan(reduced((1, 768), "sum", [1])).startswith("rows ")
    assert plan(reduced((64, 1 << 20), "max", [1])).startswith("rows ")
    assert plan(reduced(("n", "m"), "max", [1])).startswith("rows ")


def test_short_sums_have_a_thread_each() -> None:
    assert plan(reduced((500, 3, 5), "sum", [1, 2], "i64")) == "general"


def test_machine_code(tmp_path: Path) -> None:
    found = kernels(scaled_least((128, 768)), tmp_path)
    part = max(found.values(), key=lambda kernel: len(kernel.instructions))
    part.check(has=["LDG.E.128", "BAR.SYNC"])
