"""torch ops that are convolutions: in one to three dimensions, transposed or not, all as convolutions in two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.symbolic import Dim
from ..emit import concat, emit, info_of, multiply_all, permute, reshape, slice_axis, squeeze, unsqueeze
from ..torch_op import TorchOp, handles

_Pads = list[tuple[int, int]]


@handles("aten.conv1d", "aten.conv2d", "aten.conv3d", "aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def _convolution(op: TorchOp) -> ir.Value:
    weight = op.tensor(1)
    strides, dilation = (several(op.number(i, 1), _spatial(weight)) for i in (3, 5))
    padding = _padding(op.number(4, 0), weight, dilation)
    return _with_bias(op, strides, padding, dilation, op.integer(6, "number of groups", 1))


@handles("aten.conv_transpose1d", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def _transposed(op: TorchOp) -> ir.Value:
    strides, padding, extra, dilation = (
        several(op.number(i, d), _spatial(op.tensor(1))) for i, d in ((3, 1), (4, 0), (5, 0), (7, 1))
    )
    return _with_bias(op, strides, padding, dilation, op.integer(6, "number of groups", 1), extra)


@handles("aten.convolution")
def _any_convolution(op: TorchOp) -> ir.Value:
    strides, padding, dilation, extra = (several(op.number(i), _spatial(op.tensor(1))) for i in (3, 4, 5, 7))
    groups = op.integer(8, "number of groups", 1)
    if op.number(6):
        return _with_bias(op, strides, padding, dilation, groups, extra)
    return _with_bias(op, strides, [(p, p) for p in padding], dilation, groups)


def several(given: object, count: int) -> list[int]:
    """One number for all dimensions, or one each."""
    values: list[Any] = list(given) if isinstance(given, list) else [given]
    values = values * count if len(values) == 1 else values
    if len(values) != count or not all(isinstance(v, int) for v in values):
        raise RelaxError(f"expected {count} constant integers, got {given}")
    return values


def _spatial(weight: ir.Value) -> int:
    count = info_of(weight).rank - 2
    if count not in (1, 2, 3):
        raise RelaxError(f"expected a convolution in one to three dimensions, got {count}")
    return count


def _padding(given: object, weight: ir.Value, dilation: Sequence[int]) -> _Pads:
    spatial = len(dilation)
    if given == "valid":
        return [(0, 0)] * spatial
    if given == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, several(list(info_of(weight).shape[2:]), spatial), strict=True)]
        return [(t // 2, t - t // 2) for t in totals]
    return [(p, p) for p in several(given, spatial)]


def _with_bias(
    op: TorchOp, strides: list[int], padding: Any, dilation: list[int], groups: int, extra: list[int] | None = None
) -> ir.Value:
    """The convolution, batched or not, and the bias. With ``extra``, torch's output padding, it is transposed."""
    x, weight, bias = op.tensor(0), op.tensor(1), op.optional(2)
    spatial = len(strides)
    batched = info_of(x).rank == spatial + 2
    x = x if batched else unsqueeze(x, 0)
    if extra is None:
        result = _convolve(x, weight, strides, padding, dilation, groups)
    else:
        result = _convolve_transposed(x, weight, (strides, padding, dilation, extra), groups)
    if bias is not None:
        result = emit(ops.Add, result, unsqueeze(bias, *range(1, spatial + 1)))
    return result if batched else squeeze(result, 0)


def _convolve(x: ir.Value, weight: ir.Value, strides: list[int], padding: _Pads, dilation: list[int], groups: int) -> ir.Value:
    """A convolution in one dimension is one in two over a single row."""
    spatial = len(strides)
    if spatial == 3:
        return _convolve_planes(x, weight, strides, padding, dilation, groups)
    if spatial == 1:
        x, weight = unsqueeze(x, 2), unsqueeze(weight, 2)
        strides, padding, dilation = [1, *strides], [(0, 0), *padding], [1, *dilation]
    (top, bottom), (left, right) = padding
    pads = [top, left, bottom, right]
    result = emit(ops.Conv2D, x, weight, strides=strides, padding=pads, dilation=dilation, groups=groups)
    return squeeze(result, 2) if spatial == 1 else result


