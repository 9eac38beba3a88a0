"""Which dimensions of an op's operands and results run along each other, as its class declares it: the op in, ties out.

Where dimensions are tied, an op on a part of them gives that part of the result: equal indices, or a number of them for each of
the other's. So a function can be run on one piece after another. A dimension that no tie has is worked on as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import Any, NamedTuple, cast

from .bindings import ir
from .inference import normalize_axes, normalize_axis
from .struct_info import TensorInfo

__all__ = [
    "BESIDE_AXES",
    "BESIDE_AXIS",
    "BESIDE_TABLE",
    "BROADCAST",
    "EVERYWHERE",
    "JOINED",
    "MATRICES",
    "PACKED",
    "PADDED",
    "PERMUTED",
    "PRODUCT",
    "QUANTIZED",
    "REDUCED",
    "REGROUPED",
    "REPEATED",
    "SQUEEZED",
    "TAKEN",
    "TILED",
    "WORDED",
    "Tie",
    "TiedDim",
    "Ties",
]  # fmt: skip


class TiedDim(NamedTuple):
    """A dimension of a value, and how many of its indices there are where another one of the tie has its own count."""

    value: ir.Value
    axis: int
    ratio: Fraction = Fraction(1)


Tie = tuple[TiedDim, ...]
Ties = Callable[[Any], list[Tie]]


def _broadcast(op: Any) -> list[Tie]:
    result = op.results[0]
    return [
        (TiedDim(result, axis), *_beside(op.operands, axis - TensorInfo.of(result).rank, size))
        for axis, size in enumerate(TensorInfo.of(result).shape)
    ]


def _beside(values: Sequence[ir.Value], place: int, size: object) -> Iterator[TiedDim]:
    """A dimension, counted from the end, of the values that have it and are not broadcast along it."""
    for value in values:
        shape = TensorInfo.of(value).shape
        if -place <= len(shape) and (shape[place] != 1 or size == 1):
            yield TiedDim(value, place + len(shape))


def _permuted(op: Any) -> list[Tie]:
    rank = TensorInfo.of(op.x).rank
    axes = list(range(rank))[::-1] if op.axes is None else [normalize_axis(a, rank) for a in op.axes]
    return [(TiedDim(op.results[0], i), TiedDim(op.x, axis)) for i, axis in enumerate(axes)]


def _regrouped(op: Any) -> list[Tie]:
    """Dimensions that others are made of, or that fall into others: the first of each group is what a part is of."""
    before, after = (TensorInfo.of(v).shape for v in (op.x, op.results[0]))
    if not all(isinstance(d, int) and d for d in (*before, *after)):
        return []
    one, other = (list(_first_of_groups(shape, _borders(before) & _borders(after))) for shape in (before, after))
    return [
        (TiedDim(op.x, i, Fraction(1, rest)), TiedDim(op.results[0], j, Fraction(1, left)))
        for (i, rest), (j, left) in zip(one, other, strict=True)
    ]


def _squeezed(op: Any) -> list[Tie]:
    """Where axes are listed: else a piece of one index would lose its dimension."""
    return [] if op.axis is None else _regrouped(op)


def _borders(shape: Sequence[Any]) -> set[int]:
    return set(accumulate(shape, mul, initial=1))


def _first_of_groups(shape: Sequence[Any], borders: set[int]) -> Iterator[tuple[int, int]]:
    """Of the dimensions between two borders the first that is not one, and the product of those behind it."""
    done, first = 1, None
    for axis, size in enumerate(shape):
        done *= size
        if size != 1 and first is None:
            first = axis
        if first is not None and done in borders:
            yield first, math.prod(shape[first + 1 : axis + 1])
            first = None


def _beside_axes(op: Any, axes: Sequence[int]) -> list[Tie]:
    """All dimensions but these, which operand and results have alike."""
    values = (op.operands[0], *op.results)
    return [tuple(TiedDim(v, i) for v in values) for i in range(TensorInfo.of(values[0]).rank) if i not in axes]


def _beside_axis(op: Any) -> list[Tie]:
    return _beside_axes(op, [normalize_axis(op.axis, TensorInfo.of(op.operands[0]).rank)])


def _worded(op: Any) -> list[Tie]:
    """Of packed weights panels, which have columns and words of one size."""
    return _beside_axis(op) if op.layout is None else [(TiedDim(op.x, 0), TiedDim(op.results[0], 0))]


def _beside_listed(op: Any) -> list[Tie]:
    return _beside_axes(op, normalize_axes(op.axes, TensorInfo.of(op.operands[0]).rank))


def _beside_table(op: Any) -> list[Tie]:
    return [(TiedDim(op.codes, i), TiedDim(op.results[0], i)) for i in range(TensorInfo.of(op.codes).rank)]


def _joined(op: Any) -> list[Tie]:
    rank = TensorInfo.of(op.results[0]).rank
    axis, values = normalize_axis(op.axis, rank), (*op.operands, op.results[0])
    return [tuple(TiedDim(v, i) for v in values) for i in range(rank) if i != axis]


def _reduced(op: Any) -> list[Tie]:
    rank = TensorInfo.of(op.operands[0]).rank
    gone = list(range(rank)) if op.axis is None else normalize_axes(op.axis, rank)
    kept = [i for i in range(rank) if i not in gone]
    places = kept if op.keepdims else range(len(kept))
    return [(TiedDim(op.operands[0], i), TiedDim(op.results[0], j)) for i, j in zip(kept, places, strict=True)]


def _taken(op: Any) -> list[Tie]:
    x, indices, result = op.x, op.indices, op.results[0]
    rank, count = TensorInfo.of(x).rank, TensorInfo.of(indices).rank
    axis = normalize_axis(op.axis, rank)
    beside = [(TiedDim(x, i), TiedDim(result, i if i < axis else i + count - 1)) for i in range(rank) if i != axis]
    return [*beside, *((TiedDim(indices, i), TiedDim(result, axis + i)) for i in range(count))]


def _product(op: Any) -> list[Tie]:
    """Rows of the left-hand side, columns of the right-hand side, and matrices side by side."""
    (x, left), (y, right), result = *((v, TensorInfo.of(v).rank) for v in op.operands), op.results[0]
    rank = TensorInfo.of(result).rank
    rows, columns = int(left > 1), int(right > 1)
    found = [(TiedDim(x, left - 2), TiedDim(result, rank - 1 - columns))] if rows else []
    found += [(TiedDim(y, right - 1), TiedDim(result, rank - 1))] if columns else []
    batch = rank - rows - columns
    sizes = TensorInfo.of(result).shape
    for axis in range(batch):
        place = axis - batch
        beside = [(v, place + r - 2) for v, r in ((x, left), (y, right)) if place + r - 2 >= 0]
        tied = [TiedDim(v, i) for v, i in beside if TensorInfo.of(v).shape[i] != 1 or sizes[axis] == 1]
        found.append((TiedDim(result, axis), *tied))  # pyright: ignore[reportArgumentType]
    return found


def _repeated(op: Any) -> list[Tie]:
    """Also along the axis, where each index of the operand is several of the result."""
    axis = normalize_axis(op.axis, TensorInfo.of(op.x).rank)
    along = [(TiedDim(op.x, axis), TiedDim(op.results[0], axis, Fraction(op.repeats)))] if op.repeats else []
    return [*_beside_axis(op), *along]


def _tiled(op: Any) -> list[Tie]:
    return _beside_axes(op, [i for i, count in enumerate(op.repeats) if count != 1])


def _padded(op: Any) -> list[Tie]:
    return _beside_axes(op, [i for i, pads in enumerate(zip(op.before, op.after, strict=True)) if any(pads)])


def _matrices(op: Any) -> list[Tie]:
    rank = TensorInfo.of(op.operands[0]).rank
    return _beside_axes(op, [rank - 2, rank - 1])


def _everywhere(op: Any) -> list[Tie]:
    return [(TiedDim(op.results[0], i),) for i in range(TensorInfo.of(op.results[0]).rank)]


def _packed(op: Any) -> list[Tie]:
    """A panel is as many columns as a tile has."""
    return [(TiedDim(op.results[0], 0), TiedDim(op.x, 1, Fraction(op.layout.tile)))]


def _quantized(op: Any) -> list[Tie]:
    """Scales and zero points have an element for each index of an axis, or for each block."""
    x, parameters = op.operands[0], list(op.operands)[1:]
    shape, axis = TensorInfo.of(x).shape, op.axis
    if not all(isinstance(d, int) and d for v in op.operands for d in TensorInfo.of(v).shape):
        return []
    return [
        (TiedDim(x, i), TiedDim(op.results[0], i), *(t for p in parameters for t in _parameter(p, shape, axis, i)))
        for i in range(len(shape))
    ]


def _parameter(value: ir.Value, of: Sequence[Any], axis: int, i: int) -> Iterator[TiedDim]:
    shape = cast("tuple[int, ...]", TensorInfo.of(value).shape)
    if len(shape) == len(of) and (shape[i] > 1 or of[i] == 1):
        yield TiedDim(value, i, Fraction(shape[i], of[i]))
    elif len(shape) == 1 < len(of) and i == normalize_axis(axis, len(of)):
        yield TiedDim(value, 0)


#: Element by element, operands broadcast.
BROADCAST: Ties = _broadcast
#: By ``axes``.
PERMUTED: Ties = _permuted
#: The same elements in row-major order.
REGROUPED: Ties = _regrouped
#: The same, without dimensions of one.
SQUEEZED: Ties = _squeezed
#: All but ``axis``, of the first operand and all results.
BESIDE_AXIS: Ties = _beside_axis
#: All but ``axis``, along which integers are in words; of a packed weight its panels alone.
WORDED: Ties = _worded
#: All but ``axes``.
BESIDE_AXES: Ties = _beside_listed
#: All of the first operand; the second one is a table for all.
BESIDE_TABLE: Ties = _beside_table
#: All but ``axis``, of all operands.
JOINED: Ties = _joined
#: All but those that are summed over.
REDUCED: Ties = _reduced
#: All that are not looked up, and those of the indices.
TAKEN: Ties = _taken
#: Rows of the one operand, columns of the other, and dimensions before these.
PRODUCT: Ties = _product
#: All, also ``axis``, along which elements are repeated.
REPEATED: Ties = _repeated
#: All that are not repeated.
TILED: Ties = _tiled
#: All that nothing is added to.
PADDED: Ties = _padded
#: All but the last two.
MATRICES: Ties = _matrices
#: All of the result, which is the same everywhere.
EVERYWHERE: Ties = _everywhere
#: Panels of columns.
PACKED: Ties = _packed
#: Each with its scale and zero point.
QUANTIZED: Ties = _quantized
