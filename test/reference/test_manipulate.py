"""Changes of shape and order, against explicit index arithmetic on every element."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reference.registry import reference_of

SHAPES = [(), (4,), (2, 3), (3, 1, 2), (0, 3), (2, 0, 3)]
DTYPES = ["f32", "bf16", "f8E4M3FN", "i4", "i1", "i64"]


def filled(shape: tuple[int, ...], dtype: str = "i64") -> np.ndarray:
    count = int(np.prod(shape))
    return np.arange(count).reshape(shape).astype(numpy_dtype(dtype))


def check(got: np.ndarray, shape: tuple[int, ...], source: Callable[[tuple[int, ...]], object]) -> None:
    assert got.shape == shape
    for index in itertools.product(*map(range, shape)):
        assert got[index] == source(index)


@pytest.mark.parametrize("shape", SHAPES)
def test_permute_dims(shape: tuple[int, ...]) -> None:
    x = filled(shape)
    for axes in itertools.permutations(range(len(shape))):
        got = reference_of("permute_dims").function(x, axes=list(axes))
        check(got, tuple(shape[a] for a in axes), lambda i, axes=axes: x[tuple(i[axes.index(d)] for d in range(len(axes)))])
    reversed_ = reference_of("permute_dims").function(x, axes=None)
    check(reversed_, shape[::-1], lambda i: x[i[::-1]])


def test_permute_dims_counts_axes_from_the_end() -> None:
    x = filled((2, 3, 4))
    np.testing.assert_array_equal(reference_of("permute_dims").function(x, axes=[-1, 0, 1]), np.moveaxis(x, -1, 0))


@pytest.mark.parametrize(
    ("before", "after"), [((2, 6), (3, 4)), ((), (1, 1)), ((4,), (2, 2)), ((0, 3), (5, 0)), ((1,), ()), ((6,), (2, -1))]
)
def test_reshape(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    x = filled(before)
    got = reference_of("reshape").function(x, shape=after)
    assert got.ravel().tolist() == x.ravel().tolist()
    assert got.shape == x.reshape(after).shape


@pytest.mark.parametrize(
    ("before", "after"), [((3,), (2, 3)), ((), (2, 2)), ((2, 1), (2, 4)), ((1, 1), (0, 3)), ((2, 3), (2, 3))]
)
def test_broadcast_to(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    x = filled(before)
    lead = len(after) - len(before)
    got = reference_of("broadcast_to").function(x, shape=after)
    check(got, after, lambda i: x[tuple(0 if d == 1 else j for j, d in zip(i[lead:], before, strict=True))])
    assert got.flags.writeable


@pytest.mark.parametrize(
    ("axis", "shape"), [([0], (1, 2, 3)), ([-1], (2, 3, 1)), ([0, 2], (1, 2, 1, 3)), ([-1, 0], (1, 2, 3, 1)), ([], (2, 3))]
)
def test_expand_dims(axis: list[int], shape: tuple[int, ...]) -> None:
    x = filled((2, 3))
    got = reference_of("expand_dims").function(x, axis=axis)
    assert got.shape == shape
    assert got.ravel().tolist() == x.ravel().tolist()


@pytest.mark.parametrize(("axis", "shape"), [(None, (2,)), ([0], (2, 1)), ([-1], (1, 2)), ([2, 0], (2,)), ([], (1, 2, 1))])
def test_squeeze(axis: list[int] | None, shape: tuple[int, ...]) -> None:
    x = filled((1, 2, 1))
    got = reference_of("squeeze").function(x, axis=axis, shape=shape)
    assert got.shape == shape
    assert got.ravel().tolist() == x.ravel().tolist()


def test_squeeze_without_axes_keeps_what_the_type_keeps() -> None:
    """A symbolic dimension that is 1 in this run stays."""
    assert reference_of("squeeze").function(filled((1, 1, 3)), axis=None, shape=(1, 3)).shape == (1, 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("left", "right", "axis"), [((2, 3), (4, 3), 0), ((2, 3), (2, 1), -1), ((0,), (3,), 0), ((2, 0), (2, 5), 1)]
)
def test_concat(left: tuple[int, ...], right: tuple[int, ...], axis: int, dtype: str) -> None:
    x, y = filled(left, dtype), filled(right, dtype)
    got = reference_of("concat").function(x, y, axis=axis)
    assert got.dtype == x.dtype
    moved = np.moveaxis(got, axis, 0)
    np.testing.assert_array_equal(moved[: left[axis]], np.moveaxis(x, axis, 0))
    np.testing.assert_array_equal(moved[left[axis] :], np.moveaxis(y, axis, 0))


@pytest.mark.parametrize(("shape", "sections", "axis"), [((6,), 3, 0), ((2, 4), 2, -1), ((3, 2), 1, 0), ((0, 2), 4, 0)])
def test_split(shape: tuple[int, ...], sections: int, axis: int) -> None:
    x = filled(shape)
    parts = reference_of("split").function(x, sections=sections, axis=axis)
    assert isinstance(parts, tuple)
    assert [p.shape for p in parts] == [parts[0].shape] * sections
    np.testing.assert_array_equal(np.concatenate(parts, axis), x)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s])
def test_flip(shape: tuple[int, ...]) -> None:
    x = filled(shape)
    for axis in range(-len(shape), len(shape)):
        got = reference_of("flip").function(x, axis=axis)
        a = axis % len(shape)
        check(got, shape, lambda i, a=a: x[(*i[:a], shape[a] - 1 - i[a], *i[a + 1 :])])


@pytest.mark.parametrize("shape", [s for s in SHAPES if s])
@pytest.mark.parametrize("repeats", [0, 1, 3])
def test_repeat(shape: tuple[int, ...], repeats: int) -> None:
    x = filled(shape)
    for a in range(len(shape)):
        got = reference_of("repeat").function(x, repeats=repeats, axis=a - len(shape))
        out = (*shape[:a], shape[a] * repeats, *shape[a + 1 :])
        check(got, out, lambda i, a=a: x[(*i[:a], i[a] // repeats, *i[a + 1 :])])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3))
def test_tile(dims: list[tuple[int, int]]) -> None:
    shape, repeats = tuple(d for d, _ in dims), [r for _, r in dims]
    x = filled(shape)
    got = reference_of("tile").function(x, repeats=repeats)
    out = tuple(d * r for d, r in dims)
    check(got, out, lambda i: x[tuple(j % d for j, d in zip(i, shape, strict=True))])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_moves(dtype: str) -> None:
    x = filled((2, 3), dtype)
    results = [
        reference_of("permute_dims").function(x, axes=[1, 0]),
        reference_of("reshape").function(x, shape=(3, 2)),
        reference_of("broadcast_to").function(x, shape=(2, 2, 3)),
        reference_of("flip").function(x, axis=0),
        reference_of("repeat").function(x, repeats=2, axis=0),
        reference_of("tile").function(x, repeats=[1, 2]),
        *reference_of("split").function(x, sections=2, axis=0),
    ]
    assert {r.dtype for r in results} == {x.dtype}


def test_bits_are_kept() -> None:
    """A NaN's payload and the sign of zero survive every movement."""
    bits = np.array([0x7FC1, 0x8000, 0xFFC2, 0x0001], np.uint16)
    x = bits.view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(reference_of("flip").function(x, axis=0).view(np.uint16), bits[::-1])
    np.testing.assert_array_equal(reference_of("reshape").function(x, shape=(2, 2)).view(np.uint16).ravel(), bits)