def _convolve_planes(
    x: ir.Value, weight: ir.Value, strides: list[int], padding: _Pads, dilation: list[int], groups: int
) -> ir.Value:
    """In three dimensions: the planes that the kernel sees become channels, the places in depth further images."""
    x = _pad_axis(x, 2, padding[0])
    batch, channels, depth, height, width = info_of(x).shape
    outputs, fewer, planes, *kernel = _known(weight)
    if depth is None:
        raise RelaxError("expected a convolution of planes whose number is known or symbolic")
    places = (depth - dilation[0] * (planes - 1) - 1) // strides[0] + 1
    parts = [_every(x, 2, k * dilation[0], places, strides[0]) for k in range(planes)]
    seen = permute(concat([unsqueeze(p, 2) for p in parts], 2), [0, 3, 1, 2, 4, 5])
    images = reshape(seen, (multiply_all([batch, places]), multiply_all([channels, planes]), height, width))
    flat = reshape(weight, (outputs, fewer * planes, *kernel))
    result = _convolve(images, flat, strides[1:], padding[1:], dilation[1:], groups)
    *_, rows, columns = info_of(result).shape
    return permute(reshape(result, (batch, places, outputs, rows, columns)), [0, 2, 1, 3, 4])


def _every(x: ir.Value, axis: int, begin: int, count: Dim, stride: int) -> ir.Value:
    assert count is not None
    return slice_axis(x, axis, begin, begin + (count - 1) * stride + 1, stride)


def _convolve_transposed(
    x: ir.Value, weight: ir.Value, how: tuple[list[int], list[int], list[int], list[int]], groups: int
) -> ir.Value:
    """A convolution over the input with zeros between its elements, by the kernel from its other end.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html
    """
    kernel = _known(weight)[2:]
    pads: _Pads = []
    for axis, (size, stride, padding, dilation, extra) in enumerate(zip(kernel, *how, strict=True), start=2):
        x = _spread(x, axis, stride)
        reach = dilation * (size - 1) - padding
        x = _pad_axis(x, axis, (min(reach, 0), min(reach + extra, 0)))
        pads.append((max(reach, 0), max(reach + extra, 0)))
    return _convolve(x, _turned(weight, groups), [1] * len(kernel), pads, how[2], groups)


def _spread(x: ir.Value, axis: int, stride: int) -> ir.Value:
    """``stride - 1`` zeros between neighbours."""
    size = info_of(x).shape[axis]
    if stride == 1:
        return x
    if size is None:
        raise RelaxError("expected a transposed convolution over dimensions whose sizes are known or symbolic")
    apart = _pad_axis(unsqueeze(x, axis + 1), axis + 1, (0, stride - 1))
    shape = info_of(x).shape
    joined = reshape(apart, (*shape[:axis], size * stride, *shape[axis + 1 :]))
    return slice_axis(joined, axis, 0, size * stride - (stride - 1))


def _turned(weight: ir.Value, groups: int) -> ir.Value:
    """``[in, out / groups, ...]`` as ``[out, in / groups, ...]``, from the other end in every dimension."""
    inputs, outputs, *kernel = _known(weight)
    axes = range(len(kernel))
    split = reshape(weight, (groups, inputs // groups, outputs, *kernel))
    turned = reshape(permute(split, [0, 2, 1, *(a + 3 for a in axes)]), (groups * outputs, inputs // groups, *kernel))
    for axis in axes:
        turned = turned if kernel[axis] == 1 else emit(ops.Flip, turned, axis=axis + 2)
    return turned


def _known(weight: ir.Value) -> list[int]:
    shape = [d for d in info_of(weight).shape if isinstance(d, int)]
    if len(shape) != info_of(weight).rank:
        raise RelaxError(f"expected a kernel of known size, got {info_of(weight)}")
    return shape


def _pad_axis(x: ir.Value, axis: int, amounts: tuple[int, int]) -> ir.Value:
    """Zeros before and after; a negative amount takes away."""
    size = info_of(x).shape[axis]
    low, high = amounts
    if low < 0 or high < 0:
        if size is None:
            raise RelaxError("expected to crop a dimension whose size is known or symbolic")
        x = slice_axis(x, axis, max(-low, 0), size + min(high, 0))
    before, after = [0] * info_of(x).rank, [0] * info_of(x).rank
    before[axis], after[axis] = max(low, 0), max(high, 0)
    return emit(ops.Pad, x, before=before, after=after, value=0.0) if before[axis] or after[axis] else x
