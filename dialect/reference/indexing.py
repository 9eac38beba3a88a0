"""Parts of arrays, chosen by indices or by ranges."""

from __future__ import annotations

import numpy as np

from ..errors import RelaxError
from ..packed_layout import PackedLayout
from .numeric import Array, convert, fresh, wide
from .registry import reference

__all__: list[str] = []

_REDUCTIONS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def _positions(indices: Array, size: int, wraps: bool) -> Array:
    """Indices counted from the start. Raises RelaxError naming one that is outside of the dimension."""
    unsigned = indices.dtype == np.uint64  # the one dtype whose numbers another one does not hold
    values = indices if unsigned else indices.astype(np.int64)
    first = -size if wraps else 0
    outside = values[values >= size if unsigned else (values < first) | (values >= size)]
    if outside.size:
        raise RelaxError(f"expected indices in [{first}, {size}), got {outside[0]}")
    values = values.astype(np.int64)
    return np.where(values < 0, values + size, values)


@reference
def take(x: Array, indices: Array, *, axis: int, wrap_negative_indices: bool = True) -> Array:
    return fresh(np.take(x, _positions(indices, x.shape[axis], wrap_negative_indices), axis=axis))


@reference
def packed_take(weight: Array, indices: Array, *, layout: PackedLayout, n: int, wrap_negative_indices: bool = True) -> Array:
    positions = _positions(indices, n, wrap_negative_indices)
    return fresh(weight[positions // layout.tile, :, positions % layout.tile])


@reference
def gather_elements(x: Array, indices: Array, *, axis: int, wrap_negative_indices: bool = True) -> Array:
    grid = list(np.ogrid[tuple(slice(d) for d in indices.shape)])
    grid[axis] = _positions(indices, x.shape[axis], wrap_negative_indices)
    return fresh(x[tuple(grid)])


@reference
def gather_nd(x: Array, indices: Array, *, batch_dims: int, wrap_negative_indices: bool = True) -> Array:
    depth = indices.shape[-1]
    batch = np.ogrid[tuple(slice(d) for d in indices.shape[:batch_dims])]
    inner = indices.ndim - 1 - batch_dims
    leading = [b.reshape(b.shape + (1,) * inner) for b in batch]
    coordinates = [_positions(indices[..., i], x.shape[batch_dims + i], wrap_negative_indices) for i in range(depth)]
    if depth:
        return fresh(x[(*leading, *coordinates)])
    # Without coordinates every index of the inner dimensions reads the whole rest of x.
    rest = x.shape[batch_dims:]
    source = x.reshape(x.shape[:batch_dims] + (1,) * inner + rest)
    return fresh(np.broadcast_to(source, (*indices.shape[:-1], *rest)))


@reference
def index_copy(x: Array, indices: Array, values: Array, *, axis: int, wrap_negative_indices: bool = True) -> Array:
    result = fresh(x)
    rows = np.moveaxis(result, axis, 0)
    positions = _positions(indices, x.shape[axis], wrap_negative_indices)
    for position, value in zip(positions, np.moveaxis(values, axis, 0), strict=True):
        rows[position] = value
    return result


@reference
def scatter_elements(
    x: Array, indices: Array, updates: Array, *, axis: int, reduction: str, wrap_negative_indices: bool = True
) -> Array:
    result = fresh(x)
    positions = np.broadcast_to(_positions(indices, x.shape[axis], wrap_negative_indices), updates.shape)
    for at in np.ndindex(*updates.shape):
        to = list(at)
        to[axis] = positions[at]
        there, given = (wide(a[place][...]) for a, place in ((result, tuple(to)), (updates, at)))
        result[tuple(to)] = updates[at] if reduction == "update" else convert(_REDUCTIONS[reduction](there, given), x.dtype)
    return result


@reference
def strided_slice(x: Array, *, axes: list[int], begin: list[int], end: list[int], strides: list[int] | None) -> Array:
    parts = [slice(None)] * x.ndim
    for axis, first, last, step in zip(axes, begin, end, strides or [1] * len(axes), strict=True):
        parts[axis] = slice(first, last, step)
    return fresh(x[tuple(parts)])


@reference
def dynamic_strided_slice(x: Array, begin: Array, end: Array, *, axes: list[int], strides: list[int] | None) -> Array:
    return strided_slice(x, axes=axes, begin=begin.tolist(), end=end.tolist(), strides=strides)
