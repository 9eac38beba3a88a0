"""ONNX operators that take a range of a dimension, or one of its elements, by numbers that are known or symbolic."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.size_choices import alternatives
from ....dialect.symbolic import Dim, Expr
from ...emit import emit, full, info_of, integer, slice_axis, squeeze
from ...ranges import Ranges, at_most, larger, smaller
from ...slices import is_place, limited_bound, limited_bounds
from ..node import Node, handles

__all__ = ["element_of", "slice_of"]

#: What exporters write for "to the end", which no size reaches.
_END = 2**31 - 1


@handles("Slice")
def _slice(node: Node) -> ir.Value:
    x = node.tensor(0)
    begins, ends = node.listed("starts", 1), node.listed("ends", 2)
    assert begins is not None
    assert ends is not None
    axes = node.axes(node.listed("axes", 3), node.rank(0))
    steps = node.listed("steps", 4) or [1] * len(begins)
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=False):
        x = slice_of(x, axis, begin, end, step)
    return x


def slice_of(x: ir.Value, axis: int, begin: Dim, end: Dim, step: int) -> ir.Value:
    """``x[begin:end:step]`` along an axis: numbers are limited to the dimension, a negative step goes backwards.

    Bounds that are computed from sizes are taken to lie inside, which is checked when the model runs: what a model slices so is
    meant to be as long as they say.
    """
    size = info_of(x).shape[axis]
    if size is None or begin is None or end is None:
        raise RelaxError("expected to slice a dimension whose size is known or symbolic")
    if not step:
        raise RelaxError("expected a step other than 0")
    if step < 0:
        return _backwards(x, axis, begin, end, step)
    ranges = present([size])
    if isinstance(begin, int) and isinstance(end, int):
        return slice_axis(x, axis, *_places(_finite(begin), _finite(end), size, ranges), step)
    return slice_axis(x, axis, _limited(begin, size, ranges), _limited(end, size, ranges), step)


def _places(begin: int, end: int, size: int | Expr, ranges: Ranges) -> tuple[int | Expr, int | Expr]:
    """Bounds by numbers; where they are no simple expressions anyway, of a dimension of 0, too."""
    start, stop = limited_bounds(begin, end, size, ranges)
    if any(isinstance(n, Expr) and alternatives(n) is not None for n in (start, stop)):
        return limited_bounds(begin, end, size, {})
    return start, stop


def _backwards(x: ir.Value, axis: int, begin: int | Expr, end: int | Expr, step: int) -> ir.Value:
    """Of a dimension of known size, only what lies between is turned around; else all, in which place ``i`` is ``-1 - i``.

    A bound before the first element begins there, where NumPy takes nothing.
    Source: https://onnx.ai/onnx/operators/onnx__Slice.html, clamping for negative steps.
    """
    size = info_of(x).shape[axis]
    if isinstance(begin, Expr) or isinstance(end, Expr):
        raise RelaxError("expected constant bounds of a slice that goes backwards")
    if not isinstance(size, int):
        return _turned(x, axis, begin, end, step)
    picked = range(size)[slice(max(begin, -size), end if end >= -size else None, step)]
    if not len(picked):
        return slice_axis(x, axis, 0, 0)
    low, high = picked[-1], picked[0]
    return slice_axis(emit(ops.Flip, slice_axis(x, axis, low, high + 1), axis=axis), axis, 0, high + 1 - low, -step)


def _turned(x: ir.Value, axis: int, begin: int, end: int, step: int) -> ir.Value:
    size = info_of(x).shape[axis]
    assert isinstance(size, Expr)
    ranges = present([size])
    first, behind = _finite(-1 - begin), _finite(-1 - end)
    start, stop = limited_bounds(first, behind, size, ranges)
    if first >= 0 and not at_most(first - size, -1, ranges):
        start = size - 1 if start == size else smaller(first, size - 1, ranges)
        stop = larger(start, limited_bound(behind, size, ranges), ranges)
    return slice_axis(emit(ops.Flip, x, axis=axis), axis, start, stop, -step)


def present(sizes: Sequence[int | Expr]) -> Ranges:
    """Where sizes are not 0. The last element of a dimension then is one, whatever its size: a call in which there is none is
    refused.
    """
    return {name: (1, None) for size in sizes if isinstance(size, Expr) for name in size.names}


def _limited(bound: int | Expr, size: int | Expr, ranges: Ranges) -> int | Expr:
    if isinstance(bound, Expr):
        return bound + size if at_most(bound, -1, ranges) else bound
    return limited_bound(_finite(bound), size, ranges)


def _finite(bound: int) -> int:
    """A bound that is as far as no size reaches, as one that :func:`...slices.slice_bound` knows to be so."""
    if abs(bound) < _END:
        return bound
    return 2**62 if bound > 0 else -(2**62)


def element_of(x: ir.Value, axis: int, index: int | Expr) -> ir.Value:
    """``x[index]`` along an axis, which goes away. Where some size may not have the index it is looked up, which checks it."""
    size = info_of(x).shape[axis]
    if size is None:
        return emit(ops.Take, x, full(index, integer()), axis=axis)
    ranges = present([index, size])
    place = index + size if at_most(index, -1, ranges) else index
    if isinstance(index, Expr) and not is_place(place, size, ranges):
        return emit(ops.Take, x, full(index, integer()), axis=axis)
    return squeeze(slice_axis(x, axis, place, place + 1), axis)
