"""Convolution by Winograd's minimal filtering: sums of products of transformed tiles and filters, then results of them.

::

    sums[i, j, n, v, h, o] += transformed(image[n, 2 * v + (0..3), 2 * h + (0..3), c])[i, j] * filters[o floordiv tile, i, j, c,
                                                                                                    o mod tile]
    out[n, y, x, o] += A^T[y mod 2, i] * A^T[x mod 2, j] * sums[i, j, n, y floordiv 2, x floordiv 2, o]

Both are one kernel where sums are taken in f32 on a target with panels; its template (``cpu/kernels/winograd``) transforms each
tile once, and keeps few sums at a time. Elsewhere sums are a tensor, and loops transform tiles wherever they read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...dialect.bindings import ir
from ...dialect.packed_layout import PackedLayout
from ...dialect.winograd import MOST_CHANNELS, OF_IMAGE, OF_RESULT, RESULTS, TAPS, TILE
from ..marks import WINOGRAD
from ..winograd_loops import products_places, results_places
from .builder import LinalgBuilder, index
from .contraction import FactorTensor, contraction_mark, converted, layout_mark
from .conversion import load
from .dtypes import accumulator_type
from .kernel import call_kernel
from .pooling import padded_image
from .registry import Source, lowering
from .reshaping import view
from .scalar import Scalar, select
from .window import Axis, output_size

__all__: list[str] = []


@lowering("relax.winograd_conv2d")
def _lower_winograd_conv2d(b: LinalgBuilder, source: Source) -> ir.Value:
    x, filters = source.operands
    layout, channels, dtype = source.attrs["layout"], source.attrs["channels"], source.result.dtype
    top, left, bottom, right = source.attrs["padding"]
    n, height, width, each = b.sizes(x)
    axes = [Axis(height, TAPS, 1, top, bottom, 1), Axis(width, TAPS, 1, left, right, 1)]
    result = [output_size(b, axis) for axis in axes]
    tiles = [b.arith("ceildivsi", size, RESULTS) for size in result]
    ends = [
        b.arith("addi", axis.after, b.arith("subi", b.arith("muli", count, RESULTS), size))
        for axis, count, size in zip(axes, tiles, result, strict=True)
    ]
    image = padded_image(b, x, axes, ends, 0.0, "NHWC")
    panels = b.dim(filters.value, 0)
    weight = view(b, filters.value, [panels, TILE, TILE, each, layout.tile])
    wide = accumulator_type(x.dtype)
    known = isinstance(each, int) and 1 < each <= MOST_CHANNELS and channels > 1
    out, has_template = b.empty([n, *result, channels], wide), b.panels and dtype == ir.F32Type.get() and known
    compute = partial(_computed, b, layout, x.dtype, has_template)
    if not has_template:
        return converted(b, compute(image, weight, out), x.dtype, dtype)
    return call_kernel(b, "winograd", [image, weight], out, (str(layout),), lambda given: compute(*given))


def _computed(
    b: LinalgBuilder, layout: PackedLayout, dtype: ir.Type, marked: bool, image: ir.Value, weight: ir.Value, out: ir.Value
) -> ir.Value:  # fmt: skip
    """Results of a padded image and filters ``[panels, i, j, c, tile]`` in ``out``, which has as many as they give."""
    wide = accumulator_type(dtype)
    images, height, width, channels = b.value_sizes(out)
    tiles = [b.arith("ceildivsi", size, RESULTS) for size in (height, width)]
    *elements, filters, summed = products_places(layout.tile)
    inputs = [*((image, place) for place in elements), (weight, filters)]

    def multiplied(*given: ir.Value) -> ir.Value:
        *tile, tap, total = given
        loaded = [load(e, dtype) for e in tile]
        lines = [_combined(OF_IMAGE, 0, loaded[x::TILE]) for x in range(TILE)]
        return (Scalar(total) + _combined(OF_IMAGE, 1, lines) * load(tap, dtype)).value

    start = b.filled([TILE, TILE, images, *tiles, channels], wide, 0)
    marks = {WINOGRAD: ir.StringAttr.get("products")} | layout_mark(FactorTensor(weight, dtype, filters, layout))
    sums = b.generic("ppppppr", inputs, start, multiplied, summed, marks if marked else None)
    read, written = results_places()

    def added(element: ir.Value, total: ir.Value) -> ir.Value:
        signed = _signed(OF_RESULT, index(2) % RESULTS, index(5), Scalar(element))
        return (Scalar(total) + _signed(OF_RESULT, index(1) % RESULTS, index(4), signed)).value

    marks = {WINOGRAD: ir.StringAttr.get("results")} | contraction_mark()
    return b.generic("pppprr", [(sums, read)], b.fill(out, 0), added, written, marks if marked else None)


def _combined(matrix: Sequence[Sequence[int]], loop: int, values: Sequence[Scalar]) -> Scalar:
    """The row of a matrix that a loop is at, times values, of which it has two."""
    rows = [[(sign, v) for sign, v in zip(row, values, strict=True) if sign] for row in matrix]
    sums = [(v - w if sign < 0 else v + w) if first > 0 else w - v for ((first, v), (sign, w)) in rows]
    found = sums[-1]
    for row in reversed(range(len(sums) - 1)):
        found = select(index(loop).compare("eq", row), sums[row], found)
    return found


def _signed(matrix: Sequence[Sequence[int]], row: Scalar, column: Scalar, value: Scalar) -> Scalar:
    """A value times an element of a matrix of 1, 0 and -1: of 0 it is 0, whatever the value."""
    found = Scalar(value.value)
    for i, signs in enumerate(matrix):
        for j, sign in enumerate(signs):
            if sign != 1:
                here = row.compare("eq", i) & column.compare("eq", j)
                found = select(here, -value if sign else 0, found)
    return found
