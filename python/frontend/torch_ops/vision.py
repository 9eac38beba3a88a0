"""Operators of torchvision: boxes that no better one covers, and regions of images pooled to one size."""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import Expr
from ..emit import cast, emit, full, info_of, integer, permute, sequence, slice_axis, squeeze, unsqueeze
from ..loops import loop, put, row
from ..places import places_where
from ..torch_op import TorchOp, handles
from .elementwise import check

__all__: list[str] = []


@handles("torchvision.nms")
def _nms(op: TorchOp) -> ir.Value:
    """Places of the boxes that are kept, the best first. In the order of scores, each that is left takes out what it covers.

    Source: https://github.com/pytorch/vision, torchvision/csrc/ops/cpu/nms_kernel.cpp.
    """
    scores, limit = op.tensor(1), op.number(2)
    count = info_of(scores).shape[0]
    if count is None:
        raise RelaxError("expected boxes whose number is known or symbolic")
    order = emit(ops.ArgSort, scores, axis=0, descending=True)
    ranked = emit(ops.Take, op.tensor(0), order, axis=0)
    ranked = cast(ranked, ir.F32Type.get()) if info_of(ranked).dtype != ir.F64Type.get() else ranked
    sides, places = _columns(ranked), sequence(0, count, 1, integer())
    area = _area(*sides)

    def step(state: list[ir.Value], index: ir.Value) -> list[ir.Value]:
        one = _columns(emit(ops.Take, ranked, index, axis=0))
        begins = [emit(ops.Maximum, sides[i], one[i]) for i in (0, 1)]
        ends = [emit(ops.Minimum, sides[i], one[i]) for i in (2, 3)]
        zero = full(0, info_of(area).dtype)
        width, height = (emit(ops.Maximum, emit(ops.Subtract, e, b), zero) for b, e in zip(begins, ends, strict=True))
        shared = emit(ops.Multiply, width, height)
        union = emit(ops.Subtract, emit(ops.Add, area, _area(*one)), shared)
        covered = emit(ops.Greater, emit(ops.Divide, shared, union), full(limit, info_of(area).dtype))
        behind = emit(ops.LogicalAnd, covered, emit(ops.Greater, places, index))
        out = emit(ops.LogicalAnd, behind, emit(ops.Take, state[0], index, axis=0))
        return [emit(ops.LogicalAnd, state[0], emit(ops.LogicalNot, out))]

    (kept,) = loop(count, [full(True, integer(1), (count,))], step)
    return emit(ops.Take, order, places_where(kept, op.values.new_symbol()), axis=0)


def _columns(boxes: ir.Value) -> list[ir.Value]:
    return [squeeze(slice_axis(boxes, 1, i, i + 1), 1) for i in range(4)]


def _area(left: ir.Value, top: ir.Value, right: ir.Value, bottom: ir.Value) -> ir.Value:
    return emit(ops.Multiply, emit(ops.Subtract, right, left), emit(ops.Subtract, bottom, top))


@handles("torchvision.roi_align")
def _roi_align(op: TorchOp) -> ir.Value:
    """Regions ``[k, 5]`` (image, left, top, right, bottom) of ``[n, c, h, w]`` as means of samples, ``[k, c, ph, pw]``.

    A sample lies between rows and between columns, and weights of both are independent: of each region two products with an
    image. Source: https://github.com/pytorch/vision, torchvision/csrc/ops/cpu/roi_align_common.h.
    """
    f32 = ir.F32Type.get()
    x, regions = cast(op.tensor(0), f32), cast(op.tensor(1), f32)
    scale, samples, aligned = op.number(2), op.number(5), bool(op.number(6))
    number, channels, *given = info_of(x).shape
    count = info_of(regions).shape[0]
    pooled = [op.number(3), op.number(4)]
    sizes = [size for size in given if size is not None]
    if count is None or len(sizes) < 2:
        raise RelaxError("expected regions whose number is known or symbolic, of images of such sizes")
    columns = [squeeze(slice_axis(regions, 1, i, i + 1), 1) for i in range(5)]
    image = cast(columns[0], integer())
    rows, lines = (
        _weights(columns[2 - i], columns[4 - i], sizes[i], pooled[i], (scale, samples, aligned)) for i in range(2)
    )  # fmt: skip

    def step(state: list[ir.Value], index: ir.Value) -> list[ir.Value]:
        of = squeeze(x, 0) if number == 1 else row(x, emit(ops.Take, image, index, axis=0))
        across = emit(ops.MatMul, of, permute(row(lines, index), [1, 0]))  # [c, h, pw]
        made = emit(ops.MatMul, row(rows, index), across)
        return put(state, index, [made])

    (result,) = loop(count, [full(0, f32, (count, channels, *pooled))], step)
    return cast(result, op.dtype)


