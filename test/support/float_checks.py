"""Arrays with corner cases, and comparisons in units of a dtype's own rounding, for tests of the reference semantics."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from relaxir.dialect.dtypes import numpy_dtype

FLOATS = ("f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2")
INTEGERS = ("i4", "i8", "i16", "i32", "i64", "ui4", "ui8", "ui16", "ui32", "ui64")
SHAPES = ((), (1,), (0,), (5,), (2, 3), (3, 0, 2), (2, 1, 4))
SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1e-30, 3e38, -3e38)

Array = np.ndarray[Any, Any]


def floats(rng: np.random.Generator, shape: tuple[int, ...], name: str, specials: bool = True) -> Array:
    """Random values of a float dtype; about a third are NaN, infinities, zeros, halves and extremes."""
    values = rng.normal(scale=3, size=shape)
    if specials:
        chosen = rng.choice(SPECIALS, size=shape)
        values = np.where(rng.random(shape) < 0.3, chosen, values)
    with np.errstate(all="ignore"):
        return np.asarray(values, np.float64).astype(numpy_dtype(name))


def integers(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    """Random values of an integer dtype over its whole range, its ends included."""
    info = ml_dtypes.iinfo(numpy_dtype(name))
    low, high = int(info.min), int(info.max)
    picked = [low, high, 0, 1, min(3, high)] + [int(rng.integers(low // 2, high // 2 + 1)) for _ in range(5)]
    count = int(np.prod(shape))
    return np.array([picked[i] for i in rng.integers(0, len(picked), count)], object).reshape(shape).astype(numpy_dtype(name))


def wide(x: Array) -> Array:
    """The values in f64."""
    return np.asarray(x).astype(np.float32).astype(np.float64) if np.asarray(x).dtype.itemsize < 4 else x.astype(np.float64)


@functools.cache
def representable(name: str) -> Array:
    """Every finite value of a dtype of at most two bytes, ascending, as f64."""
    dtype = numpy_dtype(name)
    bits = np.arange(1 << (8 * dtype.itemsize)).astype(np.uint8 if dtype.itemsize == 1 else np.uint16)
    with np.errstate(all="ignore"):
        values = bits.view(dtype).astype(np.float32).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def assert_rounded(got: Array, exact: Array, name: str, ulps: float = 0.5001) -> None:
    """Every element is within ``ulps`` of the exact value's spacing in the dtype; NaN, infinities and overflow agree."""
    assert got.dtype == numpy_dtype(name)
    assert got.shape == np.shape(exact)
    value, exact = wide(got), np.asarray(exact, np.float64)
    info = ml_dtypes.finfo(got.dtype)
    largest, tiny = float(info.max), float(info.smallest_subnormal)
    has_infinity = name != "f8E4M3FN"
    # Half a step beyond the largest value is where rounding leaves the finite numbers.
    over = np.abs(exact) >= largest * (1 + float(info.eps) / 4)
    with np.errstate(all="ignore"):
        spacing = np.maximum(np.exp2(np.floor(np.log2(np.abs(exact)))) * float(info.eps), tiny)
        near = np.abs(value - exact) <= np.where(exact == 0, tiny, spacing) * ulps
    near |= over & (np.isnan(value) if not has_infinity else (np.sign(value) == np.sign(exact)) & ~np.isfinite(value))
    near |= over & np.isfinite(exact) & (np.abs(value) == largest) & (np.sign(value) == np.sign(exact))
    near |= np.isnan(exact) & np.isnan(value)
    bad = np.argwhere(~near)
    assert not len(bad), f"{name}: expected {exact[tuple(bad[0])]}, got {value[tuple(bad[0])]}"
