"""Copies of narrow neighbours as copies of words: a nest that moves pairs of 16 bits, or four bytes, moves 32 bits instead.

Before, of bf16, as weights are packed in pairs of rows::

    out[p, k, t, r] = in[p * 32 + t, k * 2 + r]      // r below 2: beside each other on both sides

after, of i32::

    out[p, k, t] = in[p * 32 + t, k]

What is left can be transposed in registers, where elements of pairs could not: they stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....dialect.bindings import ir
from ..emit.buffers import Buffers
from ..emit.linear_index import Linear, Size
from .combiners import element_bits
from .nest import Nest, Operand

__all__ = ["as_words"]

#: The widest element that vectors are made of.
_WORD_BITS = 32


def as_words(nest: Nest, memory: Buffers) -> Nest:
    """The nest with one loop less and wider elements, where it copies and has such a loop; else the same."""
    operands = _copied(nest)
    if operands is None:
        return nest
    bits = element_bits(operands[0].argument.type)
    for dim, extent in nest.extents.items():
        count = extent.static
        if count is not None and count > 1 and _is_word(count * bits) and all(_fits(o, dim, count) for o in operands):
            return _widened(nest, dim, count, memory)
    return nest


def _copied(nest: Nest) -> Sequence[Operand] | None:
    """What a nest reads and what it writes, if it does nothing else and both have known sizes."""
    operations, yielded = nest.body()
    read = [o for o in nest.inputs if o.used]
    if operations or nest.reductions or len(read) != 1 or len(nest.outputs) != 1 or yielded != [read[0].argument]:
        return None
    if any(o.buffer is None or not ir.MemRefType(o.value.type).has_static_shape for o in (*nest.inputs, *nest.outputs)):
        return None
    return (read[0], nest.outputs[0])


def _is_word(bits: int) -> bool:
    return bits <= _WORD_BITS and bits & (bits - 1) == 0


def _fits(operand: Operand, dim: int, count: int) -> bool:
    """Whether elements along a loop are beside each other, each group of them at a multiple of its size."""
    offset = operand.offset
    if offset.factor(dim).static != 1 or any(dim in floor.inner.dims() for floor in offset.floors()):
        return False
    sizes = [offset.constant, *(factor for atom, factor in offset.terms if atom != dim)]
    elements = 1
    for size in ir.MemRefType(operand.value.type).shape:
        elements *= size
    return elements % count == 0 and all(value % count == 0 for size in sizes for _, value in size.terms)


def _widened(nest: Nest, dim: int, count: int, memory: Buffers) -> Nest:
    def wide(operand: Operand) -> Operand:
        if operand.buffer is None:
            return operand
        offset = operand.offset
        terms = tuple((atom, _divided(factor, count)) for atom, factor in offset.terms if atom != dim)
        return replace(
            operand,
            buffer=memory.of_words(operand.buffer, count),
            offset=Linear(terms, _divided(offset.constant, count)),
        )

    return replace(
        nest,
        extents={d: size for d, size in nest.extents.items() if d != dim},
        inputs=tuple(wide(o) if o.used else o for o in nest.inputs),
        outputs=tuple(map(wide, nest.outputs)),
        dropped=nest.dropped | {dim},
    )


def _divided(size: Size, count: int) -> Size:
    return Size(tuple((symbols, value // count) for symbols, value in size.terms))
