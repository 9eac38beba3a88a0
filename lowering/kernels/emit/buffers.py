"""Memrefs as flat arrays whose sizes are numbers or symbols: where each element is, without any code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from .linear_index import ZERO, Linear, Size, Symbol

__all__ = ["Buffer", "Buffers", "row_major"]

_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()


@dataclass(frozen=True)
class Buffer:
    """A memref as a flat array of its elements.

    Floats of 16 bits are in memory as integers: on a processor without them LLVM would take bf16 through f32 to gather, mask or
    shuffle it, and call functions to convert.
    """

    flat: ir.Value
    element: ir.Type
    stored: ir.Type
    strides: tuple[Size, ...]
    offset: Size

    def linear(self, indices: Sequence[Linear]) -> Linear:
        """The offset of an element."""
        total = Linear.of(self.offset)
        for index, stride in zip(indices, self.strides, strict=True):
            total += index.scaled(stride)
        return total


class Buffers:
    """The buffers of one kernel, whose operation is at a location.

    Nothing is built for them: :class:`.memory.Memory` is one that builds what code needs.
    """

    def __init__(self, location: ir.Location):
        self.location = location
        self._buffers: dict[tuple[ir.Value, tuple[Size, ...]], Buffer] = {}
        self._owners = 0

    def extent(self, value: ir.Value, position: int, symbol: Symbol) -> Size:
        """Dimension ``position`` of a memref: static, or the symbol, bound to it."""
        kind = ir.MemRefType(value.type)
        if not kind.is_dynamic_dim(position):
            return Size.of(kind.get_dim_size(position))
        self._bind(symbol, value, position)
        return Size.symbol(symbol)

    def next_owner(self) -> int:
        """A fresh owner of symbols."""
        self._owners += 1
        return self._owners

    def buffer(self, value: ir.Value, shape: Sequence[Size] | None = None) -> Buffer:
        """The flat view of a memref; ``shape`` names its sizes where the caller knows them.

        Raises:
            RelaxError: its layout is not strided, or its elements are no bytes.
        """
        kind, owner = ir.MemRefType(value.type), self.next_owner()
        if isinstance(kind.element_type, ir.IntegerType) and kind.element_type.width == 1:
            raise RelaxError("expected booleans in memory as i8, got a memref of i1", self.location)
        shape = shape or [self.extent(value, i, (owner, i)) for i in range(kind.rank)]
        key = value, tuple(shape)
        if key not in self._buffers:
            strides, offset = self._layout(value, kind, shape, owner)
            flat, stored = self._flat(value, shape, strides, offset)
            self._buffers[key] = Buffer(flat, kind.element_type, stored, strides, offset)
        return self._buffers[key]

    def of_words(self, buffer: Buffer, count: int) -> Buffer:
        """A buffer of known size as one of integers, each of so many neighbouring elements; strides are those of elements."""
        width = getattr(buffer.stored, "width", 0) * count
        word = ir.IntegerType.get_signless(width, buffer.stored.context)
        return replace(buffer, flat=self._flat_words(buffer.flat, word, count), element=word, stored=word)

    def _layout(self, value: ir.Value, kind: ir.MemRefType, shape: Sequence[Size], owner: int) -> tuple[tuple[Size, ...], Size]:
        if isinstance(kind.layout, ir.AffineMapAttr) and kind.affine_map == ir.AffineMap.get_identity(kind.rank):
            return row_major(shape), ZERO
        try:
            strides, offset = kind.get_strides_and_offset()
        except (ValueError, RuntimeError) as error:
            raise RelaxError(f"expected a strided memref, got '{kind}'", self.location) from error
        numbers = (*strides, offset)
        symbols = {i: (owner, kind.rank + i) for i, number in enumerate(numbers) if number == _DYNAMIC}
        if symbols:
            self._bind_layout(value, symbols)
        values = [Size.symbol(symbols[i]) if i in symbols else Size.of(number) for i, number in enumerate(numbers)]
        return tuple(values[:-1]), values[-1]

    # -- what code needs -------------------------------------------------------------------------------------------

    def _bind(self, symbol: Symbol, value: ir.Value, position: int) -> None:
        """Finds the value of a symbol, a dimension of a memref."""

    def _bind_layout(self, value: ir.Value, symbols: Mapping[int, Symbol]) -> None:
        """Finds the values of symbols, strides or the offset of a memref by number."""

    def _flat_words(self, flat: ir.Value, word: ir.Type, count: int) -> ir.Value:
        """Flat memory as words of so many elements."""
        del word, count
        return flat

    def _flat(self, value: ir.Value, shape: Sequence[Size], strides: Sequence[Size], offset: Size) -> tuple[ir.Value, ir.Type]:
        """The memref as one dimension, and what its elements are in memory."""
        del shape, strides, offset
        return value, ir.MemRefType(value.type).element_type


def row_major(shape: Sequence[Size]) -> tuple[Size, ...]:
    """The strides of a contiguous array."""
    strides, stride = list[Size](), Size.of(1)
    for size in reversed(shape):
        strides.append(stride)
        stride = stride * size
    return tuple(reversed(strides))
