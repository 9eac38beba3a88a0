"""Elementwise functions of one tensor, against PyTorch in f64 rounded once."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import torch

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import FLOATS, INTEGERS, SHAPES, assert_rounded, floats, integers, wide
from support.integer_checks import wrapped

Oracle = Callable[[torch.Tensor], torch.Tensor]

# Exact functions round exactly; f32 and f64 transcendental ones are NumPy's and the C library's, within a few units.
EXACT: dict[str, Oracle] = {
    "abs": torch.abs,
    "negative": torch.neg,
    "sign": torch.sign,
    "ceil": torch.ceil,
    "floor": torch.floor,
    "round": torch.round,
    "trunc": torch.trunc,
}
ROUNDED: dict[str, Oracle] = {
    "square": torch.square,
    "acos": torch.acos,
    "acosh": torch.acosh,
    "asin": torch.asin,
    "asinh": torch.asinh,
    "atan": torch.atan,
    "atanh": torch.atanh,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "tan": torch.tan,
    "erf": torch.erf,
    "exp": torch.exp,
    "log": torch.log,
    "reciprocal": torch.reciprocal,
    "rsqrt": torch.rsqrt,
    "sigmoid": torch.sigmoid,
    "sqrt": torch.sqrt,
    "tanh": torch.tanh,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_float_functions(name: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    oracle = {**EXACT, **ROUNDED}[name]
    for shape in (*SHAPES, (97,)):
        x = floats(rng, shape, dtype)
        if name in ("sin", "cos", "tan"):  # beyond this the argument's own rounding is the result
            x = np.where(np.abs(wide(x)) > 1e4, np.ones_like(x), x)
        exact = oracle(torch.from_numpy(np.array(wide(x)))).numpy()
        # sigmoid(-3e38) and exp(-3e38) underflow on the way in f32 as in f64, to 0.
        ulps = 0.5001 if name in EXACT else 4 if dtype in ("f64", "f32") else 0.51
        assert_rounded(reference_of(name).function(x), exact, dtype, ulps)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["abs", "negative", "sign", "square", "bitwise_not"])
def test_integer_functions_wrap(name: str, dtype: str) -> None:
    oracle: dict[str, Callable[[int], int]] = {
        "abs": abs,
        "negative": lambda v: -v,
        "sign": lambda v: (v > 0) - (v < 0),
        "square": lambda v: v * v,
        "bitwise_not": lambda v: ~v,
    }
    rng = np.random.default_rng(2)
    for shape in SHAPES:
        x = integers(rng, shape, dtype)
        got = reference_of(name).function(x)
        assert got.dtype == x.dtype
        assert got.shape == x.shape
        assert got.ravel().tolist() == [wrapped(oracle[name](int(v)), dtype) for v in x.ravel()]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "i1"])
def test_logical_not_is_true_for_zero_only(dtype: str) -> None:
    x = np.array([0, 1, 2], np.float32).astype(numpy_dtype(dtype))
    np.testing.assert_array_equal(reference_of("logical_not").function(x), [True, False, False])
    if dtype in FLOATS:
        nan = np.array([np.nan, -0.0], np.float32).astype(numpy_dtype(dtype))
        np.testing.assert_array_equal(reference_of("logical_not").function(nan), [False, True])


def test_bitwise_not_of_truth_values() -> None:
    got = reference_of("bitwise_not").function(np.array([True, False]))
    assert got.tolist() == [False, True]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["isfinite", "isinf", "isnan"])
def test_predicates(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for shape in (*SHAPES, (97,)):
        x = floats(rng, shape, dtype)
        got = reference_of(name).function(x)
        assert got.dtype == np.bool_
        np.testing.assert_array_equal(got, getattr(torch, name)(torch.from_numpy(np.array(wide(x)))).numpy())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("low", "high"), [(None, None), (-1.0, None), (None, 2), (0, 6.0), (2.0, 1.0)])
def test_clip_of_floats(dtype: str, low: float | None, high: float | None) -> None:
    x = floats(np.random.default_rng(4), (97,), dtype)
    exact = np.array(wide(x))
    for limit, function in ((low, np.maximum), (high, np.minimum)):
        exact = exact if limit is None else function(exact, limit)
    assert_rounded(reference_of("clip").function(x, min=low, max=high), exact, dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_clip_of_integers(dtype: str) -> None:
    x = integers(np.random.default_rng(5), (31,), dtype)
    got = reference_of("clip").function(x, min=1, max=3)
    assert got.dtype == x.dtype
    assert got.ravel().tolist() == [min(max(int(v), 1), 3) for v in x]


def test_narrow_floats_round_once() -> None:
    """sqrt in bf16 arithmetic, step by step, would differ: rsqrt rounds only after 1 / sqrt."""
    x = np.array([3.0], np.float32).astype(ml_dtypes.bfloat16)
    assert float(reference_of("rsqrt").function(x)[0]) == float(np.float32(1 / np.sqrt(3)).astype(ml_dtypes.bfloat16))
