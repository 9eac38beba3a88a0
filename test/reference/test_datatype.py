"""Conversions, against the nearest of all representable values found by search."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import FLOATS, INTEGERS, SHAPES, floats, integers, representable, wide
from support.integer_checks import wrapped

NARROW = ("f16", "bf16", "f8E4M3FN", "f8E5M2")


def astype(x: np.ndarray, dtype: str) -> np.ndarray:
    return reference_of("astype").function(x, dtype=numpy_dtype(dtype))


def nearest(value: float, dtype: str) -> float:
    """Round to nearest even by searching the ascending list of all values of the dtype, beyond the last: inf (NaN without)."""
    values = representable(dtype)
    largest, second = float(values[-1]), float(values[-2])
    step = largest - second
    if math.isnan(value) or abs(value) >= largest + step / 2:
        overflow = math.nan if dtype == "f8E4M3FN" or math.isnan(value) else math.copysign(math.inf, value)
        # Exactly half way beyond the last value rounds to the even neighbour, which is the one that is out of range
        # unless the last value is even itself, as 448 of f8E4M3FN is.
        return math.copysign(largest, value) if dtype == "f8E4M3FN" and abs(value) == largest + step / 2 else overflow
    i = int(np.searchsorted(values, value))
    candidates = [float(v) for v in values[max(i - 1, 0) : i + 1]]
    best = min(abs(c - value) for c in candidates)
    closest = [c for c in candidates if abs(c - value) == best]
    if len(closest) == 1:
        return closest[0]
    return next(c for c in closest if int(np.float32(c).astype(numpy_dtype(dtype)).view(_bits(dtype))) % 2 == 0)


def _bits(dtype: str) -> type:
    return np.uint16 if numpy_dtype(dtype).itemsize == 2 else np.uint8


@pytest.mark.parametrize("dtype", NARROW)
@given(
    st.floats(width=64, allow_nan=True, allow_infinity=True)
    | st.floats(-500, 500)
    | st.builds(lambda a, b: a * 2.0**b, st.integers(-3000, 3000), st.integers(-30, 8))
)
def test_f64_rounds_once(dtype: str, value: float) -> None:
    got = float(astype(np.array(value), dtype))
    want = nearest(value, dtype)
    assert got == want or (math.isnan(got) and math.isnan(want))


@pytest.mark.parametrize("dtype", ["bf16", "f8E4M3FN", "f8E5M2"])
def test_just_above_half_way_rounds_up(dtype: str) -> None:
    """By way of f32 this is a tie, and goes down to the even neighbour."""
    values = representable(dtype)
    low = float(next(v for v in values if v >= 1))
    high = float(values[int(np.searchsorted(values, low)) + 1])
    assert float(astype(np.array((low + high) / 2 + 2**-40), dtype)) == high
    assert float(astype(np.array(-(low + high) / 2 - 2**-40), dtype)) == -high
    assert float(astype(np.array((low + high) / 2 - 2**-40), dtype)) == low
    assert float(astype(np.array((low + high) / 2), dtype)) == low


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
def test_float_to_float(source: str, target: str) -> None:
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        x = floats(rng, shape, source)
        got = astype(x, target)
        assert got.dtype == numpy_dtype(target)
        assert got.shape == shape
        if target in NARROW:
            expected = [nearest(float(v), target) for v in wide(x).ravel()]
        else:
            with np.errstate(all="ignore"):
                expected = wide(x).astype(numpy_dtype(target)).astype(np.float64).ravel().tolist()
        np.testing.assert_array_equal(wide(got).ravel(), expected)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_float_to_integer_truncates(source: str, target: str) -> None:
    low = 0 if target.startswith("u") else -7
    x = np.array([v / 4 for v in range(low * 4, 29)], np.float64).astype(numpy_dtype(source))
    got = astype(x, target)
    assert got.dtype == numpy_dtype(target)
    assert got.tolist() == [math.trunc(float(v)) for v in x]


@pytest.mark.parametrize("source", [*INTEGERS, "i1"])
@pytest.mark.parametrize("target", INTEGERS)
def test_integer_to_integer_wraps(source: str, target: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.random((3, 5)) < 0.5 if source == "i1" else integers(rng, (3, 5), source)
    got = astype(x, target)
    assert got.dtype == numpy_dtype(target)
    assert got.ravel().tolist() == [wrapped(int(v), target) for v in x.ravel()]


@pytest.mark.parametrize("source", ["i4", "ui4", "i8", "ui8", "i16", "i32", "i1"])
@pytest.mark.parametrize("target", NARROW)
def test_integer_to_narrow_float_rounds_once(source: str, target: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.random(40) < 0.5 if source == "i1" else integers(rng, (40,), source)
    np.testing.assert_array_equal(wide(astype(x, target)), [nearest(float(int(v)), target) for v in x])


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", ["f32", "f64"])
def test_integer_to_wide_float(source: str, target: str) -> None:
    x = integers(np.random.default_rng(4), (40,), source)
    expected = [float(numpy_dtype(target).type(int(v))) for v in x]
    np.testing.assert_array_equal(astype(x, target).astype(np.float64), expected)


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "i1"])
def test_to_truth_values(source: str) -> None:
    x = np.array([0, 1, 2], np.float32).astype(numpy_dtype(source))
    got = astype(x, "i1")
    assert got.dtype == np.bool_
    assert got.tolist() == [False, True, True]
    if source in FLOATS:
        odd = np.array([np.nan, -0.0, 0.5], np.float32).astype(numpy_dtype(source))
        assert astype(odd, "i1").tolist() == [True, False, True]


def test_same_dtype_is_a_copy() -> None:
    x = np.arange(4, dtype=np.float32)
    assert not np.shares_memory(astype(x, "f32"), x)
    y = np.arange(4).astype(ml_dtypes.bfloat16)
    assert not np.shares_memory(astype(y, "bf16"), y)


@pytest.mark.parametrize(
    ("dtype", "bits"), [("f32", "i32"), ("bf16", "ui16"), ("f8E4M3FN", "i8"), ("f64", "i64"), ("i32", "ui32")]
)
def test_bits_stay(dtype: str, bits: str) -> None:
    x = np.frombuffer(np.random.default_rng(0).bytes(96), numpy_dtype(dtype)).reshape(2, -1)
    there = reference_of("bitcast").function(x, dtype=numpy_dtype(bits))
    back = reference_of("bitcast").function(there, dtype=numpy_dtype(dtype))
    assert (there.shape, there.dtype) == (x.shape, numpy_dtype(bits))
    assert there.tobytes() == back.tobytes() == x.tobytes()
