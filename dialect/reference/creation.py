"""Arrays made from none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import RelaxError
from .numeric import Array, convert, fresh, number
from .registry import reference

__all__: list[str] = []


@reference
def constant(*, value: Array) -> Array:
    return fresh(value)


@reference
def full(*, value: float, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return np.full(shape, number(value, dtype), dtype)


@reference
def arange(*, start: list[int], end: list[int], step: list[int], dtype: np.dtype[Any]) -> Array:
    if step[0] == 0:
        raise RelaxError("expected a step other than 0")
    return convert(np.arange(start[0], end[0], step[0], dtype=np.int64), dtype)


@reference
def shape_value(*, value: list[int], dtype: np.dtype[Any]) -> Array:
    return convert(np.asarray(value[0], np.int64), dtype)


@reference
def tril(x: Array, *, k: int) -> Array:
    return _triangle(x, np.tri(x.shape[-2], x.shape[-1], k, dtype=np.bool_))


@reference
def triu(x: Array, *, k: int) -> Array:
    return _triangle(x, ~np.tri(x.shape[-2], x.shape[-1], k - 1, dtype=np.bool_))


def _triangle(x: Array, kept: Array) -> Array:
    return np.array(np.where(kept, x, np.zeros((), x.dtype)), x.dtype, order="C")
