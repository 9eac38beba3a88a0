"""Convolution of integers: exact sums of products of windows and filters, in i32.

Of packed filters some channels of an output are neighbours, as instructions read them, here four::

    out[p, o] += image[(p floordiv w') * stride + y, (p mod w') * stride + x, 4 * c + r] * filters[o floordiv tile, y, x, c,
                                                                                                 o mod tile, r]

a contraction over four reductions; of filters that nothing has packed, over three. Where each filter reads one channel
(depthwise) it is a reduction over the window of a padded image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ...dialect.bindings import ir
from ...dialect.packed_layout import PackedLayout
from .builder import ZERO, Input, LinalgBuilder, Size, Tensor, value_type
from .contraction import FactorTensor, factor, products
from .convolution import ContractionLoops, exact_image, is_point, laid_out, moved
from .dtypes import is_unsigned
from .registry import Source, lowering
from .reshaping import view
from .scalar import Scalar
from .slicing import insert_slice
from .window import Axis, axes_of, output_size, window_exprs

__all__: list[str] = []


@lowering("relax.quantized_conv2d")
def _lower_quantized_conv2d(b: LinalgBuilder, source: Source) -> ir.Value:
    given, weight, zero = source.operands
    layout, groups = source.attrs["data_layout"], source.attrs["groups"]
    weight = laid_out(b, weight, source.attrs["kernel_layout"], "HWIO")
    x = laid_out(b, given, layout, "NHWC")
    *kernel, channels, outputs = b.sizes(weight)
    axes = axes_of(b.sizes(x)[1:3], kernel, source.attrs)
    result = [output_size(b, axis) for axis in axes]
    x = _padded(b, x, axes, b.size(x, 3), zero)
    if groups > 1 and channels == 1 and isinstance(outputs, int):
        sums = _depthwise(b, source, x, weight, axes, result)
    else:
        sums = _grouped(b, source, replace(x, value=exact_image(b, x.value, axes, result)), weight, axes, result)
    return moved(b, sums, "NHWC", layout)


@lowering("relax.packed_quantized_conv2d")
def _lower_packed_quantized_conv2d(b: LinalgBuilder, source: Source) -> ir.Value:
    x, filters, zero = source.operands
    layout: PackedLayout = source.attrs["layout"]
    kernel, groups, outputs = source.attrs["kernel_size"], source.attrs["groups"], source.attrs["channels"]
    axes = axes_of(b.sizes(x)[1:3], kernel, source.attrs)
    result = [output_size(b, axis) for axis in axes]
    neighbours = value_type(filters.value).shape[1] // prod(kernel)
    x = _padded(b, x, axes, neighbours * groups * layout.rows, zero)
    n = b.size(x, 0)
    sizes: list[Size] = [n, *result, outputs]
    if groups == 1 and all(is_point(axis) for axis in axes):  # all of its rows are one line of an image
        rows = b.product([n, *result])
        x = replace(x, value=view(b, x.value, [1, 1, rows, b.dim(x.value, 3)]))
        n, result = 1, [1, rows]
    loops = ContractionLoops()
    image, place = loops.over(n), loops.image(b, *result)
    group, output = loops.over(groups), loops.over(b.arith("divsi", outputs, groups))
    taps = [loops.over(size, "r") for size in (*kernel, neighbours, layout.rows)]
    where = [p * axis.stride + tap * axis.dilation for p, tap, axis in zip(place, taps, axes, strict=False)]
    channel = (group * neighbours + taps[2]) * layout.rows + taps[3]
    panels = b.arith("divsi", b.dim(filters.value, 0), groups)
    sides = [layout.rows] if layout.has_neighbours else []
    product = products(
        b,
        FactorTensor(exact_image(b, x.value, axes, result), x.dtype, [image, *where, channel]),
        FactorTensor(
            view(b, filters.value, [groups, panels, *kernel, neighbours, layout.tile, *sides]),
            filters.dtype,
            [
                group,
                ir.AffineExpr.get_floor_div(output, layout.tile),
                *taps[:3],
                ir.AffineExpr.get_mod(output, layout.tile),
                *(taps[3:] if sides else []),
            ],
            layout,
        ),
        loops.kinds,
        loops.sizes,
        source.result.dtype,
    )
    return view(b, product, sizes)


def _padded(b: LinalgBuilder, x: Tensor, axes: Sequence[Axis], channels: Size, zero: Tensor) -> Tensor:
    """An image ``[n, h, w, c]`` of so many channels, the number where it has none, and around it."""
    n, height, width, inside = b.sizes(x)
    if all(axis.before == axis.after == 0 for axis in axes) and channels == inside:
        return x
    padded = [b.arith("addi", size, axis.before + axis.after) for size, axis in zip((height, width), axes, strict=True)]
    image = b.empty([n, *padded, channels], value_type(x.value).element_type)
    if zero.splat is None:
        image = b.generic("pppp", [(zero.value, [])], image, lambda number, _: number)
    else:  # images in frames of one number take turns in one buffer
        image = b.fill(image, zero.splat, is_unsigned(zero.dtype))
    return replace(x, value=insert_slice(b, x.value, image, [0, *(axis.before for axis in axes), 0], b.sizes(x)))


def _grouped(
    b: LinalgBuilder, source: Source, x: Tensor, weight: Tensor, axes: Sequence[Axis], result: Sequence[Size]
) -> ir.Value:
    """Windows of a padded image and filters ``[kh, kw, c, o]``, both as they are."""
    groups, dtype = source.attrs["groups"], source.result.dtype
    *kernel, each, outputs = b.sizes(weight)
    n, per_group = b.size(x, 0), b.arith("divsi", outputs, groups)
    loops = ContractionLoops()
    image, place = loops.over(n), loops.image(b, *result)
    group, output = loops.over(groups), loops.over(per_group)
    taps = [loops.over(size, "r") for size in (*kernel, each)]
    where = [p * axis.stride + tap * axis.dilation for p, tap, axis in zip(place, taps, axes, strict=False)]
    channels = b.dim(x.value, 3)
    apart = view(b, x.value, [n, b.dim(x.value, 1), b.dim(x.value, 2), groups, b.arith("divsi", channels, groups)])
    product = products(
        b,
        FactorTensor(apart, x.dtype, [image, *where, group, taps[2]]),
        FactorTensor(view(b, weight.value, [*kernel, each, groups, per_group]), weight.dtype, [*taps, group, output]),
        loops.kinds,
        loops.sizes,
        dtype,
    )
    return view(b, product, [n, *result, outputs])


def _depthwise(
    b: LinalgBuilder, source: Source, x: Tensor, weight: Tensor, axes: Sequence[Axis], result: Sequence[Size]
) -> ir.Value:
    """Filter ``o`` over channel ``o // (filters per channel)``."""
    outputs, dtype = value_type(weight.value).shape[3], source.result.dtype
    filter_ = ir.AffineExpr.get_dim(3)
    where = [*window_exprs(axes, "NHWC")[:3], ir.AffineExpr.get_floor_div(filter_, outputs // source.attrs["groups"])]

    def body(element: ir.Value, tap: ir.Value, total: ir.Value) -> ir.Value:
        return (Scalar(total) + factor(element, x.dtype, dtype) * factor(tap, weight.dtype, dtype)).value

    inputs: list[Input] = [(x.value, where), (weight.value, [4, 5, ZERO, filter_])]
    return b.generic("pppprr", inputs, b.filled([b.size(x, 0), *result, outputs], dtype, 0), body, range(4))
