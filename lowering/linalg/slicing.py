"""Parts of tensors in place: ``tensor.extract_slice`` and ``tensor.insert_slice``, which become views of a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir
from .builder import DYNAMIC, LinalgBuilder, Size, tensor_type, value_type
from .scalar import emit

__all__ = ["extract_slice", "insert_slice"]


def extract_slice(
    value: ir.Value, offsets: Sequence[Size], sizes: Sequence[Size], kept: int | Sequence[int]
) -> ir.Value:  # fmt: skip
    """The part of those sizes; the result has the ``kept`` dimensions, or so many last ones. The others are of size one."""
    axes = range(len(sizes) - kept, len(sizes)) if isinstance(kept, int) else kept
    type_ = tensor_type([sizes[axis] for axis in axes], value_type(value).element_type)
    operands, attributes = _ranges(offsets, sizes)
    return emit("tensor.extract_slice", type_, value, *operands, **attributes, operandSegmentSizes=_segments(1, offsets, sizes))


def insert_slice(
    b: LinalgBuilder,
    value: ir.Value,
    into: ir.Value,
    offsets: Sequence[Size],
    sizes: Sequence[Size],
    kept: Sequence[int] | None = None,
) -> ir.Value:
    """``into`` with the part of those sizes replaced by ``value``, which has the ``kept`` dimensions, or the last ones.

    Those that it lacks are of size one.
    """
    axes = range(len(sizes) - value_type(value).rank, len(sizes)) if kept is None else kept
    value = b.cast(value, tensor_type([sizes[axis] for axis in axes], value_type(value).element_type))
    operands, attributes = _ranges(offsets, sizes)
    segments = _segments(2, offsets, sizes)
    return emit("tensor.insert_slice", into.type, value, into, *operands, **attributes, operandSegmentSizes=segments)


def _ranges(offsets: Sequence[Size], sizes: Sequence[Size]) -> tuple[list[ir.Value], dict[str, ir.Attribute]]:
    """The operands and attributes that say where a part is, with unit strides."""
    dynamic = [s for group in (offsets, sizes) for s in group if not isinstance(s, int)]
    static = [[s if isinstance(s, int) else DYNAMIC for s in group] for group in (offsets, sizes)]
    return dynamic, {
        "static_offsets": ir.DenseI64ArrayAttr.get(static[0]),
        "static_sizes": ir.DenseI64ArrayAttr.get(static[1]),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
    }


def _segments(tensors: int, offsets: Sequence[Size], sizes: Sequence[Size]) -> ir.Attribute:
    counts = [sum(not isinstance(s, int) for s in group) for group in (offsets, sizes)]
    return ir.DenseI32ArrayAttr.get([*[1] * tensors, *counts, 0])
