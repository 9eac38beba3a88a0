"""Conversion between dtypes, of numbers and of bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numeric import Array, convert, fresh
from .registry import reference

__all__: list[str] = []


@reference
def astype(x: Array, *, dtype: np.dtype[Any]) -> Array:
    return convert(x, dtype)


@reference
def bitcast(x: Array, *, dtype: np.dtype[Any]) -> Array:
    return fresh(x).view(dtype)
