"""ONNX operators whose operands have sizes of other names, or of none, which have to be equal: what a call says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from support.onnx_models import model

Array = np.ndarray[Any, Any]
_FLOAT, _BOOL = TensorProto.FLOAT, TensorProto.BOOL
_node = helper.make_node


def _numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(1, 5, shape).astype(np.float32)


def _check(proto: onnx.ModelProto, *inputs: Array, weights: dict[str, Array] | None = None) -> rx.Executable:
    proto.graph.output[0].type.tensor_type.elem_type = _FLOAT
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = rx.compile(rx.from_onnx(proto))
    if weights:
        executable.bind(executable.prepare(weights))
    wanted: Any = session.run(None, dict(zip((i.name for i in proto.graph.input), inputs, strict=True)))[0]
    np.testing.assert_allclose(executable(*inputs), wanted, rtol=1e-4, atol=1e-5)
    return executable


def _sizes(*shapes: list[Any]) -> dict[str, tuple[int, list[Any]]]:
    return {name: (_FLOAT, shape) for name, shape in zip("abc", shapes, strict=False)}


@pytest.mark.parametrize("operator", ["Add", "Mul", "Div", "Pow", "Max", "Mean", "PRelu"])
@pytest.mark.parametrize(("a", "b"), [(["m", 4], ["n", 4]), ([None, 4], [None, 4]), (["m", "k"], [3, 4]), (["m", 4], ["k"])])
def test_sizes_of_other_names_are_equal(operator: str, a: list[Any], b: list[Any]) -> None:
    proto = model([_node(operator, ["a", "b"], ["y"])], _sizes(a, b), ["y"])
    _check(proto, _numbers(3, 4), _numbers(3, 4)[-len(b) :][0] if len(b) == 1 else _numbers(3, 4, seed=1))


def test_a_choice_between_tensors_of_sizes_of_other_names() -> None:
    inputs = {"c": (_BOOL, ["k", 1]), **_sizes(["m", 4], ["n", 4])}
    _check(
        model([_node("Where", ["c", "a", "b"], ["y"])], inputs, ["y"]),
        _numbers(3, 1) > 2,
        _numbers(3, 4),
        _numbers(3, 4, seed=1),
    )


def test_products_of_sizes_of_other_names() -> None:
    proto = model([_node("MatMul", ["a", "b"], ["y"])], _sizes(["m", 3, "k"], ["n", 4, 2]), ["y"])
    _check(proto, _numbers(5, 3, 4), _numbers(5, 4, 2))
    proto = model([_node("Gemm", ["a", "b", "c"], ["y"], transB=1)], _sizes([3, "k"], ["m", "n"], ["o"]), ["y"])
    _check(proto, _numbers(3, 4), _numbers(2, 4), _numbers(2))


def test_a_weight_says_how_many_channels_an_image_has() -> None:
    nodes = [_node("Conv", ["a", "w"], ["h"], group=2), _node("BatchNormalization", ["h", "s", "s", "s", "s"], ["n"])]
    nodes.append(_node("InstanceNormalization", ["n", "s", "s"], ["y"]))
    weights = {"w": _numbers(4, 2, 3, 3), "s": _numbers(4)}
    executable = _check(model(nodes, _sizes(["n", "c", "h", "w_"]), ["y"], weights), _numbers(1, 4, 5, 6), weights=weights)
    with pytest.raises(rx.RelaxError, match="expected dimension 1 to be 4"):
        executable(_numbers(1, 3, 5, 6))


def test_expanding_to_a_shape_of_other_names() -> None:
    nodes = [_node("Shape", ["b"], ["s"]), _node("Expand", ["a", "s"], ["y"])]
    _check(model(nodes, _sizes(["m", 1], [2, "n", 4]), ["y"]), _numbers(3, 1), _numbers(2, 3, 4))


def test_sequences_that_a_scan_reads_are_of_one_length() -> None:
    names = {"s": [4], "p": [4], "q": [4]}
    body = helper.make_graph(
        [_node("Mul", ["p", "q"], ["m"]), _node("Add", ["s", "m"], ["t"]), _node("Neg", ["t"], ["r"])],
        "body",
        [helper.make_tensor_value_info(n, _FLOAT, s) for n, s in names.items()],
        [helper.make_tensor_value_info(n, _FLOAT, [4]) for n in ("t", "r")],
    )
    scan = _node("Scan", ["a", "b", "c"], ["last", "y"], body=body, num_scan_inputs=2)
    executable = rx.compile(rx.from_onnx(model([scan], _sizes([4], ["m", 4], [None, 4]), ["y"])))
    a, b, c = _numbers(4), _numbers(5, 4), _numbers(5, 4, seed=1)
    np.testing.assert_allclose(executable(a, b, c), -(a + np.cumsum(b * c, 0)), rtol=1e-6)
    with pytest.raises(rx.RelaxError, match="expected dimension 0 to be"):
        executable(a, b, c[:4])


@pytest.mark.parametrize("new_axis", [0, 1])
def test_tensors_of_a_sequence_that_are_joined(new_axis: int) -> None:
    nodes = [
        _node("SequenceConstruct", ["a", "b"], ["s"]),
        _node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=new_axis),
    ]
    executable = _check(model(nodes, _sizes(["m", 4], [None, None]), ["y"]), _numbers(3, 4), _numbers(3, 4, seed=1))
    with pytest.raises(rx.RelaxError, match="expected dimension 1 to be"):
        executable(_numbers(3, 4), _numbers(2, 4) if new_axis else _numbers(3, 5))


def test_a_size_of_one_is_broadcast_where_the_import_knows_it() -> None:
    """Else the call is refused, with the way to say so."""
    proto = model([_node("Add", ["a", "b"], ["y"])], _sizes(["m", 4], [None, 4]), ["y"])
    inputs = _numbers(3, 4), _numbers(1, 4)
    with pytest.raises(rx.RelaxError, match=r"y, which takes sizes to be equal unless dims= of the import says what they are"):
        rx.compile(rx.from_onnx(proto))(*inputs)
    found = rx.compile(rx.from_onnx(proto, dims={"b_0": 1}))(*inputs)
    np.testing.assert_array_equal(found, inputs[0] + inputs[1])


def test_numbers_that_differ_are_no_sizes_of_one_operand() -> None:
    with pytest.raises(rx.RelaxError, match=r"expected broadcastable shapes, got \[n, 3\] and \[m, 4\]"):
        rx.from_onnx(model([_node("Add", ["a", "b"], ["y"])], _sizes(["n", 3], ["m", 4]), ["y"]))
