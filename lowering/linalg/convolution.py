"""Convolution as a sum of products of windows and filters.

In NHWC windows are read where they are in the padded image, filters are the packed right-hand side, ``[kh * kw * c, o]`` or one
such matrix per group: a contraction over three reductions::

    out[p, o] += image[(p floordiv w') * stride + y, (p mod w') * stride + x, c] * filters[o floordiv tile, y, x, c, o mod tile]

In NCHW windows become the columns of a packed matrix, filters are the left-hand side:
``[o, c * kh * kw] x [n, c * kh * kw, h' * w'] -> [n, o, h' * w']``; of one tap the image is that matrix, where the target's
kernels need no panels. With groups, both have one more batch dimension; in NHWC
panels are as narrow as the filters of a group, and those of less than a quarter of a line go by way of NCHW. Where each filter
reads one channel (depthwise) there is no matrix to speak of: a reduction over the window of a padded image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dialect.bindings import ir
from ...dialect.layouts import permutation, reordered
from ...dialect.packed_layout import NARROWEST, PackedLayout
from .builder import ZERO, Input, LinalgBuilder, Size, Tensor, read, tensor_type, value_type
from .contraction import FactorTensor, Matrix, contract, pack, products
from .conversion import load
from .dtypes import accumulator_type
from .kernel import unless_empty
from .pooling import padded_image
from .reduction import finish
from .registry import Source, lowering
from .reshaping import view
from .scalar import Scalar, emit, maximum, minimum, select
from .window import Axis, axes_of, output_size, window_exprs, with_spatial

__all__ = ["ContractionLoops", "exact_image", "is_point", "laid_out", "moved"]


@lowering("relax.conv2d")
def _lower_conv2d(b: LinalgBuilder, source: Source) -> ir.Value:
    x, weight = source.operands
    layout, groups = source.attrs["data_layout"], source.attrs["groups"]
    weight = laid_out(b, weight, source.attrs["kernel_layout"], "HWIO" if layout == "NHWC" else "OIHW")
    source = replace(source, operands=[x, weight])
    if layout == "NCHW":
        return _in_nchw(b, source)
    channels, outputs = b.sizes(weight)[2:]
    depthwise = channels == 1 and isinstance(outputs, int)
    whole = (
        isinstance(channels, int) and isinstance(outputs, int) and _panels(b, outputs, groups).tile >= min(b.tile, NARROWEST)
    )
    if groups > 1 and not (depthwise or whole):  # panels would span groups, or be narrow
        operands = [laid_out(b, x, "NHWC", "NCHW"), laid_out(b, weight, "HWIO", "OIHW")]
        product = _in_nchw(b, replace(source, operands=operands))
        return moved(b, product, "NCHW", "NHWC")
    axes = axes_of(b.sizes(x)[1:3], b.sizes(weight)[:2], source.attrs)
    result = [output_size(b, axis) for axis in axes]
    lower = _depthwise if groups > 1 and depthwise else _in_nhwc
    return lower(b, source, axes, result)


def laid_out(b: LinalgBuilder, x: Tensor, source: str, target: str) -> Tensor:
    """An operand in another layout."""
    if source == target:
        return x
    return Tensor(moved(b, x.value, source, target), x.info.with_(shape=reordered(x.shape, source, target)))


def moved(b: LinalgBuilder, value: ir.Value, source: str, target: str) -> ir.Value:
    """A value with its dimensions in another layout."""
    if source == target:
        return value
    sizes = reordered(b.value_sizes(value), source, target)
    return b.movement(value, permutation(target, source), sizes)


def _in_nhwc(b: LinalgBuilder, source: Source, axes: Sequence[Axis], result: Sequence[Size]) -> ir.Value:
    """Filters that nothing has packed yet are, as a matrix."""
    x, weight = source.operands
    *window, outputs = b.sizes(weight)
    groups = source.attrs["groups"]
    layout = _panels(b, outputs, groups) if groups > 1 and isinstance(outputs, int) else PackedLayout(b.tile)
    filters = pack(b, replace(weight, value=view(b, weight.value, [b.product(window), outputs])), layout.tile)
    return _direct(b, source, x, replace(weight, value=filters), layout, axes, result, outputs)


def _panels(b: LinalgBuilder, outputs: int, groups: int) -> PackedLayout:
    """Panels that the filters of a group fill."""
    return PackedLayout(b.tile).filled_by(outputs // groups)


@lowering("relax.packed_conv2d")
def _lower_packed_conv2d(b: LinalgBuilder, source: Source) -> ir.Value:
    x, filters = source.operands
    axes = axes_of(b.sizes(x)[1:3], source.attrs["kernel_size"], source.attrs)
    result = [output_size(b, axis) for axis in axes]
    return _direct(b, source, x, filters, source.attrs["layout"], axes, result, source.attrs["channels"])


class ContractionLoops:
    """The loops of a contraction in the making: one letter each, and the sizes of the parallel ones."""

    def __init__(self):
        self.kinds = ""
        self.sizes: list[Size] = []

    def over(self, size: Size, kind: str = "p") -> ir.AffineExpr:
        """The index of one more loop; of a loop of one iteration there is only the index."""
        if isinstance(size, int) and size == 1:
            return ir.AffineExpr.get_constant(0)
        self.kinds += kind
        if kind == "p":
            self.sizes.append(size)
        return ir.AffineExpr.get_dim(len(self.kinds) - 1)

    def image(self, b: LinalgBuilder, height: Size, width: Size) -> tuple[ir.AffineExpr, ir.AffineExpr]:
        """Line and column in one loop over both, so that tiles do not end with a line; in two where lines' length is open."""
        if not isinstance(width, int):
            return self.over(height), self.over(width)
        index = self.over(b.product([height, width]))
        if isinstance(height, int) and height == 1:
            return ir.AffineExpr.get_constant(0), index
        return ir.AffineExpr.get_floor_div(index, width), ir.AffineExpr.get_mod(index, width)


