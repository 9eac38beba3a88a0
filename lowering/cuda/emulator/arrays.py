"""NumPy types by the names that generated code has for them, and sets of lanes.

A set of lanes is a slice where they are consecutive, and an array of increasing numbers where they are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "RAW", "SHIFT", "Array", "Dtype", "Lanes", "at", "b1", "count", "f2", "f4", "f8", "i1", "i2", "i4", "i8", "indices",
    "joined", "product",
    "subset", "tidy", "u1", "u2", "u4", "u8", "without",
]  # fmt: skip

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Dtype: TypeAlias = Any
Lanes: TypeAlias = Any  # slice | Array; narrowing one of them at each use would hide the code

u1, u2, u4, u8 = np.uint8, np.uint16, np.uint32, np.uint64
i1, i2, i4, i8 = np.int8, np.int16, np.int32, np.int64
f2, f4, f8, b1 = np.float16, np.float32, np.float64, np.bool_

#: By width in bytes: what memory is copied as (a complex number is 16 bytes in one go), and log2 of the width.
RAW: dict[int, Dtype] = {1: u1, 2: u2, 4: u4, 8: u8, 16: np.complex128}
SHIFT = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}


def count(lanes: Lanes) -> int:
    """How many lanes these are."""
    return lanes.stop - lanes.start if type(lanes) is slice else len(lanes)


def indices(lanes: Lanes) -> Array:
    """The lanes as an array."""
    return np.arange(lanes.start, lanes.stop) if type(lanes) is slice else lanes


def tidy(lanes: Array) -> Lanes:
    """An array of increasing lanes, as a slice where it is one."""
    n = len(lanes)
    return slice(int(lanes[0]), int(lanes[0]) + n) if lanes[-1] - lanes[0] == n - 1 else lanes


def joined(a: Lanes, b: Lanes) -> Lanes:
    """The union of two sets that have no lane in common."""
    if type(a) is slice and type(b) is slice:
        if a.stop == b.start:
            return slice(a.start, b.stop)
        if b.stop == a.start:
            return slice(b.start, a.stop)
    return tidy(np.sort(np.concatenate([indices(a), indices(b)])))


def subset(lanes: Lanes, keep: Any) -> Lanes | None:
    """The lanes where ``keep`` holds (one truth value, or one per lane), None when there are none."""
    keep = np.asarray(keep)
    if keep.all():
        return lanes
    if not keep.any():
        return None
    return tidy(indices(lanes)[keep])


def without(lanes: Lanes, drop: Any) -> Lanes | None:
    """The lanes where ``drop`` does not hold."""
    return subset(lanes, ~np.asarray(drop))


def at(value: Any, index: int) -> int:
    """One lane's value of what may be one for all lanes."""
    return int(value) if np.ndim(value) == 0 else int(value[index if len(value) > 1 else 0])


def product(sizes: Sequence[int]) -> int:
    """How many blocks or threads a shape has."""
    result = 1
    for size in sizes:
        result *= size
    return result
