"""Tensors made from none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import FLOATS, INTEGERS, SHAPES


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "i1"])
@pytest.mark.parametrize("shape", SHAPES)
def test_full(shape: tuple[int, ...], dtype: str) -> None:
    got = reference_of("full").function(value=1, shape=shape, dtype=numpy_dtype(dtype))
    assert got.dtype == numpy_dtype(dtype)
    assert got.shape == shape
    assert all(int(v) == 1 for v in got.ravel())


def test_full_of_special_values() -> None:
    full = reference_of("full").function
    assert full(value=float("-inf"), shape=(), dtype=np.dtype(np.float32)) == -np.inf
    assert np.isnan(full(value=float("nan"), shape=(), dtype=np.dtype(np.float16)))
    assert float(full(value=0.1, shape=(), dtype=np.dtype(np.float32))) == float(np.float32(0.1))
    assert int(full(value=2**63 - 1, shape=(), dtype=np.dtype(np.int64))) == 2**63 - 1
    assert int(full(value=2**64 - 1, shape=(), dtype=np.dtype(np.uint64))) == 2**64 - 1
    assert full(value=True, shape=(2,), dtype=np.dtype(np.bool_)).tolist() == [True, True]


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_arange(start: int, end: int, step: int) -> None:
    got = reference_of("arange").function(start=[start], end=[end], step=[step], dtype=np.dtype(np.int32))
    assert got.dtype == np.int32
    assert got.tolist() == list(range(start, end, step))


@pytest.mark.parametrize("dtype", [d for d in (*FLOATS, *INTEGERS)])
def test_arange_in_every_dtype(dtype: str) -> None:
    got = reference_of("arange").function(start=[0], end=[7], step=[2], dtype=numpy_dtype(dtype))
    assert got.dtype == numpy_dtype(dtype)
    assert [int(v) for v in got] == [0, 2, 4, 6]


def test_arange_needs_a_step() -> None:
    with pytest.raises(RelaxError, match="expected a step other than 0"):
        reference_of("arange").function(start=[0], end=[4], step=[0], dtype=np.dtype(np.int32))


@pytest.mark.parametrize("dtype", ["i64", "i32", "f32", "bf16"])
def test_shape_value(dtype: str) -> None:
    got = reference_of("shape_value").function(value=[12], dtype=numpy_dtype(dtype))
    assert got.dtype == numpy_dtype(dtype)
    assert got.shape == ()
    assert int(got) == 12


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8", "i1"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 4), (0, 3), (3, 0)])
@pytest.mark.parametrize("k", [-5, -1, 0, 1, 2, 5])
def test_triangles(k: int, shape: tuple[int, ...], dtype: str) -> None:
    x = np.ones(shape, np.float32).astype(numpy_dtype(dtype))
    for name, kept in (("tril", lambda i, j: j - i <= k), ("triu", lambda i, j: j - i >= k)):
        got = reference_of(name).function(x, k=k)
        assert got.dtype == x.dtype
        assert got.shape == shape
        for index in np.ndindex(*shape):
            assert int(got[index]) == int(kept(*index[-2:]))


def test_triangles_drop_nan() -> None:
    """What is outside is 0, not 0 times the element."""
    x = np.full((2, 2), np.nan, np.float32)
    assert reference_of("tril").function(x, k=0)[0, 1] == 0
    assert reference_of("triu").function(x, k=0)[1, 0] == 0


def test_constant_is_a_copy() -> None:
    value = np.arange(3)
    got = reference_of("constant").function(value=value)
    np.testing.assert_array_equal(got, value)
    assert not np.shares_memory(got, value)
