"""Takes the largest of integers where windows take the largest of what these are dequantized to, by one scale.

Before::

    %0 = "relax.dequantize"(%q, %s, %zero)         // tensor<1x64x112x112xui8>, tensor<f32>, tensor<ui8>
    %y = "relax.max_pool2d"(%0) {pool_size = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>}

after::

    %0 = "relax.where"("relax.less"(%s, 0.0), 255, 0)              // which bits of %q turn the order round
    %1 = "relax.max_pool2d"("relax.bitwise_xor"(%q, %0))
    %y = "relax.dequantize"("relax.bitwise_xor"(%1, %0), %s, %zero)

The result is the same, bit for bit: a product with a finite scale keeps the order of integers, or turns it round where the
scale is negative. The image is a quarter as large, and so is what pads it. Every window has to have an element that is no
padding: that is -inf, and no integer stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import ir
from ...functions import functions, num_input
from ...inference import is_float
from ...layouts import reordered
from ...op import attrs_of
from ...ops import BitwiseXor, Dequantize, Less, MaxPool2D, Where
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...symbolic import Dim
from .given_integers import full

__all__ = ["PoolIntegers"]


@dataclass(frozen=True)
class PoolIntegers(Pass):
    """Rewrites in functions that have ``relax.num_input``, where the scale is known ahead."""

    name: ClassVar[str] = "relax-pool-integers"

    def run(self, op: ir.Operation) -> None:
        rules = FlowRules.of(op)
        for function in functions(op):
            if num_input(function) is not None:
                flow = rules.flow(function)
                walk(function, _Pooling(flow).patterns(), flow)


class _Pooling:
    """Rewrites in one function."""

    def __init__(self, flow: WeightFlow):
        self._flow = flow

    def patterns(self) -> Patterns:
        return [(MaxPool2D, self._pool)]

    def _pool(self, op: MaxPool2D, rewriter: Rewriter) -> bool:
        source = op.x.owner
        if not isinstance(source, Dequantize) or not self._takes(source) or not _windows_have_elements(op):
            return False
        rewriter.discard(source)
        with rewriter.before(op):
            dtype = ir.IntegerType(TensorInfo.of(source.x).dtype)
            bits = (1 << dtype.width) - 1 if dtype.is_unsigned else -1
            negative = Less.create(source.scale, full(0.0, TensorInfo.of(source.scale).dtype, [])).result
            turns = Where.create(negative, full(bits, dtype, []), full(0, dtype, [])).result
            pooled = MaxPool2D.create(BitwiseXor.create(source.x, turns).result, **attrs_of(op)).result
            largest = BitwiseXor.create(pooled, turns).result
            wide = TensorInfo.of(op.result).dtype
            return rewriter.replace(op, Dequantize.create(largest, source.scale, source.zero_point, out_dtype=wide))

    def _takes(self, source: Dequantize) -> bool:
        x, scale, zero = (TensorInfo.of(v) for v in (source.x, source.scale, source.zero_point))
        narrow = isinstance(x.dtype, ir.IntegerType) and x.dtype.width in (8, 16)
        one = not scale.rank and not zero.rank and not is_float(zero.dtype)
        return narrow and one and self._flow.is_ahead(source.scale)


def _windows_have_elements(op: MaxPool2D) -> bool:
    """Whether every window is known to have an element of the image."""
    spatial = list(reordered(TensorInfo.of(op.x).shape, op.layout, "NCHW"))[2:]
    results = list(reordered(TensorInfo.of(op.result).shape, op.layout, "NCHW"))[2:]
    axes = zip(spatial, results, op.pool_size, op.strides, op.padding[:2], op.dilation, strict=True)
    return all(_has_elements(*axis) for axis in axes)


def _has_elements(size: Dim, count: Dim, kernel: int, stride: int, before: int, dilation: int) -> bool:
    if not isinstance(size, int) or not isinstance(count, int):
        return False
    starts = (i * stride - before for i in range(count))
    return all(_is_inside(range(start, start + kernel * dilation, dilation), size) for start in starts)


def _is_inside(places: Sequence[int], size: int) -> bool:
    return any(0 <= place < size for place in places)