def _direct(
    b: LinalgBuilder,
    source: Source,
    x: Tensor,
    filters: Tensor,
    layout: PackedLayout,
    axes: Sequence[Axis],
    result: Sequence[Size],
    outputs: Size,
) -> ir.Value:
    """Sums over the windows of an image ``[n, h, w, c]`` and packed filters, straight from the padded image."""
    n, *_, channels = b.sizes(x)
    groups, dtype, tile = source.attrs["groups"], source.result.dtype, layout.tile
    if groups == 1 and all(is_point(axis) for axis in axes):
        rows = b.product([n, *result])
        matrices = Matrix(view(b, x.value, [rows, channels]), x.dtype, []), Matrix(filters.value, filters.dtype, [], layout)
        return view(b, contract(b, *matrices, [rows, outputs], dtype), [n, *result, outputs])
    loops, kernel = ContractionLoops(), [axis.kernel for axis in axes]
    neighbours = b.arith("divsi", b.dim(filters.value, 1), b.product(kernel))
    each = channels if groups == 1 else b.arith("muli", neighbours, layout.rows)
    image, place = loops.over(n), loops.image(b, *result)
    group, output = loops.over(groups), loops.over(b.arith("divsi", outputs, groups))
    taps = [loops.over(size, "r") for size in (*kernel, each)]
    where = [p * axis.stride + tap * axis.dilation for p, tap, axis in zip(place, taps, axes, strict=False)]
    padded = exact_image(b, padded_image(b, x, axes, [axis.after for axis in axes], 0.0, "NHWC"), axes, result)
    panels = b.arith("divsi", b.dim(filters.value, 0), groups)
    sides = [layout.rows] if layout.has_neighbours else []
    panel, *inside = layout.place(taps[2], output, ir.AffineExpr.get_floor_div)
    channel = [group * each + taps[2] if isinstance(each, int) else taps[2]]
    if sides and groups > 1:  # an index that divides a channel says no number of them
        padded, channel = view(b, padded, [*b.value_sizes(padded)[:3], groups, each]), [group, taps[2]]
    product = products(
        b,
        FactorTensor(padded, x.dtype, [image, *where, *channel]),
        FactorTensor(
            view(b, filters.value, [groups, panels, *kernel, neighbours, tile, *sides]),
            filters.dtype,
            [group, panel, *taps[:2], *inside],
            layout,
        ),
        loops.kinds,
        loops.sizes,
        dtype,
    )
    return view(b, product, [n, *result, outputs])


