"""Changes of shape and order that compute nothing."""

from __future__ import annotations

import numpy as np

from .numeric import Array, fresh
from .registry import reference

__all__: list[str] = []


@reference
def permute_dims(x: Array, *, axes: list[int] | None) -> Array:
    return fresh(np.transpose(x, axes))


@reference
def reshape(x: Array, *, shape: tuple[int, ...]) -> Array:
    return fresh(x.reshape(shape))


@reference
def broadcast_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    return fresh(np.broadcast_to(x, shape))


@reference
def expand_dims(x: Array, *, axis: list[int]) -> Array:
    return fresh(np.expand_dims(x, tuple(axis)))


@reference
def squeeze(x: Array, *, axis: list[int] | None, shape: tuple[int, ...]) -> Array:
    # Without axes the type says what goes: a symbolic dimension stays, also where it is 1 at run time.
    return fresh(x.reshape(shape) if axis is None else np.squeeze(x, tuple(axis)))


@reference
def concat(lhs: Array, rhs: Array, *, axis: int) -> Array:
    return np.concatenate([lhs, rhs], axis)


@reference
def split(x: Array, *, sections: int, axis: int) -> tuple[Array, ...]:
    return tuple(fresh(part) for part in np.split(x, sections, axis))


@reference
def flip(x: Array, *, axis: int) -> Array:
    return fresh(np.flip(x, axis))


@reference
def repeat(x: Array, *, repeats: int, axis: int) -> Array:
    return np.repeat(x, repeats, axis)


@reference
def tile(x: Array, *, repeats: list[int]) -> Array:
    return np.tile(x, repeats)
