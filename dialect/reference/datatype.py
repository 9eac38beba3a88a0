"""Conversion between dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numeric import Array, convert
from .registry import reference

__all__: list[str] = []


@reference
def astype(x: Array, *, dtype: np.dtype[Any]) -> Array:
    return convert(x, dtype)
