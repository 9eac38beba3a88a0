"""Which rows a block computes, which keys it goes through, and where these are in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .....dialect.bindings import ir
from ....kernels.emit.linear_index import Size
from ....kernels.emit.memory import Point
from ....kernels.structure.attention import AttentionOperand, MatchedAttention
from ..device_memory import DeviceMemory, element_bytes_of

__all__ = ["AttentionPlaces", "SharedHeads"]


class SharedHeads:
    """How many heads of queries share keys, and rows of all of these: built once, for the host or for a kernel.

    Attributes:
        shared: heads.
        together: their rows; row ``p`` is row ``p div shared`` of the head ``p mod shared`` of them.
    """

    def __init__(self, attention: MatchedAttention, size: Callable[[Size], ir.Value]):
        dims, extents = attention.dims, attention.extents
        heads, groups = (extents[d] for d in (dims.head, dims.group))
        self.attention, self.rows = attention, size(extents[dims.row])
        self.static = heads.static // groups.static if heads.static is not None and groups.static else None
        self.heads, self.groups, self._size = heads, groups, size

    def build(
        self, op: Callable[[str, list[ir.Value]], ir.Value], number: Callable[[int], ir.Value]
    ) -> tuple[ir.Value, ir.Value]:
        """``shared`` and ``together``."""
        if self.static is not None:
            shared = number(self.static)
        else:
            groups = op("arith.maxui", [self._size(self.groups), number(1)])
            shared = op("arith.divui", [self._size(self.heads), groups])
        return shared, self.rows if self.static == 1 else op("arith.muli", [self.rows, shared])


class AttentionPlaces:
    """Where a block's rows and keys are.

    Attributes:
        attention: read for the kernel.
        together: rows of all heads that share the block's keys.
        keys: how many there are of these.
        part: the number of the block among those of these heads.
    """

    def __init__(
        self, memory: DeviceMemory, attention: MatchedAttention, block: ir.Value, parts: ir.Value,
        along: Sequence[int] | None = None,
    ):  # fmt: skip
        """Reads which block it is: of all that compute heads that share keys, ``parts``, the last index is the part.

        ``along`` are the indices that blocks differ in, by default the head of keys and all batches; others are 0.
        """
        self.memory, self.attention, self.em = memory, attention, memory.emitter
        em, dims = self.em, attention.dims
        heads = SharedHeads(attention, memory.size)
        self.shared, self.together = heads.build(lambda n, v: em.op(n, v, em.index), em.number)
        self._static = heads.static
        self.pair, self.part = self.split(block, parts)
        every = (dims.group, *range(dims.batch - 1, -1, -1))
        order, rest = every if along is None else along, self.pair
        self.at = {dim: em.number(0) for dim in every}
        for dim in order[:-1]:
            rest, self.at[dim] = self.split(rest, memory.size(attention.extents[dim]))
        for dim in order[-1:]:
            self.at[dim] = rest
        self.keys = memory.size(attention.extents[dims.key])
        self.first_head = em.mul(self.at[dims.group], self.shared)

    def split(self, value: ir.Value, by: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Quotient and remainder of numbers of blocks or rows, in 32 bits: a division of 64 is a call, around which registers
        are spilled.
        """
        em = self.em
        if by == em.number(1):
            return value, em.number(0)
        narrow = [em.op("arith.index_cast", [v], em.i32) for v in (value, by)]
        found = (em.op(name, narrow, em.i32) for name in ("arith.divui", "arith.remui"))
        quotient, remainder = (em.op("arith.index_castui", [v], em.index) for v in found)
        return quotient, remainder

    def row(self, number: ir.Value) -> dict[int, ir.Value]:
        """The indices of a row of the heads that share keys."""
        dims = self.attention.dims
        row, head = (number, self.em.number(0)) if self._static == 1 else self.split(number, self.shared)
        return {**self.at, dims.head: self.em.add(self.first_head, head), dims.row: row}

    def position(self, number: ir.Value) -> ir.Value:
        """The row's number in its head."""
        return self.row(number)[self.attention.dims.row]

    def least(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.em.op("arith.minui", [a, b], self.em.index)

    def last_row(self) -> ir.Value:
        """The last of the rows of all heads that share the block's keys."""
        return self.em.sub(self.together, self.em.number(1))

    def bound(self, row: ir.Value, end: ir.Value) -> ir.Value:
        """The first key that a row does not see, of those before ``end``."""
        if not self.attention.causal:
            return end
        return self.least(end, self.em.add(self.position(row), self.em.number(1)))

    def bounds(self, first: ir.Value, rows: int, end: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Of so many rows from ``first`` on: the first key before ``end`` that none sees, and the first that not all see."""
        if not self.attention.causal:
            return end, end
        last = self.least(self.em.add(first, self.em.number(rows - 1)), self.last_row())
        end = self.bound(last, end)
        return end, self.bound(first, end)

    def address(self, operand: AttentionOperand, indices: Mapping[int, ir.Value]) -> ir.Value:
        """That of an element; of indices that are not given, the first one's."""
        em, zero = self.em, self.em.number(0)
        every = dict.fromkeys(operand.offset.dims(), zero) | dict(indices)
        base = em.op("memref.extract_aligned_pointer_as_index", [operand.buffer.flat], em.index)
        index = self.memory.index(operand.offset, Point(every))
        return em.add(base, em.mul(index, em.number(element_bytes_of(operand.element))))

    def step(self, operand: AttentionOperand, dim: int) -> ir.Value:
        """Bytes from an element to the one whose index in a dimension is one more."""
        size = self.memory.size(operand.offset.factor(dim))
        return self.em.mul(size, self.em.number(element_bytes_of(operand.element)))
