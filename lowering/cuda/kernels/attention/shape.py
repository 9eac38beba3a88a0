"""What a plan is made from: sizes, element types and places of attention's operands as plain data, without IR."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ....kernels.emit.linear_index import Size
from ....kernels.structure.attention import AttentionOperand, MatchedAttention
from ..device_memory import element_bytes_of, multiple_of
from .key_maps import map_keys, map_values

__all__ = ["BOOLEAN", "PIECE", "AttentionShape", "describe"]

#: Bytes that are copied at once, at a multiple of as many.
PIECE = 16
#: The type of a mask that keeps what is true.
BOOLEAN = "i8"

_ELEMENTS = ("bf16", "f16", "f32")
_MASKS = (BOOLEAN, *_ELEMENTS)
# Elements of a key: what the sums of 16 rows leave registers for.
_MOST = 256
_STEP = 8


@dataclass(frozen=True)
class AttentionShape:
    """Sizes are None where they are known at run time only.

    Attributes:
        element: of query, key and value.
        depth: elements of a query and of a key.
        width: elements of a value.
        rows: of a head of queries.
        shared: heads of queries that share keys.
        pairs: heads of keys, of all batches.
        keys: of a head.
        causal: whether row i sees the keys up to i only.
        mask: the type of the mask's elements, if there is one.
        is_mapped: whether keys and values are tensors that descriptors can say (:mod:`.key_maps`).
    """

    element: str
    depth: int
    width: int
    rows: int | None
    shared: int | None
    pairs: int | None
    keys: int | None
    causal: bool
    mask: str | None
    is_mapped: bool = False

    @property
    def together(self) -> int | None:
        """Rows of all heads of queries that share keys."""
        return None if self.rows is None or self.shared is None else self.rows * self.shared


def describe(attention: MatchedAttention) -> AttentionShape | None:
    """The shape of attention that tensor cores compute, None for other types, sizes, and places in memory."""
    a, dims = attention, attention.dims
    element, mask = str(a.query.element), None if a.mask is None else str(a.mask.element)
    if element not in _ELEMENTS or {str(o.element) for o in (a.key, a.value, a.result)} != {element}:
        return None
    if (mask is not None and mask not in _MASKS) or not (_is_tiled(a.depth) and _is_tiled(a.width)):
        return None
    if not all(_is_copied(o, dims.element) for o in (a.query, a.key, a.value, a.result)):
        return None
    assert a.depth is not None
    assert a.width is not None
    heads, rows, groups, keys = (a.extents[d].static for d in (dims.head, dims.row, dims.group, dims.key))
    shared = None if heads is None or not groups else heads // groups
    pairs = _product(a.extents[d] for d in (*range(dims.batch), dims.group))
    is_mapped = map_keys(a) is not None and map_values(a) is not None
    return AttentionShape(element, a.depth, a.width, rows, shared, pairs, keys, a.causal, mask, is_mapped)


def _is_tiled(size: int | None) -> bool:
    return size is not None and size % _STEP == 0 and 0 < size <= _MOST


def _is_copied(operand: AttentionOperand, element: int) -> bool:
    """Whether elements of a row are neighbours in memory, and rows begin at multiples of :data:`PIECE` bytes."""
    count = PIECE // element_bytes_of(operand.element)
    multiples = {element: count}
    return operand.offset.lanes(element, count, multiples).contiguous and multiple_of(operand.offset, multiples) % count == 0


def _product(sizes: Iterable[Size]) -> int | None:
    total = 1
    for size in sizes:
        if size.static is None:
            return None
        total *= size.static
    return total
