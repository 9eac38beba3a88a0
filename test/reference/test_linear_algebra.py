"""Matrix products, against f64 products of PyTorch and against packing undone."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.packed_layout import PackedLayout
from relaxir.dialect.reference.registry import reference_of
from support.float_checks import FLOATS, floats, wide

SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((4,), (2, 4, 3)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((1, 1), (1, 1)),
]


def matmul(x: np.ndarray, y: np.ndarray, out: str | None = None) -> np.ndarray:
    return reference_of("matmul").function(x, y, out_dtype=None if out is None else numpy_dtype(out))


def close(got: np.ndarray, exact: np.ndarray, terms: np.ndarray, dtype: str) -> None:
    """Within the rounding of the result plus that of summing in f32 (f64)."""
    eps = float(ml_dtypes.finfo(numpy_dtype(dtype)).eps)
    sums = 2.0**-52 if dtype == "f64" else 2.0**-23
    assert got.shape == exact.shape
    assert (np.abs(wide(got) - exact) <= 0.51 * eps * np.abs(exact) + 8 * sums * terms + 1e-6 * (dtype != "f64")).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_float_products(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, y = (floats(rng, s, dtype, specials=False) for s in (left, right))
    if dtype.startswith("f8"):
        x, y = (np.sign(wide(v)).astype(v.dtype) for v in (x, y))
    got = matmul(x, y)
    a, b = torch.from_numpy(wide(x)), torch.from_numpy(wide(y))
    assert got.dtype == x.dtype
    close(got, torch.matmul(a, b).numpy(), torch.matmul(a.abs(), b.abs()).numpy(), dtype)


def test_narrow_products_are_summed_in_f32() -> None:
    """In bf16 the running sum would stay at 256."""
    x, y = np.ones((1, 1000), ml_dtypes.bfloat16), np.ones((1000, 1), ml_dtypes.bfloat16)
    assert float(matmul(x, y)[0, 0]) == 1000
    assert matmul(x, y, "f32").dtype == np.float32
    for dtype in (ml_dtypes.bfloat16, np.float16):
        third = np.full((1, 3), 1 / 3, np.float32).astype(dtype)
        total = float(matmul(third, np.ones((3, 1), dtype), "f32")[0, 0])
        assert total == 3 * float(third[0, 0])
        assert total != float(np.asarray(total).astype(dtype))


def test_out_dtype_rounds_once() -> None:
    x, y = np.full((1, 1), 1 + 2**-12, np.float32), np.full((1, 1), 1 + 2**-12, np.float32)
    assert matmul(x, y, "f16").dtype == np.float16
    assert float(matmul(x, y, "f16")[0, 0]) == float(np.float16(x[0, 0] * y[0, 0]))
    assert matmul(x.astype(np.float64), y.astype(np.float64), "f32").dtype == np.float32


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i32", "i4"])
def test_integer_products_wrap_in_out_dtype(dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.integers(0, 7, s).astype(numpy_dtype(dtype)) for s in ((3, 70), (70, 2)))
    exact = x.astype(np.int64) @ y.astype(np.int64)
    np.testing.assert_array_equal(matmul(x, y, "i32"), exact)
    np.testing.assert_array_equal(matmul(x, y, "i8"), exact.astype(np.int8))
    assert matmul(x, y).dtype == x.dtype


def test_nan_and_infinity_spread() -> None:
    x, y = np.array([[np.nan, 1], [np.inf, 1]], np.float32), np.zeros((2, 1), np.float32)
    assert np.isnan(matmul(x, y)).all()


@settings(max_examples=50)
@given(st.integers(0, 5), st.integers(0, 20), st.integers(1, 9))
def test_packing_is_a_layout(k: int, n: int, tile: int) -> None:
    x = np.arange(1, k * n + 1, dtype=np.float32).reshape(k, n)
    packed = reference_of("pack_weight").function(x, layout=PackedLayout(tile))
    assert packed.shape == (-(-n // tile), k, tile)
    for column in range(packed.shape[0] * tile):
        expected = x[:, column] if column < n else np.zeros(k)
        np.testing.assert_array_equal(packed[column // tile, :, column % tile], expected)


@pytest.mark.parametrize(("k", "n", "tile", "group"), [(5, 7, 4, 2), (6, 8, 8, 3), (1, 3, 2, 4), (4, 9, 4, 2)])
def test_groups_of_rows_are_neighbours(k: int, n: int, tile: int, group: int) -> None:
    w = np.arange(1, k * n + 1, dtype=np.float32).reshape(k, n)
    packed = reference_of("pack_weight").function(w, layout=PackedLayout(tile, group))
    assert packed.shape == (-(-n // tile), -(-k // group), tile, group)
    for row, column in np.ndindex(packed.shape[1] * group, packed.shape[0] * tile):
        expected = w[row, column] if row < k and column < n else 0
        assert packed[column // tile, row // group, column % tile, row % group] == expected
    x = np.arange(3 * k, dtype=np.float32).reshape(3, k)
    layout = PackedLayout(tile, group)
    np.testing.assert_array_equal(reference_of("packed_matmul").function(x, packed, layout=layout, n=n, out_dtype=None), x @ w)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("shape", "n", "tile"), [((3, 4), 20, 8), ((4,), 7, 8), ((2, 3, 4), 16, 4), ((0, 4), 3, 2), ((2, 0), 3, 2)]
)
def test_packed_product_is_the_plain_one(shape: tuple[int, ...], n: int, tile: int, dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, w = floats(rng, shape, dtype, specials=False), floats(rng, (shape[-1], n), dtype, specials=False)
    packed = reference_of("pack_weight").function(w, layout=PackedLayout(tile))
    assert packed.dtype == w.dtype
    got = reference_of("packed_matmul").function(x, packed, layout=PackedLayout(tile), n=n, out_dtype=None)
    np.testing.assert_array_equal(got, matmul(x, w))
    wide_result = reference_of("packed_matmul").function(
        x, packed, layout=PackedLayout(tile), n=n, out_dtype=np.dtype(np.float64)
    )
    assert wide_result.dtype == np.float64


def test_grouped_matmul() -> None:
    """Each row times the matrix of its group, by PyTorch; a group without rows, and rows behind the last one."""
    rng = np.random.default_rng(0)
    x, matrices, ends = rng.standard_normal((7, 5)), rng.standard_normal((3, 5, 4)), np.array([2, 2, 6])
    side_by_side = np.concatenate(list(matrices), axis=1)
    parts = [
        torch.from_numpy(x[begin:end]) @ torch.from_numpy(w) for begin, end, w in zip((0, 2, 2), ends, matrices, strict=True)
    ]
    want = np.concatenate([*(p.numpy() for p in parts), np.zeros((1, 4))])
    got = reference_of("grouped_matmul").function(x, side_by_side, ends, out_dtype=None)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    layout = PackedLayout(8)
    packed = reference_of("pack_weight").function(side_by_side, layout=layout)
    again = reference_of("packed_grouped_matmul").function(x, packed, ends, layout=layout, n=12, out_dtype=None)
    np.testing.assert_array_equal(again, got)
