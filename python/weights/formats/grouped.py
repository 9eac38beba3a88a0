"""Integers with a scale and a zero point per group of inputs: what GPTQ, AWQ and compressed-tensors have in common."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .config import Layer
from .weight_math import MathValue, constant

__all__ = ["FLOATS", "check_groups", "fields", "grouped", "is_regular", "offset", "words"]

FLOATS = ("float16", "bfloat16", "float32")

#: One in each field of a word, by bits.
_ONES = {4: 0x11111111, 8: 0x01010101}


def words(x: MathValue, plus_one: int = 0) -> MathValue:
    """Words of 32 bits as unsigned ones; with one more in each field of so many bits, carries and all, where it is said."""
    bits = x.astype("ui32")
    return bits + _ONES[plus_one] if plus_one else bits


def fields(x: MathValue, bits: int, axis: int, size: int) -> MathValue:
    """The unsigned integers of four or eight bits in words along an axis, the lowest bits first."""
    return x.unpack_nibbles(axis, size) if bits == 4 else x.bytes_of_words(axis, size)


def grouped(q: MathValue, scale: MathValue, zero: MathValue, axis: int, group: int, index: MathValue | None) -> MathValue:
    """``(q - zero) * scale`` in f32, with parameters per group of ``group`` along an axis, or per the group of an index."""
    size, wide = q.shape[axis], scale.astype("f32")

    def spread(parameter: MathValue) -> MathValue:
        if not parameter.shape:
            return parameter
        if index is not None:
            return parameter.take(index, axis)
        if parameter.shape[axis] * group == size or parameter.shape[axis] == 1:
            return parameter
        return parameter.repeat(group, axis).part(axis, 0, size)  # the last group is not whole

    # Bytes: four-bit integers have a byte each anyway, and no file has them so.
    return q.dequantize(spread(wide), spread(zero if zero.dtype.itemsize > 1 else zero.astype("ui8")))


def is_regular(index: Array, group: int) -> bool:
    """Whether each input belongs to the group that its position says, so that the index says nothing."""
    return bool((index == np.arange(index.size) // group).all())


def check_groups(layer: Layer, end: str, index: Array, groups: int) -> None:
    """Raises RelaxError where an input belongs to a group that there is not."""
    if index.size and not 0 <= int(index.min()) <= int(index.max()) < groups:
        raise layer.error(end, f"expected groups from 0 to {groups - 1}, got {int(index.min())} to {int(index.max())}")


def offset(bits: int) -> MathValue:
    """The zero point of signed integers that are stored as unsigned ones."""
    return constant(np.array(1 << bits - 1, np.uint8))
