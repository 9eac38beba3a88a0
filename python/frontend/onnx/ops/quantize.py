"""ONNX operators that quantize, and products of quantized tensors."""

from __future__ import annotations

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ...emit import cast, emit, full, info_of, integer, reshape, unsqueeze
from ..node import Node, handles
from ..tensors import element_dtype
from .convolution import convolved
from .elementwise import converted
from .linear_algebra import product


def _blocks(parameter: ir.Value, axis: int, block: int, size: object) -> ir.Value:
    """One per block along an axis, where the last block may be shorter: then one per element."""
    if not block:
        return parameter
    if not isinstance(size, int):
        raise RelaxError("expected blocks along a dimension of known size")
    if size % block == 0:
        return parameter
    repeated = emit(ops.Repeat, parameter, repeats=block, axis=axis)
    return emit(ops.StridedSlice, repeated, axes=[axis], begin=[0], end=[size])


def _parameters(node: Node, stored: ir.Type) -> tuple[ir.Value, ir.Value | None, int]:
    """Scale, zero point (None for none) and axis."""
    rank = node.rank(0)
    axis = node.attribute("axis", 1)
    axis = axis + rank if axis < 0 else axis
    block = node.attribute("block_size", 0)
    scale = node.tensor(1)
    zero = node.tensor(2) if node.has(2) else None
    if info_of(scale).shape == (1,):
        scale = reshape(scale, ())
        zero = None if zero is None else reshape(zero, ())
    if block:
        size = info_of(node.tensor(0)).shape[axis]
        scale = _blocks(scale, axis, block, size)
        zero = None if zero is None else _blocks(zero, axis, block, size)
    return scale, zero, axis if info_of(scale).rank else 0


@handles("DequantizeLinear")
def _dequantize(node: Node) -> ir.Value:
    stored = node.dtype()
    scale, zero, axis = _parameters(node, stored)
    dtype = element_dtype(node.attribute("output_dtype")) if node.attribute("output_dtype", 0) else info_of(scale).dtype
    if zero is None:
        zero = full(0, stored)
    return emit(ops.Dequantize, node.tensor(0), scale, zero, axis=axis, out_dtype=dtype)


@handles("QuantizeLinear")
def _quantize(node: Node) -> ir.Value:
    """Floats of eight bits have no zero point but 0, and saturate."""
    stored = node.dtype(2) if node.has(2) else element_dtype(node.attribute("output_dtype", 0) or 2)
    scale, zero, axis = _parameters(node, stored)
    x = node.tensor(0)
    if not is_float(info_of(x).dtype):
        x = cast(x, ir.F32Type.get())
    if node.attribute("precision", 0):
        wide = element_dtype(node.attribute("precision"))
        x, scale = cast(x, wide), cast(scale, wide)
    if is_float(stored):
        spread = unsqueeze(scale, *range(1, info_of(x).rank - axis)) if info_of(scale).rank == 1 else scale
        return converted(emit(ops.Divide, x, spread), stored)
    zero = full(0, stored) if zero is None else zero
    return emit(ops.Quantize, x, scale, zero, axis=axis, dtype=stored)


@handles("DynamicQuantizeLinear")
def _dynamic_quantize(node: Node) -> list[ir.Value]:
    return list(dynamically_quantized(node.tensor(0)))


