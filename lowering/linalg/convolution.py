"""Convolution as a matrix product of windows and filters.

In NCHW windows become the columns of a packed matrix, filters are the left-hand side:
``[o, c * kh * kw] x [n, c * kh * kw, h' * w'] -> [n, o, h' * w']``. In NHWC windows are rows, and filters the packed
right-hand side: ``[n * h' * w', kh * kw * c] x [kh * kw * c, o] -> [n * h' * w', o]``. With groups, both have one more batch
dimension; in NHWC those go by way of NCHW. Where each filter reads one channel (depthwise) there is no matrix to speak of: a
reduction over the window of a padded image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dialect.bindings import ir
from ...dialect.layouts import permutation, reordered
from .builder import ZERO, Builder, Input, Size, Tensor, read, value_type
from .contraction import Matrix, contract, pack
from .conversion import load
from .dtypes import accumulator_type
from .pooling import padded_image
from .reduction import finish
from .registry import Source, lowering
from .reshaping import view
from .scalar import Scalar, maximum, minimum, select
from .window import Axis, axes_of, output_size, window_exprs, with_spatial

__all__: list[str] = []


@lowering("relax.conv2d")
def _lower_conv2d(b: Builder, source: Source) -> ir.Value:
    x, weight = source.operands
    layout, groups = source.attrs["data_layout"], source.attrs["groups"]
    weight = _laid_out(b, weight, source.attrs["kernel_layout"], "HWIO" if layout == "NHWC" else "OIHW")
    source = replace(source, operands=[x, weight])
    if layout == "NCHW":
        return _in_nchw(b, source)
    channels, outputs = b.sizes(weight)[2:]
    if groups > 1 and not (channels == 1 and isinstance(outputs, int)):
        operands = [_laid_out(b, x, "NHWC", "NCHW"), _laid_out(b, weight, "HWIO", "OIHW")]
        product = _in_nchw(b, replace(source, operands=operands))
        return _moved(b, product, "NCHW", "NHWC")
    axes = axes_of(b.sizes(x)[1:3], b.sizes(weight)[:2], source.attrs)
    result = [output_size(b, axis) for axis in axes]
    return _depthwise(b, source, axes, result) if groups > 1 else _in_nhwc(b, source, axes, result)


def _laid_out(b: Builder, x: Tensor, source: str, target: str) -> Tensor:
    """An operand in another layout."""
    if source == target:
        return x
    return Tensor(_moved(b, x.value, source, target), x.info.with_(shape=reordered(x.shape, source, target)))


def _moved(b: Builder, value: ir.Value, source: str, target: str) -> ir.Value:
    sizes = reordered(b.value_sizes(value), source, target)
    return b.movement(value, permutation(target, source), sizes)


def _in_nhwc(b: Builder, source: Source, axes: Sequence[Axis], result: Sequence[Size]) -> ir.Value:
    """Rows are windows; of a pointwise convolution they are the image as it is."""
    x, weight = source.operands
    n, *_, channels = b.sizes(x)
    outputs = b.size(weight, 3)
    taps = b.product([*(axis.kernel for axis in axes), channels])
    every = b.product([n, *result])
    left = x.value if all(_is_point(axis) for axis in axes) else _rows(b, x, axes, result)
    filters = pack(b, replace(weight, value=view(b, weight.value, [taps, outputs])), b.tile)
    product = contract(
        b,
        Matrix(view(b, left, [every, taps]), x.dtype, []),
        Matrix(filters, weight.dtype, []),
        [every, outputs],
        source.result.dtype,
    )
    return view(b, product, [n, *result, outputs])


def _rows(b: Builder, x: Tensor, axes: Sequence[Axis], result: Sequence[Size]) -> ir.Value:
    """All windows of a padded image: ``[n, h', w', kh, kw, c]``."""
    image = padded_image(b, x, axes, [axis.after for axis in axes], 0.0, "NHWC")
    n, *_, channels = b.sizes(x)
    loops = [ir.AffineExpr.get_dim(i) for i in range(6)]
    where = [loops[1 + i] * axis.stride + loops[3 + i] * axis.dilation for i, axis in enumerate(axes)]
    return b.movement(image, [0, *where, 5], [n, *result, *(axis.kernel for axis in axes), channels])


def _in_nchw(b: Builder, source: Source) -> ir.Value:
    x, weight = source.operands
    groups = source.attrs["groups"]
    n, _, *image = b.sizes(x)
    outputs, channels, *kernel = b.sizes(weight)
    axes = axes_of(image, kernel, source.attrs)
    result = [output_size(b, axis) for axis in axes]
    if channels == 1 and groups > 1 and isinstance(outputs, int):
        return _depthwise(b, source, axes, result)
    taps = b.product([channels, *kernel])
    if all(_is_point(axis) for axis in axes):
        columns = pack(b, replace(x, value=view(b, x.value, [n, groups, channels, b.product(image)])), b.tile, widen=True)
    else:
        columns = _columns(b, x, axes, result, (groups, channels, taps))
    each = b.arith("divsi", outputs, groups)
    filters = view(b, weight.value, [groups, each, taps])
    product = contract(
        b,
        Matrix(filters, weight.dtype, [1]),
        Matrix(columns, x.dtype, [0, 1]),
        [n, groups, each, b.product(result)],
        source.result.dtype,
    )
    return view(b, product, [n, outputs, *result])


def _is_point(axis: Axis) -> bool:
    """Whether windows are the elements themselves."""
    return axis.kernel == 1 and axis.stride == 1 and axis.before == axis.after == 0


def _depthwise(b: Builder, source: Source, axes: Sequence[Axis], result: Sequence[Size]) -> ir.Value:
    """Filter ``o`` over channel ``o // (filters per channel)``; the kernel is in the layout that goes with the image's."""
    x, weight = source.operands
    layout, groups = source.attrs["data_layout"], source.attrs["groups"]
    channel = layout.index("C")
    outputs = value_type(weight.value).shape[3 if layout == "NHWC" else 0]
    image = padded_image(b, x, axes, [axis.after for axis in axes], 0.0, layout)
    filter_ = ir.AffineExpr.get_dim(channel)
    where = window_exprs(axes, layout)
    where[channel] = ir.AffineExpr.get_floor_div(filter_, outputs // groups)
    sizes = with_spatial(b.sizes(x), layout, result)
    sizes[channel] = outputs
    start = b.filled(sizes, accumulator_type(x.dtype), 0)

    def body(element: ir.Value, tap: ir.Value, total: ir.Value) -> ir.Value:
        return (Scalar(total) + load(element, x.dtype) * load(tap, weight.dtype)).value

    taps = [4, 5, ZERO, filter_] if layout == "NHWC" else [filter_, ZERO, 4, 5]
    inputs: list[Input] = [(image, where), (weight.value, taps)]
    return finish(b, b.generic("pppprr", inputs, start, body, range(4)), source.result.dtype)


def _columns(b: Builder, x: Tensor, axes: Sequence[Axis], result: Sequence[Size], taps: tuple[Size, ...]) -> ir.Value:
    """All windows, packed: ``[n, group, panel, tap, tile]``, zero in the padding and beyond the last window."""
    groups, channels, every = taps
    element = accumulator_type(x.dtype)
    panels = b.arith("ceildivsi", b.product(result), b.tile)
    shape = [b.size(x, 0), groups, panels, every, b.tile]
    kernel_w, width = Scalar(b.as_index(axes[1].kernel)), Scalar(b.as_index(result[1]))
    kernel_area = Scalar(b.as_index(b.product(a.kernel for a in axes)))
    per_group, windows = Scalar(b.as_index(channels)), Scalar(b.as_index(b.product(result)))
    lasts = [Scalar(b.as_index(b.arith("subi", a.size, 1))) for a in axes]

    def body(loops: list[Scalar]) -> ir.Value:
        image, group, panel, tap, lane = loops
        window = panel * b.tile + lane
        within = tap % kernel_area
        starts = (window / width, window % width)
        taps_ = (within / kernel_w, within % kernel_w)
        inside = window.compare("lt", windows)
        where: list[Scalar] = []
        for axis, start, step, last in zip(axes, starts, taps_, lasts, strict=True):
            position = start * axis.stride + step * axis.dilation - axis.before
            inside = inside & position.compare("ge", 0) & position.compare("le", last)
            where.append(maximum(minimum(position, last), 0))
        value = load(read(x.value, [image, group * per_group + tap / kernel_area, *where]), x.dtype)
        return select(inside, value, 0).value

    return b.gather(shape, element, body)
