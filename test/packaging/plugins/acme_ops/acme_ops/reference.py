"""What the ops mean, in NumPy."""

from __future__ import annotations

import numpy as np

from relaxir.extend import Array, reference

__all__ = ["acme_parts", "acme_soft_sign"]


@reference
def acme_soft_sign(x: Array, *, sharpness: float) -> Array:
    wide = x.astype(np.float64)
    return (wide / (sharpness + np.abs(wide))).astype(x.dtype)


@reference
def acme_parts(x: Array, bias: Array | None, *, scale: float) -> tuple[Array, Array]:
    value = x * x.dtype.type(scale) if bias is None else x * x.dtype.type(scale) + bias
    return np.maximum(value, 0), np.minimum(value, 0)