def _weights(begin: ir.Value, end: ir.Value, size: int | Expr, pooled: int, how: tuple[float, int, bool]) -> ir.Value:
    """``[k, pooled, size]``: how much of each row of an image there is in each row of a pooled region.

    Args:
        begin: where regions begin, ``[k]``.
        end: where they end.
        size: of the image.
        pooled: of the result.
        how: what places are multiplied with, samples in each row of the result (0 or less: as many as the region needs), and
            whether places are centers.
    """
    scale, samples, aligned = how
    f32 = ir.F32Type.get()

    def number(value: float) -> ir.Value:
        return full(value, f32)

    def minus(a: ir.Value, b: ir.Value) -> ir.Value:
        return emit(ops.Subtract, a, b)

    begin, end = (minus(emit(ops.Multiply, v, number(scale)), number(0.5 if aligned else 0.0)) for v in (begin, end))
    extent = minus(end, begin)
    extent = extent if aligned else emit(ops.Maximum, extent, number(1.0))
    part = emit(ops.Divide, extent, number(pooled))
    if samples > 0:
        most, needed = samples, number(float(samples))
    else:
        most, needed = size, emit(ops.Ceil, part)
        check(
            emit(ops.LessEqual, emit(ops.Max, needed, axis=[0]), full(size, f32)),
            "expected regions as large as the image at most",
        )
    taken = cast(sequence(0, most, 1, integer()), f32)
    step = _at(emit(ops.Divide, part, needed), 3)
    place = emit(ops.Multiply, emit(ops.Add, taken, number(0.5)), step)  # [k, 1, samples]
    first = emit(ops.Multiply, unsqueeze(cast(sequence(0, pooled, 1, integer()), f32), 1), _at(part, 3))
    place = emit(ops.Add, emit(ops.Add, first, _at(begin, 3)), place)  # [k, pooled, samples]
    last = minus(full(size, f32), number(1.0))
    inside = emit(ops.LogicalAnd, emit(ops.GreaterEqual, place, number(-1.0)), emit(ops.LessEqual, place, full(size, f32)))
    if samples <= 0:
        inside = emit(ops.LogicalAnd, inside, emit(ops.Less, taken, _at(needed, 3)))
    place = emit(ops.Minimum, emit(ops.Maximum, place, number(0.0)), last)
    apart = emit(ops.Abs, emit(ops.Subtract, unsqueeze(place, 3), cast(sequence(0, size, 1, integer()), f32)))
    weight = emit(ops.Maximum, minus(number(1.0), apart), number(0.0))
    weight = emit(ops.Where, unsqueeze(inside, 3), weight, number(0.0))
    total = emit(ops.Sum, weight, axis=[2])
    return emit(ops.Divide, total, _at(emit(ops.Maximum, needed, number(1.0)), 3))


def _at(x: ir.Value, rank: int) -> ir.Value:
    """A vector as the first dimension of so many; a number as it is."""
    return unsqueeze(x, *range(1, rank)) if info_of(x).rank else x
