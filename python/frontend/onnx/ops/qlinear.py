"""Operators of com.microsoft on quantized tensors, of ONNX Runtime: products, and plain operators between two scales.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ...emit import alike, cast, concat, emit, full, info_of
from ..equal_sizes import agreed_operands
from ..node import HANDLERS, Node, handles
from ..values import GraphValue, TensorSequence, tensor_value
from .fused import transposed
from .linear_algebra import product
from .quantize import dynamically_quantized, parameter, real, rows

_DOMAIN = "com.microsoft"

#: Operators with operands ``x, scale, zero point``, then those of the result, by the plain ones.
_UNARY = {"QLinearSigmoid": "Sigmoid", "QLinearLeakyRelu": "LeakyRelu", "QLinearSoftmax": "Softmax"}
_POOLS = {"QLinearAveragePool": "AveragePool", "QLinearGlobalAveragePool": "GlobalAveragePool"}
_BINARY = {"QLinearAdd": "Add", "QLinearMul": "Mul"}


def _keys(table: Mapping[str, str]) -> list[str]:
    return [f"{_DOMAIN}.{name}" for name in table]


def _real(node: Node, index: int) -> ir.Value:
    """The numbers that an operand stands for; its scale and its zero point, which may be absent, are the next two."""
    return emit(ops.Dequantize, node.tensor(index), parameter(node, index + 1), _zero(node, index + 2, index), axis=0)


def _quantized(node: Node, x: ir.Value, index: int, like: int = 0) -> ir.Value:
    """A result by the scale that is operand ``index``, and the zero point behind it, in the dtype of operand ``like``."""
    zero = _zero(node, index + 1, like)
    return emit(ops.Quantize, x, parameter(node, index), zero, axis=0, dtype=node.dtype(like))


def _zero(node: Node, index: int, of: int) -> ir.Value:
    return parameter(node, index) if node.has(index) else full(0, node.dtype(of))


def _plain(node: Node, operator: str, values: list[ir.Value], **attributes: Any) -> ir.Value:
    """What the plain operator makes of numbers."""
    operands: list[GraphValue | TensorSequence | None] = [tensor_value(node.name, v) for v in values]
    version = int(node.attribute("opset", 13))
    inner = replace(node, key=operator, operands=operands, version=version, attributes={**node.attributes, **attributes})
    found: Any = HANDLERS[operator](inner)
    return found[0] if isinstance(found, list | tuple) else found


@handles(*_keys(_UNARY))
def _unary(node: Node) -> ir.Value:
    """The attribute ``opset`` of a softmax is the version of the plain one."""
    operator = _UNARY[node.key.rpartition(".")[2]]
    return _quantized(node, _plain(node, operator, [_real(node, 0)]), 3)


@handles(*_keys(_POOLS))
def _pool(node: Node) -> ir.Value:
    if node.attribute("channels_last", 0):
        raise RelaxError("expected channels before positions")
    return _quantized(node, _plain(node, _POOLS[node.key.rpartition(".")[2]], [_real(node, 0)]), 3)


@handles(*_keys(_BINARY))
def _binary(node: Node) -> ir.Value:
    operator = _BINARY[node.key.rpartition(".")[2]]
    return _quantized(node, _plain(node, operator, [_real(node, 0), _real(node, 3)]), 6)


@handles(f"{_DOMAIN}.QLinearWhere")
def _where(node: Node) -> ir.Value:
    """A condition, then operands as of a sum."""
    chosen = emit(ops.Where, *agreed_operands(node.tensor(0), _real(node, 1), _real(node, 4)))
    return _quantized(node, chosen, 7, like=1)


@handles(f"{_DOMAIN}.QLinearConcat")
def _concat(node: Node) -> ir.Value:
    """Scale and zero point of the result come first, then tensors with theirs."""
    parts = [_real(node, i) for i in range(2, len(node.operands), 3)]
    if not parts:
        raise RelaxError("expected tensors to concatenate")
    axis = node.axis(None, node.rank(2))
    return _quantized(node, concat(alike(parts, axis), axis), 0, like=2)


@handles(f"{_DOMAIN}.QAttention")
def _attention(node: Node) -> ir.Value:
    """Operands x, weight, bias, their scales, the mask, their zero points, and what a cache would be."""
    if node.has(8) or node.wants(1):
        raise RelaxError("expected attention without a cache")
    x, weight = (emit(ops.Dequantize, node.tensor(i), parameter(node, i + 3), _zero(node, i + 6, i), axis=1) for i in range(2))
    operands = [tensor_value(node.name, x), tensor_value(node.name, weight), node.operands[2], *node.operands[5:6]]
    return HANDLERS[f"{_DOMAIN}.Attention"](replace(node, key=f"{_DOMAIN}.Attention", operands=operands))


@handles(f"{_DOMAIN}.MatMulIntegerToFloat")
def _matmul_integer_to_float(node: Node) -> ir.Value:
    """Operands a, b, their scales, their zero points, bias."""
    wide = ir.F32Type.get()
    a = real(node, 0, cast(parameter(node, 2), wide), 4, rows(node, 0))
    result = product(a, real(node, 1, cast(parameter(node, 3), wide), 5, -1))
    return _with_bias(node, cast(result, node.dtype(2)), 6)


@handles(f"{_DOMAIN}.DynamicQuantizeMatMul")
def _dynamic_quantize_matmul(node: Node) -> ir.Value:
    """The first operand quantized by its own range, as DynamicQuantizeLinear does."""
    codes, scale, zero = dynamically_quantized(node.tensor(0))
    a = emit(ops.Dequantize, codes, scale, zero, axis=0)
    return _with_bias(node, product(a, real(node, 1, parameter(node, 2), 3, -1)), 4)


def _with_bias(node: Node, x: ir.Value, index: int) -> ir.Value:
    return emit(ops.Add, *agreed_operands(x, node.tensor(index))) if node.has(index) else x


@handles(f"{_DOMAIN}.QGemm")
def _qgemm(node: Node) -> ir.Value:
    """Operands a, scale, zero point, b, scale, zero point, bias in i32, and of a quantized result scale and zero point."""
    scales = [parameter(node, i) for i in (1, 4)]
    a = transposed(real(node, 0, scales[0], 2, 0), bool(node.attribute("transA", 0)))
    is_transposed = bool(node.attribute("transB", 0))
    total = product(a, transposed(real(node, 3, scales[1], 5, 0 if is_transposed else 1), is_transposed))
    if node.has(6):
        step = emit(ops.Multiply, *scales)
        bias = emit(ops.Multiply, *agreed_operands(cast(node.tensor(6), info_of(step).dtype), step))
        total = emit(ops.Add, *agreed_operands(total, bias))
    alpha = node.attribute("alpha", 1.0)
    total = total if alpha == 1 else emit(ops.Multiply, total, full(alpha, info_of(total).dtype))
    return _quantized(node, total, 7) if node.has(7) else total
