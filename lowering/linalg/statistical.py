"""Reductions and scans along axes."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.bindings import ir
from ...dialect.inference import normalize_axes, normalize_axis
from .builder import LinalgBuilder, Size, Tensor, value_type
from .conversion import load, store
from .dtypes import accumulator_type, is_unsigned, storage_dtype
from .kernel import call_kernel, loop
from .reduction import PRODUCT, TOTAL, Reduction, accumulated, count, extreme, finish, reduce, reduce_elements
from .registry import Source, lowering
from .scalar import Scalar, constant, emit
from .slicing import extract_slice, insert_slice

__all__ = ["divided_by_count", "mean_of", "squared_distances"]


def _axes(source: Source) -> list[int]:
    return normalize_axes(source.attrs["axis"], source.operands[0].rank)


@lowering("relax.sum", "relax.prod", "relax.max", "relax.min")
def _lower_reduction(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    name = source.op.operation.name.removeprefix("relax.")
    kind = {"sum": TOTAL, "prod": PRODUCT}.get(name) or extreme(x.dtype, name)
    return finish(b, reduce(b, x, _axes(source), kind, source.attrs["keepdims"]), x.dtype)


@lowering("relax.mean")
def _lower_mean(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axes = _axes(source)
    number = count(b, x, axes)
    summed = reduce(b, x, axes, TOTAL, source.attrs["keepdims"])
    return finish(b, summed, x.dtype, lambda s: s / number(s.type))


@lowering("relax.variance")
def _lower_variance(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axes = _axes(source)
    number = count(b, x, axes)
    squares = squared_distances(b, x, axes, mean_of(b, x, axes), source.attrs["keepdims"])
    return finish(b, squares, x.dtype, lambda s: s / number(s.type))


def mean_of(b: LinalgBuilder, x: Tensor, axes: list[int]) -> ir.Value:
    """The mean along axes, in the type that is accumulated in."""
    return divided_by_count(b, reduce(b, x, axes, TOTAL), x, axes)


def squared_distances(b: LinalgBuilder, x: Tensor, axes: list[int], mean: ir.Value, keep: bool = False) -> ir.Value:
    """The sum of squared distances from the mean along axes, in the type that is accumulated in."""
    kept = [i for i in range(x.rank) if i not in axes]

    def square(element: ir.Value, center: ir.Value) -> Scalar:
        distance = accumulated(element, x.dtype) - Scalar(center)
        return distance * distance

    return reduce_elements(b, x, axes, TOTAL, square, (mean, kept), keep=keep)


def divided_by_count(b: LinalgBuilder, summed: ir.Value, x: Tensor, axes: list[int]) -> ir.Value:
    """Sums along axes of ``x`` divided by how many elements each has."""
    number = count(b, x, axes)
    sizes = b.value_sizes(summed)
    out = b.empty(sizes, value_type(summed).element_type)
    loops = range(len(sizes))
    return b.generic("p" * len(sizes), [(summed, loops)], out, lambda s, _: (Scalar(s) / number(s.type)).value)


@lowering("relax.cumsum", "relax.cumprod", "relax.cummax", "relax.cummin")
def _lower_scan(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    name = source.op.operation.name.removeprefix("relax.")
    kind = {"cumsum": TOTAL, "cumprod": PRODUCT}.get(name) or extreme(x.dtype, name.removeprefix("cum"))
    axis, exclusive = normalize_axis(source.attrs["axis"], x.rank), source.attrs["exclusive"]
    sizes = b.sizes(x)
    out, behind = b.empty(sizes, storage_dtype(x.dtype)), sizes[axis + 1 :]
    by_rows = not exclusive and behind != [1] * len(behind) and 0 not in sizes
    sums = [b.empty(behind, accumulator_type(x.dtype))] if by_rows else []

    def body(given: Sequence[ir.Value]) -> ir.Value:
        if by_rows:
            return _scan_rows(b, given[0], given[1], given[2], x.dtype, axis, kind)
        return _scan(b, given[0], given[1], x.dtype, axis, exclusive, kind)

    return call_kernel(b, name, [x.value], out, (str(x.dtype), str(axis), str(exclusive)), body, sums)


def _scan_rows(
    b: LinalgBuilder, x: ir.Value, sums: ir.Value, out: ir.Value, dtype: ir.Type, axis: int, kind: Reduction
) -> ir.Value:
    """Along an axis that is not the last: the sums of all dimensions behind it at once, row by row of the memory."""
    sizes, unsigned = b.value_sizes(x), is_unsigned(dtype)
    behind, kept = sizes[axis + 1 :], range(axis + 1, len(sizes))
    kinds, loops, extents = "p" * len(behind), range(len(behind)), [*[1] * (axis + 1), *behind]

    def add(element: ir.Value, total: ir.Value) -> ir.Value:
        return kind.combine(Scalar(total, unsigned), load(element, dtype)).value

    def stored(total: ir.Value, _: ir.Value) -> ir.Value:
        return store(Scalar(total, unsigned), dtype)

    def row(lead: list[ir.Value], totals: ir.Value, result: ir.Value) -> list[ir.Value]:
        where: list[Size] = [*lead, *[0] * len(behind)]
        part, into = (extract_slice(value, where, extents, kept) for value in (x, result))
        totals = b.generic(kinds, [(part, loops)], totals, add)
        into = b.generic(kinds, [(totals, loops)], into, stored)
        return [totals, insert_slice(b, into, result, where, extents, kept)]

    def nest(lead: list[ir.Value], totals: ir.Value, result: ir.Value) -> list[ir.Value]:
        if len(lead) < axis:
            return loop(b, sizes[len(lead)], [totals, result], lambda i, t, r: nest([*lead, i], t, r))
        first = b.fill(totals, kind.initial)
        return loop(b, sizes[axis], [first, result], lambda i, t, r: row([*lead, i], t, r))

    return nest([], sums, out)[1]


def _scan(
    b: LinalgBuilder, x: ir.Value, out: ir.Value, dtype: ir.Type, axis: int, exclusive: bool, kind: Reduction
) -> ir.Value:
    """Scalar loops with the axis innermost: the sum stays in a register, and the result is written in place."""
    sizes = b.value_sizes(x)
    order = [i for i in range(len(sizes)) if i != axis]
    unsigned = is_unsigned(dtype)

    def step(indices: list[ir.Value], sum_: ir.Value, result: ir.Value) -> list[ir.Value]:
        element = emit("tensor.extract", value_type(x).element_type, x, *indices)
        following = kind.combine(Scalar(sum_, unsigned), load(element, dtype)).value
        stored = store(Scalar(sum_ if exclusive else following, unsigned), dtype)
        return [following, emit("tensor.insert", result.type, stored, result, *indices)]

    def nest(axes: list[int], indices: dict[int, ir.Value], result: ir.Value) -> ir.Value:
        if axes:
            return loop(b, sizes[axes[0]], [result], lambda i, r: [nest(axes[1:], indices | {axes[0]: i}, r)])[0]
        first = constant(accumulator_type(dtype), kind.initial).value

        def along(i: ir.Value, sum_: ir.Value, r: ir.Value) -> list[ir.Value]:
            every = indices | {axis: i}
            return step([every[d] for d in range(len(sizes))], sum_, r)

        return loop(b, sizes[axis], [first, result], along)[1]

    return nest(order, {}, out)
