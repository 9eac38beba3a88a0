"""Building ops from Python: inference, coercion of attributes, accessors, and every message of the builder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from relaxir.dialect import attributes, ops
from relaxir.dialect.bindings import arith, func, ir
from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.op import attrs_of, op_class
from relaxir.dialect.relax import OutputSink
from relaxir.dialect.struct_info import tensor_type

CONTEXT = new_context()


@pytest.fixture(autouse=True)
def module() -> Iterator[ir.Module]:
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            yield module


def f32(*shape: Any, vdevice: str | None = None) -> ir.Type:
    return tensor_type(shape, ir.F32Type.get(), vdevice)


def number() -> ir.OpView:
    """An op whose result is no tensor."""
    return arith.ConstantOp(ir.F32Type.get(), 1.0)


@pytest.fixture
def x() -> Iterator[ir.Value]:
    function = func.FuncOp("f", ([f32("n", 4)], []))
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        yield block.arguments[0]


def test_results_are_inferred(x: ir.Value) -> None:
    y = ops.PermuteDims.create(x, axes=[1, 0]).result
    assert y.type == f32(4, "n")
    z = ops.MatMul.create(x, y).result
    assert z.type == f32("n", "n")
    parts = ops.Split.create(x, sections=2, axis=1).results
    assert [p.type for p in parts] == [f32("n", 2)] * 2


def test_the_class_builds_too(x: ir.Value) -> None:
    op = ops.Softmax(x, axis=0)
    assert isinstance(op, ops.Softmax)
    assert op.x == x
    assert op.axis == 0
    assert ops.Softmax(x).axis == -1


def test_ops_with_one_result_are_operands(x: ir.Value) -> None:
    inner = ops.Relu(x)
    assert ops.Add.create(inner, inner.operation).result.type == x.type


def test_optional_operands(x: ir.Value) -> None:
    q = ops.Reshape.create(x, result_types=[f32(1, "n", 4)]).result
    plain = ops.Attention(q, q, q, None)
    assert plain.mask is None
    assert len(plain.operands) == 3
    mask = ops.Full.create(result_types=[f32("n", "n")], value=0.0).result
    masked = ops.Attention(q, q, q, mask)
    assert masked.mask == mask
    assert masked.value == q


def test_devices_are_inherited(x: ir.Value) -> None:
    placed = ops.ToVDevice.create(x, vdevice="cuda:0").result
    assert placed.type == f32("n", 4, vdevice="cuda:0")
    assert ops.Relu.create(placed).result.type == placed.type
    assert ops.ToVDevice.create(placed, vdevice="cpu:0").result.type == f32("n", 4, vdevice="cpu:0")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: ops.Relu.create(), "'relax.relu' op expected operands x, got 0"),
        (lambda x: ops.Add.create(x), "'relax.add' op expected operands lhs, rhs, got 1"),
        (lambda x: ops.Full.create(x, value=0), "'relax.full' op expected operands none, got 1"),
        (lambda x: ops.Relu.create(4), "expected a value or an op with one result as operand, got int"),
        (lambda x: ops.Relu.create(ops.Split(x, sections=2, axis=1)), "or an op with one result as operand, got Split"),
        (lambda x: ops.Relu.create(number()), "'relax.relu' op expected a ranked tensor, got f32"),
        (lambda x: ops.Reshape.create(x), "'relax.reshape' expects its result types, they cannot be inferred"),
        (lambda x: ops.Flip.create(x), "'relax.flip' op expected attribute 'axis'"),
        (lambda x: ops.Relu.create(x, alpha=0.1), "'relax.relu' op has no attribute named 'alpha'"),
        (lambda x: ops.Flip.create(x, axis=2), r"'relax.flip' op expected axis in \[-2, 2\), got 2"),
        (lambda x: ops.Tile.create(x, repeats=[1, 2**62]), r"expected dimensions from 0 to 2\*\*63 - 1, got \d+"),
    ],
)  # fmt: skip
def test_messages(x: ir.Value, build: Any, message: str) -> None:
    with pytest.raises(RelaxError, match=f"{message}$"):
        build(x)


def test_no_result_types_are_needed_where_there_are_no_results() -> None:
    function = func.FuncOp("g", ([OutputSink.get(), f32(4)], []))
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        op = ops.SetOutput.create(*block.arguments, index=0, name="w")
    assert list(op.results) == []


# Attributes


@pytest.mark.parametrize(
    ("attr", "value", "text"),
    [
        (attributes.integer(), 3, "3 : i64"),
        (attributes.integer(), np.int32(3), "3 : i64"),
        (attributes.boolean(), True, "true"),
        (attributes.real(), 1, "1.000000e+00 : f64"),
        (attributes.string(), "a", '"a"'),
        (attributes.enum(["a", "b"]), "b", '"b"'),
        (attributes.integers(), (1, 2), "array<i64: 1, 2>"),
        (attributes.integers(), [], "array<i64>"),
        (attributes.integers(length=2), [1, 2], "array<i64: 1, 2>"),
        (attributes.dims(), [0, "n + n"], '[0, "n * 2"]'),
        (attributes.scalar(), 3, "3 : i64"),
        (attributes.scalar(), 1.5, "1.500000e+00 : f64"),
        (attributes.scalar(), True, "true"),
    ],
)
def test_values_become_attributes_and_come_back(attr: attributes.Attr, value: Any, text: str) -> None:
    written = attr.write("key", value)
    assert str(written) == text
    back = attr.read("key", written)
    if not isinstance(value, list | tuple):
        assert back == value
    elif all(isinstance(v, int) for v in value):
        assert back == list(value)


def test_types_and_elements_become_attributes() -> None:
    half = ir.F16Type.get()
    assert attributes.dtype().read("dtype", attributes.dtype().write("dtype", half)) == half
    dense = ir.Attribute.parse("dense<1.0> : tensor<2xf32>")
    assert attributes.elements().write("value", dense) == dense


@pytest.mark.parametrize(
    ("attr", "value", "expected"),
    [
        (attributes.integer(), 1.5, "an integer"),
        (attributes.integer(), "3", "an integer"),
        (attributes.integer(), None, "an integer"),
        (attributes.integer(), 2**70, "an integer"),
        (attributes.boolean(), "false", "a boolean"),
        (attributes.boolean(), 1, "a boolean"),
        (attributes.real(), "x", "a number"),
        (attributes.string(), 3, "a string"),
        (attributes.enum(["a", "b"]), "c", "one of 'a', 'b'"),
        (attributes.integers(), [1.5], "an i64 array"),
        (attributes.integers(), 3, "an i64 array"),
        (attributes.integers(length=2), [1], "an i64 array of 2"),
        (attributes.dims(), ["n +"], "an array of integers and symbolic expressions"),
        (attributes.dims(), ["?"], "an array of integers and symbolic expressions"),
        (attributes.dims(), [1.5], "an array of integers and symbolic expressions"),
        (attributes.dtype(), "f32", "a type"),
        (attributes.scalar(), "one", "a number"),
        (attributes.scalar(), 2**70, "a number"),
        (attributes.elements(), [1.0], "an elements attribute"),
    ],
)
def test_values_that_do_not_fit(attr: attributes.Attr, value: Any, expected: str) -> None:
    with pytest.raises(RelaxError, match=f"^expected {expected} for attribute 'key', got "):
        attr.write("key", value)


@pytest.mark.parametrize(
    ("attr", "text"),
    [
        (attributes.integer(), "1.5 : f32"),
        (attributes.integer(), "true"),
        (attributes.integer(), "18446744073709551616 : i128"),
        (attributes.boolean(), "1 : i64"),
        (attributes.real(), "1 : i64"),
        (attributes.string(), "1 : i64"),
        (attributes.enum(["a"]), '"b"'),
        (attributes.enum(["a"]), "1 : i64"),
        (attributes.integers(), "[1, 2]"),
        (attributes.integers(), "array<i32: 1>"),
        (attributes.integers(length=1), "array<i64: 1, 2>"),
        (attributes.dims(), "1 : i64"),
        (attributes.dims(), '["n +"]'),
        (attributes.dims(), "[1.5 : f32]"),
        (attributes.dtype(), '"f32"'),
        (attributes.scalar(), '"1"'),
        (attributes.elements(), "[1]"),
    ],
)
def test_attributes_of_another_kind(attr: attributes.Attr, text: str) -> None:
    with pytest.raises(RelaxError, match=f"^expected {attr.expected} for attribute 'key', got "):
        attr.read("key", ir.Attribute.parse(text))


def test_attrs_of(x: ir.Value) -> None:
    op = ops.LayerNorm.create(x, *[ops.Full.create(result_types=[f32(4)], value=1.0)] * 2, epsilon=0.5)
    assert attrs_of(op) == {"axes": (-1,), "epsilon": 0.5}
    with pytest.raises(RelaxError, match=r"expected a relax op, got 'arith.constant'"):
        attrs_of(number())


def test_op_class(x: ir.Value) -> None:
    assert op_class(ops.Relu(x)) is ops.Relu
    assert op_class(ops.Relu.create(x)) is ops.Relu
    assert op_class(number()) is None


def test_parsing_verifies_without_an_entered_context() -> None:
    """Rules build types; the caller of parse need not have entered the context."""
    text = 'func.func @f(%x: tensor<4xf32>) { %0 = "relax.isnan"(%x) : (tensor<4xf32>) -> tensor<4xi1>\n return }'
    other = new_context()
    assert ir.Module.parse(text, other).operation.verify()
