"""Rewrites matrix products with a weight to read it packed; packing is an op on the weight, so lifting moves it to preparation.

Before::

    %y = "relax.matmul"(%x, %w) : (tensor<?x768xf32, {sym = ["n"]}>, tensor<768x3072xf32>) -> tensor<?x3072xf32, {sym = ["n"]}>

after::

    %p = "relax.pack_weight"(%w) {tile = 32 : i64} : (tensor<768x3072xf32>) -> tensor<96x768x32xf32>
    %y = "relax.packed_matmul"(%x, %p) {n = 3072 : i64} : (...) -> tensor<?x3072xf32, {sym = ["n"]}>

A convolution in NHWC reads its filters as the packed matrix ``[kh * kw * c / groups, o]``::

    %y = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"}

    %m = "relax.reshape"(%w) : (tensor<3x3x64x128xf32>) -> tensor<576x128xf32>
    %p = "relax.pack_weight"(%m) {tile = 32 : i64} : (tensor<576x128xf32>) -> tensor<4x576x32xf32>
    %y = "relax.packed_conv2d"(%x, %p) {channels = 128 : i64, kernel_size = array<i64: 3, 3>}

unless it is in groups that panels would span. One in NCHW stays, as its filters are no right-hand side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ...analysis.weight_flow import WeightValues
from ...bindings import func, ir
from ...errors import RelaxError
from ...functions import body_of, functions
from ...inference import is_float
from ...layouts import permutation, reordered
from ...op import attrs_of
from ...ops import Conv2D, MatMul, PackedConv2D, PackedMatMul, PackWeight, PermuteDims
from ...passes.base import Pass
from ...struct_info import TensorInfo
from ...traversal import nested_operations
from ...weight_layouts import WeightLayouts
from .block_movement import reshaped

__all__ = ["PackWeights"]


@dataclass(frozen=True)
class PackWeights(Pass):
    """Packs right-hand sides and filters that come from weights alone, in functions that have ``relax.num_input``.

    Attributes:
        tile: columns per panel, as the target's kernels read; None: what the module's ``relax.weight_layouts`` say.
    """

    name: ClassVar[str] = "relax-pack-weights"
    tile: int | None = None

    def run(self, op: ir.Operation) -> None:
        tile = WeightLayouts.of(op).columns if self.tile is None else self.tile
        if tile < 1:
            raise RelaxError(f"expected a positive tile, got {tile}")
        for function in functions(op):
            _pack_in(function, tile)


def _pack_in(function: func.FuncOp, tile: int) -> None:
    block, weights = body_of(function), WeightValues.of(function)
    if block is None or weights is None:
        return
    packed: dict[tuple[ir.Value, str], ir.Value] = {}
    for op in list(block.operations):
        if weights.enter(op):
            continue
        for product in _products(op):
            if product.operands[1] in weights and _can_pack(product, tile):
                _pack(product, op, packed, tile)


def _pack(op: MatMul | Conv2D, outer: ir.OpView, packed: dict[tuple[ir.Value, str], ir.Value], tile: int) -> None:
    """A weight that several products read is packed once, before the first of them, and outside of loops."""
    weight = op.operands[1]
    layout = op.kernel_layout if isinstance(op, Conv2D) else ""
    if (weight, layout) not in packed:
        with ir.InsertionPoint(outer), op.location:
            packed[weight, layout] = PackWeight.create(_matrix(weight, layout), tile=tile).result
    with ir.InsertionPoint(op), op.location:
        product = _packed(op, packed[weight, layout])
    op.results[0].replace_all_uses_with(product)
    op.operation.erase()


def _can_pack(op: MatMul | Conv2D, tile: int) -> bool:
    weight = TensorInfo.of(op.operands[1])
    if not all(isinstance(d, int) and d > 0 for d in weight.shape) or not is_float(weight.dtype):
        return False
    if isinstance(op, MatMul):
        return weight.rank == 2
    outputs = weight.shape[op.kernel_layout.index("O")]
    assert isinstance(outputs, int)
    return op.data_layout == "NHWC" and (op.groups == 1 or outputs // op.groups % tile == 0)


def _products(op: ir.OpView) -> list[MatMul | Conv2D]:
    """An op that is a matrix product or a convolution, or those in its regions."""
    found = [op, *(inner.opview for inner in nested_operations(op.operation))] if len(op.regions) else [op]
    return [view for view in found if isinstance(view, (MatMul, Conv2D))]


def _matrix(weight: ir.Value, layout: str) -> ir.Value:
    """A weight as ``[k, n]``: of a layout of filters, ``[kh * kw * c, o]``."""
    if not layout:
        return weight
    axes = permutation(layout, "HWIO")
    moved = weight if axes == sorted(axes) else PermuteDims.create(weight, axes=axes).result
    *taps, outputs = TensorInfo.of(moved).shape
    return reshaped(moved, [prod(d for d in taps if isinstance(d, int)), outputs])


def _packed(op: MatMul | Conv2D, weight: ir.Value) -> ir.Value:
    """The same product with a packed weight."""
    x, shape, types = op.operands[0], TensorInfo.of(op.operands[1]).shape, [op.results[0].type]
    attrs = {key: value for key, value in attrs_of(op).items() if key in op.attributes}
    if isinstance(op, MatMul):
        return PackedMatMul.create(x, weight, result_types=types, n=shape[1], **attrs).result
    *kernel, _, channels = reordered(shape, op.kernel_layout, "HWIO")
    attrs = {key: value for key, value in attrs.items() if key in PackedConv2D.attrs}
    return PackedConv2D.create(x, weight, result_types=types, channels=channels, kernel_size=kernel, **attrs).result
