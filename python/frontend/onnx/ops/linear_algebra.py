"""ONNX operators that are products."""

from __future__ import annotations

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.inference import is_float
from ...attention import attention_or_product
from ...einsum import einsum
from ...emit import cast, emit, full, info_of, permute, plus_bias, squeeze, unrounded, unsqueeze
from ...factorizations.elimination import determinant, factors, inverse
from ..equal_sizes import agreed_factors, agreed_operands
from ..node import Node, handles


@handles("MatMul")
def _matmul(node: Node) -> ir.Value:
    """A product, or attention where it is the second one of that."""
    a, b = agreed_factors(node.tensor(0), node.tensor(1))
    return attention_or_product(a, b) if is_float(info_of(a).dtype) else integer_product(a, b)


def product(a: ir.Value, b: ir.Value, out_dtype: ir.Type | None = None) -> ir.Value:
    """As NumPy's matmul, sums of floats rounded to ``out_dtype``; integers by sums of products."""
    a, b = agreed_factors(a, b)
    if is_float(info_of(a).dtype):
        return emit(ops.MatMul, a, b, out_dtype=out_dtype)
    return integer_product(a, b)


def integer_product(a: ir.Value, b: ir.Value) -> ir.Value:
    """The sum over products of integers, in their dtype."""
    ranks = info_of(a).rank, info_of(b).rank
    a = unsqueeze(a, 0) if ranks[0] == 1 else a
    b = unsqueeze(b, 1) if ranks[1] == 1 else b
    rank = max(info_of(a).rank, info_of(b).rank)
    left, right = unsqueeze(a, info_of(a).rank), unsqueeze(b, info_of(b).rank - 2)
    result = emit(ops.Sum, emit(ops.Multiply, left, right), axis=[rank - 1])
    result = squeeze(result, rank - 2) if ranks[0] == 1 else result
    return squeeze(result, info_of(result).rank - 1) if ranks[1] == 1 else result


@handles("Gemm")
def _gemm(node: Node) -> ir.Value:
    """``alpha * a @ b + beta * c``."""
    a, b = node.tensor(0), node.tensor(1)
    a = permute(a, [1, 0]) if node.attribute("transA", 0) else a
    b = permute(b, [1, 0]) if node.attribute("transB", 0) else b
    dtype = node.dtype()
    result = _times(product(a, b, unrounded(dtype) if node.has(2) else None), node.attribute("alpha", 1.0))
    if not node.has(2):
        return cast(result, dtype)
    bias = _times(cast(node.tensor(2), info_of(result).dtype), node.attribute("beta", 1.0))
    result, bias = agreed_operands(result, bias)
    return plus_bias(result, bias, dtype)


def _times(x: ir.Value, number: float) -> ir.Value:
    return x if number == 1 else emit(ops.Multiply, x, full(number, info_of(x).dtype))


@handles("Einsum")
def _einsum(node: Node) -> ir.Value:
    return einsum(node.attribute("equation", ""), [node.tensor(i) for i in range(len(node.operands))], attention_or_product)


@handles("Det")
def _det(node: Node) -> ir.Value:
    """By minors of up to four rows, which are one expression; else by elimination."""
    x = node.tensor(0)
    size = info_of(x).shape[-1]
    if isinstance(size, int) and 0 < size <= 4:
        return _minor(x, list(range(size)), list(range(size)))
    return determinant(factors(x))


@handles("com.microsoft.Inverse")
def _inverse(node: Node) -> ir.Value:
    return inverse(factors(node.tensor(0)))


def _minor(x: ir.Value, rows: list[int], columns: list[int]) -> ir.Value:
    def element(i: int, j: int) -> ir.Value:
        rank = info_of(x).rank
        part = emit(ops.StridedSlice, x, axes=[rank - 2, rank - 1], begin=[i, j], end=[i + 1, j + 1])
        return squeeze(part, rank - 2, rank - 1)

    if len(rows) == 1:
        return element(rows[0], columns[0])
    total: ir.Value | None = None
    for k, column in enumerate(columns):
        part = emit(ops.Multiply, element(rows[0], column), _minor(x, rows[1:], columns[:k] + columns[k + 1 :]))
        total = part if total is None else emit(ops.Subtract if k % 2 else ops.Add, total, part)
    assert total is not None
    return total
