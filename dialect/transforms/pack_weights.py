"""Rewrites matrix products with a weight to read it packed; packing is an op on the weight, so lifting moves it to preparation.

Before::

    %y = "relax.matmul"(%x, %w) : (tensor<?x768xf32, {sym = ["n"]}>, tensor<768x3072xf32>) -> tensor<?x3072xf32, {sym = ["n"]}>

after::

    %p = "relax.pack_weight"(%w) {tile = 32 : i64} : (tensor<768x3072xf32>) -> tensor<96x768x32xf32>
    %y = "relax.packed_matmul"(%x, %p) {n = 3072 : i64} : (...) -> tensor<?x3072xf32, {sym = ["n"]}>

A convolution in NHWC whose windows are single elements is such a product too, with the filters as a matrix ``[c, o]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from ..bindings import func, ir
from ..errors import RelaxError
from ..functions import body_of, functions
from ..inference import is_float
from ..layouts import permutation, reordered
from ..op import attrs_of
from ..ops import Conv2D, MatMul, PackedMatMul, PackWeight, PermuteDims
from ..pass_manager import Pass
from ..struct_info import TensorInfo
from ..symbolic import Dim
from ..traversal import nested_operations
from .block_movement import reshaped
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
        packed: dict[tuple[ir.Value, str], ir.Value] = {}
        for op in list(block.operations):
            if weights.enter(op):
                continue
            for product in _products(op):
                if product.operands[1] in weights and _can_pack(product):
                    self._pack(product, op, packed)

    def _pack(self, op: MatMul | Conv2D, outer: ir.OpView, packed: dict[tuple[ir.Value, str], ir.Value]) -> None:
        """A weight that several products read is packed once, before the first of them, and outside of loops."""
        x, weight = op.operands
        layout = attrs_of(op)["kernel_layout"] if isinstance(op, Conv2D) else ""
        if (weight, layout) not in packed:
            with ir.InsertionPoint(outer), op.location:
                packed[weight, layout] = PackWeight.create(_matrix(weight, layout), tile=self.tile).result
        attrs: dict[str, Any] = {"n": _columns(weight, layout), "out_dtype": attrs_of(op)["out_dtype"]}
        with ir.InsertionPoint(op), op.location:
            product = _flat_product(op, packed[weight, layout], attrs) if isinstance(op, Conv2D) else None
            if product is None:
                product = PackedMatMul.create(x, packed[weight, layout], result_types=[op.results[0].type], **attrs).result
        op.results[0].replace_all_uses_with(product)
        op.operation.erase()


def _products(op: ir.OpView) -> list[MatMul | Conv2D]:
    """An op that is a matrix product or a convolution, or those in its regions."""
    found = [op, *(inner.opview for inner in nested_operations(op.operation))] if len(op.regions) else [op]
    return [view for view in found if isinstance(view, (MatMul, Conv2D))]


def _can_pack(op: MatMul | Conv2D) -> bool:
    weight = TensorInfo.of(op.operands[1])
    if not all(isinstance(d, int) and d > 0 for d in weight.shape) or not is_float(weight.dtype):
        return False
    return _is_pointwise(op) if isinstance(op, Conv2D) else weight.rank == 2


def _is_pointwise(op: Conv2D) -> bool:
    """Whether each element of the result is a sum over the channels of one element of the image."""
    attrs = attrs_of(op)
    kernel = reordered(TensorInfo.of(op.weight).shape, attrs["kernel_layout"], "OIHW")[2:]
    known = isinstance(TensorInfo.of(op.x).shape[-1], int)
    plain = known and attrs["groups"] == 1 and tuple(attrs["strides"]) == (1, 1) and not any(attrs["padding"])
    return plain and attrs["data_layout"] == "NHWC" and kernel == [1, 1]


def _matrix(weight: ir.Value, layout: str) -> ir.Value:
    """A weight as ``[k, n]``: of a layout of filters, ``[c, o]``."""
    if not layout:
        return weight
    axes = permutation(layout, "HWIO")
    moved = weight if axes == sorted(axes) else PermuteDims.create(weight, axes=axes).result
    return reshaped(moved, TensorInfo.of(moved).shape[2:])


def _flat_product(op: Conv2D, weight: ir.Value, attrs: dict[str, Any]) -> ir.Value | None:
    """The elements of an image of static size as rows of one matrix, so that tiles do not end with its lines."""
    x, result = TensorInfo.of(op.x), TensorInfo.of(op.results[0])
    rows = [d for d in x.shape[:-1] if isinstance(d, int)]
    if len(rows) < 3 or x.with_(shape=[*rows, attrs["n"]], dtype=result.dtype).type != result.type:
        return None
    product = PackedMatMul.create(reshaped(op.x, [prod(rows), x.shape[-1]]), weight, **attrs).result
    return reshaped(product, [*rows, attrs["n"]])


def _columns(weight: ir.Value, layout: str) -> Dim:
    shape = TensorInfo.of(weight).shape
    return shape[layout.index("O")] if layout else shape[1]
