"""Reductions and scans, against PyTorch in f64."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import FLOATS, INTEGERS, assert_rounded, floats, integers, wide
from support.integer_checks import wrapped

SHAPES = [(4,), (2, 3), (3, 1, 4), (), (0, 3), (2, 0)]
NARROW_AND_WIDE = ["f64", "f32", "f16", "bf16", "f8E5M2"]
KEEP = [False, True]


def axes_of(rank: int) -> list[list[int] | None]:
    every = [list(c) for n in range(rank + 1) for c in itertools.combinations(range(rank), n)]
    return [None, *every, *([[-1]] if rank else [])]


def torch_oracle(name: str, x: np.ndarray[Any, Any], axis: list[int] | None, keepdims: bool) -> np.ndarray[Any, Any]:
    t = torch.from_numpy(np.array(wide(x)))
    axes = list(range(x.ndim)) if axis is None else axis
    if not axes:  # PyTorch takes an empty list for all axes
        return np.zeros(x.shape) if name == "variance" else t.numpy()
    if name == "sum":
        return torch.sum(t, axes, keepdim=keepdims).numpy()
    if name == "mean":
        return torch.mean(t, axes, keepdim=keepdims).numpy()
    if name == "variance":
        return torch.var(t, axes, correction=0, keepdim=keepdims).numpy()
    for a in sorted((a % x.ndim for a in axes), reverse=True):
        t = torch.prod(t, a, keepdim=keepdims)
    return t.numpy()


@pytest.mark.parametrize("keepdims", KEEP)
@pytest.mark.parametrize("dtype", NARROW_AND_WIDE)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "variance"])
def test_float_reductions(name: str, dtype: str, keepdims: bool) -> None:
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        x = floats(rng, shape, dtype, specials=False)
        if dtype == "f8E5M2":
            x = np.sign(wide(x)).astype(x.dtype)
        for axis in axes_of(len(shape)):
            got = reference_of(name).function(x, axis=axis, keepdims=keepdims)
            exact = torch_oracle(name, x, axis, keepdims)
            assert got.shape == exact.shape
            eps = float(ml_dtypes.finfo(got.dtype).eps)
            slack = 1e-14 if dtype == "f64" else 3e-6
            scale = 1 + np.abs(exact)
            np.testing.assert_array_less(
                np.abs(wide(got) - exact)[~np.isnan(exact)], (scale * (0.51 * eps + slack * 8))[~np.isnan(exact)]
            )
            np.testing.assert_array_equal(np.isnan(wide(got)), np.isnan(exact))
            assert got.dtype == x.dtype


@pytest.mark.parametrize("keepdims", KEEP)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "i1"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes(name: str, dtype: str, keepdims: bool) -> None:
    rng = np.random.default_rng(2)
    for shape in [(4,), (2, 3), (3, 1, 4), ()]:
        if dtype == "i1":
            x = np.asarray(rng.random(shape) < 0.5)
        else:
            x = (floats if dtype in FLOATS else integers)(rng, shape, dtype)
        for axis in axes_of(len(shape)):
            got = reference_of(name).function(x, axis=axis, keepdims=keepdims)
            assert got.dtype == x.dtype
            function = np.max if name == "max" else np.min
            exact = function(
                wide(x) if dtype in FLOATS else x.astype(object), axis=None if axis is None else tuple(axis), keepdims=keepdims
            )
            if dtype in FLOATS:
                assert_rounded(got, exact, dtype, 0)
            else:
                assert np.ravel(got).tolist() == np.ravel(exact).tolist()
            assert got.shape == np.shape(exact)


def test_nothing_is_the_neutral_element() -> None:
    def of_none(name: str, dtype: str) -> Any:
        return reference_of(name).function(np.zeros((0, 2), numpy_dtype(dtype)), axis=[0], keepdims=False).tolist()

    assert of_none("sum", "f32") == [0, 0]
    assert of_none("prod", "bf16") == [1, 1]
    assert of_none("max", "f16") == [-np.inf, -np.inf]
    assert of_none("min", "f64") == [np.inf, np.inf]
    assert of_none("max", "i8") == [-128, -128]
    assert of_none("min", "ui8") == [255, 255]
    assert of_none("max", "i4") == [-8, -8]
    assert of_none("max", "i1") == [False, False]
    assert of_none("min", "i1") == [True, True]
    assert np.isnan(of_none("mean", "f32")).all()
    assert np.isnan(of_none("variance", "f32")).all()


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "variance"])
def test_nan_spreads(name: str) -> None:
    for dtype in ("f64", "f32", "bf16"):
        x = np.array([[1, np.nan, 2], [1, 2, 3]], np.float32).astype(numpy_dtype(dtype))
        got = reference_of(name).function(x, axis=[1], keepdims=False)
        assert np.isnan(wide(got)).tolist() == [True, False]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_sums_wrap(dtype: str) -> None:
    x = integers(np.random.default_rng(3), (3, 5), dtype)
    got = reference_of("sum").function(x, axis=[1], keepdims=False)
    assert got.dtype == x.dtype
    assert got.tolist() == [wrapped(sum(int(v) for v in row), dtype) for row in x]
    total = 1
    for v in x.ravel():
        total *= int(v)
    assert int(reference_of("prod").function(x, axis=None, keepdims=False)) == wrapped(total, dtype)


def test_narrow_sums_are_in_f32() -> None:
    ones = np.ones(1000, ml_dtypes.bfloat16)
    assert float(reference_of("sum").function(ones, axis=None, keepdims=False)) == 1000
    assert float(reference_of("mean").function(ones, axis=None, keepdims=False)) == 1
    assert float(reference_of("cumsum").function(ones, axis=0, exclusive=False)[-1]) == 1000
    large = np.full(4, 300, np.float16)
    assert float(reference_of("variance").function(large, axis=None, keepdims=False)) == 0


def test_variance_of_a_large_mean() -> None:
    """The two-pass formula does not cancel."""
    x = np.array([1e4, 1e4 + 1, 1e4 + 2], np.float32)
    assert float(reference_of("variance").function(x, axis=None, keepdims=False)) == pytest.approx(2 / 3, rel=1e-5)


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "i8", "i64", "ui8"])
@pytest.mark.parametrize("exclusive", [False, True])
def test_cumsum(exclusive: bool, dtype: str) -> None:
    rng = np.random.default_rng(4)
    for shape in [(5,), (2, 3), (3, 1, 4), (0, 3), (1,)]:
        x = rng.integers(0, 50, shape).astype(numpy_dtype(dtype))
        for axis in range(-len(shape), len(shape)):
            got = reference_of("cumsum").function(x, axis=axis, exclusive=exclusive)
            exact = torch.cumsum(torch.from_numpy(x.astype(np.int64)), axis).numpy()
            exact = exact - x.astype(np.int64) if exclusive else exact
            assert got.dtype == x.dtype
            if dtype in INTEGERS:
                assert got.ravel().tolist() == [wrapped(int(v), dtype) for v in exact.ravel()]
            else:
                assert_rounded(got, exact.astype(np.float64), dtype)


def test_exclusive_cumsum_leaves_infinity_out() -> None:
    x = np.array([1, np.inf, 2], np.float32)
    np.testing.assert_array_equal(reference_of("cumsum").function(x, axis=0, exclusive=True), [0, 1, np.inf])


@pytest.mark.parametrize("dtype", ["f64", "f32", "i8", "i64", "ui8"])
@pytest.mark.parametrize("exclusive", [False, True])
def test_cumprod(exclusive: bool, dtype: str) -> None:
    x = np.array([[3, 2, 5, 1, 4], [1, 1, 7, 2, 2]]).astype(numpy_dtype(dtype))
    for axis in (0, 1, -1):
        exact = np.cumprod(x.astype(np.int64), axis)
        exact = exact // x.astype(np.int64) if exclusive else exact
        got = reference_of("cumprod").function(x, axis=axis, exclusive=exclusive)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, exact.astype(x.dtype))


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "i8", "ui8"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes(name: str, dtype: str) -> None:
    x = np.array([[3, 2, 5, 1, 4], [1, 6, 7, 2, 2]]).astype(numpy_dtype(dtype))
    for axis in (0, 1, -1):
        exact = getattr(torch, name)(torch.from_numpy(x.astype(np.int64)), axis)[0].numpy()
        got = reference_of(name).function(x, axis=axis, exclusive=False)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, exact.astype(x.dtype))


def test_running_extremes_of_none_and_of_nan() -> None:
    x = np.array([1, np.nan, 2], np.float32)
    for name, none in (("cummax", -np.inf), ("cummin", np.inf)):
        np.testing.assert_array_equal(reference_of(name).function(x, axis=0, exclusive=False), [1, np.nan, np.nan])
        np.testing.assert_array_equal(reference_of(name).function(x, axis=0, exclusive=True), [none, 1, np.nan])
    bytes_ = np.array([5, 3], np.uint8)
    assert reference_of("cummax").function(bytes_, axis=0, exclusive=True).tolist() == [0, 5]
    assert reference_of("cummin").function(bytes_, axis=0, exclusive=True).tolist() == [255, 5]
