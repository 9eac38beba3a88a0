"""Functions that ONNX models bring: in lines, in branches, with overloads, against ONNX Runtime; endless ones are refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx

_FLOAT = TensorProto.FLOAT
_OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
_X = np.array([[-1.5, 2, 0.25]], np.float32)
_node = helper.make_node


def _function(name: str, nodes: Sequence[onnx.NodeProto], overload: str = "") -> onnx.FunctionProto:
    return helper.make_function("my", name, ["a"], ["o"], nodes, _OPSETS, overload=overload)


def _call(name: str, given: str = "a", result: str = "o", overload: str = "") -> onnx.NodeProto:
    return _node(name, [given], [result], domain="my", overload=overload)


def _in_branches(call: onnx.NodeProto, result: str = "o") -> list[onnx.NodeProto]:
    """A call where the sum of ``a`` is above zero, else its negative."""
    graphs = {
        name: helper.make_graph([node], name, [], [helper.make_tensor_value_info(node.output[0], _FLOAT, None)])
        for name, node in (("then_branch", call), ("else_branch", _node("Neg", ["a"], ["n"])))
    }
    zero = helper.make_tensor("zero", _FLOAT, [], [0.0])
    return [
        _node("ReduceSum", ["a"], ["s"], keepdims=0),
        _node("Constant", [], ["zero"], value=zero),
        _node("Greater", ["s", "zero"], ["above"]),
        _node("If", ["above"], [result], **graphs),
    ]


def _model(functions: Sequence[onnx.FunctionProto], nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
    inputs, outputs = ([helper.make_tensor_value_info(n, _FLOAT, ["rows", 3])] for n in ("x", "y"))
    graph = helper.make_graph(list(nodes), "graph", inputs, outputs)
    return helper.make_model(graph, opset_imports=_OPSETS, functions=list(functions), ir_version=10)


def _check(proto: onnx.ModelProto) -> None:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(rx.compile(rx.from_onnx(proto))(_X), session.run(None, {"x": _X})[0])


def _line(depth: int) -> onnx.ModelProto:
    functions = [_function("F0", [_node("Neg", ["a"], ["o"])])]
    functions += [_function(f"F{i}", [_call(f"F{i - 1}", result="t"), _node("Relu", ["t"], ["o"])]) for i in range(1, depth)]
    return _model(functions, [_call(f"F{depth - 1}", "x", "y")])


def test_functions_in_a_line() -> None:
    """ONNX Runtime takes a hundred."""
    _check(_line(80))
    np.testing.assert_array_equal(rx.compile(rx.from_onnx(_line(400)))(_X), np.maximum(-_X, 0))


def test_a_function_that_is_called_again_behind_itself() -> None:
    functions = [_function("Twice", [_node("Add", ["a", "a"], ["o"])]), _function("Same", [_call("Twice")])]
    _check(_model(functions, [_call("Same", "x", "t"), _call("Twice", "t", "u"), _call("Same", "u", "y")]))


def test_functions_in_branches() -> None:
    functions = [
        _function("Twice", [_node("Add", ["a", "a"], ["o"])]),
        _function("Some", _in_branches(_call("Twice", result="t"))),
    ]
    _check(_model(functions, [_call("Some", "x", "t"), _call("Twice", "t", "y")]))


def test_overloads() -> None:
    functions = [_function("F", [_node(operator, ["a"], ["o"])], operator) for operator in ("Neg", "Abs")]
    _check(_model(functions, [_call("F", "x", "t", "Abs"), _call("F", "t", "y", "Neg")]))


@pytest.mark.parametrize(
    "functions",
    [
        [_function("F", [_call("F")])],
        [_function("F", [_call("G")]), _function("G", [_call("F", result="t"), _node("Neg", ["t"], ["o"])])],
        [_function("F", _in_branches(_call("F", result="t")))],
    ],
    ids=["itself", "another", "branch"],
)
def test_functions_that_call_themselves(functions: list[onnx.FunctionProto]) -> None:
    with pytest.raises(rx.RelaxError, match="expected functions that do not call themselves, got 'F'"):
        rx.from_onnx(_model(functions, [_call("F", "x", "y")]))


def test_branches_that_are_too_deep() -> None:
    functions = [_function("F0", [_node("Neg", ["a"], ["o"])])]
    functions += [_function(f"F{i}", _in_branches(_call(f"F{i - 1}", result="t"))) for i in range(1, 300)]
    with pytest.raises(rx.RelaxError, match="expected control flow that is less deep"):
        rx.from_onnx(_model(functions, [_call("F299", "x", "y")]))
