"""Conversions between every pair of dtypes, and what they should give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from support.elementwise import FLOATS, INTEGERS
from support.exact import Array, exact, explain, spacing, wrong
from support.integer_checks import wrapped

__all__ = ["DTYPES", "check", "module_for", "targets_of"]

DTYPES = (*FLOATS, *INTEGERS, "i1")


def targets_of(source: str, part: int | None = None) -> list[str]:
    """The dtypes to convert one to: all, or one of three parts of them."""
    every = [d for d in DTYPES if d != source]
    return every if part is None else every[(DTYPES.index(source) + part) % 3 :: 3]


def module_for(part: int | None = None) -> rx.Module:
    """A module with one function for each dtype, named like it, with a result for each other one."""
    b = rx.Builder()
    for source in DTYPES:
        with b.function(source):
            x = b.input("x", ("n",), source)
            b.output(**{d: b.astype(x, dtype=d) for d in targets_of(source, part)})
    return b.build()


def check(x: Array, source: str, targets: Sequence[str], results: Sequence[Array], flushes: Sequence[str] = ()) -> list[str]:
    """What is wrong with a dtype's conversions, a line each; a result below the normal numbers of some dtypes may be 0."""
    found = [_check(x, source, t, r, t in flushes) for t, r in zip(targets, results, strict=True)]
    return [line for line in found if line is not None]


def _check(x: Array, source: str, target: str, got: Array, flushes: bool) -> str | None:
    name = f"{source} to {target}"
    if got.dtype != numpy_dtype(target):
        return f"{name}: expected {numpy_dtype(target)}, got {got.dtype}"
    if target not in FLOATS:
        values = x.astype(np.float64) if source in FLOATS else x.astype(object)
        want = np.array([_whole(v, source, target) for v in values], object).astype(got.dtype)
        bad = got != want
        return explain(name, bad, [x], got, want, None) if bad.any() else None
    with np.errstate(all="ignore"):
        want = exact(x) if source in FLOATS else np.array([np.longdouble(int(v)) for v in x])
        bad = wrong(got, want, spacing(want, got.dtype) * 0.5)
        bad &= ~(flushes & (got == 0) & (np.abs(want) < float(ml_dtypes.finfo(got.dtype).tiny)))
        return explain(name, bad, [x], got, want, got.dtype) if bad.any() else None


def _whole(value: Any, source: str, target: str) -> int:
    """As ``relax.astype`` says it."""
    if target == "i1":
        return int(value != 0)
    if source not in FLOATS:
        return wrapped(int(value), target)
    bits = 64 if target in ("i64", "ui64", "ui32", "ui8") else 32
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    whole = math.trunc(value) if math.isfinite(value) else low
    held = low <= whole < (2 * high if target == "ui64" else high)
    return wrapped(whole if held else low, target)
