"""Multiplies by a whole table of weights and picks from the result, instead of gathering weights at run time.

Before::

    %g = "relax.take"(%table, %ids) {axis = 0 : i64} : (tensor<4x64x16xf32>, tensor<8xi64>) -> tensor<8x64x16xf32>
    %y = "relax.matmul"(%x, %g) : (tensor<1x64xf32>, tensor<8x64x16xf32>) -> tensor<8x1x16xf32>

after::

    %p = "relax.matmul"(%x, %table) : (tensor<1x64xf32>, tensor<4x64x16xf32>) -> tensor<4x1x16xf32>
    %y = "relax.take"(%p, %ids) {axis = 0 : i64} : (tensor<4x1x16xf32>, tensor<8xi64>) -> tensor<8x1x16xf32>

The table, the indices, or both come when the model runs; lifting prepares what is gathered of a weight by another one. They
pick columns (the last axis), or matrices of a stack of them (axis 0 of three). Where each row of ``x`` has a matrix of its own,
the stack becomes one wide matrix, which lifting prepares if it is a weight, and each row picks its part of the product. Each
element is computed as before.

By default only what is proven to take no more operations is rewritten: where there are at least as many indices as there are
entries in the table. ``always`` rewrites the others, too: the weights are then read once and not copied, for more arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...analysis.size_bounds import Ranges, is_at_most, symbol_ranges
from ...bindings import func, ir
from ...inference import normalize_axis
from ...op import attrs_of
from ...ops import GatherND, MatMul, PermuteDims, Reshape, Take
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...symbolic import Dim
from ...traversal import is_read_once
from ..emit import given_attr
from ..lifting.known_ahead import KnownValues
from .product_pass import ProductPass

__all__ = ["ReorderTakeAfterMatmul"]


@dataclass(frozen=True)
class ReorderTakeAfterMatmul(ProductPass):
    """Rewrites ``x @ take(table, ids)`` as ``take(x @ table, ids)``.

    Attributes, besides those of :class:`.ProductPass`:
        always: also where it takes more operations, or may.
    """

    name: ClassVar[str] = "relax-reorder-take-after-matmul"
    always: bool = False

    def rewrite(self, function: func.FuncOp, values: KnownValues) -> None:
        walk(function, _Reordering(values, symbol_ranges(function), self.always).patterns(), values.flow)


@dataclass(frozen=True)
class _Reordering:
    """The work on one function: what is known of it, and the ranges of its symbols."""

    values: KnownValues
    ranges: Ranges
    always: bool

    def patterns(self) -> Patterns:
        return [(MatMul, self._multiply_by_table)]

    def _multiply_by_table(self, product: MatMul, rewriter: Rewriter) -> bool:
        match = _Match.of(product, self.values)
        if match is None or not (self.always or match.takes_no_more(self.ranges)):
            return False
        rewriter.discard(match.take)
        return rewriter.replace(product, match.rewritten())


@dataclass(frozen=True)
class _Match:
    """A product with gathered weights.

    Attributes:
        product: the matmul.
        take: what gathers its right-hand side.
        axis: the axis of the table along which it gathers, not negative.
        ready: whether lifting can prepare the table in another form.
    """

    product: Any
    take: Any
    axis: int
    ready: bool

    @staticmethod
    def of(product: Any, values: KnownValues) -> _Match | None:
        take = product.rhs.owner
        if not isinstance(take, Take) or values.flow.all_ahead((take.x, take.indices)):
            return None
        if take.operation.block != product.operation.block or not is_read_once(take.result):
            return None
        rank, picked = TensorInfo.of(take.x).rank, TensorInfo.of(take.indices).rank
        axis = normalize_axis(take.axis, rank)
        columns = axis == rank - 1 and rank > 1 and (picked == 1 or (picked == 0 and rank == 2))
        match = _Match(product, take, axis, values.is_ready(take.x))
        stack = axis == 0 and rank == 3 and picked == 1 and match._fits_stack()
        return match if columns or stack else None

    @property
    def table(self) -> TensorInfo:
        return TensorInfo.of(self.take.x)

    @property
    def _has_matrix_each(self) -> bool:
        """Whether the rows of the left side have a gathered matrix each."""
        shape = TensorInfo.of(self.product.lhs).shape
        return self.axis == 0 and len(shape) == 3 and shape[0] != 1

    def _fits_stack(self) -> bool:
        """Whether the left side has at most the batch that is gathered, of known sizes."""
        shape, count = TensorInfo.of(self.product.lhs).shape, TensorInfo.of(self.take.indices).shape[0]
        if not self._has_matrix_each:
            return len(shape) in (1, 2, 3)
        return shape[0] == count and None not in (*shape, *self.table.shape)

    def takes_no_more(self, ranges: Ranges) -> bool:
        """Whether there are at least as many indices as entries to choose from."""
        entries = self.table.shape[self.axis]
        count: Dim = next(iter(TensorInfo.of(self.take.indices).shape), 1)
        if self._has_matrix_each:
            return entries == 1 and self.ready
        return entries is not None and count is not None and is_at_most(entries, count, ranges)

    def rewritten(self) -> ir.Operation:
        with ir.InsertionPoint(self.product), self.take.location:
            return self._with_matrix_each() if self._has_matrix_each else self._picked()

    def _multiplied(self, table: ir.Value) -> ir.Value:
        out_dtype = attrs_of(self.product)["out_dtype"]
        return MatMul.create(self.product.lhs, table, out_dtype=out_dtype, loc=self.product.location).results[0]

    def _picked(self) -> ir.Operation:
        """The indices pick from the product what they picked from the table."""
        whole = self._multiplied(self.take.x)
        axis = 0 if self.axis == 0 else TensorInfo.of(whole).rank - 1
        wraps, types = given_attr(self.take, "wrap_negative_indices"), [self.product.result.type]
        return Take.create(whole, self.take.indices, axis=axis, wrap_negative_indices=wraps, result_types=types)

    def _with_matrix_each(self) -> ir.Operation:
        """``x[b, m, k]`` times the stack as one matrix ``[k, l * n]``, of which row ``b`` keeps its ``n`` columns."""
        count, depth, columns = self.table.shape
        batch, rows, _ = TensorInfo.of(self.product.lhs).shape
        assert count is not None
        assert columns is not None
        first = PermuteDims.create(self.take.x, axes=[1, 0, 2])
        matrix = Reshape.create(first, result_types=[self.table.with_(shape=[depth, count * columns]).type])
        whole = self._multiplied(matrix.results[0])
        shape = [batch, rows, count, columns]
        stacked = Reshape.create(whole, result_types=[TensorInfo.of(whole).with_(shape=shape).type])
        sorted_ = PermuteDims.create(stacked, axes=[0, 2, 1, 3])
        indices = TensorInfo.of(self.take.indices)
        places = Reshape.create(self.take.indices, result_types=[indices.with_(shape=[batch, 1]).type])
        wraps, types = given_attr(self.take, "wrap_negative_indices"), [self.product.result.type]
        return GatherND.create(sorted_, places, batch_dims=1, wrap_negative_indices=wraps, result_types=types)
