"""Reductions and scans keep their meaning when lowered."""

from __future__ import annotations

import numpy as np
import pytest

from support.naive import Case, check

AXES = [("axis = array<i64: 1>", "2, 4"), ("axis = array<i64: 0, 2>", "3"), ("axis = array<i64: -1>", "2, 3"), ("", "")]
KEPT = [("axis = array<i64: 1>, keepdims = true", "2, 1, 4"), ("keepdims = true", "1, 1, 1")]


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_floats(dtype: str) -> None:
    names = ["sum", "prod", "max", "min", "mean", "variance"]
    check(*(Case(name, [f"2, 3, 4:{dtype}"], f"{s}:{dtype}", a) for name in names for a, s in AXES + KEPT))


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "ui8", "i4"])
def test_integers(dtype: str) -> None:
    names = ["sum", "prod", "max", "min"]
    check(*(Case(name, [f"2, 3, 4:{dtype}"], f"{s}:{dtype}", a) for name in names for a, s in AXES[:2] + KEPT[:1]))


def test_truth_values() -> None:
    check(*(Case(name, ["2, 3, 4:i1"], f"{s}:i1", a) for name in ["max", "min"] for a, s in AXES))


def test_nan_spreads() -> None:
    values = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    names = ["max", "min", "sum"]
    check(*(Case(name, ["2, 3:f32"], "2:f32", "axis = array<i64: 1>", {0: values}) for name in names))


def test_symbolic_and_empty_dimensions() -> None:
    names = ["sum", "prod", "max", "min", "mean", "variance"]
    symbolic = [Case(name, ["n, m:f32"], "n:f32", "axis = array<i64: 1>") for name in names]
    kept = [Case(name, ["n, m:f32"], "1, m:f32", "axis = array<i64: 0>, keepdims = true") for name in names]
    check(*symbolic, *kept, n=3, m=33)
    check(*symbolic, n=2, m=0)
    check(*(Case(name, ["2, 0:f32"], "2:f32", "axis = array<i64: 1>") for name in names))
    check(*(Case(name, ["2, 0:i8"], "2:i8", "axis = array<i64: 1>") for name in names[:4]))


def test_a_scalar_has_no_axes() -> None:
    check(*(Case(name, [":f32"], ":f32") for name in ["sum", "max", "mean"]))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i64", "i4"])
def test_cumsum(dtype: str) -> None:
    axes = ["axis = 0 : i64", "axis = 1 : i64", "axis = -1 : i64, exclusive = true"]
    check(*(Case("cumsum", [f"3, 4, 5:{dtype}"], f"3, 4, 5:{dtype}", a) for a in axes))


def test_cumsum_of_symbolic_and_empty_dimensions() -> None:
    attributes = [f"axis = {axis} : i64, exclusive = {exclusive}" for axis in (0, 1) for exclusive in ("true", "false")]
    cases = [Case("cumsum", ["n, m:f32"], "n, m:f32", a) for a in attributes]
    check(*cases, n=3, m=7)
    check(*cases, n=0, m=2)
    check(
        Case("cumsum", ["0, 4:f32"], "0, 4:f32", "axis = 0 : i64"), Case("cumsum", ["3, 1:f32"], "3, 1:f32", "axis = 0 : i64")
    )
    check(Case("cumsum", ["4:f32"], "4:f32", "axis = 0 : i64"))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "ui8"])
@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin"])
def test_other_scans(name: str, dtype: str) -> None:
    attributes = ["axis = 0 : i64", "axis = 1 : i64, exclusive = true", "axis = -1 : i64"]
    check(*(Case(name, [f"3, 4, n:{dtype}"], f"3, 4, n:{dtype}", a) for a in attributes), n=3)
