"""Selection and positions of extreme values keep their meaning when lowered."""

from __future__ import annotations

import numpy as np
import pytest

from support.naive import Case, check


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i64", "i1", "ui8", "f8E5M2"])
def test_where(dtype: str) -> None:
    check(
        Case("where", ["3, 4:i1", f"3, 4:{dtype}", f"3, 4:{dtype}"], f"3, 4:{dtype}"),
        Case("where", ["n, 1:i1", f"4:{dtype}", f":{dtype}"], f"n, 4:{dtype}"),
        n=3,
    )


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "i8", "i64", "ui8", "i1", "i4"])
def test_argmax_and_argmin(dtype: str) -> None:
    cases = [("axis = 0 : i64", "4, 5"), ("axis = -1 : i64", "3, 4"), ("axis = 1 : i64, keepdims = true", "3, 1, 5")]
    check(*(Case(name, [f"3, 4, 5:{dtype}"], f"{r}:i64", a) for name in ("argmax", "argmin") for a, r in cases))


def test_the_first_of_equals_and_nan_first() -> None:
    nan = np.nan
    values = np.array([[1, 3, 3, 2], [nan, 1, nan, 2], [1, nan, 5, nan], [np.inf, -np.inf, np.inf, -np.inf]], np.float32)
    check(*(Case(name, ["4, 4:f32"], "4:i64", "axis = 1 : i64", {0: values}) for name in ("argmax", "argmin")))


def test_no_elements() -> None:
    check(*(Case(name, ["3, 0:f32"], "3:i64", "axis = 1 : i64") for name in ("argmax", "argmin")))
    check(*(Case(name, ["3, n:f32"], "3:i64", "axis = 1 : i64") for name in ("argmax", "argmin")), n=0)


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "i8", "i64", "ui8", "i1", "i4"])
def test_argsort(dtype: str) -> None:
    cases = ["axis = 0 : i64", "axis = 1 : i64, descending = true", "axis = -1 : i64"]
    check(*(Case("argsort", [f"3, 4, 5:{dtype}"], "3, 4, 5:i64", a) for a in cases))


def test_argsort_of_rows_of_any_length() -> None:
    rng = np.random.default_rng(5)
    for n in (0, 1, 2, 7, 8, 33):
        values = rng.integers(0, 6, (3, n)).astype(np.float32)
        values[values == 5] = np.nan
        check(Case("argsort", ["3, n:f32"], "3, n:i64", "axis = 1 : i64, descending = true", {0: values}), n=n)
    check(
        Case("argsort", ["0, 3:f32"], "0, 3:i64", "axis = 0 : i64"), Case("argsort", ["3, 0:f32"], "3, 0:i64", "axis = 1 : i64")
    )
