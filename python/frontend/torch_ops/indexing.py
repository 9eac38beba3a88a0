"""torch ops that pick parts of tensors by ranges or by index tensors."""

from __future__ import annotations

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean, normalize_axis
from ...dialect.symbolic import Dim, Expr
from ..emit import (
    agreed,
    broadcast,
    cast,
    concat,
    emit,
    expand,
    full,
    info_of,
    integer,
    multiply_all,
    permute,
    reshape,
    slice_axis,
    squeeze,
    unsqueeze,
)
from ..places import diagonal_places
from ..ranges import at_most
from ..slices import UncertainError, is_place
from ..slices import slice_bound as bound_inside
from ..torch_op import TorchOp, handles
from .creation import sequence, table
from .data_sizes import places_of, sliced_by_data


def slice_bound(op: TorchOp, value: Dim, size: Dim) -> Dim:
    """A slice bound of a program's dimension: :func:`..slices.slice_bound`, where torch says what sizes may be."""
    return bound_inside(value, size, op.values.ranges)


def _cut(op: TorchOp, x: ir.Value, axis: int, begin: Dim, end: Dim, stride: int = 1) -> ir.Value:
    size = info_of(x).shape[axis]
    start, stop = slice_bound(op, begin if begin is not None else 0, size), slice_bound(op, end, size)
    if stride < 1:
        raise RelaxError(f"expected a positive stride, got {stride}")
    if isinstance(start, int) and isinstance(stop, int):
        stop = max(start, stop)
    elif start is None or stop is None or not at_most(start - stop, 0, op.values.ranges):
        raise UncertainError(f"expected a slice that never ends before it begins, got {start} to {stop}")
    return slice_axis(x, axis, start, stop, stride)


