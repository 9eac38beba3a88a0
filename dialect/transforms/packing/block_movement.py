"""How parameters of blocks of a tensor move when the tensor does: for each op that moves data, what it does to them.

Parameters are a tensor of the moved one's rank whose dimensions divide its own: one element per block, as the scale of a
``relax.dequantize`` of weights in groups. A dimension of 1 is one block. Parameters may also be scalars: those never move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...bindings import ir
from ...inference import normalize_axes, normalize_axis
from ...op import EffectOp, attrs_of
from ...ops import (
    ExpandDims,
    Flip,
    PackWeight,
    PermuteDims,
    Repeat,
    Reshape,
    Split,
    Squeeze,
    StridedSlice,
    Take,
)
from ...struct_info import TensorInfo
from ...symbolic import Dim, same
from ..emit import given_attr

__all__ = ["MOVES", "per_index", "reshaped"]

Emit = Callable[[ir.Value], list[ir.Value]]
"""Emits what moves parameters of a known shape, at the insertion point; gives those of each result."""

Move = Callable[[Any, list[Dim]], Emit | None]
"""How to move parameters of a shape as an op moves its operand, None when blocks would not stay blocks; emits nothing."""


def reshaped(value: ir.Value, shape: Sequence[Dim]) -> ir.Value:
    """The value under another shape."""
    info = TensorInfo.of(value)
    if list(info.shape) == list(shape):
        return value
    return Reshape.create(value, result_types=[info.with_(shape=list(shape)).type]).result


def per_index(blocks: ir.Value, axis: int, size: Dim) -> ir.Value:
    """Parameters with one element per index of an axis of that size."""
    count = TensorInfo.of(blocks).shape[axis]
    if same(count, size):
        return blocks
    assert isinstance(count, int)
    assert isinstance(size, int)
    return Repeat.create(blocks, repeats=size // count, axis=axis).result


def _sizes(op: Any) -> list[Dim]:
    """The shape of the tensor that is moved."""
    return list(TensorInfo.of(op.operands[0]).shape)


def _permute(op: PermuteDims, counts: list[Dim]) -> Emit:
    return lambda blocks: [PermuteDims.create(blocks, axes=op.axes).result]


def _expand(op: ExpandDims, counts: list[Dim]) -> Emit:
    return lambda blocks: [ExpandDims.create(blocks, axis=op.axis).result]


def _squeeze(op: Squeeze, counts: list[Dim]) -> Emit:
    sizes = _sizes(op)
    axes = [i for i, d in enumerate(sizes) if d == 1] if op.axis is None else normalize_axes(op.axis, len(sizes))
    return lambda blocks: [Squeeze.create(blocks, axis=axes).result if axes else blocks]


def _flip(op: Flip, counts: list[Dim]) -> Emit:
    return lambda blocks: [Flip.create(blocks, axis=op.axis).result]


def _reshape(op: Reshape, counts: list[Dim]) -> Emit | None:
    sizes, after = _sizes(op), list(TensorInfo.of(op.results[0]).shape)
    if not all(isinstance(d, int) and d for d in (*sizes, *counts, *after)):
        return None
    shape = _reblocked(sizes, counts, after)  # pyright: ignore[reportArgumentType]
    return None if shape is None else lambda blocks: [reshaped(blocks, shape)]


def _reblocked(sizes: list[int], counts: list[int], after: list[int]) -> list[int] | None:
    """The parameters' shape after a reshape, None when blocks do not stay blocks."""
    found: list[int] = []
    begin = 0
    for width, group in _equal_groups(sizes, after):
        block = _flat_block(sizes[begin : begin + width], counts[begin : begin + width])
        parts = None if block is None else _split_block(block, group)
        if parts is None:
            return None
        found += parts
        begin += width
    return found


