"""Rewrites matrix products with a weight to read it packed; packing is an op on the weight, so lifting moves it to preparation.

Before::

    %y = "relax.matmul"(%x, %w) : (tensor<?x768xf32, {sym = ["n"]}>, tensor<768x3072xf32>) -> tensor<?x3072xf32, {sym = ["n"]}>

after::

    %p = "relax.pack_weight"(%w) {layout = "tile 32"} : (tensor<768x3072xf32>) -> tensor<96x768x32xf32>
    %y = "relax.packed_matmul"(%x, %p) {layout = "tile 32", n = 3072 : i64} : (...) -> tensor<?x3072xf32, {sym = ["n"]}>

A panel of one column is a column: a weight that is transposed to be multiplied is packed so as it is, by a reshape::

    %w = "relax.permute_dims"(%0) {axes = array<i64: 1, 0>} : (tensor<3072x768xf32>) -> tensor<768x3072xf32>

    %p = "relax.reshape"(%0) : (tensor<3072x768xf32>) -> tensor<3072x768x1xf32>
    %y = "relax.packed_matmul"(%x, %p) {layout = "tile 1", n = 3072 : i64} : (...) -> tensor<?x3072xf32, {sym = ["n"]}>

Columns in groups, of which a row is multiplied with those of its own, are in panels that those of a group fill.

A convolution in NHWC reads its filters as the packed matrix ``[kh * kw * c / groups, o]``::

    %y = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"}

    %m = "relax.reshape"(%w) : (tensor<3x3x64x128xf32>) -> tensor<576x128xf32>
    %p = "relax.pack_weight"(%m) {layout = "tile 32"} : (tensor<576x128xf32>) -> tensor<4x576x32xf32>
    %y = "relax.packed_conv2d"(%x, %p) {channels = 128 : i64, kernel_size = array<i64: 3, 3>, layout = "tile 32"}

in panels that the filters of a group fill, where it has groups: down to a quarter of a line. One in NCHW stays, as its
filters are no right-hand side. One of integers reads some channels side by side, and zeros beyond the last::

    %y = "relax.quantized_conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO"}

    %0 = "relax.pad"(%w) {before = array<i64: 0, 0, 0, 0>, after = array<i64: 0, 0, 1, 0>, value = 0 : i64}
    %m = "relax.reshape"(%0) : (tensor<7x7x4x64xi8>) -> tensor<196x64xi8>
    %p = "relax.pack_weight"(%m) {layout = "tile 32, rows 4"} : (tensor<196x64xi8>) -> tensor<2x49x32x4xi8>
    %y = "relax.packed_quantized_conv2d"(%x, %p) {channels = 64 : i64, kernel_size = ..., layout = "tile 32, rows 4"}
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import ir
from ...functions import functions, num_input
from ...inference import is_float
from ...layouts import permutation, reordered
from ...op import attrs_of
from ...ops import (
    AsType,
    Conv2D,
    Dequantize,
    GroupedMatMul,
    MatMul,
    PackedConv2D,
    PackedGroupedMatMul,
    PackedMatMul,
    PackedQuantizedConv2D,
    PackWeight,
    Pad,
    PermuteDims,
    QuantizedConv2D,
)
from ...packed_layout import NARROWEST, PackedLayout
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...traversal import outermost
from ...weight_layouts import WeightLayouts
from .block_movement import MOVES, reshaped

__all__ = ["PackWeights"]

_Convolution = Conv2D | QuantizedConv2D
_Product = MatMul | GroupedMatMul


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
        layout, layouts, rules = PackedLayout(tile), WeightLayouts.of(op), FlowRules.of(op)
        integers = PackedLayout(tile, layouts.int8_rows)
        for function in functions(op):
            if num_input(function) is not None:
                walk(function, _Packing(layout, integers, rules.flow(function), layouts.panels).patterns())


class _Packing:
    """What is packed in one function: a weight that several products read once, before the first, and outside of loops."""

    def __init__(self, layout: PackedLayout, integers: PackedLayout, flow: WeightFlow, panels: bool):
        self._layout, self._integers, self._flow, self._panels = layout, integers, flow, panels
        self._packed: dict[tuple[ir.Value, str, PackedLayout], ir.Value] = {}

    def patterns(self) -> Patterns:
        convolutions = [(convolution, self._read_packed) for convolution in (Conv2D, QuantizedConv2D)]
        products = [(product, self._read_packed) for product in (MatMul, GroupedMatMul)]
        return [*products, *convolutions]

    def _read_packed(self, op: _Product | _Convolution, rewriter: Rewriter) -> bool:
        weight = op.operands[1]
        if self._flow.comes_from_weights(op.results[0]) or not self._flow.once_from_weights(weight) or not self._can_pack(op):
            return False
        filters = "" if isinstance(op, _Product) else op.kernel_layout
        layout = self._layout_of(op)
        if (weight, filters, layout) not in self._packed:
            with ir.InsertionPoint(outermost(op.operation)), op.location:
                self._packed[weight, filters, layout] = self._pack(_matrix(weight, filters, layout.rows), layout)
        with rewriter.before(op):
            made = _packed(op, self._packed[weight, filters, layout], layout)
        if isinstance(weight.owner, PermuteDims):  # a transposition that packing did without
            rewriter.discard(weight.owner)
        return rewriter.replace(op, made)

    def _layout_of(self, op: _Product | _Convolution) -> PackedLayout:
        """The target's panels; of columns, or filters, in groups, panels that those of one fill."""
        layout = self._integers if isinstance(op, QuantizedConv2D) else self._layout
        if isinstance(op, GroupedMatMul):
            return layout.filled_by(_columns(op))
        if isinstance(op, MatMul) or op.groups == 1:
            return layout
        return layout.filled_by(_outputs(op) // op.groups)

    def _can_pack(self, op: _Product | _Convolution) -> bool:
        weight = TensorInfo.of(op.operands[1])
        if not all(isinstance(d, int) and d > 0 for d in weight.shape):
            return False
        if isinstance(op, QuantizedConv2D):
            channels, rows = weight.shape[op.kernel_layout.index("I")], self._integers.rows
            assert isinstance(channels, int)
            known = isinstance(TensorInfo.of(op.x).shape[op.data_layout.index("C")], int)
            if rows == 1 or not self._panels or not known or (op.groups > 1 and channels % rows):
                return False
        elif not is_float(weight.dtype):
            return False
        if isinstance(op, GroupedMatMul) and self._panels and self._layout_of(op).tile < min(NARROWEST, self._layout.tile):
            return False
        if isinstance(op, _Product):
            return weight.rank == 2 and (self._panels or self._layout.tile == 1 or _is_quantized(op.operands[1]))
        return op.data_layout == "NHWC" and (op.groups == 1 or self._fills_panels(op))

    def _fills_panels(self, op: _Convolution) -> bool:
        """Whether a group's filters fill panels; narrow ones pay where windows have several channels to multiply with."""
        tile, target = self._layout_of(op).tile, (self._integers if isinstance(op, QuantizedConv2D) else self._layout).tile
        channels = TensorInfo.of(op.operands[1]).shape[op.kernel_layout.index("I")]
        return tile == target or (tile >= NARROWEST and channels != 1)

    def _pack(self, matrix: ir.Value, layout: PackedLayout) -> ir.Value:
        """A matrix in panels; one that is transposed has its columns one after the other already."""
        owner = matrix.owner
        if layout == PackedLayout(1) and isinstance(owner, PermuteDims):
            k, n = TensorInfo.of(matrix).shape
            return reshaped(owner.x, layout.shape(k, n))
        return PackWeight.create(matrix, layout=layout).result


def _columns(op: GroupedMatMul) -> int:
    """Those of a group."""
    columns = TensorInfo.of(op.result).shape[1]
    assert isinstance(columns, int)
    return columns


def _outputs(op: _Convolution) -> int:
    outputs = TensorInfo.of(op.operands[1]).shape[op.kernel_layout.index("O")]
    assert isinstance(outputs, int)
    return outputs


def _is_quantized(weight: ir.Value) -> bool:
    """Whether a weight is made of integers, which passes on quantized products look for in panels."""
    owner = weight.owner
    while type(owner) in MOVES or isinstance(owner, AsType):
        owner = owner.operands[0].owner
    return isinstance(owner, Dequantize)


def _matrix(weight: ir.Value, layout: str, rows: int) -> ir.Value:
    """A weight as ``[k, n]``: of a layout of filters, ``[kh * kw * c, o]``, with channels of zeros up to a multiple of rows."""
    if not layout:
        return weight
    axes = permutation(layout, "HWIO")
    moved = weight if axes == sorted(axes) else PermuteDims.create(weight, axes=axes).result
    more = -_channels(moved) % rows
    if more:
        moved = Pad.create(moved, before=[0] * 4, after=[0, 0, more, 0], value=0).result
    *taps, outputs = TensorInfo.of(moved).shape
    return reshaped(moved, [prod(d for d in taps if isinstance(d, int)), outputs])


def _channels(filters: ir.Value) -> int:
    channels = TensorInfo.of(filters).shape[2]
    assert isinstance(channels, int)
    return channels


def _packed(op: _Product | _Convolution, weight: ir.Value, layout: PackedLayout) -> ir.Operation:
    """The same product with a packed weight."""
    x, shape, types = op.operands[0], TensorInfo.of(op.operands[1]).shape, [op.results[0].type]
    attrs: dict[str, Any] = {key: value for key, value in attrs_of(op).items() if key in op.attributes}
    attrs["layout"] = layout
    if isinstance(op, _Product):
        packed = PackedMatMul if isinstance(op, MatMul) else PackedGroupedMatMul
        return packed.create(x, weight, *list(op.operands)[2:], result_types=types, n=shape[1], **attrs)
    *kernel, _, channels = reordered(shape, op.kernel_layout, "HWIO")
    packed = PackedQuantizedConv2D if isinstance(op, QuantizedConv2D) else PackedConv2D
    attrs = {key: value for key, value in attrs.items() if key in packed.attrs}
    return packed.create(x, weight, *list(op.operands)[2:], result_types=types, channels=channels, kernel_size=kernel, **attrs)
