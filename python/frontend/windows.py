"""The largest elements of windows, and which they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.inference import is_float
from ..dialect.size_choices import is_at_least
from ..dialect.symbolic import Dim, Expr
from .emit import emit, expand, full, info_of, integer, multiply_all, permute, reshape, sequence, table, unsqueeze

__all__ = ["PoolWindow", "Windows", "adaptive_windows", "largest_and_places", "spatial_sizes", "windows"]

#: Positions in one dimension, [number of windows, longest window]; a shorter window has an element of its own again.
Windows = np.ndarray[Any, Any]


def spatial_sizes(x: ir.Value, spatial: int, what: str) -> list[int]:
    """The last dimensions. Raises RelaxError, in which ``what`` is expected, unless they are known and there is something."""
    found = [size for size in info_of(x).shape[-spatial:] if isinstance(size, int) and size]
    if len(found) != spatial:
        raise RelaxError(f"expected {what} over dimensions whose sizes are known, got {info_of(x)}")
    return found


@dataclass(frozen=True)
class PoolWindow:
    """How windows lie along a dimension: of so many elements, so far from one another, over so much padding."""

    size: int = 1
    stride: int = 1
    before: int = 0
    after: int = 0
    dilation: int = 1
    ceil_mode: bool = False

    @property
    def reach(self) -> int:
        """From the first element to behind the last one."""
        return self.dilation * (self.size - 1) + 1

    def count(self, size: Dim) -> Any:
        """How many there are. With ``ceil_mode`` the last one may end behind the padding, and begins before it.

        Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/Pool.h, pooling_output_shape.
        """
        assert size is not None
        span = size + (self.before + self.after - self.reach)
        if not self.ceil_mode:
            return span // self.stride + 1
        steps = -(-span // self.stride)
        return steps + 1 - is_at_least(steps * self.stride, size + self.before)


def windows(size: int | Expr, window: PoolWindow) -> Windows | ir.Value:
    """Where the elements of windows are; in place of one in the padding the next one of the window that is not, again."""
    count = window.count(size)
    steps = np.arange(window.size) * window.dilation
    if isinstance(size, int):
        places = np.arange(count)[:, None] * window.stride - window.before + steps
        inside = (places >= 0) & (places < size)
        first, last = np.where(inside, places, size).min(1), np.where(inside, places, -1).max(1)
        return np.clip(places, first[:, None], last[:, None])
    begins = emit(ops.Multiply, sequence(0, count), full(window.stride, integer()))
    begins = unsqueeze(emit(ops.Subtract, begins, full(window.before, integer())), 1)
    places = emit(ops.Add, begins, table(steps[None], integer()))
    if window.after or window.ceil_mode:
        left = emit(ops.Subtract, full(size - 1, integer()), begins)
        places = emit(ops.Minimum, places, emit(ops.Add, begins, _multiple(left, window.dilation)))
    if window.before:
        places = emit(ops.Maximum, places, emit(ops.Subtract, begins, _multiple(begins, window.dilation)))
    return places


def _multiple(x: ir.Value, of: int) -> ir.Value:
    """The largest one that is not larger."""
    if of == 1:
        return x
    number = full(of, integer())
    return emit(ops.Multiply, emit(ops.FloorDivide, x, number), number)


def adaptive_windows(size: int, count: int) -> Windows:
    """Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/AdaptivePooling.h, start_index and end_index."""
    begins = [i * size // count for i in range(count)]
    ends = [-(-(i + 1) * size // count) for i in range(count)]
    longest = max((e - b for b, e in zip(begins, ends, strict=True)), default=1)
    rows = [[min(b + i, e - 1) for i in range(longest)] for b, e in zip(begins, ends, strict=True)]
    return np.array(rows, np.int64).reshape(count, longest)


def largest_and_places(x: ir.Value, along: Sequence[Windows | ir.Value]) -> list[ir.Value | None]:
    """The largest element of each window, and where it is: the first, or the last that is no number where there is one.

    Args:
        x: [..., one dimension for each of ``along``].
        along: the windows of each dimension, computed when the model runs where its size is open.

    Returns:
        Both as [..., number of windows in each dimension]; places count the elements of these dimensions, row by row.
    """
    spatial, outer = len(along), info_of(x).rank - len(along)
    sizes = info_of(x).shape[outer:]
    found = [table(places, integer()) if isinstance(places, np.ndarray) else places for places in along]
    for i, places in enumerate(found):  # [..., windows, elements of a window, ...]
        x = emit(ops.Take, x, places, axis=outer + 2 * i)
    x = _elements_last(x, outer, spatial)
    where = expand(_flat_places(found, sizes), info_of(x).shape)
    last = [info_of(x).rank - 1]
    first = emit(ops.GatherElements, where, emit(ops.ArgMax, x, axis=last[0], keepdims=True), axis=last[0])
    found = emit(ops.Squeeze, first, axis=last)
    if is_float(info_of(x).dtype):
        no_number = emit(ops.Max, emit(ops.Where, emit(ops.IsNan, x), where, full(-1, integer())), axis=last)
        found = emit(ops.Where, emit(ops.Less, no_number, full(0, integer())), found, no_number)
    return [emit(ops.Max, x, axis=last), found]


def _elements_last(x: ir.Value, outer: int, spatial: int) -> ir.Value:
    """[..., windows, elements, windows, elements] as [..., windows, windows, elements of both]."""
    windows_at = [outer + 2 * i for i in range(spatial)]
    x = permute(x, [*range(outer), *windows_at, *(a + 1 for a in windows_at)])
    shape = info_of(x).shape
    return reshape(x, (*shape[:-spatial], math.prod(s for s in shape[-spatial:] if isinstance(s, int))))


def _flat_places(along: Sequence[ir.Value], sizes: Sequence[Dim]) -> ir.Value:
    """Where the elements of all windows are, counted row by row: a sum of what each dimension adds."""
    spatial = len(along)
    total = None
    for i, places in enumerate(along):
        shape: list[Dim] = [1] * (2 * spatial)
        shape[i], shape[spatial + i] = info_of(places).shape
        row = multiply_all(sizes[i + 1 :])
        if row is None:
            raise RelaxError("expected windows along dimensions whose sizes are known or symbolic")
        part = reshape(emit(ops.Multiply, places, full(row, integer())), shape)
        total = part if total is None else emit(ops.Add, total, part)
    assert total is not None
    found = info_of(total).shape
    return reshape(total, (*found[:spatial], math.prod(s for s in found[spatial:] if isinstance(s, int))))