def dynamically_quantized(x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """A tensor in ui8 by its own range, its scale and its zero point.

    Source: https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html.
    """
    f32 = ir.F32Type.get()
    zero = full(0, f32)
    low, high = (emit(c, emit(r, x), zero) for r, c in ((ops.Min, ops.Minimum), (ops.Max, ops.Maximum)))
    span = emit(ops.Divide, emit(ops.Subtract, high, low), full(255, f32))
    scale = emit(ops.Where, emit(ops.Equal, span, zero), full(1, f32), span)
    point = emit(ops.Round, emit(ops.Clip, emit(ops.Negative, emit(ops.Divide, low, scale)), min=0.0, max=255.0))
    stored = ir.IntegerType.get_unsigned(8)
    zero_point = cast(point, stored)
    return emit(ops.Quantize, x, scale, zero_point, axis=0, dtype=stored), scale, zero_point


def centered(node: Node, index: int, zero_index: int) -> ir.Value:
    """The integers of an operand less their zero point, in i32; one per row of the first, per column of the second operand."""
    i32 = integer(32)
    x = cast(node.tensor(index), i32)
    if not node.has(zero_index):
        return x
    zero = cast(node.tensor(zero_index), i32)
    rank = info_of(x).rank
    if info_of(zero).shape == (1,):
        zero = reshape(zero, ())
    if info_of(zero).rank == 1 and rank > 1:
        if node.key in ("ConvInteger", "QLinearConv"):
            zero = unsqueeze(zero, *range(1, rank))
        elif index == 0 or (node.key == "QLinearMatMul" and index == 0):
            zero = unsqueeze(zero, 1)
    return emit(ops.Subtract, x, zero)


@handles("MatMulInteger")
def _matmul_integer(node: Node) -> ir.Value:
    return product(centered(node, 0, 2), centered(node, 1, 3))


@handles("QLinearMatMul")
def _qlinear_matmul(node: Node) -> ir.Value:
    """``(a - za) @ (b - zb)`` in integers, times both scales, in steps of the result's."""
    total = product(centered(node, 0, 2), centered(node, 3, 5))
    a, b = _column(node.tensor(1)), _scalar(node.tensor(4))
    return _requantized(node, total, a, b, node.tensor(6), 7)


def _scalar(scale: ir.Value) -> ir.Value:
    return reshape(scale, ()) if info_of(scale).shape == (1,) else scale


def _column(scale: ir.Value) -> ir.Value:
    scale = _scalar(scale)
    return unsqueeze(scale, 1) if info_of(scale).rank == 1 else scale


def _requantized(node: Node, total: ir.Value, a: ir.Value, b: ir.Value, out: ir.Value, zero_index: int) -> ir.Value:
    f32 = ir.F32Type.get()
    factor = emit(ops.Divide, emit(ops.Multiply, cast(a, f32), cast(b, f32)), cast(_scalar(out), f32))
    real = emit(ops.Multiply, cast(total, f32), factor)
    zero = _scalar(node.tensor(zero_index))
    return emit(ops.Quantize, real, full(1.0, f32), zero, axis=0, dtype=info_of(zero).dtype)


@handles("ConvInteger")
def _conv_integer(node: Node) -> ir.Value:
    """Sums of products of integers are exact in f64."""
    wide = ir.F64Type.get()
    x, weight = (cast(centered(node, i, z), wide) for i, z in ((0, 2), (1, 3)))
    return cast(convolved(node, x, weight), integer(32))


@handles("QLinearConv")
def _qlinear_conv(node: Node) -> ir.Value:
    i32 = integer(32)
    x = emit(ops.Subtract, cast(node.tensor(0), i32), cast(_scalar(node.tensor(2)), i32))
    zero = cast(_scalar(node.tensor(5)), i32)
    spatial = node.rank(3) - 1
    zero = unsqueeze(zero, *range(1, spatial + 1)) if info_of(zero).rank else zero
    weight = emit(ops.Subtract, cast(node.tensor(3), i32), zero)
    wide = ir.F64Type.get()
    total = convolved(node, cast(x, wide), cast(weight, wide))
    if node.has(8):
        total = emit(ops.Add, total, unsqueeze(cast(node.tensor(8), wide), *range(1, spatial)))
    scale = _scalar(node.tensor(4))
    scale = unsqueeze(scale, *range(1, spatial)) if info_of(scale).rank else scale
    return _requantized(node, total, _scalar(node.tensor(1)), scale, node.tensor(6), 7)
