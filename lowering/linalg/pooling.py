"""Padding, and pooling: reductions over windows of a padded image."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ...dialect.bindings import ir
from .builder import Input, LinalgBuilder, Size, Tensor, index, read, tensor_type, value_type
from .conversion import load
from .creation import splat_tensor, stored_number
from .datatype import cast_elements
from .dtypes import accumulator_type, compute_type, is_unsigned
from .kernel import unless_empty
from .reduction import TOTAL, Reduction, count, extreme, finish, finish_at, reduce
from .registry import Source, lowering
from .reshaping import restore_axes
from .scalar import Number, Scalar, constant, emit, maximum, minimum, select
from .slicing import insert_slice
from .window import Axis, axes_of, output_size, spatial_axes, window_exprs, with_spatial

__all__ = ["padded_image"]


@lowering("relax.pad")
def _lower_pad(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    before, after, value = source.attrs["before"], source.attrs["after"], source.attrs["value"]
    if 0 in x.shape:
        return splat_tensor(b, value, source.result, _padded_sizes(b, b.sizes(x), before, after)).value
    return _padded(b, x, before, after, stored_number(value, x.dtype))


def _padded_sizes(b: LinalgBuilder, sizes: Sequence[Size], before: Sequence[int], after: Sequence[Size]) -> list[Size]:
    return [b.arith("addi", b.arith("addi", s, p), q) for s, p, q in zip(sizes, before, after, strict=True)]


def padded_image(
    b: LinalgBuilder, x: Tensor, axes: Sequence[Axis], ends: Sequence[Size], number: Number, layout: str
) -> ir.Value:  # fmt: skip
    """An image in the middle of an image of a number.

    A destination and not a body: fused into the windows that read it, its comparisons would run for every element of every
    window. Measured: a depthwise convolution of 96 channels, 56 by 56, takes ten times as long then.
    """
    if all(p == 0 for p in (*(axis.before for axis in axes), *ends)):
        return x.value
    sizes, nothing = b.sizes(x), [0] * 4
    before = [axis.before for axis in axes]
    padded = _padded_sizes(b, [axis.size for axis in axes], before, ends)
    image = b.filled(with_spatial(sizes, layout, padded), value_type(x.value).element_type, stored_number(number, x.dtype))
    return insert_slice(b, x.value, image, with_spatial(nothing, layout, before), sizes)


def _padded(b: LinalgBuilder, x: Tensor, before: Sequence[int], after: Sequence[Size], stored: Number) -> ir.Value:
    """``x`` with elements of a stored number around it."""
    sizes = b.sizes(x)
    if all(p == 0 for p in (*before, *after)):
        return x.value
    element = value_type(x.value).element_type
    if any(not isinstance(s, int) and (p != 0 or q != 0) for s, p, q in zip(sizes, before, after, strict=True)):
        # There may be no element at all, and a body would have to read one.
        whole = b.filled(_padded_sizes(b, sizes, before, after), element, stored)
        return insert_slice(b, x.value, whole, list(before), sizes)
    limits = [Scalar(b.as_index(s)) for s in sizes]

    def body(loops: list[Scalar]) -> ir.Value:
        inside: list[Scalar] = []
        where: list[Scalar] = []
        for i, limit, first, end in zip(loops, limits, before, after, strict=True):
            position = i - first if first else i
            if first:
                inside.append(position.compare("ge", 0))
                position = maximum(position, 0)
            if end != 0:
                inside.append(position.compare("lt", limit))
                position = minimum(position, limit - 1)
            where.append(position)
        value = Scalar(read(x.value, where))
        return select(functools.reduce(lambda p, q: p & q, inside), value, constant(element, stored)).value

    result = _padded_sizes(b, sizes, before, after)
    open_ = b.empty_axes(x, [i for i, (p, q) in enumerate(zip(before, after, strict=True)) if (p, q) != (0, 0)])
    filled = functools.partial(b.filled, result, element, stored)
    return unless_empty(
        b, [sizes[i] for i in open_], tensor_type(result, element), lambda: b.gather(result, element, body), filled
    )  # fmt: skip


@lowering("relax.max_pool2d")
def _lower_max_pool2d(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    # The accumulated values are elements of x, so rounding them back is exact.
    least = extreme(x.dtype, "max")
    best, _ = _pooled(b, source, _with_infinities(b, x), least.initial, least)
    return finish_at(b, best, x.dtype, lambda value, _: value)


@lowering("relax.avg_pool2d")
def _lower_avg_pool2d(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    sums, axes = _pooled(b, source, x, 0.0, TOTAL)
    padding, spatial = source.attrs["count_include_pad"], spatial_axes(source.attrs["layout"])
    # Values that every body uses are made once, outside.
    counters = [_counter(b, axis, padding) for axis in axes]

    def mean(value: Scalar, loops: list[Scalar]) -> Scalar:
        counts = [counter(loops[i]) for counter, i in zip(counters, spatial, strict=True)]
        return value / _as_float(counts[0] * counts[1], value.type)

    return finish_at(b, sums, x.dtype, mean)


def _with_infinities(b: LinalgBuilder, x: Tensor) -> Tensor:
    """An image that can have -inf around it: some dtypes have none, and would have NaN there."""
    if not isinstance(x.dtype, ir.Float8E4M3FNType | ir.Float8E8M0FNUType):
        return x
    wide = compute_type(x.dtype)
    return Tensor(cast_elements(b, x, wide), x.info.with_(dtype=wide))


def _pooled(
    b: LinalgBuilder, source: Source, x: Tensor, neutral: Number, reduction: Reduction
) -> tuple[ir.Value, list[Axis]]:  # fmt: skip
    """Each window's elements combined, in the type that is accumulated in."""
    sizes, layout, ceil = b.sizes(x), source.attrs["layout"], source.attrs["ceil_mode"]
    axes = axes_of([sizes[i] for i in spatial_axes(layout)], source.attrs["pool_size"], source.attrs)
    result = [output_size(b, axis, ceil) for axis in axes]
    ends = [_end(b, axis, count) if ceil else axis.after for axis, count in zip(axes, result, strict=True)]
    image = padded_image(b, x, axes, ends, neutral, layout)
    window = b.empty([axis.kernel for axis in axes], ir.IntegerType.get_signless(8))
    start = b.filled(with_spatial(sizes, layout, result), accumulator_type(x.dtype), reduction.initial, is_unsigned(x.dtype))

    def body(element: ir.Value, _: ir.Value, combined: ir.Value) -> ir.Value:
        return reduction.combine(Scalar(combined, is_unsigned(x.dtype)), load(element, x.dtype)).value

    # The second input only gives the window's size.
    inputs: list[Input] = [(image, window_exprs(axes, layout)), (window, [4, 5])]
    return b.generic("pppprr", inputs, start, body, [0, 1, 2, 3]), axes


