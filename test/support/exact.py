"""Numbers in extended precision (80 bits: 11 more than f64), and distances from them in units in the last place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np

__all__ = ["Array", "Exact", "erf", "exact", "explain", "spacing", "wrong"]

Array = np.ndarray[Any, Any]
Exact = Callable[..., Array]


def exact(x: Array) -> Array:
    """The elements in extended precision, which loses nothing of any float dtype."""
    return x.astype(np.float32).astype(np.longdouble) if x.dtype.itemsize < 4 else x.astype(np.longdouble)


def erf(x: Array) -> Array:
    """The error function, which NumPy has not."""
    values = np.array([_erf(v) for v in x.ravel()], np.longdouble).reshape(x.shape)
    return np.where(x == 0, x, values)


@functools.cache
def _erf(x: np.longdouble) -> np.longdouble:
    if not np.isfinite(x) or abs(x) > 15:
        return np.copysign(np.longdouble(1), x) if x == x else x
    with mpmath.workprec(80):
        value = mpmath.erf(mpmath.mpf(float(x)) + mpmath.mpf(float(x - np.longdouble(float(x)))))
        high = float(value)
        return np.longdouble(high) + np.longdouble(float(value - high))


def spacing(values: Array, dtype: np.dtype[Any]) -> Array:
    """The distance of a dtype's numbers around each value; below the normal ones, that of the subnormal."""
    info = ml_dtypes.finfo(dtype)
    magnitude = np.minimum(np.abs(values), np.longdouble(float(info.max)))
    _, exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 0))
    least = np.longdouble(float(info.smallest_subnormal))
    return np.maximum(np.ldexp(np.longdouble(float(info.eps)), exponent - 1), least)


def wrong(got: Array, want: Array, tolerance: Array, any_zero: bool = False) -> Array:
    """Where results are not what they should be.

    Args:
        got: results of a float dtype.
        want: what they should be, in extended precision. Where it is NaN, infinite or zero, the result must be, with its sign.
        tolerance: how far they may be from it.
        any_zero: whether a zero may have either sign.
    """
    info, value = ml_dtypes.finfo(got.dtype), exact(got)
    largest = np.longdouble(float(info.max))
    # Beyond the largest number comes one more step, and infinity stands there; f8E4M3FN has none, but a NaN.
    beyond = largest + spacing(largest, got.dtype)
    over = np.abs(want) > largest
    has_infinity = "e4m3fn" not in got.dtype.name
    if not has_infinity:
        value = np.where(np.isnan(value) & over, np.copysign(np.inf, want), value)
    near = np.abs(np.clip(value, -beyond, beyond) - np.clip(want, -beyond, beyond)) <= tolerance
    near &= ~np.isinf(want) | np.isinf(value)
    near &= any_zero | (value != 0) | (np.signbit(value) == np.signbit(want))
    near &= (want != 0) | (value == 0)
    return ~np.where(np.isnan(want), np.isnan(value), near)


def explain(name: str, bad: Array, operands: list[Array], got: Array, want: Array, dtype: np.dtype[Any] | None) -> str:
    """One line: how many, and of those the worst by its distance, with operands."""
    if dtype is None:
        at = int(np.argmax(bad))
        off = ""
    else:
        with np.errstate(all="ignore"):
            units = np.abs(exact(got) - want) / spacing(want, dtype)
        units = np.where(bad, np.where(np.isnan(units), np.inf, units), -1)
        at = int(np.argmax(units))
        off = f", {float(units[at]):.4g} units off"
    given = ", ".join(str(x[at]) for x in operands)
    return f"{name}: {int(bad.sum())} of {bad.size} wrong, as ({given}): expected {want[at]}, got {got[at]}{off}"
