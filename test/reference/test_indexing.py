"""Parts of tensors, against PyTorch and against explicit indexing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.packed_layout import PackedLayout
from relaxir.dialect.reference.registry import reference_of


def filled(shape: tuple[int, ...], dtype: str = "i64") -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(shape).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i4", "i1"])
@pytest.mark.parametrize("index_dtype", ["i64", "i32", "i8", "ui8"])
@pytest.mark.parametrize("indices_shape", [(), (3,), (2, 2), (0,)])
def test_take(indices_shape: tuple[int, ...], index_dtype: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = filled((4, 3, 2), dtype)
    for axis in range(-3, 3):
        size = x.shape[axis]
        indices = rng.integers(0 if index_dtype == "ui8" else -size, size, indices_shape).astype(numpy_dtype(index_dtype))
        got = reference_of("take").function(x, indices, axis=axis)
        a = axis % 3
        assert got.dtype == x.dtype
        assert got.shape == (*x.shape[:a], *indices_shape, *x.shape[a + 1 :])
        for place in np.ndindex(*indices_shape):
            taken = np.moveaxis(got.reshape(*x.shape[:a], -1, *x.shape[a + 1 :]), a, 0)
            flat = int(np.ravel_multi_index(place, indices_shape)) if indices_shape else 0
            np.testing.assert_array_equal(taken[flat], np.moveaxis(x, a, 0)[int(indices[place])])


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i4"])
@pytest.mark.parametrize("indices_shape", [(), (3,), (2, 2), (0,)])
@pytest.mark.parametrize(("n", "tile"), [(7, 4), (8, 4), (3, 16), (1, 1)])
def test_packed_take(n: int, tile: int, indices_shape: tuple[int, ...], dtype: str) -> None:
    x = filled((n, 5), dtype)
    packed = reference_of("pack_weight").function(x.T, layout=PackedLayout(tile))
    indices = np.random.default_rng(2).integers(-n, n, indices_shape)
    got = reference_of("packed_take").function(packed, indices, layout=PackedLayout(tile), n=n)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, reference_of("take").function(x, indices, axis=0))


@pytest.mark.parametrize("index", [4, -5, 1 << 40])
def test_take_out_of_range(index: int) -> None:
    with pytest.raises(RelaxError, match=rf"expected indices in \[-4, 4\), got {index}"):
        reference_of("take").function(filled((4, 3)), np.array([0, index]), axis=0)
    with pytest.raises(RelaxError, match="expected indices in"):
        reference_of("packed_take").function(filled((2, 3, 3)), np.array([0, index]), layout=PackedLayout(3), n=4)
    with pytest.raises(RelaxError, match="expected indices in"):
        reference_of("gather_elements").function(filled((4, 3)), np.array([[0, index, 0]]), axis=0)
    with pytest.raises(RelaxError, match="expected indices in"):
        reference_of("gather_nd").function(filled((4, 3)), np.array([[0, 0], [index, 0]]), batch_dims=0)


@pytest.mark.parametrize(
    ("op", "indices", "rest"),
    [
        ("take", [-1], {"axis": 0}),
        ("gather_elements", [[0, 1, -1]], {"axis": 0}),
        ("gather_nd", [[0, -1]], {"batch_dims": 0}),
        ("index_copy", [-1], {"axis": 0}),
        ("scatter_elements", [[0, -1, 1]], {"axis": 0, "reduction": "add"}),
    ],
)
def test_negative_indices_are_refused_where_they_do_not_count_from_the_end(op: str, indices: Any, rest: dict[str, Any]) -> None:
    """By the reference; what the last places are is the same where they count."""
    x, function = filled((4, 3)), reference_of(op).function
    values = [filled((1, 3))] if op in ("index_copy", "scatter_elements") else []
    size = 3 if op == "gather_nd" else 4
    counted = np.where(np.array(indices) < 0, np.array(indices) + size, indices)
    expected = function(x, counted, *values, **rest, wrap_negative_indices=False)
    np.testing.assert_array_equal(function(x, np.array(indices), *values, **rest), expected)
    with pytest.raises(RelaxError, match=rf"expected indices in \[0, {size}\), got -1"):
        function(x, np.array(indices), *values, **rest, wrap_negative_indices=False)


@pytest.mark.parametrize(("dtype", "index_dtype"), [("f32", "i64"), ("bf16", "i32"), ("i1", "ui8")])
def test_index_copy(dtype: str, index_dtype: str) -> None:
    x, indices = filled((4, 3, 2), dtype), np.array([1, 0]).astype(numpy_dtype(index_dtype))
    for axis in range(-3, 3):
        values = (filled((4, 3, 2), dtype)[::-1].take([0, 1], axis)).copy()
        got = reference_of("index_copy").function(x, indices, values, axis=axis)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got.take(indices, axis), values)
        rest = [i for i in range(x.shape[axis]) if i > 1]
        np.testing.assert_array_equal(got.take(rest, axis), x.take(rest, axis))
        assert not np.shares_memory(got, x)


def test_index_copy_of_several_values_for_one_position_keeps_the_last() -> None:
    got = reference_of("index_copy").function(filled((3,)), np.array([1, -2, 1]), np.array([7, 8, 9]), axis=0)
    np.testing.assert_array_equal(got, [0, 9, 2])
    with pytest.raises(RelaxError, match=r"expected indices in \[-3, 3\), got 3"):
        reference_of("index_copy").function(filled((3,)), np.array([3]), np.array([7]), axis=0)


def test_take_from_an_empty_dimension() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert reference_of("take").function(empty, np.zeros((0,), np.int64), axis=0).shape == (0, 3)
    with pytest.raises(RelaxError, match=r"expected indices in \[0, 0\), got 0"):
        reference_of("take").function(empty, np.zeros((1,), np.int64), axis=0)


@pytest.mark.parametrize(
    ("shape", "indices_shape"), [((5,), (3,)), ((4, 3), (4, 2)), ((2, 3, 4), (2, 3, 4)), ((4, 3), (2, 3)), ((3, 3), (0, 2))]
)
def test_gather_elements(shape: tuple[int, ...], indices_shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x = filled(shape)
    for axis in range(len(shape)):
        if any(i > d for k, (i, d) in enumerate(zip(indices_shape, shape, strict=True)) if k != axis):
            continue
        indices = rng.integers(0, shape[axis], indices_shape)
        got = reference_of("gather_elements").function(x, indices, axis=axis - len(shape))
        expected = torch.gather(torch.from_numpy(x), axis, torch.from_numpy(indices)).numpy()
        np.testing.assert_array_equal(got, expected)
        negative = reference_of("gather_elements").function(x, indices - shape[axis], axis=axis)
        np.testing.assert_array_equal(negative, expected)


@pytest.mark.parametrize(
    ("shape", "indices_shape", "batch"),
    [((4, 3), (5, 2), 0), ((4, 3), (5, 1), 0), ((4, 3, 2), (4, 6, 1), 1), ((4, 3, 2), (4, 2), 1), ((4, 3, 2), (4, 3, 1), 2),
     ((4, 3), (2, 2, 0), 0), ((4, 3), (4, 2, 0), 1), ((4,), (1,), 0), ((2, 3, 4), (2, 0, 2), 1)],
)  # fmt: skip
def test_gather_nd(shape: tuple[int, ...], indices_shape: tuple[int, ...], batch: int) -> None:
    rng = np.random.default_rng(3)
    x, depth = filled(shape), indices_shape[-1]
    limits = np.array(shape[batch : batch + depth])
    indices = rng.integers(-limits, limits, indices_shape) if depth else np.zeros(indices_shape, np.int64)
    got = reference_of("gather_nd").function(x, indices, batch_dims=batch)
    assert got.shape == (*indices_shape[:-1], *shape[batch + depth :])
    for place in itertools.product(*map(range, indices_shape[:-1])):
        np.testing.assert_array_equal(got[place], x[(*place[:batch], *indices[place])])


@given(st.data())
def test_strided_slice_is_pythons(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    x = filled(shape)
    axes = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    bounds = [(data.draw(st.integers(-8, 8)), data.draw(st.integers(-8, 8)), data.draw(st.integers(1, 4))) for _ in axes]
    got = reference_of("strided_slice").function(
        x, axes=list(axes), begin=[b for b, _, _ in bounds], end=[e for _, e, _ in bounds], strides=[s for _, _, s in bounds]
    )
    parts = dict(zip(axes, bounds, strict=True))
    chosen = [list(range(d))[slice(*parts[i])] if i in parts else list(range(d)) for i, d in enumerate(shape)]
    np.testing.assert_array_equal(got, x[np.ix_(*chosen)])


def test_strided_slice_defaults() -> None:
    x = filled((4, 5))
    got = reference_of("strided_slice").function(x, axes=[-1], begin=[1], end=[2**63 - 1], strides=None)
    np.testing.assert_array_equal(got, x[:, 1:])
    assert not np.shares_memory(got, x)


@pytest.mark.parametrize(("begin", "end"), [(0, 3), (1, 5), (-2, 9), (-9, -1), (4, 2)])
def test_dynamic_strided_slice(begin: int, end: int) -> None:
    x = filled((2, 6))
    got = reference_of("dynamic_strided_slice").function(x, np.array([begin]), np.array([end]), axes=[1], strides=[2])
    np.testing.assert_array_equal(got, x[:, begin:end:2])


@pytest.mark.parametrize("reduction", ["update", "add", "mul", "min", "max"])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4)])
def test_scatter_elements(shape: tuple[int, ...], reduction: str) -> None:
    rng = np.random.default_rng(4)
    x = filled(shape)
    for axis in range(len(shape)):
        places = [6 if a == axis else d for a, d in enumerate(shape)]
        indices, updates = rng.integers(0, shape[axis], places), rng.integers(-9, 9, places).astype(x.dtype)
        names = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}
        given = torch.from_numpy(x), axis, torch.from_numpy(indices), torch.from_numpy(updates)
        if reduction == "update":  # torch leaves open which one stays
            expected = x.copy()
            for at in np.ndindex(*places):
                expected[(*at[:axis], indices[at], *at[axis + 1 :])] = updates[at]
        else:
            expected = torch.scatter_reduce(*given, names[reduction]).numpy()
        for wanted in (indices, indices - shape[axis]):
            got = reference_of("scatter_elements").function(x, wanted, updates, axis=axis - len(shape), reduction=reduction)
            np.testing.assert_array_equal(got, expected)
    with pytest.raises(RelaxError, match="expected indices in"):
        reference_of("scatter_elements").function(x, indices + 9, updates, axis=axis, reduction=reduction)


def test_scatter_elements_rounds_each_sum() -> None:
    x, ones = np.full(1, 256, numpy_dtype("bf16")), np.ones(4, numpy_dtype("bf16"))
    zeros = np.zeros(4, np.int64)
    assert reference_of("scatter_elements").function(x, zeros, ones, axis=0, reduction="add").tolist() == [256]
