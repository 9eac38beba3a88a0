"""Integers as dtypes keep them."""

from __future__ import annotations

import ml_dtypes

from relaxir.dialect.dtypes import numpy_dtype


def wrapped(value: int, dtype: str) -> int:
    """An integer modulo the dtype's range."""
    info = ml_dtypes.iinfo(numpy_dtype(dtype))
    low, high = int(info.min), int(info.max)
    return (value - low) % (high - low + 1) + low
