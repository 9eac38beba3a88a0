"""What the ops mean, in NumPy."""

from __future__ import annotations

import numpy as np

from relaxir.extend import Array, reference

__all__ = ["acme_soft_sign"]


@reference
def acme_soft_sign(x: Array, *, sharpness: float) -> Array:
    wide = x.astype(np.float64)
    return (wide / (sharpness + np.abs(wide))).astype(x.dtype)
