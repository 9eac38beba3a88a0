"""Rows of a matrix as small integers with scales, as ``relax-quantize-weights`` makes them, and these as others store them.

Here in NumPy, from rows of ``[outputs, inputs]``: what is written for others does not depend on how kernels pack weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..dialect.dtypes import numpy_dtype
from ..dialect.errors import ContentError
from .arrays import Array

__all__ = ["Quantized", "q4_0", "q8_0", "quantized", "words"]

_HALF_MAX = 65504.0


class Quantized(NamedTuple):
    """Integers ``[rows, inputs]`` in i8, and scales ``[rows, groups]`` in f32."""

    integers: Array
    scales: Array


def quantized(rows: Array, bits: int, group: int, scale: str = "f32") -> Quantized:
    """Integers of 8 or 4 bits, with a scale per ``group`` inputs, which the dtype of that name holds: f32, f16 or bf16.

    Raises:
        ContentError: there are numbers beyond what scales of this dtype hold.
    """
    wide = rows.astype(np.float32).reshape(len(rows), -1, group)
    if bits == 8:
        scales = np.abs(wide).max(2) * np.float32(1 / 127)
    else:
        high, low = wide.max(2), wide.min(2)
        scales = np.where(high >= -low, high, low) * np.float32(-1 / 8)
    if scale == "f16":
        scales = np.clip(scales, -_HALF_MAX, _HALF_MAX)
    with np.errstate(over="ignore"):
        greatest = np.abs(scales.astype(numpy_dtype(scale)).astype(np.float64)).max(initial=0)
    if greatest >= _HALF_MAX if scale == "f16" else greatest * (127 if bits == 8 else 8) > np.finfo(np.float32).max:
        raise ContentError(f"expected numbers that integers with scales in {scale} hold, got greater ones")
    scales = scales.astype(numpy_dtype(scale)).astype(np.float32)
    scales[scales == 0] = 1
    wide /= scales[..., None]
    np.rint(wide, wide)
    np.clip(wide, -(1 << bits - 1), (1 << bits - 1) - 1, wide)
    return Quantized(wide.astype(np.int8).reshape(len(rows), -1), scales)


def q8_0(found: Quantized) -> Array:
    """Blocks of llama.cpp's type: a scale in f16, then 32 bytes."""
    return _blocks(found, found.integers.reshape(len(found.integers), -1, 32).view(np.uint8))


def q4_0(found: Quantized) -> Array:
    """Blocks of llama.cpp's type: a scale in f16, then 16 bytes, low halves first, of what is 8 more than the integers."""
    halves = (found.integers + np.int8(8)).view(np.uint8).reshape(len(found.integers), -1, 2, 16)
    return _blocks(found, halves[:, :, 0] | halves[:, :, 1] << 4)


def _blocks(found: Quantized, content: Array) -> Array:
    scales = found.scales.astype("<f2")[..., None].view(np.uint8)
    return np.concatenate([scales, content], 2).reshape(len(content), -1)


def words(integers: Array, bits: int) -> Array:
    """Words of 32 bits along rows, the first integer in the lowest bits, each ``2 ** (bits - 1)`` more than it is."""
    count = 32 // bits
    rows, inputs = integers.shape
    fields = np.zeros((rows, -(-inputs // count) * count), np.uint32)
    fields[:, :inputs] = integers.astype(np.int32) + (1 << bits - 1)
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return np.bitwise_or.reduce(fields.reshape(rows, -1, count) << shifts, 2).view(np.int32)
