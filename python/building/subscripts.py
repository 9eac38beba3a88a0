"""Subscripts of values, ``x[0, 1:n, ..., None, ::2]``, as NumPy reads them: slices, look-ups, new dimensions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..dialect.checks import expect_no_mask
from ..dialect.symbolic import Expr
from .value import Operators, Value

__all__ = ["subscript"]

#: The end of a dimension of which nothing is known: slices are limited to what is there.
_FAR = 2**62


def subscript(b: Operators, x: Value, given: object) -> Value:
    """The part of a tensor that a subscript names.

    Integers (negative ones from the end) and symbolic expressions drop their dimension, slices have positive steps or are
    ``[::-1]``, None is a new dimension of one, and one tensor or array of integers takes what lies at these indices.

    Raises:
        RelaxError: there are more subscripts than dimensions, an integer lies outside of its dimension, or it is none of these.
    """
    items = _full(b, x, list(cast("tuple[Any, ...]", given)) if isinstance(given, tuple) else [given])
    arrays = [i for i in items if _is_array(i)]
    if len(arrays) > 1 or (arrays and any(isinstance(i, int | np.integer | Expr) for i in items)):
        raise b.error("expected at most one tensor of indices, beside slices, as a subscript")
    x = _sliced(b, x, [i for i in items if i is not None])
    axis, dropped = 0, list[int]()
    for item in items:
        if item is None:
            x = b.expand_dims(x, axis=[axis])
        elif _is_array(item):
            x = b.take(x, item, axis=axis)
            axis += len(item.shape) - 1
        elif not isinstance(item, slice):
            dropped.append(axis)
        elif item.step == -1:
            x = b.flip(x, axis=axis)
        axis += 1
    return b.squeeze(x, axis=dropped) if dropped else x


def _is_array(item: object) -> bool:
    return hasattr(item, "shape") and not isinstance(item, np.generic)


def _full(b: Operators, x: Value, items: list[Any]) -> list[Any]:
    """A subscript for each dimension: an ellipsis, or the end where there is none, stands for those not mentioned."""
    items = [_indices(b, i) for i in items]
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    used = len(items) - len(places) - sum(item is None for item in items)
    if len(places) > 1 or used > len(x.shape):
        raise b.error(f"expected subscripts for {len(x.shape)} dimensions and at most one '...', got {len(items)}")
    at = places[0] if places else len(items)
    found = [*items[:at], *[slice(None)] * (len(x.shape) - used), *items[at + len(places) :]]
    for item, size in zip((i for i in found if i is not None), x.shape, strict=True):
        if isinstance(item, np.ndarray) and size != item.size:
            raise b.error(f"expected as many truth values as the dimension has elements, {size}, got {item.size}")
    return [b.constant(np.flatnonzero(i)) if isinstance(i, np.ndarray) else i for i in found]


def _indices(b: Operators, item: Any) -> Any:
    """A list or an array of integers as a constant; one of truth values, a mask of a dimension, as it is."""
    if isinstance(item, Value) and item.dtype == "i1":
        raise b.error("expected a tensor of integers as a subscript, got truth values, which say how many only when it runs")
    if not isinstance(item, list | np.ndarray) or not np.size(item):
        return item
    expect_no_mask(item, "subscript")
    array = np.asarray(item)
    if array.dtype != np.bool_:
        return b.constant(array)
    if array.ndim != 1:
        raise b.error(f"expected truth values for one dimension as a subscript, got {array.ndim}")
    return array


def _sliced(b: Operators, x: Value, items: list[Any]) -> Value:
    """All slices at once; an integer is a slice of one."""
    found = [(axis, *bounds) for axis, item in enumerate(items) if (bounds := _bounds(b, x, axis, item))]
    if not found:
        return x
    axes, begin, end, strides = (list(part) for part in zip(*found, strict=True))
    return b.strided_slice(x, axes=axes, begin=begin, end=end, strides=strides)


def _bounds(b: Operators, x: Value, axis: int, item: Any) -> tuple[Any, Any, int] | None:
    """Begin, end and step; None where all of the dimension stays."""
    if isinstance(item, slice):
        return _slice_bounds(b, x, axis, item)
    if _is_array(item):
        return None
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer | Expr):
        raise b.error(f"expected integers, slices, None, '...' or a tensor of integers as subscripts, got {item!r}")
    at, size = item if isinstance(item, Expr) else int(item), x.shape[axis]
    if isinstance(at, int) and isinstance(size, int) and not -size <= at < size:
        raise b.error(f"expected an index from {-size} to {size - 1} in dimension {axis}, got {at}")
    if isinstance(at, int) and at < 0:
        if size is None:
            raise b.error(f"expected a size for dimension {axis}, which is unknown, to count {at} from its end")
        at = size + at
    return at, at + 1, 1


def _slice_bounds(b: Operators, x: Value, axis: int, item: slice) -> tuple[Any, Any, int] | None:
    step = 1 if item.step is None else item.step
    if item.start is None and item.stop is None and isinstance(step, int) and step in (1, -1):
        return None
    if not isinstance(step, int) or step < 1:
        raise b.error(f"expected a positive step, or [::-1], got a step of {step!r} in dimension {axis}")
    size = x.shape[axis]
    whole = _FAR if size is None else size
    return (0 if item.start is None else item.start), (whole if item.stop is None else item.stop), step
