"""Multiplies by the parts of a sum, where one of them is a product that is cheaper to multiply by in another order.

Before::

    %d = "relax.matmul"(%a, %b)     // of an adapter that comes with each request: 64x4, 4x64
    %s = "relax.add"(%w, %d)        // %w is a weight: 64x64
    %y = "relax.matmul"(%x, %s)

after::

    %d = "relax.matmul"(%a, %b)
    %0 = "relax.matmul"(%x, %w)
    %1 = "relax.matmul"(%x, %d)     // relax-adjust-matmul-order makes it (x @ a) @ b
    %y = "relax.add"(%0, %1)

The sum may be transposed, as weights of torch are: so are its terms then. A sum that is known ahead is left alone, as lifting
prepares it; of other sums the parts that are known are added up first. By default a sum is only taken apart when that is proven
to take fewer operations for all sizes of the symbols in their ranges, the order of products being adjusted after. Rounding
changes: the sum is of products, each rounded to the result's dtype. Integers agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...analysis.size_bounds import Ranges, is_at_most, symbol_ranges
from ...analysis.work import elements, product_flops
from ...bindings import func, ir
from ...op import attrs_of
from ...op_costs import Size
from ...ops import Add, MatMul, PermuteDims
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...traversal import is_read_once
from ..lifting.known_ahead import KnownValues
from .matrix_products import MatrixFactor, Product, is_associative, permutation, swapped
from .product_pass import ProductPass

__all__ = ["ExpandMatmulOfSum"]


@dataclass(frozen=True)
class ExpandMatmulOfSum(ProductPass):
    """Rewrites ``x @ (a + b)`` as ``x @ a + x @ b``.

    Attributes, besides those of :class:`.ProductPass`:
        always: also where it is not proven to leave less to do.
    """

    name: ClassVar[str] = "relax-expand-matmul-of-sum"
    always: bool = False

    def rewrite(self, function: func.FuncOp, values: KnownValues) -> None:
        walk(function, _Expansion(values, symbol_ranges(function), self.always).patterns(), values.flow)


@dataclass(frozen=True)
class _Expansion:
    """The work on one function: what is known of it, and the ranges of its symbols."""

    values: KnownValues
    ranges: Ranges
    always: bool

    def patterns(self) -> Patterns:
        return [(MatMul, self._multiply_by_parts)]

    def _multiply_by_parts(self, product: MatMul, rewriter: Rewriter) -> bool:
        if self.values.flow.is_ahead(product.rhs) or not is_associative(product):
            return False
        total = _Sum.of(product, self.values)
        if total is None or not (self.always or total.pays(self.ranges)):
            return False
        rewriter.discard(*reversed(total.adds))
        return rewriter.replace(product, [total.expanded(self.values)])


@dataclass(frozen=True)
class _Sum:
    """The right-hand side of a product, as a sum.

    Attributes:
        product: the matmul.
        adds: the additions, and transpositions of what they make, users before producers.
        known: parts that lifting prepares, in order.
        others: the other parts, in order.
    """

    product: MatMul
    adds: Sequence[ir.Operation]
    known: Sequence[MatrixFactor]
    others: Sequence[MatrixFactor]

    @staticmethod
    def of(product: MatMul, values: KnownValues) -> _Sum | None:
        """What is summed up for this product alone, in its block; None when the right-hand side is no sum."""
        adds: list[ir.Operation] = []
        parts: list[MatrixFactor] = []
        pending, block = [MatrixFactor(product.rhs)], product.operation.block
        while pending:
            part = pending.pop()
            found = None if values.flow.is_ahead(part.value) else _terms(part, block)
            if found is None:
                parts.append(part)
                continue
            adds += found[0]
            pending += found[1][::-1]
        if not adds:
            return None
        known = [p for p in parts if values.is_ready(p.value)]
        return _Sum(product, adds, known, [p for p in parts if p not in known])

    def pays(self, ranges: Ranges) -> bool:
        """Whether taking the sum apart is proven to take fewer operations."""
        costs = self._costs()
        return costs is not None and costs[0] != costs[1] and is_at_most(costs[1], costs[0], ranges)

    def _costs(self) -> tuple[Size, Size] | None:
        """The operations before and after; None when a dimension is unknown."""
        lhs, rhs, result = (TensorInfo.of(v) for v in (self.product.lhs, self.product.rhs, self.product.result))
        whole, size, written = product_flops(lhs, rhs), elements(rhs), elements(result)
        if whole is None or size is None or written is None:
            return None
        additions = sum(isinstance(op.opview, Add) for op in self.adds)
        before, after = whole + size * additions, whole if self.known else 0
        after += written * (len(self.others) - (0 if self.known else 1))
        for part in self.others:
            multiplied = _product_of_one(part)
            costs = None if multiplied is None else (multiplied.flops, _reordered(lhs, multiplied))
            if costs is None or costs[0] is None or costs[1] is None:
                after += whole
            else:
                before, after = before + costs[0], after + costs[1]
        return before, after

    def expanded(self, values: KnownValues) -> ir.Value:
        """The sum of the products by parts."""
        product = self.product
        type_, out_dtype = product.result.type, attrs_of(product)["out_dtype"]
        with ir.InsertionPoint(product), self.adds[0].location:
            known = [part.write(values) for part in self.known[:1]]
            for part in self.known[1:]:
                known = [values.enter(Add.create(known[0], part.write(values))).results[0]]
            parts = [*known, *(part.write(values) for part in self.others)]
        with ir.InsertionPoint(product), product.location:
            products = [MatMul.create(product.lhs, part, out_dtype=out_dtype) for part in parts]
            total = products[0].results[0]
            for other in products[1:]:
                total = Add.create(total, other, result_types=[type_]).results[0]
        return total


def _terms(part: MatrixFactor, block: ir.Block) -> tuple[list[ir.Operation], list[MatrixFactor]] | None:
    """The ops that make a part, and what they add up, seen through a transposition; None where that is no sum for one."""
    owner = part.value.owner
    if isinstance(owner, PermuteDims) and owner.operation.block == block and is_read_once(part.value):
        if permutation(owner) != swapped(part.info.rank) or not _is_sum_for_one(owner.x, block):
            return None
        add, transposed = owner.x.owner, not part.transposed
        return [owner.operation, add.operation], [MatrixFactor(v, transposed) for v in add.operands]
    if not _is_sum_for_one(part.value, block):
        return None
    return [owner.operation], [MatrixFactor(v, part.transposed) for v in owner.operands]


def _is_sum_for_one(value: ir.Value, block: ir.Block) -> bool:
    """Whether a value adds two tensors of its own shape, for one reader in this block."""
    add = value.owner
    if not isinstance(add, Add) or add.operation.block != block or not is_read_once(value):
        return False
    shapes = [TensorInfo.of(v).shape for v in (*add.operands, value)]
    return len(shapes[0]) > 1 and None not in shapes[0] and shapes[0] == shapes[1] == shapes[2]


def _product_of_one(part: MatrixFactor) -> Product | None:
    """The product that makes a part, and is made for it alone."""
    product = Product.of(part.value)
    if product is not None and part.transposed:
        product = product.transposed()
    return product if product is not None and all(is_read_once(op.results[0]) for op in product.ops) else None


def _reordered(lhs: TensorInfo, product: Product) -> Size | None:
    """The operations of ``(lhs @ a) @ b``, where that means the same as ``lhs @ (a @ b)``."""
    infos = (lhs, product.lhs.info, product.rhs.info)
    if min(i.rank for i in infos) < 2 and max(i.rank for i in infos) > 2:
        return None
    first = product_flops(lhs, infos[1])
    second = product_flops(MatMul.infer([lhs, infos[1]], {"out_dtype": None}), infos[2])
    return None if first is None or second is None else first + second
