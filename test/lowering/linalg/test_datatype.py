"""Conversions between dtypes round, truncate and wrap as the reference does."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.dtypes import numpy_dtype
from support.naive import Case, check

FLOATS = ["f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "f8E8M0FNU"]
INTEGERS = ["i1", "i4", "i8", "i16", "i32", "i64", "ui4", "ui8", "ui16", "ui32", "ui64"]


def values(dtype: str) -> np.ndarray:
    """Numbers that every dtype can hold, or that wrap where both are integers."""
    kind = numpy_dtype(dtype)
    return np.array([0, 1, 0, 1, 1] if dtype == "i1" else [0, 1, 2, 3, 7]).astype(kind)


@pytest.mark.parametrize("source", FLOATS + INTEGERS)
def test_every_pair(source: str) -> None:
    given = {0: values(source)}
    check(*(Case("astype", [f"5:{source}"], f"5:{d}", f"dtype = {d}", given) for d in FLOATS + INTEGERS if d != source), rtol=0)


@pytest.mark.parametrize("source", ["f64", "f32"])
def test_rounding_to_narrow_floats(source: str) -> None:
    """Halves, what two roundings would get wrong, overflow, underflow, infinities and NaN."""
    rng = np.random.default_rng(0)
    spread = rng.standard_normal(300) * 10.0 ** rng.integers(-12, 12, 300)
    halves = (1 + np.arange(64) / 512) * (1 + 2.0**-40)
    edges = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        65504,
        65519.99,
        65520,
        448,
        463.9,
        464,
        465,
        57344,
        61440,
        1e-8,
        2.0**-10,
        2.0**-17,
    ]
    numbers = np.concatenate([spread, halves, edges]).astype(numpy_dtype(source))
    n = len(numbers)
    check(
        *(Case("astype", [f"{n}:{source}"], f"{n}:{d}", f"dtype = {d}", {0: numbers}) for d in FLOATS[1:] if d != source),
        rtol=0,
    )


def test_wide_integers_round_once() -> None:
    numbers = np.array([16777217, 16842753, 2**31 - 1, -(2**31) + 1, 33685507, 1], np.int64)
    n = len(numbers)
    check(*(Case("astype", [f"{n}:i64"], f"{n}:{d}", f"dtype = {d}", {0: numbers}) for d in ("f32", "bf16", "f64")), rtol=0)


def test_integers_wrap() -> None:
    numbers = np.array([300, -300, 2**40 + 5, -1, 128, 255], np.int64)
    check(*(Case("astype", ["6:i64"], f"6:{d}", f"dtype = {d}", {0: numbers}) for d in INTEGERS if d != "i64"))


def test_floats_truncate() -> None:
    numbers = np.array([1.9, -1.9, 0.5, -0.5, 100.99])
    targets = ["i8", "i32", "i64"]
    check(
        *(
            Case("astype", [f"5:{s}"], f"5:{d}", f"dtype = {d}", {0: numbers.astype(numpy_dtype(s))})
            for s in FLOATS[:4]
            for d in targets
        )
    )


def test_to_truth_values() -> None:
    numbers = np.array([0.0, -0.0, np.nan, 1e-30, 2], np.float32)
    check(
        Case("astype", ["5:f32"], "5:i1", "dtype = i1", {0: numbers}),
        Case("astype", ["n, 3:i64"], "n, 3:i1", "dtype = i1"),
        n=3,
    )


def test_exponents() -> None:
    """Every f8E8M0FNU as an f32, and between and around them back: halves are the greater one; 0 and below are NaN."""
    exponents = np.arange(256, dtype=np.uint8).view(numpy_dtype("f8E8M0FNU"))
    wide = exponents.astype(np.float32)
    around = [wide[:-2] * 1.5, np.nextafter(wide, 0), np.nextafter(wide, np.inf)]
    numbers = np.concatenate([wide, *around, -wide, np.float32([0, np.inf])])
    check(
        Case("astype", ["256:f8E8M0FNU"], "256:f32", "dtype = f32", {0: exponents}),
        Case("astype", [f"{len(numbers)}:f32"], f"{len(numbers)}:f8E8M0FNU", "dtype = f8E8M0FNU", {0: numbers}),
        rtol=0,
    )
