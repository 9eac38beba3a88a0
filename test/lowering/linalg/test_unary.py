"""Elementwise functions of one tensor keep their meaning when lowered."""

from __future__ import annotations

import numpy as np
import pytest

from relaxir.dialect.dtypes import numpy_dtype
from support.naive import Case, check

FLOATS = ["f64", "f32", "f16", "bf16"]
INTEGERS = ["i8", "i32", "i64", "ui8"]
ANY = ["abs", "negative", "sign", "square"]
FLOAT_ONLY = [
    "ceil", "cos", "erf", "exp", "floor", "log", "reciprocal", "round", "rsqrt", "sigmoid", "sin", "sqrt", "tanh", "trunc",
]  # fmt: skip
PREDICATES = ["isfinite", "isinf", "isnan"]
LIMITS = ["min = 1 : i64, max = 3 : i64", "min = 2.0 : f64", "max = 2.0 : f64", ""]

EDGES = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3.7, -3.7, np.inf, -np.inf, np.nan, 1e-3, 87.0, -87.0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype: str) -> None:
    values = np.array(EDGES, np.float64).astype(numpy_dtype(dtype))
    kind = f"{len(values)}:{dtype}"
    given = {0: values}
    cases = [Case(name, [kind], kind, values=given) for name in ANY + FLOAT_ONLY]
    cases += [Case(name, [kind], f"{len(values)}:i1", values=given) for name in [*PREDICATES, "logical_not"]]
    cases += [Case("clip", [kind], kind, limits, given) for limits in LIMITS]
    check(*cases)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    info = np.iinfo(numpy_dtype(dtype))
    given = {0: np.array([0, 1, 2, 5, 100, info.min, info.max, info.min + 1], info.dtype)}
    cases = [Case(name, [f"8:{dtype}"], f"8:{dtype}", values=given) for name in [*ANY, "bitwise_not"]]
    cases += [Case("clip", [f"8:{dtype}"], f"8:{dtype}", limits, given) for limits in LIMITS]
    check(*cases, Case("logical_not", [f"8:{dtype}"], "8:i1", values=given))


def test_truth_values() -> None:
    check(Case("bitwise_not", ["4, 9:i1"], "4, 9:i1"), Case("logical_not", ["4, 9:i1"], "4, 9:i1"))


def test_shapes() -> None:
    shapes = ["", "0", "1", "n", "n, 33", "n, m", "n * 2, 3", "2, 0, 3"]
    check(*(Case("exp", [f"{shape}:f32"], f"{shape}:f32") for shape in shapes), n=3, m=4)


def test_four_bit_integers_wrap() -> None:
    signed, unsigned = (np.arange(low, low + 16).astype(numpy_dtype(d)) for d, low in (("i4", -8), ("ui4", 0)))
    cases = [Case(name, ["16:i4"], "16:i4", values={0: signed}) for name in [*ANY, "bitwise_not"]]
    check(*cases, *(Case(name, ["16:ui4"], "16:ui4", values={0: unsigned}) for name in ["square", "negative"]))


@pytest.mark.parametrize("dtype", ["f8E4M3FN", "f8E5M2"])
def test_every_eight_bit_float(dtype: str) -> None:
    given = {0: np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))}
    check(*(Case(name, [f"256:{dtype}"], f"256:{dtype}", values=given) for name in ("negative", "square")), rtol=0)
