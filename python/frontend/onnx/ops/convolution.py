"""ONNX operators that are convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.symbolic import Dim, Expr
from ...convolutions import ConvParams, convolve, convolve_transposed, pad_axis
from ...emit import info_of, multiply_all, plus_bias, unrounded, unsqueeze
from ...padding import padded_by_number
from ...ranges import larger
from ..equal_sizes import with_size
from ..node import Node, handles

_Size = int | Expr


@handles("Conv")
def _conv(node: Node) -> ir.Value:
    result = convolved(node, node.tensor(0), node.tensor(1), _unrounded(node))
    return _with_bias(node, result, 2)


def _unrounded(node: Node) -> ir.Type | None:
    """What sums are in, where a bias is added to them."""
    return unrounded(info_of(node.tensor(0)).dtype) if node.has(2) else None


def convolved(node: Node, x: ir.Value, weight: ir.Value, out_dtype: ir.Type | None = None) -> ir.Value:
    """The convolution that a node's attributes describe. Raises RelaxError where its kernel is of no known size."""
    kernel = [d for d in info_of(weight).shape[2:] if isinstance(d, int)]
    spatial = len(kernel)
    if spatial not in (1, 2, 3) or info_of(weight).rank != spatial + 2:
        raise RelaxError(f"expected a kernel of one to three dimensions of known size, got {info_of(weight)}")
    strides, dilation = (node.attribute(k, [1] * spatial) for k in ("strides", "dilations"))
    x, pads = padded_as_open(x, padding(node, kernel, strides, dilation, info_of(x).shape[2:]), 0)
    groups = node.attribute("group", 1)
    x = with_size(x, 1, multiply_all((info_of(weight).shape[1], groups)))
    return convolve(x, weight, ConvParams(strides, pads, dilation, groups, out_dtype))


def _with_bias(node: Node, result: ir.Value, index: int) -> ir.Value:
    if not node.has(index):
        return result
    return plus_bias(result, unsqueeze(node.tensor(index), *range(1, info_of(result).rank - 1)), info_of(node.tensor(0)).dtype)


def padding(
    node: Node, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int], sizes: Sequence[Dim]
) -> list[tuple[_Size, _Size]]:
    """Amounts before and after each dimension: given, or what makes as many windows as strides fit.

    Source: https://onnx.ai/onnx/operators/onnx__Conv.html.
    """
    how = node.attribute("auto_pad", "NOTSET")
    count = len(kernel)
    if how == "VALID":
        return [(0, 0)] * count
    if how == "NOTSET":
        pads = node.attribute("pads", [0] * (2 * count))
        return [(pads[i], pads[i + count]) for i in range(count)]
    if how not in ("SAME_UPPER", "SAME_LOWER"):
        raise RelaxError(f"expected auto_pad to be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got '{how}'")
    found: list[tuple[_Size, _Size]] = []
    for size, k, stride, d in zip(sizes, kernel, strides, dilation, strict=True):
        total = _same_total(size, d * (k - 1) + 1, stride)
        small = total // 2
        found.append((small, total - small) if how == "SAME_UPPER" else (total - small, small))
    return found


def _same_total(size: Dim, reach: int, stride: int) -> _Size:
    """How much is added so that windows begin at all multiples of the stride in a dimension, and end with the last of these."""
    if stride == 1:
        return reach - 1
    if size is None:
        raise RelaxError("expected auto_pad over dimensions whose sizes are known or symbolic")
    if reach >= stride:
        return reach - stride + -size % stride
    return larger(reach - stride + -size % stride, 0, {})


def padded_as_open(x: ir.Value, pads: Sequence[tuple[_Size, _Size]], value: float) -> tuple[ir.Value, list[tuple[int, int]]]:
    """The tensor with those amounts of padding that a call's sizes say, and the amounts that are left."""
    left: list[tuple[int, int]] = []
    for axis, (before, after) in enumerate(pads, start=2):
        if isinstance(before, int) and isinstance(after, int):
            left.append((before, after))
        else:
            x = padded_by_number(x, axis, before, after, value)
            left.append((0, 0))
    return x, left


@handles("ConvTranspose")
def _conv_transpose(node: Node) -> ir.Value:
    """Source: https://onnx.ai/onnx/operators/onnx__ConvTranspose.html."""
    x, weight = node.tensor(0), node.tensor(1)
    kernel = [d for d in info_of(weight).shape[2:] if isinstance(d, int)]
    count = len(kernel)
    strides, dilation = (node.attribute(k, [1] * count) for k in ("strides", "dilations"))
    extra = node.attribute("output_padding", [0] * count)
    pads = _transposed_padding(node, kernel, strides, dilation, extra)
    # The lesser amount is taken from both ends, the rest cut off, or added, at one.
    how = ConvParams(strides, [(0, 0)] * count, dilation, node.attribute("group", 1), _unrounded(node), extra)
    result = convolve_transposed(x, weight, how)
    for axis, (before, after) in enumerate(pads, start=2):
        result = pad_axis(result, axis, (-before, -after))
    return _with_bias(node, result, 2)


def _transposed_padding(
    node: Node, kernel: list[int], strides: list[int], dilation: list[int], extra: list[int]
) -> list[tuple[int, int]]:
    how, shape, count = node.attribute("auto_pad", "NOTSET"), node.attribute("output_shape"), len(kernel)
    if shape is None and how in ("NOTSET", "VALID"):
        pads = node.attribute("pads", [0] * (2 * count)) if how == "NOTSET" else [0] * (2 * count)
        return [(pads[i], pads[i + count]) for i in range(count)]
    found: list[tuple[int, int]] = []
    for i in range(count):
        total = extra[i] + (kernel[i] - 1) * dilation[i] + 1 - strides[i]  # of results that are as many as strides fit
        if shape is not None:
            total += strides[i] * node.known_size(0, i + 2) - shape[len(shape) - count + i]
        small = total // 2
        found.append((small, total - small) if how == "SAME_UPPER" else (total - small, small))
    return found
