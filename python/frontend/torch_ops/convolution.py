"""torch ops that are convolutions: in one to three dimensions, transposed or not, all as convolutions in two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ..convolutions import ConvParams, Pads, convolve, convolve_transposed
from ..emit import info_of, plus_bias, squeeze, unrounded, unsqueeze
from ..torch_op import TorchOp, handles


@handles("aten.conv1d", "aten.conv2d", "aten.conv3d", "aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def _convolution(op: TorchOp) -> ir.Value:
    weight = op.tensor(1)
    strides, dilation = (several(op.number(i, 1), _spatial(weight)) for i in (3, 5))
    padding = _padding(op.number(4, 0), weight, dilation)
    return _with_bias(op, ConvParams(strides, padding, dilation, op.integer(6, "number of groups", 1)), convolve)


@handles("aten.conv_transpose1d", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def _transposed(op: TorchOp) -> ir.Value:
    strides, padding, extra, dilation = (
        several(op.number(i, d), _spatial(op.tensor(1))) for i, d in ((3, 1), (4, 0), (5, 0), (7, 1))
    )
    pads, groups = [(p, p) for p in padding], op.integer(6, "number of groups", 1)
    return _with_bias(op, ConvParams(strides, pads, dilation, groups, output_padding=extra), convolve_transposed)


@handles("aten.convolution")
def _any_convolution(op: TorchOp) -> ir.Value:
    strides, padding, dilation, extra = (several(op.number(i), _spatial(op.tensor(1))) for i in (3, 4, 5, 7))
    groups = op.integer(8, "number of groups", 1)
    how = ConvParams(strides, [(p, p) for p in padding], dilation, groups, output_padding=extra)
    return _with_bias(op, how, convolve_transposed if op.number(6) else convolve)


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


def _padding(given: object, weight: ir.Value, dilation: Sequence[int]) -> Pads:
    spatial = len(dilation)
    if given == "valid":
        return [(0, 0)] * spatial
    if given == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, several(list(info_of(weight).shape[2:]), spatial), strict=True)]
        return [(t // 2, t - t // 2) for t in totals]
    return [(p, p) for p in several(given, spatial)]


def _with_bias(op: TorchOp, how: ConvParams, convolution: Callable[[ir.Value, ir.Value, ConvParams], ir.Value]) -> ir.Value:
    """A convolution, transposed or not, batched or not, and the bias."""
    x, weight, bias = op.tensor(0), op.tensor(1), op.optional(2)
    spatial = len(how.strides)
    batched, dtype = info_of(x).rank == spatial + 2, info_of(x).dtype
    x, wide = x if batched else unsqueeze(x, 0), None if bias is None else unrounded(dtype)
    result = convolution(x, weight, replace(how, out_dtype=wide))
    if bias is not None:
        result = plus_bias(result, unsqueeze(bias, *range(1, spatial + 1)), dtype)
    return result if batched else squeeze(result, 0)
