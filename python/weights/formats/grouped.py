"""Integers with a scale and a zero point per group of inputs: what GPTQ, AWQ and compressed-tensors have in common."""

from __future__ import annotations

from math import gcd

import numpy as np

from ..arrays import Array, ArraySpec
from .config import StoredLayer
from .weight_math import MathValue, constant

__all__ = [
    "FLOATS", "SHORTEST", "UNEQUAL", "are_whole", "blocks", "check_groups", "fields", "grouped", "is_regular", "offset",
    "order_of", "too_short", "words",
]  # fmt: skip

FLOATS = ("float16", "bfloat16", "float32")

#: Why a product does not read groups that an index gives.
UNEQUAL = "its groups (act-order) are not of one size"

#: Shorter blocks take nearly as many bytes for scales as for integers.
SHORTEST = 16

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
    size = q.shape[axis]

    def spread(parameter: MathValue) -> MathValue:
        if not parameter.shape:
            return parameter
        return blocks(parameter, axis, size, group) if index is None else parameter.take(index, axis)

    # Bytes: four-bit integers have a byte each anyway, and no file has them so.
    is_kept = zero.dtype.itemsize > 1 or q.dtype == np.int8
    return q.dequantize(spread(scale).astype("f32"), spread(zero if is_kept else zero.astype("ui8")))


def blocks(parameter: MathValue, axis: int, size: int, group: int) -> MathValue:
    """Parameters of groups of ``group`` as those of equal blocks: smaller ones where the last group is not whole."""
    count = parameter.shape[axis]
    if count == 1 or count * group == size:
        return parameter
    block = gcd(group, size)
    return parameter.repeat(group // block, axis).part(axis, 0, size // block)


def too_short(size: int, group: int) -> str:
    """Why the blocks of inputs that share a scale are no groups for a product; empty when they are."""
    block = size if group >= size else gcd(group, size)
    return "" if block >= min(size, SHORTEST) else f"{size} inputs in groups of {group}"


def is_regular(index: Array, group: int) -> bool:
    """Whether each input belongs to the group that its position says, so that the index says nothing."""
    return bool((index == np.arange(index.size) // group).all())


def are_whole(index: Array, group: int) -> bool:
    """Whether the groups of an index have ``group`` inputs each, but for the last."""
    counts = np.bincount(index)
    return bool((counts[:-1] == group).all()) and counts[-1] <= group


def order_of(index: MathValue) -> MathValue:
    """The inputs in the order of their groups: how many come before each one says where it goes."""
    (k,), i32 = index.shape, np.dtype(np.int32)
    inputs = MathValue("arange", (), ArraySpec(i32, (k,)), {"start": [0], "end": [k], "step": [1]})
    place = index * k + inputs
    is_before = MathValue("less", (place.reshape(1, k), place.reshape(k, 1)), ArraySpec(np.dtype(np.bool_), (k, k)))
    rank = MathValue("sum", (is_before.astype("i32"),), ArraySpec(i32, (k,)), {"axis": [1], "keepdims": False})
    return MathValue("index_copy", (inputs, rank, inputs), ArraySpec(i32, (k,)), {"axis": 0})


def check_groups(layer: StoredLayer, end: str, index: Array, groups: int) -> None:
    """Raises RelaxError where an input belongs to a group that there is not."""
    if index.size and not 0 <= int(index.min()) <= int(index.max()) < groups:
        raise layer.error(end, f"expected groups from 0 to {groups - 1}, got {int(index.min())} to {int(index.max())}")


def offset(bits: int) -> MathValue:
    """The zero point of signed integers that are stored as unsigned ones."""
    return constant(np.array(1 << bits - 1, np.uint8))
