"""Matrix products seen through transposition, with the values they multiply and what they cost at run time."""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.work import product_flops
from ...bindings import ir
from ...inference import is_float, normalize_axis
from ...op import attrs_of
from ...op_costs import Size
from ...ops import MatMul, PermuteDims
from ...struct_info import TensorInfo
from ..lifting.known_ahead import KnownValues

__all__ = ["MatrixFactor", "Product", "is_associative", "permutation", "swapped"]


@dataclass(frozen=True)
class MatrixFactor:
    """A matrix, or a stack of them.

    Attributes:
        value: the tensor.
        transposed: whether its last two dimensions are to be swapped.
    """

    value: ir.Value
    transposed: bool = False

    @property
    def info(self) -> TensorInfo:
        """Shape and dtype, after swapping."""
        info = TensorInfo.of(self.value)
        return info.with_(shape=[*info.shape[:-2], *info.shape[-2:][::-1]]) if self.transposed else info

    def write(self, values: KnownValues) -> ir.Value:
        """The tensor, made at the insertion point where it is not there yet."""
        if not self.transposed:
            return self.value
        return values.enter(PermuteDims.create(self.value, axes=swapped(self.info.rank))).results[0]


@dataclass(frozen=True)
class Product:
    """A value that is the product of two others.

    Attributes:
        ops: the matmul, after the transposition of it if that is what makes the value; users go first.
        lhs, rhs: what is multiplied.
    """

    ops: tuple[ir.Operation, ...]
    lhs: MatrixFactor
    rhs: MatrixFactor

    @staticmethod
    def of(value: ir.Value) -> Product | None:
        """``a @ b``, or a transposed ``a @ b``, which is ``b^T @ a^T``; rounded to the operands' dtype."""
        owner = value.owner
        if isinstance(owner, MatMul):
            return (
                Product((owner.operation,), MatrixFactor(owner.lhs), MatrixFactor(owner.rhs)) if _keeps_dtype(owner) else None
            )
        if not isinstance(owner, PermuteDims) or not isinstance(inner := owner.x.owner, MatMul):
            return None
        ranks = {TensorInfo.of(v).rank for v in (inner.lhs, inner.rhs, owner.x)}
        rank = TensorInfo.of(value).rank
        if ranks != {rank} or rank < 2 or permutation(owner) != swapped(rank) or not _keeps_dtype(inner):
            return None
        return Product((owner.operation, inner.operation), MatrixFactor(inner.rhs, True), MatrixFactor(inner.lhs, True))

    def transposed(self) -> Product | None:
        """The transposed value as a product, None where a vector is multiplied."""
        if min(self.lhs.info.rank, self.rhs.info.rank) < 2:
            return None
        lhs, rhs = (MatrixFactor(f.value, not f.transposed) for f in (self.rhs, self.lhs))
        return Product(self.ops, lhs, rhs)

    @property
    def flops(self) -> Size | None:
        """The operations it takes; None when a dimension is unknown."""
        return product_flops(self.lhs.info, self.rhs.info)


def permutation(op: PermuteDims) -> list[int]:
    """The axes of a permute_dims, defaults filled in."""
    rank, axes = TensorInfo.of(op.x).rank, op.axes
    return list(range(rank))[::-1] if axes is None else [normalize_axis(a, rank) for a in axes]


def is_associative(product: MatMul) -> bool:
    """Whether what it multiplies may be multiplied in another order: integers only wrap alike in one dtype."""
    return is_float(TensorInfo.of(product.lhs).dtype) or _keeps_dtype(product)


def _keeps_dtype(product: MatMul) -> bool:
    return attrs_of(product)["out_dtype"] in (None, TensorInfo.of(product.lhs).dtype)


def swapped(rank: int) -> list[int]:
    """The axes of a permute_dims that transposes the matrices of a stack."""
    return [*range(rank - 2), rank - 1, rank - 2]
