"""Attention as a function's mark says it: where the elements of its operands are, by indices that all of them share."""

from __future__ import annotations

from dataclasses import dataclass

from ....dialect.bindings import func, ir
from ...attention_mark import AttentionMark
from ..emit.buffers import Buffer, Buffers
from ..emit.linear_index import Linear, Size, from_affine

__all__ = ["AttentionDims", "AttentionOperand", "MatchedAttention", "read_attention"]


@dataclass(frozen=True)
class AttentionDims:
    """The numbers of indices: batches first.

    Attributes:
        batch: how many batch indices there are.
    """

    batch: int

    @property
    def head(self) -> int:
        """Of queries."""
        return self.batch

    @property
    def row(self) -> int:
        return self.batch + 1

    @property
    def element(self) -> int:
        """Of a query and a key, or of a value and a row of the result."""
        return self.batch + 2

    @property
    def group(self) -> int:
        """Head of keys."""
        return self.batch + 3

    @property
    def key(self) -> int:
        return self.batch + 4


@dataclass(frozen=True)
class AttentionOperand:
    """An operand as a flat buffer, and where the element is that indices say."""

    value: ir.Value
    buffer: Buffer
    offset: Linear

    @property
    def element(self) -> ir.Type:
        return self.buffer.element


@dataclass(frozen=True)
class MatchedAttention:
    """What a kernel of attention computes.

    Attributes:
        dims: the numbers of its indices.
        query, key, value, mask, result: its operands.
        extents: how many there are of each index but elements.
        depth: elements of a query.
        width: elements of a value.
        scale: what scores are multiplied by.
        causal: whether row i sees the keys up to i only.
    """

    dims: AttentionDims
    query: AttentionOperand
    key: AttentionOperand
    value: AttentionOperand
    mask: AttentionOperand | None
    result: AttentionOperand
    extents: dict[int, Size]
    depth: int | None
    width: int | None
    scale: float
    causal: bool


def read_attention(function: func.FuncOp, memory: Buffers) -> MatchedAttention | None:
    """What a function is marked to compute on buffers, None for others.

    Raises:
        RelaxError: its mark does not fit it.
    """
    mark = AttentionMark.of(function)
    return None if mark is None else _Reader(function, mark, memory).read()


class _Reader:
    """Reads one function."""

    def __init__(self, function: func.FuncOp, mark: AttentionMark, memory: Buffers):
        self.mark, self.memory = mark, memory
        self.dims = dims = AttentionDims(mark.maps[0].n_dims - 3)
        of_keys = {dims.head: dims.group, dims.row: dims.key}
        masked = [{dims.element: dims.key}] if mark.has_mask else []
        renamed = [{}, of_keys, of_keys, *masked, {}]
        self.values = mark.operands(function)
        self.indices = [
            [from_affine(e).substituted(lambda d, n=names: Linear.dim(n.get(d, d))) for e in m.results]
            for m, names in zip(mark.maps, renamed, strict=True)
        ]

    def read(self) -> MatchedAttention:
        dims, mark = self.dims, self.mark
        groups, keys, depth = (None if s is None else Size.of(s) for s in mark.sizes)
        last = len(self.values) - 1
        extents = {d: self._extent(last, d) for d in range(dims.element)}
        extents[dims.group] = groups or self._extent(2, dims.group)
        extents[dims.key] = keys or self._extent(1, dims.key)
        depth, width = depth or self._extent(0, dims.element), self._extent(last, dims.element)
        elements = [depth, depth, width, *[None] * mark.has_mask, width]
        query, key, value, *mask, result = (self._operand(i, extents, e) for i, e in enumerate(elements))
        sizes = depth.static, width.static
        return MatchedAttention(
            dims, query, key, value, mask[0] if mask else None, result, extents, *sizes, mark.scale, mark.causal
        )

    def _extent(self, operand: int, dim: int) -> Size:
        position = self.indices[operand].index(Linear.dim(dim))
        return self.memory.extent(self.values[operand], position, (0, dim))

    def _operand(self, number: int, extents: dict[int, Size], elements: Size | None) -> AttentionOperand:
        known = {Linear.dim(d): size for d, size in extents.items()}
        if elements is not None:
            known[Linear.dim(self.dims.element)] = elements
        owner, value, indices = self.memory.next_owner(), self.values[number], self.indices[number]
        shape = [known.get(index) or self.memory.extent(value, i, (owner, i)) for i, index in enumerate(indices)]
        buffer = self.memory.buffer(value, shape)
        return AttentionOperand(value, buffer, buffer.linear(indices))
