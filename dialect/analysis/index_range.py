"""Between what the integers of a value lie, by the ops that made it: positions in an order, of the largest element, of rows.

::

    %0 = "relax.argsort"(%x) {axis = 1 : i64} : (tensor<9x4xf32>) -> tensor<9x4xi64>            // [0, 4)
    %1 = "relax.strided_slice"(%0) {axes = [1], begin = [0], end = [2]} : ... -> tensor<9x2xi64>  // [0, 4)
    %2 = "relax.gather_elements"(%x, %1) {axis = 1 : i64} : ... -> tensor<9x2xf32>                 // reads what is there
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..bindings import ir
from ..inference import integer_range
from ..ops import (
    Add,
    Arange,
    ArgMax,
    ArgMin,
    ArgSort,
    AsType,
    BroadcastTo,
    Clip,
    Concat,
    ExpandDims,
    Flip,
    FloorDivide,
    GatherElements,
    GatherND,
    IndexCopy,
    Maximum,
    Minimum,
    Mod,
    Multiply,
    PackedTake,
    PermuteDims,
    Repeat,
    Reshape,
    ScatterElements,
    Squeeze,
    StridedSlice,
    Take,
    Tile,
    Where,
)
from ..struct_info import TensorInfo
from ..symbolic import Dim, Expr
from .integer_bits import number_of

__all__ = ["IndexRange", "index_range", "reads_inside"]

#: What only moves elements of its first operand.
_MOVES = (
    BroadcastTo, ExpandDims, Flip, GatherElements, GatherND, PermuteDims, Repeat, Reshape, Squeeze, StridedSlice, Take, Tile,
)  # fmt: skip
# Ops in a row that are looked at: routing to experts has eight, and what two operands have in common is seen twice.
_DEPTH = 12
# Beyond this the next sum or product might wrap.
_LIMIT = 2**31
_WIDEST = 64


@dataclass(frozen=True)
class IndexRange:
    """Integers from ``low`` to before ``end``, each None where nothing says; where there is no integer, ``end`` may be 0."""

    low: int | None = None
    end: Dim = None


_ANY = IndexRange()


def reads_inside(op: Any, x: TensorInfo | None = None) -> bool:
    """Whether all indices of an op that takes, gathers or puts elements are proven to be inside; False proves nothing.

    Whatever symbols are, 0 among it. Of an index that counts from the end nothing is proven.

    Args:
        x: what is known of the first operand, where its type says less.
    """
    if isinstance(op, PackedTake):
        return _is_inside(op.indices, [op.n])
    if not isinstance(op, GatherElements | GatherND | IndexCopy | ScatterElements | Take):
        return False
    sizes = (x or TensorInfo.of(op.x)).shape
    if not isinstance(op, GatherND):
        return _is_inside(op.indices, [sizes[op.axis]])
    depth = TensorInfo.of(op.indices).shape[-1]
    return isinstance(depth, int) and _is_inside(op.indices, sizes[op.batch_dims : op.batch_dims + depth])


def _is_inside(indices: ir.Value, sizes: Sequence[Dim]) -> bool:
    found = index_range(indices)
    return found.low is not None and found.low >= 0 and all(found.end is not None and _is_at_most(found.end, n) for n in sizes)


def index_range(value: ir.Value) -> IndexRange:
    """Where the elements of a value lie, which is of integers."""
    return _range(value, _DEPTH)


def _range(value: ir.Value, depth: int) -> IndexRange:
    dtype = TensorInfo.of(value).dtype
    if not isinstance(dtype, ir.IntegerType) or isinstance(value.owner, ir.Block) or depth == 0:
        return _ANY
    known = number_of(value)
    if known is not None:
        return IndexRange(known, known + 1)
    found = _of_result(value.owner.opview, lambda operand: _range(operand, depth - 1))
    return found if _is_held(found, dtype) else _ANY


def _of_result(op: Any, of: Callable[[ir.Value], IndexRange]) -> IndexRange:
    """By that of its operands."""
    if isinstance(op, _MOVES):
        return of(op.operands[0])
    if isinstance(op, AsType):
        found = of(op.x)
        return _ANY if found.low is None or found.end is None else found  # what has no end may wrap
    if isinstance(op, Concat):
        return _either(of(op.lhs), of(op.rhs))
    if isinstance(op, Where):
        return _either(of(op.operands[1]), of(op.operands[2]))
    if isinstance(op, IndexCopy) or (isinstance(op, ScatterElements) and op.reduction == "update"):
        return _either(of(op.operands[0]), of(op.operands[2]), TensorInfo.of(op.result).shape)
    if isinstance(op, Clip):
        return IndexRange(None if op.min is None else int(op.min), None if op.max is None else int(op.max) + 1)
    if isinstance(op, ArgSort | ArgMax | ArgMin):
        return _of_positions(op)
    if isinstance(op, Arange):
        return _of_arange(op)
    rule = _ARITHMETIC.get(type(op))
    return _ANY if rule is None else rule(of(op.operands[0]), of(op.operands[1]))


def _of_positions(op: ArgSort | ArgMax | ArgMin) -> IndexRange:
    """Of no elements the position of the largest is 0."""
    if isinstance(op, ArgSort):
        return IndexRange(0, TensorInfo.of(op.result).shape[op.axis])
    size = TensorInfo.of(op.x).shape[op.axis]
    return IndexRange(0, size if isinstance(size, int) and size > 0 else None)


def _of_arange(op: Arange) -> IndexRange:
    (start,), (end,), (step,) = op.start, op.end, op.step
    forward = isinstance(step, int) and step > 0 and isinstance(start, int)
    return IndexRange(start, end) if forward else _ANY


# -- of two operands ---------------------------------------------------------------------------------------------------


def _either(one: IndexRange, other: IndexRange, sizes: Sequence[Dim] = ()) -> IndexRange:
    """What is in one of both; ``sizes`` are 1 or more where there is anything."""
    low = None if one.low is None or other.low is None else min(one.low, other.low)
    end = other.end if one.end == 1 and other.end in sizes else _larger(one.end, other.end)
    return IndexRange(low, end)


def _minimum(one: IndexRange, other: IndexRange) -> IndexRange:
    low = None if one.low is None or other.low is None else min(one.low, other.low)
    return IndexRange(low, _smaller(one.end, other.end))


def _maximum(one: IndexRange, other: IndexRange) -> IndexRange:
    lows = [n for n in (one.low, other.low) if n is not None]
    return IndexRange(max(lows, default=None), _larger(one.end, other.end))


def _sum(one: IndexRange, other: IndexRange) -> IndexRange:
    """Of what has no end, sums may wrap."""
    if one.low is None or one.end is None or other.low is None or other.end is None:
        return _ANY
    return IndexRange(one.low + other.low, one.end + other.end - 1)


def _product(one: IndexRange, other: IndexRange) -> IndexRange:
    for given, factor in ((one, _only(other)), (other, _only(one))):
        if factor is not None and factor > 0 and given.low is not None and given.end is not None:
            return IndexRange(given.low * factor, (given.end - 1) * factor + 1)
    return _ANY


def _quotient(one: IndexRange, other: IndexRange) -> IndexRange:
    divisor = _only(other)
    if divisor is None or divisor <= 0:
        return _ANY
    low, end = None if one.low is None else one.low // divisor, one.end
    if isinstance(end, int):
        return IndexRange(low, -(-end // divisor))
    whole = None if end is None else end // divisor
    return IndexRange(low, whole if whole is not None and whole * divisor == end else None)


def _remainder(one: IndexRange, other: IndexRange) -> IndexRange:
    divisor = _only(other)
    return IndexRange(0, divisor) if divisor is not None and divisor > 0 else _ANY


_ARITHMETIC: dict[type, Callable[[IndexRange, IndexRange], IndexRange]] = {
    Add: _sum,
    FloorDivide: _quotient,
    Maximum: _maximum,
    Minimum: _minimum,
    Mod: _remainder,
    Multiply: _product,
}


# -- ends --------------------------------------------------------------------------------------------------------------


def _only(given: IndexRange) -> int | None:
    """The one integer that is in a range."""
    return given.low if given.low is not None and given.end == given.low + 1 else None


def _larger(one: Dim, other: Dim) -> Dim:
    if one is None or other is None:
        return None
    return other if _is_at_most(one, other) else one if _is_at_most(other, one) else None


def _smaller(one: Dim, other: Dim) -> Dim:
    if one is None or other is None:
        return other if one is None else one
    return one if _is_at_most(one, other) else other


def _is_at_most(small: int | Expr, large: Dim) -> bool:
    """Whether it is for all symbols of 0 and more."""
    if large is None:
        return False
    difference = large - small
    if isinstance(difference, int):
        return difference >= 0
    return all(factor >= 0 and all(atom.isidentifier() for atom in monomial) for monomial, factor in difference.terms)


def _is_held(found: IndexRange, dtype: ir.IntegerType) -> bool:
    """Whether integers are those that were computed: none of them wrapped. A size is taken to be one of 64 bits."""
    (least, most), low, end = integer_range(dtype), found.low, found.end
    if isinstance(end, Expr):
        return dtype.width == _WIDEST and (low is None or low >= 0)
    if low is not None and low < max(-_LIMIT, least):
        return False
    return end is None or end - 1 <= min(_LIMIT, most)
