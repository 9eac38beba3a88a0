"""What ops say of their dimensions: where some are tied, the op on a part of them gives that part of the result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from relaxir.dialect import context
from relaxir.dialect.bindings import ir
from relaxir.dialect.dim_ties import Tie
from relaxir.dialect.functions import find_function, functions, name_of
from relaxir.dialect.op import EffectOp, ties_of
from relaxir.dialect.reference.apply import apply_op
from relaxir.dialect.reference.scope import Scope
from relaxir.dialect.struct_info import TensorInfo
from relaxir.lowering.split_steps import function_of_piece
from support.op_samples import inputs_of, load, op_of, samples

loaded = cache(load)


def is_static(value: ir.Value) -> bool:
    return all(isinstance(d, int) for d in TensorInfo.of(value).shape)


#: What the samples have with symbolic sizes alone.
STATIC = """
func.func @groups(%x: tensor<6x8x1xf32>) -> tensor<2x3x1x8xf32> {
  %0 = "relax.reshape"(%x) : (tensor<6x8x1xf32>) -> tensor<2x3x1x8xf32>
  return %0 : tensor<2x3x1x8xf32>
}
func.func @merged(%x: tensor<1x4x6x5xf32>) -> tensor<8x3x5xf32> {
  %0 = "relax.reshape"(%x) : (tensor<1x4x6x5xf32>) -> tensor<8x3x5xf32>
  return %0 : tensor<8x3x5xf32>
}
func.func @permuted(%x: tensor<4x3x2xf32>) -> tensor<2x4x3xf32> {
  %0 = "relax.permute_dims"(%x) {axes = array<i64: -1, 0, 1>} : (tensor<4x3x2xf32>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}
func.func @taken(%x: tensor<4x3x2xf32>, %i: tensor<5xi64>) -> tensor<4x5x2xf32> {
  %0 = "relax.take"(%x, %i) {axis = 1 : i64} : (tensor<4x3x2xf32>, tensor<5xi64>) -> tensor<4x5x2xf32>
  return %0 : tensor<4x5x2xf32>
}
func.func @reduced(%x: tensor<4x3x2xf32>) -> tensor<4x2xf32> {
  %0 = "relax.max"(%x) {axis = array<i64: -2>} : (tensor<4x3x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
func.func @kept(%x: tensor<4x3x2xf32>) -> tensor<1x3x1xf32> {
  %0 = "relax.max"(%x) {axis = array<i64: 0, 2>, keepdims = true} : (tensor<4x3x2xf32>) -> tensor<1x3x1xf32>
  return %0 : tensor<1x3x1xf32>
}
"""


def cases() -> Iterator[tuple[ir.Module, str]]:
    """Functions of one op of known sizes that ties dimensions, and takes each argument once."""
    static = ir.Module.parse(STATIC, context.new_context())
    for module, name in [*((loaded(s.family), s.name) for s in samples()), *((static, name_of(f)) for f in functions(static))]:
        op, function = op_of(module, name), find_function(module, name)
        values = (*op.operands, *op.results)
        if ties_of(op) and list(op.operands) == list(function.arguments) and all(map(is_static, values)):
            yield module, name


def cuts(tie: Tie) -> list[list[tuple[ir.Value, int, int, int]]]:
    """Two pieces of all values of a tie, each as value, axis, begin and end; none where it does not fall into two."""
    unit = math.lcm(*(d.ratio.denominator for d in tie))
    sizes = [int(TensorInfo.of(d.value).shape[d.axis]) for d in tie]  # type: ignore[arg-type]
    if any(s <= d.ratio * unit for d, s in zip(tie, sizes, strict=True)):
        return []
    middle = [int(d.ratio * unit) for d in tie]
    return [
        [(d.value, d.axis, b, e) for d, b, e in zip(tie, begins, ends, strict=True)]
        for begins, ends in (([0] * len(tie), middle), (middle, sizes))
    ]


def part(array: np.ndarray[Any, Any], axis: int, begin: int, end: int) -> np.ndarray[Any, Any]:
    return array[(*(slice(None),) * axis, slice(begin, end))]


def test_parts_of_operands_give_parts_of_results() -> None:
    seen: dict[str, int] = {}
    for module, name in cases():
        op = op_of(module, name)
        inputs, wholes = inputs_of(op), apply(op, inputs_of(op))
        for piece in (p for tie in ties_of(op) for p in cuts(tie)):
            check_piece(module, name, piece, inputs, wholes)
            seen[name] = seen.get(name, 0) + 1
    assert (seen["groups"], seen["merged"], seen["reduced"], seen["kept"]) == (4, 4, 4, 2)
    assert set(seen) >= {"permuted", "pack_weight", "quantize", "dequantize", "taken", "add"}


def apply(op: EffectOp, inputs: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    with op.context:
        return apply_op(op, inputs, Scope())


def check_piece(module: ir.Module, name: str, piece: Any, inputs: Any, wholes: Any) -> None:
    op = op_of(module, name)
    sizes = {value: (axis, end - begin) for value, axis, begin, end in piece}
    with module.context:
        made = function_of_piece(find_function(module, name), f"{name}.piece", sizes)
    try:
        assert made.operation.verify(), f"{name}: {made}"
        given = [cut(piece, v, a) for v, a in zip(op.operands, inputs, strict=True)]
        got = apply(op_of(module, f"{name}.piece"), given)
        for result, whole, found in zip(op.results, wholes, got, strict=True):
            np.testing.assert_array_equal(found, cut(piece, result, whole), err_msg=name, strict=True)
    finally:
        made.operation.erase()


def cut(piece: Any, value: ir.Value, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    for other, axis, begin, end in piece:
        if other == value:
            return part(array, axis, begin, end)
    return array


@pytest.mark.parametrize("name", ["relax.cumsum", "relax.conv2d", "relax.softmax"])
def test_ops_that_say_nothing_work_on_wholes(name: str) -> None:
    ops = [op_of(loaded(s.family), s.name) for s in samples()]
    found = [op for op in ops if name == op.OPERATION_NAME]
    assert found
    assert not any(ties_of(op) for op in found)
