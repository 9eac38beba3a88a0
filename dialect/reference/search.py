"""Selection by condition or by extreme value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .numeric import Array, fresh, wide
from .registry import reference

__all__: list[str] = []


@reference
def where(condition: Array, x: Array, y: Array) -> Array:
    return np.array(np.where(condition, x, y), x.dtype, order="C")


@reference
def argmax(x: Array, *, axis: int, keepdims: bool) -> Array:
    return _index(np.argmax, x, axis, keepdims)


@reference
def argmin(x: Array, *, axis: int, keepdims: bool) -> Array:
    return _index(np.argmin, x, axis, keepdims)


@reference
def argsort(x: Array, *, axis: int, descending: bool) -> Array:
    values = wide(x)
    if not descending:
        return fresh(np.argsort(values, axis=axis, kind="stable"))
    reverse = np.argsort(np.flip(values, axis), axis=axis, kind="stable")  # equals in the order from behind
    return fresh(x.shape[axis] - 1 - np.flip(reverse, axis))


def _index(function: Callable[..., Any], x: Array, axis: int, keepdims: bool) -> Array:
    """NumPy's rule: the first of equals, a NaN before any number. 0 for an empty row."""
    if not x.shape[axis]:
        kept = (1,) if keepdims else ()
        axis %= x.ndim
        return np.zeros((*x.shape[:axis], *kept, *x.shape[axis + 1 :]), np.int64)
    return np.array(function(wide(x), axis=axis, keepdims=keepdims), np.int64)