def exact_image(b: LinalgBuilder, image: ir.Value, axes: Sequence[Axis], result: Sequence[Size]) -> ir.Value:
    """A padded image ``[n, h, w, c]`` without what is beyond the only window of an axis: there, the tap is the index, and
    a loop over taps is as long as the dimension that it indexes."""
    sizes = b.value_sizes(image)
    wanted = list(sizes)
    for i, (axis, count) in enumerate(zip(axes, result, strict=True), start=1):
        if count == 1 and axis.dilation == 1 and axis.kernel != 1:
            wanted[i] = axis.kernel
    return image if wanted == sizes else b.gather(wanted, value_type(image).element_type, lambda at: read(image, at))


def _in_nchw(b: LinalgBuilder, source: Source) -> ir.Value:
    x, weight = source.operands
    groups = source.attrs["groups"]
    n, _, *image = b.sizes(x)
    outputs, channels, *kernel = b.sizes(weight)
    axes = axes_of(image, kernel, source.attrs)
    result = [output_size(b, axis) for axis in axes]
    if channels == 1 and groups > 1 and isinstance(outputs, int):
        return _depthwise(b, source, axes, result)
    taps = b.product([channels, *kernel])
    layout = PackedLayout(b.tile)
    if all(is_point(axis) for axis in axes):
        columns = view(b, x.value, [n, groups, channels, b.product(image)])
        columns, layout = (pack(b, replace(x, value=columns), b.tile, widen=True), layout) if b.panels else (columns, None)
    else:
        columns = _columns(b, x, axes, result, (groups, channels, taps))
    each = b.arith("divsi", outputs, groups)
    filters = view(b, weight.value, [groups, each, taps])
    product = contract(
        b,
        Matrix(filters, weight.dtype, [1]),
        Matrix(columns, x.dtype, [0, 1], layout),
        [n, groups, each, b.product(result)],
        source.result.dtype,
    )
    return view(b, product, [n, outputs, *result])


def is_point(axis: Axis) -> bool:
    """Whether windows are the elements themselves."""
    return axis.kernel == 1 and axis.stride == 1 and axis.before == axis.after == 0


def _depthwise(b: LinalgBuilder, source: Source, axes: Sequence[Axis], result: Sequence[Size]) -> ir.Value:
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
        factors = load(element, x.dtype).value, load(tap, weight.dtype).value
        return emit("math.fma", total.type, *factors, total)

    taps = [4, 5, ZERO, filter_] if layout == "NHWC" else [filter_, ZERO, 4, 5]
    inputs: list[Input] = [(image, where), (weight.value, taps)]
    return finish(b, b.generic("pppprr", inputs, start, body, range(4)), source.result.dtype)


def _columns(b: LinalgBuilder, x: Tensor, axes: Sequence[Axis], result: Sequence[Size], taps: tuple[Size, ...]) -> ir.Value:
    """All windows, packed: ``[n, group, panel, tap, tile]``, zero in the padding and beyond the last window."""
    groups, channels, every = taps
    element = accumulator_type(x.dtype) if b.panels else value_type(x.value).element_type
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
        value = read(x.value, [image, group * per_group + tap / kernel_area, *where])
        return select(inside, load(value, x.dtype) if b.panels else Scalar(value), 0).value

    open_ = [b.size(x, i) for i in b.empty_axes(x, (2, 3))]
    type_ = tensor_type(shape, element)
    return unless_empty(b, open_, type_, lambda: b.gather(shape, element, body), lambda: b.filled(shape, element, 0))
