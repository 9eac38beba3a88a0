"""Factors as tensors, of which Hopper's tensor memory accelerator copies boxes: what a descriptor says, where a box is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .....dialect.bindings import ir
from ....kernels.emit.linear_index import ZERO, Linear, Size
from ....kernels.structure.attention import AttentionOperand
from ....kernels.structure.match import Contraction
from ....kernels.structure.nest import Operand

__all__ = ["MOST_DIMENSIONS", "MappedFactor", "dims_of_rows", "map_factors"]

#: Of a descriptor.
MOST_DIMENSIONS = 5


@dataclass(frozen=True)
class MappedFactor:
    """A factor as a tensor, the innermost dimension first, whose elements are neighbours.

    Attributes:
        operand: the factor.
        along_k: whether k is innermost, and rows (columns, of the right factor) follow; else the other way round.
        sizes: of the dimensions.
        strides: elements from one to the next along the others.
        batch: the loop dimensions that the others behind the first two are.
    """

    operand: Operand | AttentionOperand
    along_k: bool
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    batch: tuple[int, ...]

    def coordinates(self, k: ir.Value, row: ir.Value, batch: Callable[[int], ir.Value]) -> list[ir.Value]:
        """Where a box begins."""
        first = [k, row] if self.along_k else [row, k]
        return [*first, *map(batch, self.batch)]


def dims_of_rows(contraction: Contraction) -> tuple[int, ...]:
    """The loop dimensions that rows of the result are made of, the last one innermost."""
    own = set(contraction.shared) | ({contraction.m} if contraction.m is not None else set[int]())
    return tuple(d for d in contraction.nest.extents if d in own)


def map_factors(contraction: Contraction) -> tuple[MappedFactor, MappedFactor] | None:
    """Both factors as tensors; None where one is none: summed along several dimensions, or of rows without a common stride."""
    if contraction.outer or contraction.nest.extents[contraction.k].static is None:
        return None
    sides = (contraction.left, dims_of_rows(contraction)), (contraction.right, (contraction.n,))
    found = [_mapped(factor.operands[0], rows, contraction) for factor, rows in sides]
    left, right = found
    return None if left is None or right is None else (left, right)


def _mapped(operand: Operand, rows: Sequence[int], contraction: Contraction) -> MappedFactor | None:
    offset, k, extents = operand.offset, contraction.k, contraction.nest.extents
    stride = _common_stride(offset, rows, extents)
    if stride is None or offset.floors() or offset.constant != ZERO:
        return None
    count = Size.of(1)
    for dim in rows:
        count = count * extents[dim]
    along_k = offset.factor(k).static == 1
    if not along_k and stride.static != 1:
        return None
    sizes = [extents[k], count] if along_k else [count, extents[k]]
    batch = tuple(d for d in contraction.batch if offset.factor(d) != ZERO)
    if len(batch) > MOST_DIMENSIONS - 2:
        return None
    strides = [stride if along_k else offset.factor(k), *(offset.factor(d) for d in batch)]
    return MappedFactor(operand, along_k, (*sizes, *(extents[d] for d in batch)), tuple(strides), batch)


def _common_stride(offset: Linear, rows: Sequence[int], extents: Mapping[int, Size]) -> Size | None:
    """Elements from one row to the next, where all rows, of whatever dimensions, have the same; 1 of a single row."""
    if not rows:
        return None
    stride = offset.factor(rows[-1])
    expected = stride
    for dim in reversed(rows):
        if offset.factor(dim) != expected:
            return None
        expected = expected * extents[dim]
    return stride
