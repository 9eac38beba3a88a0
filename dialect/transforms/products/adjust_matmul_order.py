"""Multiplies chains of matrices in the order that leaves less to do at run time; a product of weights costs nothing there.

Before::

    %w = "relax.matmul"(%a, %b) : (tensor<64x4xf32>, tensor<4x64xf32>) -> tensor<64x64xf32>      // weights
    %y = "relax.matmul"(%x, %w) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>

after::

    %t = "relax.matmul"(%x, %a) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x4xf32>) -> tensor<?x4xf32, {sym = ["n"]}>
    %y = "relax.matmul"(%t, %b) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>

An order is changed when that is proven to take fewer operations for all sizes of the symbols in their ranges. Where two weights
are multiplied with each other this also settles memory: a matrix is worth what it costs to multiply with, so weights are merged
only when the product has no more elements than both together. A product that is read elsewhere, or is in another block, is not
taken apart, unless lifting moves it out. Products are seen through a transposition. Rounding changes: sums are of other terms,
and the product in between is rounded to its dtype, where f16 may overflow in one order and not in the other. Integers agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...analysis.size_bounds import is_at_most, symbol_ranges
from ...analysis.work import product_flops
from ...bindings import func, ir
from ...errors import RelaxError
from ...op import attrs_of
from ...op_costs import Size
from ...ops import MatMul
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...traversal import nested_operations
from ..lifting.known_ahead import KnownValues
from .matrix_products import MatrixFactor, Product, is_associative
from .product_pass import ProductPass

__all__ = ["AdjustMatmulOrder"]

# Each rewrite makes the function cheaper. A chain of k matrices is a tree of k - 1 products, and two trees are at most 2k
# rotations apart, but rotating greedily may take a detour.
_REWRITES_PER_PRODUCT = 8


@dataclass(frozen=True)
class AdjustMatmulOrder(ProductPass):
    """Re-associates matrix products.

    Attributes, besides those of :class:`.ProductPass`:
        max_rewrites: how many changes of order one function may take before the pass gives up with an error. 0 is eight for
            each matrix product.
    """

    name: ClassVar[str] = "relax-adjust-matmul-order"
    max_rewrites: int = 0

    def run(self, op: ir.Operation) -> None:
        if self.max_rewrites < 0:
            raise RelaxError(f"expected max-rewrites of 0 or more, got {self.max_rewrites}")
        super().run(op)

    def rewrite(self, function: func.FuncOp, values: KnownValues) -> None:
        products = sum(op.name == MatMul.OPERATION_NAME for op in nested_operations(function.operation))
        budget = self.max_rewrites or _REWRITES_PER_PRODUCT * products
        walk(function, _Order(function, values, budget).patterns(), values.flow)


@dataclass(frozen=True)
class _Change:
    """Another order: ``lhs @ rhs``, of which ``inner`` is multiplied first and takes the place of one.

    Attributes:
        outer: the matmul that it replaces.
        old: the product that is taken apart.
        inner: the factors that are multiplied first.
        other: the third factor.
        inner_left: whether the inner product is the left factor of the outer one.
    """

    outer: MatMul
    old: Product
    inner: tuple[MatrixFactor, MatrixFactor]
    other: MatrixFactor
    inner_left: bool

    def may_be_free(self, values: KnownValues) -> bool:
        """Whether the new inner product may be one that lifting prepares."""
        return values.may_be_lifted(*(f.value for f in self.inner))

    @property
    def costs(self) -> tuple[Size, Size] | None:
        """Operations of the new inner and of the new outer product."""
        lhs, rhs = (f.info for f in self.inner)
        first = product_flops(lhs, rhs)
        middle = MatMul.infer([lhs, rhs], {"out_dtype": None})
        second = product_flops(*((middle, self.other.info) if self.inner_left else (self.other.info, middle)))
        return None if first is None or second is None else (first, second)


class _Order:
    """The work on one function. Products that are replaced are erased at the end: others may be about to look at them."""

    def __init__(self, function: func.FuncOp, values: KnownValues, budget: int):
        self.values, self.budget, self.count = values, budget, 0
        self.ranges = symbol_ranges(function)
        self.dead = set[ir.Value]()

    def patterns(self) -> Patterns:
        return [(MatMul, self._settle)]

    def _settle(self, product: MatMul, rewriter: Rewriter) -> bool:
        """Changes the order around a product until nothing that a change has touched gets cheaper."""
        before, pending = self.count, [product.operation]
        while pending:
            each = pending.pop()
            change = self._improvement(each)
            if change is None:
                continue
            self.count += 1
            if self.count > self.budget:
                message = f"expected the order of products to settle within {self.budget} rewrites, got more"
                raise RelaxError(message, each.location)
            pending += self._apply(change, rewriter)[::-1]
        return self.count > before

    def _improvement(self, product: ir.Operation) -> _Change | None:
        outer = product.opview
        result = product.results[0]
        if (
            not isinstance(outer, MatMul)
            or result in self.dead
            or self.values.flow.is_ahead(result)
            or not is_associative(outer)
        ):
            return None
        return next((c for c in self._changes(outer) if self._is_cheaper(c, c.may_be_free(self.values))), None)

    def _changes(self, outer: MatMul) -> Iterator[_Change]:
        """The orders that are one step away."""
        left, right = Product.of(outer.lhs), Product.of(outer.rhs)
        if left is not None and self._is_open(left, outer) and _fit(left.lhs, left.rhs, MatrixFactor(outer.rhs)):
            yield _Change(outer, left, (left.rhs, MatrixFactor(outer.rhs)), left.lhs, False)
        if right is not None and self._is_open(right, outer) and _fit(MatrixFactor(outer.lhs), right.lhs, right.rhs):
            yield _Change(outer, right, (MatrixFactor(outer.lhs), right.lhs), right.rhs, True)

    def _is_open(self, product: Product, outer: MatMul) -> bool:
        """Whether a product can be taken apart: nothing else needs it and no loop is between, or it is known ahead."""
        if self.values.is_ready(product.ops[0].results[0]):
            return True
        block = outer.operation.block
        return all(op.block == block and not self._has_other_uses(op.results[0]) for op in product.ops)

    def _has_other_uses(self, value: ir.Value) -> bool:
        live = 0
        for use in value.uses:
            results = list(use.owner.operation.results)
            live += not results or results[0] not in self.dead
            if live > 1:
                return True
        return False

    def _is_cheaper(self, change: _Change, inner_is_free: bool) -> bool:
        costs, outer = change.costs, product_flops(TensorInfo.of(change.outer.lhs), TensorInfo.of(change.outer.rhs))
        inner = change.old.flops
        if costs is None or outer is None or inner is None:
            return False
        before = outer + (0 if self.values.is_ready(change.old.ops[0].results[0]) else inner)
        after = costs[1] + (0 if inner_is_free else costs[0])
        return after != before and is_at_most(after, before, self.ranges)

    def _apply(self, change: _Change, rewriter: Rewriter) -> list[ir.Operation]:
        """Writes the new order; returns the products that are new, and those that read the result.

        Nothing is replaced when lifting would leave the new inner product to inference after all, and that is not cheaper.
        """
        outer, old = change.outer.operation, change.old.ops[-1]
        with ir.InsertionPoint(outer), old.location:
            factors = [f.write(self.values) for f in change.inner]
            inner = self.values.enter(MatMul.create(*factors))
            if not self._is_cheaper(change, self.values.is_ready(inner.results[0])):
                for op in (inner, *(v.owner.operation for f, v in zip(change.inner, factors, strict=True) if f.transposed)):
                    self._kill_if_unused(op, rewriter)
                return []
            other = change.other.write(self.values)
        operands = (inner.results[0], other) if change.inner_left else (other, inner.results[0])
        with ir.InsertionPoint(outer), outer.location:
            out_dtype = attrs_of(outer)["out_dtype"]
            new = MatMul.create(*operands, out_dtype=out_dtype, result_types=[outer.results[0].type])
        readers = _products_reading(outer.results[0])
        outer.results[0].replace_all_uses_with(new.results[0])
        for op in (outer, *change.old.ops):
            self._kill_if_unused(op, rewriter)
        return [inner, new, *readers]

    def _kill_if_unused(self, op: ir.Operation, rewriter: Rewriter) -> None:
        users = (list(use.owner.operation.results) for use in op.results[0].uses)
        if op.results[0] not in self.dead and all(results and results[0] in self.dead for results in users):
            self.dead.add(op.results[0])
            rewriter.discard(op)


def _fit(first: MatrixFactor, second: MatrixFactor, third: MatrixFactor) -> bool:
    """Whether either order means the same: a vector may only be at an end, and with it there are no batches."""
    ranks = [f.info.rank for f in (first, second, third)]
    return ranks[1] >= 2 and (min(ranks) >= 2 or max(ranks) == 2)


def _products_reading(value: ir.Value) -> list[ir.Operation]:
    """The products that multiply a value, or its transposition, with something."""
    found: list[ir.Operation] = []
    for use in value.uses:
        user = use.owner.operation
        readers = [u.owner.operation for u in user.results[0].uses] if user.name == "relax.permute_dims" else [user]
        found += [op for op in readers if isinstance(op.opview, MatMul)]
    return found
