"""Random weights, for who measures or compares without a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .lowering.manifest import Manifest

__all__ = ["random_raw_weights", "random_weight"]

Array = np.ndarray[Any, Any]

#: Standard deviation of matrices: products of a thousand terms stay near what they are made of.
_SCALE = 1 / 32


def random_raw_weights(manifest: Manifest, seed: int = 0) -> dict[str, Array]:
    """Raw weights of an executable by name."""
    random = np.random.default_rng(seed)
    specs = {n: w.array for n, w in manifest.raw_weights.items()}
    return {n: random_weight(np.dtype(s.dtype), s.shape, random, _SCALE) for n, s in specs.items()}


def random_weight(dtype: np.dtype[Any], shape: Sequence[int], random: np.random.Generator, scale: float = 1.0) -> Array:
    """A weight: floats of the normal distribution times ``scale``; integers of 0 and 1, valid as indices and masks alike.

    Vectors of floats lie between 1/2 and 3/2, as weights of norms do: variances have no root below 0.
    """
    if dtype.kind in "bui" or "int" in dtype.name:
        return random.integers(0, 2, shape).astype(dtype)
    if len(shape) < 2:
        return random.uniform(0.5, 1.5, shape).astype(dtype)
    return (random.standard_normal(shape, np.float32) * np.float32(scale)).astype(dtype)