@handles("aten.slice.Tensor")
def _slice(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    axis, stride = op.axis(1, info_of(x).rank), op.integer(4, "stride", 1)
    if op.is_from_data(2) or op.is_from_data(3):
        return sliced_by_data(op, x, axis, op.number_or_value(2), op.number_or_value(3), stride)
    try:
        return _cut(op, x, axis, op.number(2), op.number(3), stride)
    except UncertainError:
        return sliced_by_data(op, x, axis, op.number(2), op.number(3), stride)


@handles("aten.narrow")
def _narrow(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    return _cut(op, x, op.axis(1, info_of(x).rank), op.number(2), op.number(2) + op.number(3))


@handles("aten.select.int")
def _select(op: TorchOp) -> ir.Value:
    """A slice of one; where some size does not have the index, it is looked up, which is checked when the model runs."""
    x = op.tensor(0)
    axis = op.axis(1, info_of(x).rank)
    if op.is_from_data(2):
        return emit(ops.Take, x, op.value_in(2, integer()), axis=axis)
    size, index = info_of(x).shape[axis], op.number(2)
    if size is None:
        raise RelaxError("expected a dimension whose size is known or symbolic")
    ranges = op.values.ranges
    place = index + size if at_most(index, -1, ranges) else index
    if not is_place(place, size, ranges):
        return emit(ops.Take, x, full(index, integer()), axis=axis)
    return squeeze(slice_axis(x, axis, place, place + 1), axis)


@handles("aten.diagonal")
def _diagonal(op: TorchOp) -> ir.Value:
    """Every ``columns + 1``-th element of the two dimensions joined, which come last."""
    x, offset = op.tensor(0), op.integer(1, "offset", 0)
    rank = info_of(x).rank
    axes = [normalize_axis(op.integer(i, "axis", i - 2), rank) for i in (2, 3)]
    x = permute(x, [*(a for a in range(rank) if a not in axes), *axes])
    *batch, rows, columns = info_of(x).shape
    flat = reshape(x, (*batch, multiply_all([rows, columns])))
    if not isinstance(rows, int) or not isinstance(columns, int):
        return emit(ops.Take, flat, diagonal_places(columns, offset, op.info.shape[-1]), axis=rank - 2)
    count = min(rows + min(offset, 0), columns - max(offset, 0))
    if count <= 0:
        return full(0, op.dtype, (*batch, 0))
    begin, step = max(offset, 0) + max(-offset, 0) * columns, columns + 1
    return slice_axis(flat, rank - 2, begin, begin + (count - 1) * step + 1, step)


@handles("aten.unfold")
def _unfold(op: TorchOp) -> ir.Value:
    """Overlapping windows along a dimension; what is in a window comes last."""
    x, size, step = op.tensor(0), op.integer(2, "window"), op.integer(3, "step")
    x = x if info_of(x).rank else reshape(x, (1,))
    rank = info_of(x).rank
    axis = op.axis(1, rank)
    length = info_of(x).shape[axis]
    if length is None:
        raise RelaxError("expected windows of a dimension whose size is known or symbolic")
    count = (length - size) // step + 1
    begins, within = sequence(0, count * step, step, integer()), sequence(0, size, 1, integer())
    places = emit(ops.Add, unsqueeze(begins, 1), unsqueeze(within, 0))
    windows = permute(emit(ops.Take, x, places, axis=axis), [a for a in range(rank + 1) if a != axis + 1] + [axis + 1])
    return windows if op.info.rank == rank + 1 else reshape(windows, op.info.shape)


@handles("aten.diff")
def _diff(op: TorchOp) -> ir.Value:
    """Each element less the one before it, ``n`` times."""
    x = op.tensor(0)
    axis = op.axis(2, info_of(x).rank)
    x = concat([cast(p, op.dtype) for p in (op.optional(3), x, op.optional(4)) if p is not None], axis)
    for _ in range(op.integer(1, "number of differences", 1)):
        size = info_of(x).shape[axis]
        if size is None:
            raise RelaxError("expected a dimension whose size is known or symbolic")
        later, earlier = slice_axis(x, axis, 1, size), slice_axis(x, axis, 0, size - 1)
        x = emit(ops.NotEqual if op.dtype == boolean() else ops.Subtract, later, earlier)
    return x


@handles("aten.copy")
def _copy(op: TorchOp) -> ir.Value:
    return expand(cast(op.tensor(1), op.dtype), info_of(op.tensor(0)).shape)


@handles("aten.embedding")
def _embedding(op: TorchOp) -> ir.Value:
    return emit(ops.Take, op.tensor(0), op.tensor(1), axis=0, wrap_negative_indices=False)


@handles("aten.index_select")
def _index_select(op: TorchOp) -> ir.Value:
    x, indices = op.tensor(0), op.tensor(2)
    if not info_of(x).rank:
        return reshape(emit(ops.Take, reshape(x, (1,)), reshape(indices, (1,)), axis=0, wrap_negative_indices=False), ())
    return emit(ops.Take, x, indices, axis=op.axis(1, info_of(x).rank), wrap_negative_indices=False)


@handles("aten.gather")
def _gather(op: TorchOp) -> ir.Value:
    """torch lets the indices be smaller than the operand in the other dimensions; ours read the same prefix."""
    x, indices = op.tensor(0), op.tensor(2)
    axis = op.axis(1, info_of(x).rank)
    for i, size in enumerate(info_of(indices).shape):
        if i != axis and size != info_of(x).shape[i]:
            x = slice_axis(x, i, 0, size)
    return emit(ops.GatherElements, x, indices, axis=axis, wrap_negative_indices=False)


@handles("aten.index.Tensor", "aten._unsafe_index.Tensor")
def _index(op: TorchOp) -> ir.Value:
    x, indices = op.tensor(0), indices_of(op, 1)
    if len(indices) == 1:
        ((axis, value),) = indices.items()
        return emit(ops.Take, x, value, axis=axis)
    return _index_several(x, indices)


def indices_of(op: TorchOp, operand: int) -> dict[int, ir.Value]:
    """Indices by dimension; a mask gives those of each of its dimensions, of the places where it is true."""
    found: list[ir.Value | None] = []
    for value in op.optionals(operand):
        if value is not None and is_mask(value) and not info_of(value).rank:
            raise RelaxError("expected a mask of at least one dimension")
        found += places_of(op, value) if value is not None and is_mask(value) else [value]
    return {axis: value for axis, value in enumerate(found) if value is not None}


def is_mask(value: ir.Value) -> bool:
    """Whether an index says of each place whether it is meant; bytes do so, too."""
    return info_of(value).dtype in (boolean(), ir.IntegerType.get_unsigned(8))


def _index_several(x: ir.Value, indices: dict[int, ir.Value]) -> ir.Value:
    """Indexed dimensions come first; when they were neighbours, the indices' dimensions move back to where those were.

    Source: https://numpy.org/doc/stable/user/basics.indexing.html#combining-advanced-and-basic-indexing
    """
    shape = info_of(x).shape
    axes = list(indices)
    others = [a for a in range(len(shape)) if a not in indices]
    parts = [from_start(cast(v, integer()), shape[a]) for a, v in indices.items()]
    parts = broadcast(agreed(*parts))
    rank = info_of(parts[0]).rank
    stacked = concat([unsqueeze(p, rank) for p in parts], rank)
    result = emit(ops.GatherND, permute(x, [*axes, *others]), stacked)
    if axes != list(range(axes[0], axes[0] + len(axes))) or not axes[0]:
        return result
    before = list(range(rank, rank + axes[0]))
    return permute(result, [*before, *range(rank), *range(rank + axes[0], rank + len(others))])


def from_start(index: ir.Value, size: Dim) -> ir.Value:
    """Indices without negative ones, which torch counts from the end. Counting upwards from 0 needs no check."""
    if _never_negative(index):
        return index
    if size is None:
        raise RelaxError("expected to index a dimension whose size is known or symbolic")
    negative = emit(ops.Less, index, full(0, integer()))
    return emit(ops.Where, negative, emit(ops.Add, index, full(size, integer())), index)


def _never_negative(value: ir.Value) -> bool:
    owner = None if isinstance(value, ir.BlockArgument) else value.owner
    if owner is None:
        return False
    if owner.name == "relax.arange":
        return all(isinstance(d, Expr) or d >= 0 for d in owner.opview.start) and all(d > 0 for d in owner.opview.step)
    if owner.name == "relax.full":
        return owner.opview.value >= 0
    if owner.name in ("relax.expand_dims", "relax.reshape", "relax.broadcast_to", "relax.permute_dims", "relax.add"):
        return all(_never_negative(v) for v in owner.operands)
    return False


@handles("aten.one_hot")
def _one_hot(op: TorchOp) -> ir.Value:
    x, classes = op.tensor(0), op.integer(1, "number of classes")
    if classes < 0:
        raise RelaxError("expected a given number of classes")
    rank = info_of(x).rank
    dtype = info_of(x).dtype
    return cast(emit(ops.Equal, unsqueeze(x, rank), sequence(0, classes, 1, dtype)), op.dtype)


_NEAREST = [f"aten.{kind}{n}d{form}" for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)
            for form in ("", ".vec")]  # fmt: skip


@handles(*_NEAREST)
def _upsample(op: TorchOp) -> ir.Value:
    """A whole factor repeats each row and column; another one picks row ``floor(i * scale)``, or ``floor((i + 0.5) * scale)``.

    Source: https://github.com/pytorch/pytorch, aten/src/ATen/native/UpSample.h, nearest_idx and nearest_exact_idx.
    """
    x, shift = op.tensor(0), 0.5 if "_exact" in op.key else 0.0
    axes = range(2, info_of(x).rank)
    scales = op.number(2) or [None] * len(axes) if op.key.endswith("vec") else [op.number(axis) for axis in axes]
    for axis, scale in zip(axes, scales, strict=True):
        wanted = op.info.shape[axis]
        if isinstance(wanted, Expr) and not wanted.names <= op.values.defined:  # as torch rounds it, which no expression says
            raise RelaxError(f"expected to resize a symbolic dimension by a sum of few powers of 2, as 1.25, got {scale}")
        x = _enlarged(x, axis, wanted, scale, shift)
    return x


#: From 41 on, ``floor(i * f32(1 / factor))`` is not ``i // factor`` for some i. Up to here it is, for 2 ** 21 of them.
_MOST_REPEATS = 40


def _enlarged(x: ir.Value, axis: int, wanted: Dim, scale: float | None, shift: float) -> ir.Value:
    size = info_of(x).shape[axis]
    if wanted == size:
        return x
    factor = _whole_factor(size, wanted, scale)
    if factor is not None:
        return emit(ops.Repeat, x, repeats=factor, axis=axis)
    if size is None or wanted is None:
        raise RelaxError(f"expected to resize from and to known or symbolic sizes, got {size} to {wanted}")
    if not isinstance(size, int) or not isinstance(wanted, int):
        return emit(ops.Take, x, _rows(size, wanted, scale, shift), axis=axis)
    step = np.float32(size / wanted if scale is None else 1 / scale)
    rows = np.minimum(np.floor((np.arange(wanted, dtype=np.float32) + np.float32(shift)) * step).astype(np.int64), size - 1)
    return emit(ops.Take, x, table(rows, integer()), axis=axis)


def _rows(size: int | Expr, wanted: int | Expr, scale: float | None, shift: float) -> ir.Value:
    """Which row each one is a copy of, where a call tells the sizes."""
    single = ir.F32Type.get()
    step = full(1 / scale, single) if scale is not None else emit(ops.Divide, full(size, single), full(wanted, single))
    places = emit(ops.Add, sequence(0, wanted, 1, single), full(shift, single))
    rows = emit(ops.Floor, emit(ops.Multiply, places, step))
    last = emit(ops.Subtract, full(size, integer()), full(1, integer()))
    return emit(ops.Minimum, cast(rows, integer()), last)


def _whole_factor(size: Dim, wanted: Dim, scale: float | None) -> int | None:
    """How often each row is repeated; None when it is no whole number, or torch computes rows by another scale: not for 2."""
    if size is None or wanted is None or size == 0:
        return None
    factor = wanted // size
    if not isinstance(factor, int) or size * factor != wanted:
        return None
    is_exact = factor == 2 or (0 < factor <= _MOST_REPEATS and scale in (None, factor))
    return factor if is_exact else None