def _end(b: LinalgBuilder, axis: Axis, count: Size) -> Size:
    """How much to pad at the end so that the last window is inside."""
    reach = b.arith("addi", b.arith("muli", b.arith("subi", count, 1), axis.stride), axis.dilation * (_kernel(axis) - 1) + 1)
    margin = b.arith("subi", reach, b.arith("addi", axis.size, axis.before + axis.after))
    return b.arith("addi", b.arith("maxsi", margin, 0), axis.after)


def _kernel(axis: Axis) -> int:
    """The size of the window, which a pool has as an attribute."""
    assert isinstance(axis.kernel, int)
    return axis.kernel


def _counter(b: LinalgBuilder, axis: Axis, padding: bool) -> Callable[[Scalar], Scalar]:
    """How many elements of a window are in the image, or in the padded image: by the number of the window."""
    size = Scalar(b.as_index(b.arith("addi", axis.size, axis.after) if padding else axis.size))
    first = -axis.before if padding else 0

    def steps(distance: Scalar) -> Scalar:
        distance = maximum(distance, 0)
        return distance if axis.dilation == 1 else (distance + (axis.dilation - 1)) / axis.dilation

    def count(window: Scalar) -> Scalar:
        start = window * axis.stride - axis.before
        return minimum(steps(size - start), _kernel(axis)) - steps(first - start)

    return count


def _as_float(number: Scalar, type_: ir.Type) -> Scalar:
    integer = emit("arith.index_cast", ir.IntegerType.get_signless(64), number.value)
    return Scalar(emit("arith.sitofp", type_, integer))


@lowering("relax.adaptive_avg_pool2d")
def _lower_adaptive_avg_pool2d(b: LinalgBuilder, source: Source) -> ir.Value:
    """Windows of different sizes: loops over the largest one, and what is beyond a window's end counts as 0."""
    (x,) = source.operands
    result, layout = source.attrs["output_size"], source.attrs["layout"]
    spatial = spatial_axes(layout)
    if result == [1, 1]:
        number = count(b, x, spatial)
        averages = finish(b, reduce(b, x, spatial, TOTAL), x.dtype, lambda total: total / number(total.type))
        return restore_axes(b, averages, spatial)
    image = [b.size(x, i) for i in spatial]
    sizes, outputs = [Scalar(b.as_index(s)) for s in image], [b.number(o) for o in result]
    largest = [b.arith("addi", b.arith("ceildivsi", s, o), 1) for s, o in zip(image, result, strict=True)]
    window = b.empty(largest, ir.IntegerType.get_signless(8))
    start = b.filled(with_spatial(b.sizes(x), layout, result), accumulator_type(x.dtype), 0)

    def bounds(axis: int, number: Scalar) -> tuple[Scalar, Scalar]:
        end = ((number + 1) * sizes[axis] + (result[axis] - 1)) / Scalar(outputs[axis])
        return number * sizes[axis] / Scalar(outputs[axis]), end

    def body(_: ir.Value, summed: ir.Value) -> ir.Value:
        inside, where = None, [index(i) for i in range(4)]
        for axis, place in enumerate(spatial):
            first, end = bounds(axis, index(place))
            position = first + index(4 + axis)
            within = position.compare("lt", end)
            inside = within if inside is None else inside & within
            where[place] = minimum(position, end - 1)
        assert inside is not None
        value = load(read(x.value, where), x.dtype)
        return (Scalar(summed) + select(inside, value, 0)).value

    sums = b.generic("pppprr", [(window, [4, 5])], start, body, [0, 1, 2, 3])

    def mean(value: Scalar, loops: list[Scalar]) -> Scalar:
        lengths = [end - first for first, end in (bounds(axis, loops[place]) for axis, place in enumerate(spatial))]
        return value / _as_float(lengths[0] * lengths[1], value.type)

    return finish_at(b, sums, x.dtype, mean)
