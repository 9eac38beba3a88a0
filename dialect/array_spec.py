"""What a tensor of fixed size looks like in memory: dtype, shape, bytes, alignment. Imports no MLIR."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtypes import dtype_name
from .errors import RelaxError

__all__ = ["ALIGNMENT", "ArraySpec", "aligned", "dtype_text"]

#: Bytes: a cache line and the widest vector register. Blocks of at least 128 KiB come from malloc at 16 mod 64, where every
#: 64-byte access straddles two lines.
ALIGNMENT = 64


@dataclass(frozen=True)
class ArraySpec:
    """What a tensor of fixed size looks like.

    Attributes:
        dtype: NumPy dtype (ml_dtypes for bf16 and fp8).
        shape: static dimensions.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @staticmethod
    def of(array: NDArray[Any]) -> ArraySpec:
        """The spec of an array."""
        return ArraySpec(array.dtype, array.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the contiguous tensor."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{dtype_text(self.dtype)}{list(self.shape)}"


def aligned(nbytes: int) -> int:
    """The next multiple of :data:`ALIGNMENT`."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The MLIR name of a dtype for a message; NumPy's own name where MLIR has none."""
    try:
        return dtype_name(dtype)
    except RelaxError:
        return str(dtype)
