"""Keys and values as tensors, of which Hopper's tensor memory accelerator copies boxes."""

from __future__ import annotations

from ....kernels.emit.linear_index import ZERO, Size
from ....kernels.structure.attention import AttentionOperand, MatchedAttention
from ..products.tensor_maps import MOST_DIMENSIONS, MappedFactor

__all__ = ["map_keys", "map_values"]


def map_keys(attention: MatchedAttention) -> MappedFactor | None:
    """All keys; None where a descriptor cannot say where they are."""
    return _mapped(attention, attention.key, attention.depth)


def map_values(attention: MatchedAttention) -> MappedFactor | None:
    """All values; None where a descriptor cannot say where they are."""
    return _mapped(attention, attention.value, attention.width)


def _mapped(attention: MatchedAttention, operand: AttentionOperand, elements: int | None) -> MappedFactor | None:
    dims, extents, offset = attention.dims, attention.extents, operand.offset
    if elements is None or offset.floors() or offset.constant != ZERO or offset.factor(dims.element).static != 1:
        return None
    others = tuple(d for d in (dims.group, *range(dims.batch)) if offset.factor(d) != ZERO)
    if len(others) > MOST_DIMENSIONS - 2 or offset.dims() - {dims.element, dims.key, *others}:
        return None
    sizes = Size.of(elements), *(extents[d] for d in (dims.key, *others))
    return MappedFactor(operand, True, sizes, tuple(offset.factor(d) for d in (dims.key, *others)), others)
