"""ONNX operators that quantize, and products of quantized tensors."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ....dialect.inference import is_float
from ....weights.onnx_codes import is_coded
from ...emit import cast, emit, full, info_of, integer, reshape, unsqueeze
from ..codes import FLOATS, code_dtype, decoded, encoded, limited
from ..node import Node, handles
from ..tensors import element_dtype
from ..values import coded_value
from .convolution import convolved
from .elementwise import saturated
from .linear_algebra import product


def per_block(parameter: ir.Value, axis: int, block: int, size: object) -> ir.Value:
    """One per block along an axis, where the last block may be shorter: then one per element."""
    if not block:
        return parameter
    if not isinstance(size, int):
        raise RelaxError("expected blocks along a dimension of known size")
    if size % block == 0:
        return parameter
    repeated = emit(ops.Repeat, parameter, repeats=block, axis=axis)
    return emit(ops.StridedSlice, repeated, axes=[axis], begin=[0], end=[size])


def _parameters(node: Node) -> tuple[ir.Value, ir.Value | None, int]:
    """Scale, zero point (None for none) and axis."""
    rank = node.rank(0)
    axis = node.attribute("axis", 1)
    axis = axis + rank if axis < 0 else axis
    block = node.attribute("block_size", 0)
    scale = parameter(node, 1)
    if node.operand(1).coded:
        scale = decoded(scale, node.operand(1).coded, ir.F32Type.get())
    zero = parameter(node, 2) if node.has(2) else None
    if block:
        size = info_of(node.tensor(0)).shape[axis]
        scale = per_block(scale, axis, block, size)
        zero = None if zero is None else per_block(zero, axis, block, size)
    return scale, zero, axis if info_of(scale).rank else 0


@handles("DequantizeLinear")
def _dequantize(node: Node) -> ir.Value:
    scale, zero, axis = _parameters(node)
    x = node.tensor(0)
    dtype = element_dtype(node.attribute("output_dtype")) if node.attribute("output_dtype", 0) else info_of(scale).dtype
    if node.operand(0).coded in FLOATS:  # whose zero point is 0, as of floats of eight bits
        x, zero = decoded(x, node.operand(0).coded, ir.F32Type.get()), None
    if zero is None:
        zero = full(0, info_of(x).dtype)
    return emit(ops.Dequantize, x, scale, zero, axis=axis, out_dtype=dtype)


@handles("QuantizeLinear")
def _quantize(node: Node) -> Any:
    """Floats of eight bits and less have no zero point but 0, and saturate."""
    element = node.attribute("output_dtype", 0) or TensorProto.UINT8
    coded = node.operand(2).coded if node.has(2) else element if is_coded(element) else 0
    stored = code_dtype(coded) if coded else node.dtype(2) if node.has(2) else element_dtype(element)
    scale, zero, axis = _parameters(node)
    x = node.tensor(0)
    if not is_float(info_of(x).dtype):
        x = cast(x, ir.F32Type.get())
    if node.attribute("precision", 0):
        wide = element_dtype(node.attribute("precision"))
        x, scale = cast(x, wide), cast(scale, wide)
    if is_float(stored) or coded in FLOATS:
        spread = unsqueeze(scale, *range(1, info_of(x).rank - axis)) if info_of(scale).rank == 1 else scale
        quotient, saturates = emit(ops.Divide, x, spread), bool(node.attribute("saturate", 1))
        if is_float(stored):
            return saturated(quotient, stored, saturates)
        return coded_value(node.name, encoded(quotient, coded, saturates), coded)
    zero = full(0, stored) if zero is None else zero
    found = emit(ops.Quantize, x, scale, zero, axis=axis, dtype=stored)
    return coded_value(node.name, limited(found, coded), coded) if coded else found


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


def parameter(node: Node, index: int) -> ir.Value:
    """A scale or zero point; one of a single element as a scalar.

    What the model's file has is a weight (:meth:`Node.weight`). Zero points at the end or in the middle of their range are
    numbers, of which some work is saved.
    """
    operand = node.operand(index)
    if operand.known is not None and operand.known.size and not is_float(operand.dtype):
        number = int(operand.known.reshape(-1)[0])
        if number in (0, 1 << ir.IntegerType(operand.dtype).width - 1) and (operand.known == number).all():
            return full(number, operand.dtype)
    value = node.weight(index)
    return reshape(value, ()) if info_of(value).shape == (1,) else value


def real(node: Node, index: int, scale: ir.Value, zero_index: int, axis: int) -> ir.Value:
    """The numbers that the integers of an operand stand for, in the dtype of the scale.

    Scale and zero point, which may be absent, are scalars, one per index of ``axis``, or one per block.
    """
    zero = parameter(node, zero_index) if node.has(zero_index) else full(0, node.dtype(index))
    return emit(ops.Dequantize, node.tensor(index), scale, zero, axis=axis)


def rows(node: Node, index: int) -> int:
    """The axis along which the left factor of a matrix product has parameters of its own."""
    return max(node.rank(index) - 2, 0)


@handles("MatMulInteger")
def _matmul_integer(node: Node) -> ir.Value:
    """Sums of products of integers are exact in f64."""
    one = full(1.0, ir.F64Type.get())
    return cast(product(real(node, 0, one, 2, rows(node, 0)), real(node, 1, one, 3, -1)), integer(32))


@handles("QLinearMatMul")
def _qlinear_matmul(node: Node) -> ir.Value:
    a, b = (cast(parameter(node, i), ir.F32Type.get()) for i in (1, 4))
    return requantized(node, product(real(node, 0, a, 2, rows(node, 0)), real(node, 3, b, 5, -1)), 6)


def requantized(node: Node, x: ir.Value, index: int) -> ir.Value:
    """A result by the scale that is operand ``index``, and the zero point behind it, whose dtype it gets."""
    scale, zero = (parameter(node, i) for i in (index, index + 1))
    return emit(ops.Quantize, x, cast(scale, info_of(x).dtype), zero, axis=rows(node, 0), dtype=info_of(zero).dtype)


@handles("ConvInteger")
def _conv_integer(node: Node) -> ir.Value:
    """Sums of products of integers are exact in f64."""
    one = full(1.0, ir.F64Type.get())
    return cast(convolved(node, real(node, 0, one, 2, 0), real(node, 1, one, 3, 0)), integer(32))


@handles("QLinearConv")
def _qlinear_conv(node: Node) -> ir.Value:
    """The bias is in i32, in steps of both scales."""
    x_scale, scale = (cast(parameter(node, i), ir.F32Type.get()) for i in (1, 4))
    total = convolved(node, real(node, 0, x_scale, 2, 0), real(node, 3, scale, 5, 0))
    if node.has(8):
        bias = emit(ops.Multiply, cast(node.tensor(8), ir.F32Type.get()), emit(ops.Multiply, x_scale, scale))
        total = emit(ops.Add, total, unsqueeze(bias, *range(1, node.rank(3) - 1)))
    return requantized(node, total, 6)
