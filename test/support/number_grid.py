"""Elements of every dtype where functions go wrong: zeros, infinities, NaN, subnormal numbers, ends, edges, random bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from relaxir.dialect.dtypes import numpy_dtype

__all__ = ["edges_of", "grid", "pairs"]

Array = np.ndarray[Any, Any]

#: Where ranges end in some function or dtype: integers that no longer fit, overflow and underflow of exp in f32 and f64,
#: branches of polynomials, pi.
_NEAR = (
    0.0, 0.1, 0.25, 1 / 3, 0.5, 0.625, 2**-0.5, 0.75, 0.9, 0.99, 1.0, 1.5, 2**0.5, 2.0, 2.5, 3.0, 3.5, np.pi / 4, np.pi / 2,
    np.pi, 6.0, 7.0, 8.0, 9.0, 15.5, 17.0, 20.0, 22.0, 50.0, 87.3365, 88.0297, 88.7228, 89.4159, 103.28, 103.972, 104.5, 127.5,
    128.0, 149.0, 150.0, 255.5, 256.0, 448.0, 464.0, 500.5, 708.396, 709.783, 710.476, 745.133, 1000.0, 1023.5, 1075.0, 4096.0,
    32768.0, 57344.0, 61440.0, 65504.0, 65520.0, 65536.0, 1e5, 2.0**22, 2.0**23, 2.0**24, 1e10, 2.0**31, 2.0**32, 2.0**53,
    2.0**63, 2.0**64, 1.8e19, 1e20, 1e30, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-12, 1e-20, 1e-30, 1e-38, 1e-40, 1e-45, 1e-160,
    1e-307, 1e-310, 1e160, 1e300,
)  # fmt: skip


def edges_of(dtype: str, more: Sequence[float] = ()) -> Array:
    """The special numbers of a float dtype and its numbers beside those of every edge, of both signs."""
    kind = numpy_dtype(dtype)
    info = ml_dtypes.finfo(kind)
    ends = [info.max, info.tiny, info.smallest_subnormal, info.eps]
    with np.errstate(all="ignore"):
        at = np.array([*_NEAR, *more, *(float(e) for e in ends), float(info.tiny) / 2], np.float64).astype(kind)
    every = np.concatenate([_moved(at, step) for step in (-1, 0, 1)])
    specials = np.array([np.nan, np.inf, 0.0], np.float32).astype(kind)
    every = np.concatenate([specials, every])
    return np.concatenate([every, -every])


def _moved(x: Array, steps: int) -> Array:
    """The numbers so many steps above, or below, those that are finite and positive."""
    bits = x.view(f"u{x.dtype.itemsize}")
    moved = (bits + np.array(steps, np.int64).astype(bits.dtype)).view(x.dtype)
    return np.where(np.isfinite(x) & (x != 0), moved, x)


def _random_floats(rng: np.random.Generator, dtype: str, count: int) -> Array:
    """A third of any bits, a third of ordinary size, a third of every magnitude down to the subnormal numbers."""
    kind = numpy_dtype(dtype)
    bits = rng.integers(0, 256, (count // 3, kind.itemsize), np.uint8).reshape(-1).view(kind)
    ordinary = rng.standard_normal(count // 3) * rng.choice([0.3, 3.0, 30.0], count // 3)
    info = ml_dtypes.finfo(kind)
    low, high = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    every = rng.choice([-1, 1], count - 2 * (count // 3)) * np.exp2(rng.uniform(low, high, count - 2 * (count // 3)))
    with np.errstate(all="ignore"):
        return np.concatenate([bits, ordinary.astype(kind), every.astype(kind)])


def _integers(rng: np.random.Generator, dtype: str, count: int) -> Array:
    """Both ends, what is next to them, small ones, powers of two, random ones of every length."""
    info = ml_dtypes.iinfo(numpy_dtype(dtype))
    low, high, width = int(info.min), int(info.max), int(info.bits)
    powers = [s * (2**i + d) for i in range(width) for d in (-1, 0, 1) for s in (1, -1)]
    at = [low, low + 1, high, high - 1, low // 2, high // 2, high // 3, *range(-9, 10), *powers]
    lengths = rng.integers(1, width + 1, count)
    drawn = [int.from_bytes(rng.bytes(8), "little") >> (64 - int(n)) for n in lengths]
    drawn = [v - 2**width if v > high else v for v in drawn]
    return np.array([v for v in dict.fromkeys([*at, *drawn]) if low <= v <= high], object).astype(numpy_dtype(dtype))


def grid(dtype: str, seed: int = 0, count: int = 1000, more: Sequence[float] = ()) -> Array:
    """One-dimensional: the edges, and so many random elements; every element of a dtype of 8 bits or less."""
    rng, kind = np.random.default_rng(seed), numpy_dtype(dtype)
    if dtype == "i1":
        return np.array([False, True])
    if "i" in dtype:
        return _integers(rng, dtype, count)
    if kind.itemsize == 1:
        return np.arange(256, dtype=np.uint8).view(kind)
    return np.concatenate([edges_of(dtype, more), _random_floats(rng, dtype, count)])


def pairs(dtype: str, seed: int = 0, count: int = 1000, more: Sequence[float] = ()) -> tuple[Array, Array]:
    """Elements for two operands: random ones of the grid, and every pair of a few that matter most."""
    rng, every = np.random.default_rng(seed), grid(dtype, seed, count, more)
    left, right = (rng.permutation(np.resize(every, max(count, len(every)))) for _ in range(2))
    few = _few(dtype, every)
    product = np.meshgrid(few, few)
    near = left.copy()  # operands of one size, where sums cancel and quotients are near whole numbers
    if "f" in dtype:
        with np.errstate(all="ignore"):
            wide = left.astype(np.float64)
            near = (wide * rng.choice([1, -1, 2, 3, 0.1, 7, 1 / 3, 1000], len(left))).astype(left.dtype)
    parts = [(product[0].ravel(), product[1].ravel()), (left, right), (near, left)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _few(dtype: str, every: Array) -> Array:
    if dtype == "i1":
        return every
    if "i" in dtype:
        return every[:30]
    info = ml_dtypes.finfo(every.dtype)
    ends = [float(v) for v in (info.max, info.tiny, info.smallest_subnormal)]
    half = [0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 33.0, 1e10, 2.0**-60, 1e5, *ends, np.inf, np.nan]
    with np.errstate(all="ignore"):
        return np.array([*half, *(-v for v in half)], np.float64).astype(every.dtype)
