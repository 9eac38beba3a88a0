"""torch ops that are matrix products."""

from __future__ import annotations

from collections.abc import Callable

from ...dialect import ops
from ...dialect.bindings import ir
from ..attention import attention_or_product
from ..einsum import einsum, matmul
from ..emit import cast, emit, full, info_of, permute, plus_bias, unrounded, unsqueeze, wide
from ..torch_op import TorchOp, handles
from ..torch_values import is_read


@handles("aten.linear")
def _linear(op: TorchOp) -> ir.Value:
    """``x @ w^T + b``: the transpose is an op on the weight alone, so it can be lifted out of inference."""
    x, weight, bias = op.tensor(0), op.tensor(1), op.optional(2)
    if info_of(weight).rank == 2:
        weight = permute(weight, [1, 0])
    if bias is None:
        return emit(ops.MatMul, x, weight)
    dtype = info_of(x).dtype
    return plus_bias(emit(ops.MatMul, x, weight, out_dtype=unrounded(dtype)), bias, dtype)


@handles("aten.mm", "aten.mv", "aten.dot", "aten.vdot")
def _matmul(op: TorchOp) -> ir.Value:
    return emit(ops.MatMul, cast(op.tensor(0), op.dtype), cast(op.tensor(1), op.dtype))


@handles("aten.bmm", "aten.matmul")
def _matmul_of_batches(op: TorchOp) -> ir.Value:
    return _with_probabilities(op, op.operands[0])(cast(op.tensor(0), op.dtype), cast(op.tensor(1), op.dtype))


@handles("aten.einsum")
def _einsum(op: TorchOp) -> ir.Value:
    first = op.operands[1].owner.operation.operands[0]
    return einsum(op.number(0), op.tensors(1), _with_probabilities(op, first))


def _with_probabilities(op: TorchOp, first: ir.Value) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """What multiplies: attention where it is the second product of that, and nothing else reads what it is made of."""
    return attention_or_product if _only_reader(first, op.values.read) else matmul


def _only_reader(x: ir.Value, known: dict[ir.Operation, bool]) -> bool:
    """Whether one chain of operations leads from a softmax to what reads ``x``, and nothing beside it is read in the end."""
    waiting = [x]
    while waiting:
        value = waiting.pop()
        if isinstance(value, ir.BlockArgument) or sum(is_read(use.owner.operation, known) for use in value.uses) != 1:
            continue
        op = value.owner.operation
        if "softmax" in op.name:
            return True
        waiting += op.operands
    return False


@handles("aten.addmm", "aten.baddbmm", "aten.addmv")
def _addmm(op: TorchOp) -> ir.Value:
    """``beta * c + alpha * (a @ b)``; with beta 0 what is in c does not count, not even NaN."""
    beta, alpha = op.number(3, 1), op.number(4, 1)
    dtype = info_of(op.tensor(1)).dtype
    product = _times(emit(ops.MatMul, op.tensor(1), op.tensor(2), out_dtype=unrounded(dtype)), alpha)
    if beta == 0:
        return cast(product, dtype)
    return plus_bias(product, _times(cast(op.tensor(0), info_of(product).dtype), beta), dtype)


@handles("aten.addbmm")
def _addbmm(op: TorchOp) -> ir.Value:
    """The products of a batch, added up."""
    beta, alpha = op.number(3, 1), op.number(4, 1)
    product = _times(emit(ops.Sum, emit(ops.MatMul, op.tensor(1), op.tensor(2)), axis=[0]), alpha)
    return product if beta == 0 else emit(ops.Add, product, _times(op.tensor(0), beta))


def _times(value: ir.Value, factor: float) -> ir.Value:
    return value if factor == 1 else emit(ops.Multiply, value, full(factor, info_of(value).dtype))


@handles("aten.outer")
def _outer(op: TorchOp) -> ir.Value:
    return emit(ops.Multiply, unsqueeze(op.value_in(0, op.dtype), 1), unsqueeze(op.value_in(1, op.dtype), 0))


@handles("aten._trilinear")
def _trilinear(op: TorchOp) -> ir.Value:
    """The product of three tensors that broadcast along given dimensions, summed along others; torch writes bilinear so.

    Products of narrow floats are f32: two of them may be too small for f16, where the third makes them large again.
    """
    product = None
    for i in range(3):
        factor = unsqueeze(cast(op.tensor(i), wide(op.dtype)), *op.number(3 + i))
        product = factor if product is None else emit(ops.Multiply, product, factor)
    assert product is not None
    return cast(emit(ops.Sum, product, axis=op.number(6)) if op.number(6) else product, op.dtype)
