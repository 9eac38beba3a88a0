"""Rewrites 3x3 convolutions with filters that come from weights to Winograd's minimal filtering: 16 products for each 36.

Before::

    %y = "relax.conv2d"(%x, %w) {data_layout = "NHWC", kernel_layout = "HWIO", padding = array<i64: 1, 1, 1, 1>}
        : (tensor<1x56x56x64xf32>, tensor<3x3x64x128xf32>) -> tensor<1x56x56x128xf32>

after::

    %g = "relax.constant"() {value = dense<...> : tensor<16x9xf32>}                   // G of both axes
    %m = "relax.reshape"(%w) : (tensor<3x3x64x128xf32>) -> tensor<9x8192xf32>
    %u = "relax.matmul"(%g, %m) : (tensor<16x9xf32>, tensor<9x8192xf32>) -> tensor<16x8192xf32>
    %k = "relax.reshape"(%u) : (tensor<16x8192xf32>) -> tensor<1024x128xf32>
    %p = "relax.pack_weight"(%k) {layout = "tile 32", relax.lift = "always"} : (tensor<1024x128xf32>)
        -> tensor<4x1024x32xf32>
    %y = "relax.winograd_conv2d"(%x, %p) {channels = 128 : i64, layout = "tile 32", padding = array<i64: 1, 1, 1, 1>}

What filters are transformed by is math on weights, which is always lifted: they take 16/9 of the memory. Those are
convolutions in NHWC of f32, of one group, with strides and dilation of 1, of at least 16 channels in and out, on targets
whose kernels read panels. Others stay: few products do not make up for transforming tiles. With ``gainful`` those of small
images stay, too, which take longer to read their filters than to multiply them.

A result is rounded relative to the largest element of its window times the largest tap, not to the sum of all products.
``rx.compile(..., convolutions="direct")`` leaves this pass out.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), section 4.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import ir
from ...elements import from_numpy
from ...functions import functions, num_input
from ...layouts import permutation, reordered
from ...lift_override import ALWAYS, LIFT
from ...ops import Constant, Conv2D, MatMul, PackWeight, PermuteDims, WinogradConv2D
from ...packed_layout import PackedLayout
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...traversal import outermost
from ...weight_layouts import WeightLayouts
from ...winograd import MOST_CHANNELS, OF_FILTER, PLACES, RESULTS, TAPS
from .block_movement import reshaped

__all__ = ["WinogradConvolutions"]

# Channels in and out from which on it takes less time: of 16 and 64 x 64 elements, Zen 4, one thread, 0.67 of it.
_LEAST = 16
# Known sizes that make fewer tiles, or no more than so many results in each, stay: reading 16/9 of the filters takes longer
# than fewer products save. 512 channels, Cascade Lake, one thread, over the time of a direct one: 4 tiles of 16 results 1.14,
# 9 of 25 0.85, 16 of 49 0.78; of four images of 2 x 2 0.95, of 16 of 1 x 1 1.2, of 16 of 2 x 2 0.47.
_TILES, _RESULTS = 9, 2


@dataclass(frozen=True)
class WinogradConvolutions(Pass):
    """Rewrites convolutions in functions that have ``relax.num_input``.

    Attributes:
        gainful: only those that take less time so; what is not known of an image is large.
    """

    name: ClassVar[str] = "relax-winograd-convolutions"
    rounding: ClassVar[float] = 1e-5  # sums of as many products in another order, of numbers that were added up first
    gainful: bool = False

    def run(self, op: ir.Operation) -> None:
        layouts, rules = WeightLayouts.of(op), FlowRules.of(op)
        if not layouts.panels:
            return
        for function in functions(op):
            if num_input(function) is not None:
                filtering = _Filtering(PackedLayout(layouts.columns), rules.flow(function), self.gainful)
                walk(function, filtering.patterns())


class _Filtering:
    """What is rewritten in one function: filters that several convolutions read are transformed once, outside of loops."""

    def __init__(self, layout: PackedLayout, flow: WeightFlow, gainful: bool):
        self._layout, self._flow, self._gainful = layout, flow, gainful
        self._made: dict[tuple[ir.Value, str], ir.Value] = {}

    def patterns(self) -> Patterns:
        return [(Conv2D, self._rewrite)]

    def _rewrite(self, op: Conv2D, rewriter: Rewriter) -> bool:
        weight, order = op.operands[1], op.kernel_layout
        if self._flow.comes_from_weights(op.results[0]) or not self._flow.once_from_weights(weight) or not _can_filter(op):
            return False
        if self._gainful and not _gains(op):
            return False
        if (weight, order) not in self._made:
            with ir.InsertionPoint(outermost(op.operation)), op.location:
                packed = PackWeight.create(_transformed(weight, order), layout=self._layout)
            packed.attributes[LIFT] = ir.StringAttr.get(ALWAYS)  # transformed at each call, filters would cost what they save
            self._made[weight, order] = packed.result
        given = {"padding": op.padding} if "padding" in op.attributes else {}
        given |= {"layout": self._layout, "channels": TensorInfo.of(weight).shape[order.index("O")]}
        with rewriter.before(op):
            made = WinogradConv2D.create(op.x, self._made[weight, order], result_types=[op.results[0].type], **given)
        return rewriter.replace(op, made)


def _can_filter(op: Conv2D) -> bool:
    x, weight = TensorInfo.of(op.x), TensorInfo.of(op.operands[1])
    if op.data_layout != "NHWC" or x.dtype != ir.F32Type.get() or op.out_dtype not in (None, x.dtype) or op.groups != 1:
        return False
    *kernel, channels, outputs = reordered(weight.shape, op.kernel_layout, "HWIO")
    known = (
        isinstance(channels, int)
        and isinstance(outputs, int)
        and min(channels, outputs) >= _LEAST
        and channels <= MOST_CHANNELS
    )
    return known and kernel == [TAPS, TAPS] and all(s == 1 for s in (*(op.strides or ()), *(op.dilation or ())))


def _gains(op: Conv2D) -> bool:
    """Whether there are so many tiles, and so many results in them, that fewer products take less time."""
    images, *image, _ = TensorInfo.of(op.results[0]).shape
    known = [size for size in image if isinstance(size, int)]
    tiles = math.prod(-(-size // RESULTS) for size in known)
    if math.prod(known) <= tiles * _RESULTS ** (len(known) - 1):
        return False
    return len(known) < len(image) or not isinstance(images, int) or images * tiles >= _TILES


def _transformed(weight: ir.Value, order: str) -> ir.Value:
    """Filters ``G g G^T`` as the matrix ``[16 * c, o]``."""
    axes = permutation(order, "HWIO")
    moved = weight if axes == sorted(axes) else PermuteDims.create(weight, axes=axes).result
    channels, outputs = TensorInfo.of(moved).shape[2:]
    assert isinstance(channels, int)
    assert isinstance(outputs, int)
    along = np.asarray(OF_FILTER, np.float32)
    factors = np.kron(along, along)
    both = Constant.create(value=from_numpy(factors, ir.RankedTensorType.get(factors.shape, ir.F32Type.get()))).result
    product = MatMul.create(both, reshaped(moved, [TAPS * TAPS, channels * outputs])).result
    return reshaped(product, [PLACES * channels, outputs])