def _equal_groups(before: list[int], after: list[int]) -> list[tuple[int, list[int]]]:
    """Neighbouring dimensions that hold the same elements before and after: how many, and which they become."""
    groups: list[tuple[int, list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        first, last = i, j
        i, j = min(i + 1, len(before)), min(j + 1, len(after))
        while prod(before[first:i]) != prod(after[last:j]):
            if prod(before[first:i]) < prod(after[last:j]):
                i += 1
            else:
                j += 1
        groups.append((i - first, after[last:j]))
    return groups


def _flat_block(sizes: list[int], counts: list[int]) -> int | None:
    """How many elements in row-major order share a parameter; None when they are not next to each other."""
    block, whole = 1, True
    for size, count in zip(reversed(sizes), reversed(counts), strict=True):
        if whole:
            block, whole = block * (size // count), count == 1
        elif size != count:
            return None
    return block


def _split_block(block: int, sizes: list[int]) -> list[int] | None:
    """The parameters' dimensions when every ``block`` elements in row-major order share one."""
    found: list[int] = []
    for size in reversed(sizes):
        if block % size and size % block:
            return None
        found.append(max(1, size // block))
        block = max(1, block // size)
    return found[::-1] if block == 1 else None


def _slice(op: StridedSlice, counts: list[Dim]) -> Emit | None:
    sizes, attrs = _sizes(op), attrs_of(op)
    kept: list[tuple[int, Any, Any, int]] = []
    steps = attrs["strides"] or [1] * len(attrs["axes"])
    for axis, begin, end, step in zip(attrs["axes"], attrs["begin"], attrs["end"], steps, strict=True):
        axis = normalize_axis(axis, len(sizes))
        if same(counts[axis], sizes[axis]):
            kept.append((axis, begin, end, step))
        elif counts[axis] != 1:
            bounds = _block_bounds(sizes[axis], counts[axis], begin, end, step)
            if bounds is None:
                return None
            kept.append((axis, *bounds, 1))
    if not kept:
        return lambda blocks: [blocks]
    axes, begins, ends, strides = (list(part) for part in zip(*kept, strict=True))
    return lambda blocks: [StridedSlice.create(blocks, axes=axes, begin=begins, end=ends, strides=strides).result]


def _block_bounds(size: Dim, count: Dim, begin: object, end: object, step: int) -> tuple[int, int] | None:
    """A slice of whole blocks, counted in blocks."""
    if not isinstance(size, int) or not isinstance(count, int) or not isinstance(begin, int) or not isinstance(end, int):
        return None
    first, last, _ = slice(begin, end).indices(size)
    block = size // count
    if step != 1 or first % block or last % block or last <= first:
        return None
    return first // block, last // block


def _split(op: Split, counts: list[Dim]) -> Emit | None:
    axis, sections = normalize_axis(op.axis, len(counts)), op.sections
    count = counts[axis]
    if count == 1:
        return lambda blocks: [blocks] * sections
    if not isinstance(count, int) or count % sections:
        return None
    return lambda blocks: list(Split.create(blocks, sections=sections, axis=axis, result_types=_parts(op, blocks)).results)


def _parts(op: Split, blocks: ir.Value) -> list[ir.Type]:
    info, axis = TensorInfo.of(blocks), normalize_axis(op.axis, len(_sizes(op)))
    shape = [d // op.sections if i == axis and d is not None else d for i, d in enumerate(info.shape)]
    return [info.with_(shape=shape).type] * op.sections


def _take(op: Take, counts: list[Dim]) -> Emit | None:
    axis = normalize_axis(op.axis, len(counts))
    if counts[axis] == 1:
        ones = [1] * TensorInfo.of(op.indices).rank
        return lambda blocks: [reshaped(blocks, [*counts[:axis], *ones, *counts[axis + 1 :]])]
    if not same(counts[axis], _sizes(op)[axis]):
        return None
    return lambda blocks: [
        Take.create(blocks, op.indices, axis=axis, wrap_negative_indices=given_attr(op, "wrap_negative_indices")).result
    ]


def _pack(op: PackWeight, counts: list[Dim]) -> Emit | None:
    columns = _sizes(op)[1]
    rows, count = counts
    if op.layout.rows != 1:
        return None
    if count == 1:
        return lambda blocks: [reshaped(blocks, [1, rows, 1])]
    if not same(count, columns) and not (isinstance(count, int) and isinstance(columns, int)):
        return None
    return lambda blocks: [PackWeight.create(per_index(blocks, 1, columns), layout=op.layout).result]


#: By the op that moves the tensor.
MOVES: dict[type[EffectOp], Move] = {
    PermuteDims: _permute,
    ExpandDims: _expand,
    Squeeze: _squeeze,
    Flip: _flip,
    Reshape: _reshape,
    StridedSlice: _slice,
    Split: _split,
    Take: _take,
    PackWeight: _pack,
}
