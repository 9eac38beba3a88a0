"""Selection and positions of extreme values keep their meaning when lowered."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from support.naive import Case, check

NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i64": np.int64, "i1": np.bool_}


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


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i8", "ui8", "i16", "i32", "ui32", "i64", "ui64"])
@pytest.mark.parametrize("descending", [False, True])
def test_argsort_by_digits(dtype: str, descending: bool) -> None:
    """Long rows: equals stay in order, as -0 and 0 are, and NaN of either sign; digits may all be the same."""
    rng, element = np.random.default_rng(5), numpy_dtype(dtype)
    if element.kind in "iu":
        ends = np.iinfo(element)
        wide = rng.integers(ends.min, ends.max, 200, element, endpoint=True)
        rows = np.stack([wide, wide % 7, np.full(200, ends.max, element), np.where(wide % 2 == 0, wide, wide[:1])])
    else:
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45], np.float64)
        few = rng.choice([*special, 1, -1, 2.5], 200)
        rows = np.stack([rng.standard_normal(200) * 100, few, np.zeros(200), np.where(rng.random(200) < 0.5, -0.0, 0.0)])
    order = f"descending = {str(descending).lower()}"
    for n in (31, 32, 200):
        x = rows[:, :n].astype(element)
        check(Case("argsort", [f"4, n:{dtype}"], "4, n:i64", f"axis = 1 : i64, {order}", {0: x}), n=n)
        check(Case("argsort", [f"{n}, 2, 2:{dtype}"], f"{n}, 2, 2:i64", f"axis = 0 : i64, {order}", {0: x.T.reshape(n, 2, 2)}))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i64", "i1"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_first_positions_alone(dtype: str, descending: bool, axis: int) -> None:
    """Equals stay in their order, NaN are above all; what is read of the positions decides how they are found."""
    rng = np.random.default_rng(7)
    values = rng.integers(-3, 4, (9, 11, 4))
    b = rx.Builder()
    with b.function("main"):
        order = b.argsort(b.input("x", (9, "n", 4), dtype), axis=axis, descending=descending)
        b.output(*(b.strided_slice(order, axes=[axis], begin=[begin], end=[end]) for begin, end in ((0, 1), (0, 3), (1, 3))))
    module = b.build()
    x = values.astype(np.float32)
    if dtype in ("f32", "bf16"):
        x[x == 3] = np.nan
    x = x.astype(NUMPY[dtype])
    for got, expected in zip(rx.compile(module)(x), rx.evaluate(module, "main", x), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_the_first_positions_of_rows_in_order() -> None:
    """Each element comes before, or behind, all that were found."""
    b = rx.Builder()
    with b.function("main"):
        order = b.argsort(b.input("x", (4, "n"), "f32"), axis=1, descending=True)
        b.output(b.strided_slice(order, axes=[1], begin=[0], end=[5]))
    module = b.build()
    executable = rx.compile(module)
    for n in (5, 6, 100):
        x = np.stack([np.arange(n), -np.arange(n), np.zeros(n), np.full(n, np.nan)]).astype(np.float32)
        np.testing.assert_array_equal(executable(x), *rx.evaluate(module, "main", x))
