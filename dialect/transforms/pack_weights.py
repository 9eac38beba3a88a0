"""Rewrites matrix products with a weight to read it packed; packing is an op on the weight, so lifting moves it to preparation.

Before::

    %y = "relax.matmul"(%x, %w) : (tensor<?x768xf32, {sym = ["n"]}>, tensor<768x3072xf32>) -> tensor<?x3072xf32, {sym = ["n"]}>

after::

    %p = "relax.pack_weight"(%w) {tile = 32 : i64} : (tensor<768x3072xf32>) -> tensor<96x768x32xf32>
    %y = "relax.packed_matmul"(%x, %p) {n = 3072 : i64} : (...) -> tensor<?x3072xf32, {sym = ["n"]}>
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..bindings import func, ir
from ..errors import RelaxError
from ..functions import body_of, functions
from ..inference import is_float
from ..op import attrs_of
from ..ops import MatMul, PackedMatMul, PackWeight
from ..pass_manager import Pass
from ..struct_info import TensorInfo
from ..traversal import nested_operations
from .weight_values import WeightValues

__all__ = ["PackWeights"]


@dataclass(frozen=True)
class PackWeights(Pass):
    """Packs the two-dimensional right-hand sides that come from weights alone, in functions that have ``relax.num_input``.

    Attributes:
        tile: columns per panel; the target's matmul kernel has this width.
    """

    name: ClassVar[str] = "relax-pack-weights"
    tile: int = 32

    def run(self, op: ir.Operation) -> None:
        if self.tile < 1:
            raise RelaxError(f"expected a positive tile, got {self.tile}")
        for function in functions(op):
            self._pack_in(function)

    def _pack_in(self, function: func.FuncOp) -> None:
        block, weights = body_of(function), WeightValues.of(function)
        if block is None or weights is None:
            return
        packed: dict[ir.Value, ir.Value] = {}
        for op in list(block.operations):
            if weights.enter(op):
                continue
            for product in _products(op):
                if product.rhs in weights and _can_pack(product):
                    self._pack(product, op, packed)

    def _pack(self, op: MatMul, outer: ir.OpView, packed: dict[ir.Value, ir.Value]) -> None:
        """A weight that several products read is packed once, before the first of them, and outside of loops."""
        weight = op.rhs
        if weight not in packed:
            with ir.InsertionPoint(outer), op.location:
                packed[weight] = PackWeight.create(weight, tile=self.tile).result
        attrs: dict[str, Any] = {"n": TensorInfo.of(weight).shape[1], "out_dtype": attrs_of(op)["out_dtype"]}
        with ir.InsertionPoint(op), op.location:
            product = PackedMatMul.create(op.lhs, packed[weight], result_types=[op.results[0].type], **attrs)
        op.results[0].replace_all_uses_with(product.result)
        op.operation.erase()


def _products(op: ir.OpView) -> list[MatMul]:
    """An op that is a matrix product, or those in its regions."""
    found = [op, *(inner.opview for inner in nested_operations(op.operation))] if len(op.regions) else [op]
    return [view for view in found if isinstance(view, MatMul)]


def _can_pack(op: MatMul) -> bool:
    weight = TensorInfo.of(op.rhs)
    return weight.rank == 2 and all(isinstance(d, int) and d > 0 for d in weight.shape) and is_float(weight.dtype)
