"""ONNX's padding and windows over dimensions whose sizes a call tells, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from support.onnx_models import model

Array = np.ndarray[Any, Any]
_FLOAT = TensorProto.FLOAT
_node = helper.make_node
_IMAGE: list[int | str] = [1, 2, "h", "w"]


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _check(proto: onnx.ModelProto, sizes: Sequence[Sequence[int]], weights: dict[str, Array] | None = None) -> rx.Executable:
    proto.graph.output[0].type.tensor_type.elem_type = _FLOAT
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = rx.compile(rx.from_onnx(proto))
    if weights:
        executable.bind(executable.prepare(weights))
    for shape in sizes:
        x = _numbers(*shape)
        np.testing.assert_allclose(executable(x), session.run(None, {"x": x})[0], rtol=2e-5, atol=2e-5, err_msg=str(shape))
    return executable


@pytest.mark.parametrize("pads", [[2, 0, 1, 0], [-1, 0, 2, 0], [1, 1, -2, 1]])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding_by_known_amounts(mode: str, pads: list[int]) -> None:
    nodes = [_node("Pad", ["x", "p"], ["y"], mode=mode)]
    _check(model(nodes, {"x": (_FLOAT, ["n", 4])}, ["y"], {"p": np.array(pads)}, opset=19), [(n, 4) for n in (4, 5, 9)])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding_to_a_multiple(mode: str) -> None:
    nodes = [
        _node("Shape", ["x"], ["s"], start=0, end=1),
        _node("Neg", ["s"], ["m"]),
        _node("Mod", ["m", "four"], ["lacks"]),
        _node("Concat", ["none", "lacks"], ["p"], axis=0),
        _node("Pad", ["x", "p", "", "first"], ["y"], mode=mode),
    ]
    weights = {"four": np.array([4]), "none": np.array([0]), "first": np.array([0])}
    _check(model(nodes, {"x": (_FLOAT, ["n", 4])}, ["y"], weights, opset=19), [(n, 4) for n in (4, 5, 6, 7, 8)])


def test_padding_to_a_length_that_is_known_then() -> None:
    """A call with more is refused."""
    nodes = [
        _node("Shape", ["x"], ["s"], start=0, end=1),
        _node("Sub", ["eight", "s"], ["lacks"]),
        _node("Concat", ["none", "lacks"], ["p"], axis=0),
        _node("Pad", ["x", "p", "", "none"], ["y"]),
    ]
    proto = model(nodes, {"x": (_FLOAT, ["n", 4])}, ["y"], {"eight": np.array([8]), "none": np.array([0])})
    assert str(rx.from_onnx(proto).functions["main"].outputs[0]) == "f32[8, 4]"
    executable = _check(proto, [(8, 4), (3, 4)])
    with pytest.raises(rx.RelaxError):
        executable(_numbers(9, 4))


@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("how", ["SAME_UPPER", "SAME_LOWER"])
def test_as_many_windows_as_strides_fit(how: str, stride: int, kernel: int) -> None:
    weights = {"w": _numbers(3, 2, kernel, kernel)}
    nodes = [_node("Conv", ["x", "w"], ["y"], auto_pad=how, strides=[stride, stride])]
    _check(model(nodes, {"x": (_FLOAT, _IMAGE)}, ["y"], weights), [(1, 2, 5 + n, 9 - n) for n in range(4)], weights)


@pytest.mark.parametrize(
    ("operator", "how"),
    [
        ("MaxPool", {}),
        ("AveragePool", {}),
        ("AveragePool", {"count_include_pad": 1}),
        ("LpPool", {"p": 2}),
        ("LpPool", {"p": 3}),
    ],
)
@pytest.mark.parametrize("pads", [{"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"pads": [1, 0, 0, 1]}])
def test_pooling(operator: str, how: dict[str, int], pads: dict[str, Any]) -> None:
    nodes = [_node(operator, ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2], **how, **pads)]
    _check(model(nodes, {"x": (_FLOAT, _IMAGE)}, ["y"]), [(1, 2, 5 + n, 9 - n) for n in range(4)])


@pytest.mark.parametrize(("operator", "how"), [("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1]])
def test_pooling_with_a_last_window_that_is_not_full(operator: str, how: dict[str, int], pads: list[int]) -> None:
    nodes = [_node(operator, ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, pads=pads, **how)]
    _check(model(nodes, {"x": (_FLOAT, _IMAGE)}, ["y"], opset=19), [(1, 2, 5 + n, 9 - n) for n in range(4)])


_KINDS: list[dict[str, int]] = [{}, {"ceil_mode": 1}, {"count_include_pad": 1}, {"count_include_pad": 1, "ceil_mode": 1}]


@pytest.mark.parametrize(
    ("operator", "how"), [*(("MaxPool", k) for k in _KINDS[:2]), *(("AveragePool", k) for k in _KINDS), ("LpPool", {"p": 2})]
)
@pytest.mark.parametrize(
    "rest",
    [{"pads": [1] * 6}, {"pads": [1, 0, 0, 0, 1, 1]}, {"auto_pad": "SAME_UPPER"}, {"pads": [1] * 6, "dilations": [2, 1, 1]}],
)
def test_pooling_of_volumes(operator: str, how: dict[str, int], rest: dict[str, Any]) -> None:
    nodes = [_node(operator, ["x"], ["y"], kernel_shape=[2, 3, 2], strides=[1, 2, 3], **how, **rest)]
    shape: list[int | str] = ["n", 2, "d", "h", 7]
    _check(model(nodes, {"x": (_FLOAT, shape)}, ["y"], opset=19), [(1 + n % 2, 2, 5 + n, 9 - n, 7) for n in range(4)])


@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(
    "how", [{}, {"pads": [1, 1, 1, 1]}, {"pads": [1, 0, 0, 1]}, {"pads": [2, 1, 0, 1], "dilations": [2, 3]}]
)
@pytest.mark.parametrize("shape", [["n", 2, "h", "w"], [2, 2, 9, 8]])
def test_places_of_largest_elements(how: dict[str, Any], ceil: int, order: int, shape: list[int | str]) -> None:
    nodes = [
        _node("MaxPool", ["x"], ["m", "i"], kernel_shape=[3, 2], strides=[2, 2], ceil_mode=ceil, storage_order=order, **how),
        _node("Cast", ["i"], ["p"], to=_FLOAT),
        _node("Concat", ["m", "p"], ["y"], axis=1),
    ]
    sizes = [(2, 2, 9, 8)] if shape[0] == 2 else [(1 + n % 2, 2, 7 + n, 11 - n) for n in range(4)]
    _check(model(nodes, {"x": (_FLOAT, shape)}, ["y"], opset=19), sizes)


@pytest.mark.parametrize("is_told", [False, True])
@pytest.mark.parametrize("shape", [["n", 2, "h", "w"], [2, 2, 8, 6]])
def test_elements_where_they_were(shape: list[int | str], is_told: bool) -> None:
    nodes = [
        _node("MaxPool", ["x"], ["m", "i"], kernel_shape=[2, 2], strides=[2, 2]),
        _node("Shape", ["x"], ["s"]),
        _node("MaxUnpool", ["m", "i", "s"] if is_told else ["m", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    sizes = [(2, 2, 8, 6)] if shape[0] == 2 else [(1 + n % 2, 2, 6 + 2 * n, 10 - 2 * n) for n in range(4)]
    _check(model(nodes, {"x": (_FLOAT, shape)}, ["y"]), sizes)


@pytest.mark.parametrize("how", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(
    "rest", [{"strides": [2, 3]}, {"strides": [1, 2], "dilations": [2, 1]}, {"strides": [3, 2], "output_padding": [1, 1]}]
)
def test_transposed_convolutions_of_as_many_elements_as_strides_fit(how: str, rest: dict[str, Any]) -> None:
    weights = {"w": np.random.default_rng(0).standard_normal((2, 3, 3, 4)).astype(np.float32)}
    nodes = [_node("ConvTranspose", ["x", "w"], ["y"], auto_pad=how, **rest)]
    _check(model(nodes, {"x": (_FLOAT, _IMAGE)}, ["y"], weights), [(1, 2, 4 + n, 6 - n) for n in range(3)], weights)
