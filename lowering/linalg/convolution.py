"""Convolution as a matrix product: windows become the columns of a packed matrix, filters are the left-hand side.

``[o, c * kh * kw] x [n, c * kh * kw, h' * w'] -> [n, o, h' * w']``; with groups, both have one more batch dimension. Where each
filter reads one channel (depthwise) there is no matrix to speak of: a reduction over the window of a padded image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dialect.bindings import ir
from .builder import ZERO, Builder, Input, Size, Tensor, read, value_type
from .contraction import Matrix, contract, pack
from .conversion import load
from .dtypes import accumulator_type
from .pooling import padded_image
from .reduction import finish
from .registry import Source, lowering
from .reshaping import view
from .scalar import Scalar, maximum, minimum, select
from .window import Axis, axes_of, output_size

__all__: list[str] = []


@lowering("relax.conv2d")
def _lower_conv2d(b: Builder, source: Source) -> ir.Value:
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
    """Filter ``o`` over channel ``o // (filters per channel)``."""
    x, weight = source.operands
    outputs, groups = value_type(weight.value).shape[0], source.attrs["groups"]
    image = padded_image(b, x, axes, [axis.after for axis in axes], 0.0)
    loops = [ir.AffineExpr.get_dim(i) for i in range(6)]
    channel = ir.AffineExpr.get_floor_div(loops[1], outputs // groups)
    where = [loops[2 + i] * axis.stride + loops[4 + i] * axis.dilation for i, axis in enumerate(axes)]
    start = b.filled([b.size(x, 0), outputs, *result], accumulator_type(x.dtype), 0)

    def body(element: ir.Value, tap: ir.Value, total: ir.Value) -> ir.Value:
        return (Scalar(total) + load(element, x.dtype) * load(tap, weight.dtype)).value

    inputs: list[Input] = [(image, [0, channel, *where]), (weight.value, [1, ZERO, 4, 5])]
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
