"""What elements of a tensor of integers are at most, by the ops that compute them: as large can sizes be that they decide."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dialect.bindings import ir
from ..dialect.elements import to_numpy
from ..dialect.inference import normalize_axis
from ..dialect.op import attrs_of
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr
from .emit import multiply_all
from .ranges import Ranges, at_least, larger, smaller

__all__ = ["largest_element"]

#: Smallest and largest element; None where nothing is known.
_Interval = tuple[int | None, int | Expr | None]
_UNKNOWN: _Interval = (None, None)

#: Ops whose results have elements of their first operand alone, or, of several, of any one of them.
_PICKED = {
    "permute_dims", "reshape", "broadcast_to", "expand_dims", "squeeze", "split", "flip", "repeat", "tile", "take",
    "gather_elements", "gather_nd", "strided_slice", "dynamic_strided_slice", "match_cast", "max", "min", "astype",
}  # fmt: skip
_ANY_OF = {"concat": slice(None), "where": slice(1, 3), "scatter_elements": slice(0, 3, 2)}

#: What makes floats of which something is known: numbers of a graph, picked; arithmetic would round them.
_FLOATS = {*_PICKED, *_ANY_OF, "constant", "full"}


def largest_element(value: ir.Value, ranges: Ranges) -> int | Expr | None:
    """A size that no element exceeds; None when none is known.

    Args:
        value: a relax tensor of integers or booleans.
        ranges: of symbols.
    """
    return _Limits(ranges).of(value)[1]


class _Limits:
    """Intervals of values, each looked at once."""

    def __init__(self, ranges: Ranges):
        self._ranges = ranges
        self._found: dict[ir.Value, _Interval] = {}

    def of(self, value: ir.Value) -> _Interval:
        pending = [value]
        while pending:
            current = pending[-1]
            operands = [] if isinstance(current, ir.BlockArgument) else list(current.owner.operands)
            unknown = [v for v in operands if v not in self._found]
            if current not in self._found and unknown:
                pending.extend(unknown)
                continue
            pending.pop()
            self._found[current] = self._held(current)
        return self._found[value]

    def _held(self, value: ir.Value) -> _Interval:
        """The interval, where numbers of its dtype do not wrap."""
        dtype = TensorInfo.of(value).dtype
        low, high = _UNKNOWN if isinstance(value, ir.BlockArgument) else self._by_op(value)
        if not isinstance(dtype, ir.IntegerType):
            return (low, high) if isinstance(dtype, ir.FloatType) else _UNKNOWN
        if dtype.width == 1:
            return 0, 1
        if isinstance(high, Expr) and dtype.width < 64:
            return _UNKNOWN
        bits = dtype.width - (not dtype.is_unsigned)
        known = [v for v in (low, high) if isinstance(v, int)]
        return _UNKNOWN if any(abs(v) >= 1 << bits for v in known) else (low, high)

    def _by_op(self, value: ir.Value) -> _Interval:
        op = value.owner.operation
        name = op.name.removeprefix("relax.")
        found = [self._found[v] for v in op.operands]
        if name not in _FLOATS and not isinstance(TensorInfo.of(value).dtype, ir.IntegerType):
            return _UNKNOWN
        if name in _PICKED:
            return found[0]
        if name in _ANY_OF:
            is_sum = name == "scatter_elements" and attrs_of(op)["reduction"] not in ("update", "min", "max")
            return _UNKNOWN if is_sum else self._any_of(found[_ANY_OF[name]])
        rule = _RULES.get(name)
        return _UNKNOWN if rule is None else rule(self, op, found)

    def _any_of(self, found: list[_Interval]) -> _Interval:
        low, high = found[0]
        for other_low, other_high in found[1:]:
            low = None if low is None or other_low is None else min(low, other_low)
            high = None if high is None or other_high is None else larger(high, other_high, self._ranges)
        return low, high

    def arange(self, op: ir.Operation, _: list[_Interval]) -> _Interval:
        start, step = (attrs_of(op)[key][0] for key in ("start", "step"))
        (count,) = TensorInfo.of(op.results[0]).shape
        if not isinstance(start, int) or not isinstance(step, int) or step < 0 or count is None:
            return _UNKNOWN
        return start, start + (count - 1) * step

    def clip(self, op: ir.Operation, found: list[_Interval]) -> _Interval:
        (low, high), attrs = found[0], attrs_of(op)
        least, most = (None if attrs[key] is None else int(attrs[key]) for key in ("min", "max"))
        low = least if low is None or least is None else max(low, least)
        return low, most if high is None or most is None else smaller(high, most, self._ranges)

    def add(self, _: ir.Operation, found: list[_Interval]) -> _Interval:
        (low, high), (other_low, other_high) = found
        least = None if low is None or other_low is None else low + other_low
        return least, None if high is None or other_high is None else high + other_high

    def subtract(self, _: ir.Operation, found: list[_Interval]) -> _Interval:
        (low, high), (other_low, other_high) = found
        least = low - other_high if isinstance(low, int) and isinstance(other_high, int) else None
        return least, None if high is None or other_low is None else high - other_low

    def multiply(self, _: ir.Operation, found: list[_Interval]) -> _Interval:
        (low, high), (other_low, other_high) = found
        if low is None or high is None or other_low is None or other_high is None or low < 0 or other_low < 0:
            return _UNKNOWN
        return low * other_low, high * other_high

    def minimum(self, _: ir.Operation, found: list[_Interval]) -> _Interval:
        (low, high), (other_low, other_high) = found
        least = None if low is None or other_low is None else min(low, other_low)
        if high is None or other_high is None:
            return least, other_high if high is None else high
        return least, smaller(high, other_high, self._ranges)

    def maximum(self, _: ir.Operation, found: list[_Interval]) -> _Interval:
        lows = [low for low, _ in found if low is not None]
        return max(lows, default=None), self._any_of(found)[1]

    def sum(self, op: ir.Operation, found: list[_Interval]) -> _Interval:
        shape, axes = TensorInfo.of(op.operands[0]).shape, attrs_of(op)["axis"]
        chosen = shape if axes is None else [shape[normalize_axis(a, len(shape))] for a in axes]
        return self._times(found[0], multiply_all(list(chosen)))

    def argmax(self, op: ir.Operation, _: list[_Interval]) -> _Interval:
        shape = TensorInfo.of(op.operands[0]).shape
        size = shape[normalize_axis(attrs_of(op)["axis"], len(shape))]
        return 0, size

    def _times(self, interval: _Interval, count: Dim) -> _Interval:
        low, high = interval
        if count is None or low is None or low < 0 or high is None:
            return _UNKNOWN
        return 0, high * count

    def constant(self, op: ir.Operation, _: list[_Interval]) -> _Interval:
        array = to_numpy(attrs_of(op)["value"])
        return _around(float(np.min(array)), float(np.max(array))) if array.size else _UNKNOWN

    def full(self, op: ir.Operation, _: list[_Interval]) -> _Interval:
        value = attrs_of(op)["value"]
        return (value, value) if isinstance(value, int) else _around(value, value)

    def shape_value(self, op: ir.Operation, _: list[_Interval]) -> _Interval:
        sizes: list[Any] = attrs_of(op)["value"]
        return self._any_of([(0 if at_least(size, 0, self._ranges) else None, size) for size in sizes]) if sizes else _UNKNOWN


def _around(low: float, high: float) -> _Interval:
    """Whole numbers around finite ones."""
    return (math.floor(low), math.ceil(high)) if math.isfinite(low) and math.isfinite(high) else _UNKNOWN


_RULES: dict[str, Callable[[_Limits, ir.Operation, list[_Interval]], _Interval]] = {
    "add": _Limits.add, "arange": _Limits.arange, "argmax": _Limits.argmax, "argmin": _Limits.argmax, "clip": _Limits.clip,
    "constant": _Limits.constant, "full": _Limits.full, "maximum": _Limits.maximum, "minimum": _Limits.minimum,
    "multiply": _Limits.multiply, "shape_value": _Limits.shape_value, "subtract": _Limits.subtract, "sum": _Limits.sum,
}  # fmt: skip
