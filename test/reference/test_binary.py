"""Elementwise functions of two tensors: floats against f64 rounded once, integers against Python's."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import FLOATS, INTEGERS, assert_rounded, floats, integers, wide
from support.integer_checks import wrapped

SHAPE_PAIRS = [((), ()), ((3,), ()), ((), (2, 2)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((5,), (5,)), ((7, 1), (1, 7))]

FLOAT_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "fmod": np.fmod,
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_float_arithmetic(name: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for left, right in SHAPE_PAIRS:
        x, y = floats(rng, left, dtype), floats(rng, right, dtype)
        if dtype == "f32":  # sums and products of such f32 values are exact in f64, apart from the extremes
            x, y = (np.where(np.abs(v) > 1e30, np.float32(2), v) for v in (x, y))
        with np.errstate(all="ignore"):
            exact = FLOAT_FUNCTIONS[name](wide(x), wide(y))
        ulps = 4 if name == "power" and dtype in ("f32", "f64") else 0.51
        assert_rounded(reference_of(name).function(x, y), exact, dtype, ulps)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_floor_divide_and_mod_of_floats(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, y = floats(rng, (200,), dtype, specials=False), floats(rng, (200,), dtype, specials=False)
    quotient = reference_of("floor_divide").function(x, y)
    remainder = reference_of("mod").function(x, y)
    for a, b, q, r in zip(wide(x), wide(y), wide(quotient), wide(remainder), strict=True):
        assert abs(q - math.floor(a / b)) <= abs(q) * 2**-7 + 1e-9
        exact = Fraction(a) % Fraction(b)  # Python's rule: the sign of the divisor
        assert abs(r - float(exact)) <= abs(b) * float(2.0 ** -(7 if dtype == "bf16" else 10)) + 1e-12
        assert r == 0 or (r < 0) == (b < 0)


def test_division_of_floats_by_zero() -> None:
    x, zero = np.array([1, -1, 0, np.nan], np.float32), np.zeros(4, np.float32)
    np.testing.assert_array_equal(reference_of("divide").function(x, zero), [np.inf, -np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(reference_of("floor_divide").function(x, zero), [np.inf, -np.inf, np.nan, np.nan])
    assert np.isnan(reference_of("mod").function(x, zero)).all()


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else int(Fraction(a, b))


def power(a: int, b: int) -> int:
    if b >= 0:
        return a ** min(b, 200) if abs(a) > 1 and b > 200 else a**b
    return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)


INTEGER_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": truncated,
    "floor_divide": lambda a, b: 0 if b == 0 else a // b,
    "mod": lambda a, b: 0 if b == 0 else a % b,
    "fmod": lambda a, b: 0 if b == 0 else a - b * truncated(a, b),
    "maximum": max,
    "minimum": min,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_FUNCTIONS)
def test_integer_arithmetic(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for left, right in SHAPE_PAIRS:
        x, y = integers(rng, left, dtype), integers(rng, right, dtype)
        got = reference_of(name).function(x, y)
        assert got.dtype == x.dtype
        pairs = np.broadcast_arrays(x.astype(object), y.astype(object))
        assert got.shape == pairs[0].shape
        expected = [
            wrapped(INTEGER_FUNCTIONS[name](int(a), int(b)), dtype) for a, b in zip(*(p.ravel() for p in pairs), strict=True)
        ]
        assert got.ravel().tolist() == expected


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power(dtype: str) -> None:
    rng = np.random.default_rng(4)
    x = integers(rng, (40,), dtype)
    y = rng.integers(0 if dtype.startswith("u") else -3, 7, 40).astype(numpy_dtype(dtype))
    got = reference_of("power").function(x, y)
    assert got.tolist() == [wrapped(power(int(a), int(b)), dtype) for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype: str) -> None:
    rng = np.random.default_rng(5)
    width = 4 if dtype.endswith("i4") else numpy_dtype(dtype).itemsize * 8
    x, y = integers(rng, (50,), dtype), rng.integers(0, min(width, 8), 50).astype(numpy_dtype(dtype))
    left = reference_of("left_shift").function(x, y)
    right = reference_of("right_shift").function(x, y)
    assert left.tolist() == [wrapped(int(a) << int(b), dtype) for a, b in zip(x, y, strict=True)]
    assert right.tolist() == [int(a) >> int(b) for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str, dtype: str) -> None:
    rng = np.random.default_rng(6)
    make = floats if dtype in FLOATS else integers
    for left, right in SHAPE_PAIRS:
        x, y = make(rng, left, dtype), make(rng, right, dtype)
        got = reference_of(name).function(x, y)
        assert got.dtype == np.bool_
        number = float if dtype in FLOATS else int
        pairs = np.broadcast_arrays(x, y)
        expected = [COMPARISONS[name](number(a), number(b)) for a, b in zip(*(p.ravel() for p in pairs), strict=True)]
        assert got.ravel().tolist() == expected


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i1"])
@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical_functions(name: str, dtype: str) -> None:
    x = np.array([0, 0, 2, 1], np.float32).astype(numpy_dtype(dtype))
    y = np.array([0, 1, 0, 3], np.float32).astype(numpy_dtype(dtype))
    expected = {
        "logical_and": [False, False, False, True],
        "logical_or": [False, True, True, True],
        "logical_xor": [False, True, True, False],
    }
    got = reference_of(name).function(x, y)
    assert got.dtype == np.bool_
    assert got.tolist() == expected[name]


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise_functions_of_truth_values(name: str) -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    got = reference_of(name).function(x, y)
    assert got.dtype == np.bool_
    assert got.tolist() == [bool(INTEGER_FUNCTIONS[name](a, b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_maximum_and_minimum_keep_nan() -> None:
    x, y = np.array([np.nan, 1], np.float32), np.array([1, np.nan], np.float32)
    assert np.isnan(reference_of("maximum").function(x, y)).all()
    assert np.isnan(reference_of("minimum").function(x, y)).all()


@given(st.integers(-128, 127), st.integers(-128, 127))
def test_quotient_and_remainder_agree(a: int, b: int) -> None:
    x, y = np.array([a], np.int8), np.array([b], np.int8)
    quotient = int(reference_of("floor_divide").function(x, y)[0])
    remainder = int(reference_of("mod").function(x, y)[0])
    if b:
        assert wrapped(quotient * b + remainder, "i8") == a
        assert remainder == 0 or (remainder < 0) == (b < 0)
