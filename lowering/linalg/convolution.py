"""Convolution as a matrix product: windows become the columns of a packed matrix, filters are the left-hand side.

``[o, c * kh * kw] x [n, c * kh * kw, h' * w'] -> [n, o, h' * w']``; with groups, both have one more batch dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir
from .builder import Builder, Size, Tensor, read
from .contraction import Matrix, contract
from .conversion import load
from .dtypes import accumulator_type
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
    taps = b.product([channels, *kernel])
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
