"""Elementwise functions of two tensors keep their meaning when lowered."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.dtypes import numpy_dtype
from support.naive import Case, check, compare, lowered, run_linalg

ARITHMETIC = ["add", "subtract", "multiply", "divide", "floor_divide", "mod", "power", "maximum", "minimum"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor"]
SHIFTS = ["left_shift", "right_shift"]


def grid(values: list[float], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of values."""
    kind = numpy_dtype(dtype)
    left, right = np.meshgrid(np.array(values), np.array(values))
    return left.ravel().astype(kind), right.ravel().astype(kind)


def cases(names: list[str], dtype: str, result: str, given: tuple[np.ndarray, np.ndarray]) -> list[Case]:
    n = len(given[0])
    return [Case(name, [f"{n}:{dtype}"] * 2, f"{n}:{result}", values=dict(enumerate(given))) for name in names]


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_floats(dtype: str) -> None:
    edges = grid([0.0, -0.0, 1.0, -1.5, 2.5, -7.25, np.inf, -np.inf, np.nan], dtype)
    check(*cases(ARITHMETIC, dtype, dtype, edges), *cases(COMPARISONS + LOGICAL, dtype, "i1", edges))


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "ui8", "ui32"])
def test_integers(dtype: str) -> None:
    info = np.iinfo(numpy_dtype(dtype))
    edges = grid([v for v in [0, 1, 2, 3, 7, -1, -2, -3, -7] if v >= info.min], dtype)
    left = np.append(edges[0], np.array([info.min, info.max, info.min], info.dtype))
    right = np.append(edges[1], np.array([info.max if info.min == 0 else -1, 3, info.max], info.dtype))
    everything = (left, right)
    check(
        *cases(ARITHMETIC + BITWISE, dtype, dtype, everything),
        *cases(COMPARISONS + LOGICAL, dtype, "i1", everything),
        *cases(SHIFTS, dtype, dtype, (everything[0], np.abs(everything[1] % 8).astype(info.dtype))),
    )


def test_truth_values() -> None:
    pairs = grid([0, 1], "i1")
    check(*cases(["maximum", "minimum", *BITWISE, *COMPARISONS, *LOGICAL], "i1", "i1", pairs))


def test_four_bit_integers() -> None:
    pairs = grid(list(range(-8, 8)), "i4")
    check(*cases([*ARITHMETIC, *BITWISE], "i4", "i4", pairs), *cases(COMPARISONS, "i4", "i1", pairs))


def test_broadcasting() -> None:
    shapes = [
        ("4, 5", "5", "4, 5"), ("4, 1", "1, 5", "4, 5"), ("", "3", "3"), ("n, 1, 5", "m, 5", "n, m, 5"), ("n", "1", "n"),
        ("n, m", "n, m", "n, m"), ("1", "1", "1"), ("0, 3", "3", "0, 3"), ("n * 2", "n * 2", "n * 2"), ("1, n", "n, 1", "n, n"),
    ]  # fmt: skip
    check(*(Case("subtract", [f"{a}:f32", f"{b}:f32"], f"{c}:f32") for a, b, c in shapes), n=3, m=4)


def test_constant_operands() -> None:
    """A splat is a number in the body; the guards of integer division are left out where it cannot fault."""
    text = """
    func.func @main(%x: tensor<5xi32>, %y: tensor<5xf32>) -> (tensor<5xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>) {
      %three = "relax.full"() {value = 3 : i64} : () -> tensor<i32>
      %zero = "relax.constant"() {value = dense<0> : tensor<5xi32>} : () -> tensor<5xi32>
      %two = "relax.full"() {value = 2.0 : f64} : () -> tensor<f32>
      %0 = "relax.floor_divide"(%x, %three) : (tensor<5xi32>, tensor<i32>) -> tensor<5xi32>
      %1 = "relax.mod"(%x, %zero) : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi32>
      %2 = "relax.power"(%x, %three) : (tensor<5xi32>, tensor<i32>) -> tensor<5xi32>
      %3 = "relax.power"(%y, %two) : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
      return %0, %1, %2, %3 : tensor<5xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>
    }"""
    compare(text, np.array([-7, -1, 0, 5, 9], np.int32), np.array([-2, -0.5, 0, 1, 3], np.float32))


def test_unknown_dimensions_are_checked() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %0 = "relax.add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    module = lowered(text)
    wanted = (
        "'relax.add' op expected broadcastable shapes, got [?] and [?]: expected dimension 0 of rhs to be {d0_0}, got {d1_0}"
    )
    assert wanted in str(module.operation.attributes["relax.checks"])
    assert not run_linalg(module, [np.ones(3, np.float32)] * 2).failed
    assert run_linalg(lowered(text), [np.ones(3, np.float32), np.ones(4, np.float32)]).failed == [0]
