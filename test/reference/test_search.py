"""Selection, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import FLOATS, INTEGERS, floats, integers, wide


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "i1"])
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((), (4,), (2, 1)), ((0, 1), (3,), (1, 1))])
def test_where(shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    rng = np.random.default_rng(1)
    condition = np.asarray(rng.random(shapes[0]) < 0.5)
    if dtype == "i1":
        x, y = (np.asarray(rng.random(s) < 0.5) for s in shapes[1:])
    else:
        x, y = ((floats if dtype in FLOATS else integers)(rng, s, dtype) for s in shapes[1:])
    got = reference_of("where").function(condition, x, y)
    assert got.dtype == x.dtype
    views = np.broadcast_arrays(condition, x, y)
    expected = [a.tobytes() if c else b.tobytes() for c, a, b in zip(*(v.ravel() for v in views), strict=True)]
    assert got.shape == views[0].shape
    assert [v.tobytes() for v in got.ravel()] == expected


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "f8E5M2", "i8", "ui8", "i1"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_index_of_extreme(name: str, keepdims: bool, dtype: str) -> None:
    rng = np.random.default_rng(2)
    for shape, axis in [((5,), 0), ((3, 4), 1), ((3, 4), -2), ((2, 3, 4), 1), ((0, 3), 1)]:
        x = rng.integers(0, 4, shape).astype(numpy_dtype(dtype))
        got = reference_of(name).function(x, axis=axis, keepdims=keepdims)
        assert got.dtype == np.int64
        rows = np.moveaxis(wide(x), axis, -1)
        best = max if name == "argmax" else min
        first = [row.tolist().index(best(row.tolist())) for row in rows.reshape(-1, rows.shape[-1])]
        expected = np.array(first, np.int64).reshape(rows.shape[:-1])
        np.testing.assert_array_equal(got, np.expand_dims(expected, axis) if keepdims else expected)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_nan_comes_before_any_number(name: str) -> None:
    x = np.array([[1, np.nan, np.inf, np.nan], [-np.inf, 2, 3, np.nan]], np.float32)
    got = reference_of(name).function(x, axis=1, keepdims=False)
    assert got.tolist() == [1, 3]
    assert got.tolist() == getattr(torch, name)(torch.from_numpy(x), 1).tolist()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_no_elements_give_zero(name: str) -> None:
    x = np.zeros((2, 0, 3), np.float32)
    assert reference_of(name).function(x, axis=1, keepdims=False).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert reference_of(name).function(x, axis=-2, keepdims=True).shape == (2, 1, 3)


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16", "i8", "ui8", "i1"])
@pytest.mark.parametrize("descending", [False, True])
def test_argsort(descending: bool, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for shape, axis in [((9,), 0), ((3, 8), 1), ((3, 4), -2), ((2, 7, 4), 1), ((0, 3), 1), ((3, 0), 1)]:
        x = wide(rng.integers(0, 4, shape).astype(numpy_dtype(dtype)))
        got = reference_of("argsort").function(x.astype(numpy_dtype(dtype)), axis=axis, descending=descending)
        expected = torch.sort(torch.from_numpy(x), dim=axis, descending=descending, stable=True).indices
        np.testing.assert_array_equal(got, expected)


def test_argsort_puts_nan_above_all_numbers() -> None:
    x = np.array([3, np.nan, np.inf, np.nan, -np.inf], np.float32)
    assert reference_of("argsort").function(x, axis=0, descending=False).tolist() == [4, 0, 2, 1, 3]
    assert reference_of("argsort").function(x, axis=0, descending=True).tolist() == [1, 3, 2, 0, 4]
