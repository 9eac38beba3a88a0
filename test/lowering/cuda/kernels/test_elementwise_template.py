"""Elementwise kernels on GPUs: vectors, ragged ends, broadcasts, casts and sizes that types leave open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import relaxir as rx
from relaxir.building.value import Value
from support.emulated_cuda import agrees, kernels, plans, random


def module(*inputs: tuple[tuple[int | str, ...], str], make: Callable[..., Value]) -> rx.Module:
    """A function of these inputs with one result."""
    b = rx.Builder()
    with b.function("main"):
        values = [b.input(f"x{i}", shape, dtype) for i, (shape, dtype) in enumerate(inputs)]
        b.output(make(b, *values))
    return b.build()


@pytest.mark.parametrize("size", [3, 4, 255, 256, 1023, 1024, 1025])
@pytest.mark.parametrize("symbolic", [False, True])
def test_ragged_ends(size: int, symbolic: bool) -> None:
    made = module((("n" if symbolic else size,), "f32"), make=lambda b, x: b.relu(b.add(x, x)))
    width = 2 if size == 3 and not symbolic else 4
    assert plans(agrees(made, random((size,)))) == [f"elementwise vector=0 width={width} threads=256"]


def test_one_element() -> None:
    made = module(((1,), "f32"), make=lambda b, x: b.relu(x))
    assert plans(agrees(made, random((1,)))) == ["general"]


@pytest.mark.parametrize(
    ("shapes", "rows"),
    [
        ((("n", 12), (12,)), "bias"),
        ((("n", 10), ("n", 1)), "scale"),
        ((("n", 7, 6), (7, 1)), "middle"),
        ((("n", 16), ()), "scalar"),
        (((1, "n", 8), (3, 1, 8)), "both"),
    ],
)
def test_broadcasts(shapes: tuple[tuple[int | str, ...], tuple[int | str, ...]], rows: str) -> None:
    made = module(*((shape, "f32") for shape in shapes), make=lambda b, x, y: b.multiply(b.add(x, y), x))
    inputs = [random(tuple(5 if dim == "n" else dim for dim in shape), seed=i) for i, shape in enumerate(shapes)]
    executable = agrees(made, *inputs)
    assert all(plan.startswith("elementwise vector=") for plan in plans(executable)), rows


@pytest.mark.parametrize(("source", "target"), [("bf16", "f32"), ("f32", "bf16"), ("f16", "i8"), ("i8", "f32"), ("i64", "f64")])
def test_casts(source: str, target: str) -> None:
    made = module((("n", 40), source), make=lambda b, x: b.astype(x, target))
    (plan,) = plans(agrees(made, random((3, 40), source)))
    width = {"bf16f32": 8, "f32bf16": 8, "f16i8": 16, "i8f32": 16, "i64f64": 2}[source + target]
    assert f"width={width} " in plan


def test_truth_values_and_choices() -> None:
    made = module(
        ((6, 33), "f32"), ((6, 33), "f32"), make=lambda b, x, y: b.where(b.greater(x, y), b.exp(x), b.tanh(y))
    )  # fmt: skip
    agrees(made, random((6, 33)), random((6, 33), seed=1))


def test_movement() -> None:
    moved = module((("n", 5, 8), "f32"), make=lambda b, x: b.permute_dims(x, axes=[1, 0, 2]))
    assert plans(agrees(moved, random((3, 5, 8)))) == ["elementwise vector=2 width=4 threads=256"]


def test_positions() -> None:
    made = module(((5, 9), "f32"), make=lambda b, x: b.add(x, b.astype(b.arange(0, 9, 1, dtype="i32"), "f32")))
    agrees(made, random((5, 9)))


def test_nothing_and_no_elements() -> None:
    made = module((("n", 8), "f32"), make=lambda b, x: b.negative(x))
    agrees(made, random((0, 8)))


def test_machine_code(tmp_path: Path) -> None:
    made = module((("n", 768), "bf16"), ((768,), "bf16"), make=lambda b, x, y: b.gelu(b.multiply(x, y)))
    (kernel,) = kernels(made, tmp_path).values()
    kernel.check(has=["LDG.E.128", "STG.E.128"], has_not=["LDG.E.U16", "STG.E.U16"])
