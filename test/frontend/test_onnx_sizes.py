"""ONNX models that compute with sizes and slice by them, for every size that a call may have, against ONNX Runtime."""

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
_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64
_node = helper.make_node


def _check(proto: onnx.ModelProto, calls: Sequence[dict[str, Array]], kind: int = _FLOAT) -> None:
    """The same results, of the same sizes, as ONNX Runtime's, which wants to know their element type."""
    proto.graph.output[0].type.tensor_type.elem_type = kind
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = rx.compile(rx.from_onnx(proto))
    for inputs in calls:
        np.testing.assert_array_equal(
            executable(**inputs), session.run(None, inputs)[0], str({n: a.shape for n, a in inputs.items()})
        )


def _rows(n: int, columns: int = 2) -> Array:
    return np.arange(n * columns, dtype=np.float32).reshape(n, columns)


def _of_size(*nodes: onnx.NodeProto, **numbers: int | list[int]) -> onnx.ModelProto:
    """Nodes that compute ``y`` of ``n``, the number of rows of ``x``."""
    size = [_node("Shape", ["x"], ["shape"]), _node("Gather", ["shape", "first"], ["n"])]
    weights = {name: np.array(value, np.int64) for name, value in ({"first": 0} | numbers).items()}
    return model([*size, *nodes], {"x": (_FLOAT, ["N", 2])}, ["y"], weights)


@pytest.mark.parametrize("divisor", [1, 2, 4, -3])
@pytest.mark.parametrize("operator", ["Div", "Mod", "fmod"])
@pytest.mark.parametrize("less", [0, 5])
def test_sizes_are_divided_towards_zero(operator: str, divisor: int, less: int) -> None:
    """What is subtracted makes some dividends negative."""
    divide = _node("Mod", ["a", "by"], ["y"], fmod=1) if operator == "fmod" else _node(operator, ["a", "by"], ["y"])
    proto = _of_size(_node("Sub", ["n", "less"], ["a"]), divide, less=less, by=divisor)
    _check(proto, [{"x": _rows(n)} for n in range(1, 12)], _INT64)


@pytest.mark.parametrize("divide", [_node("Div", ["a", "by"], ["y"]), _node("Mod", ["a", "by"], ["y"], fmod=1)])
def test_negated_sizes_are_divided_towards_zero(divide: onnx.NodeProto) -> None:
    proto = _of_size(_node("Neg", ["n"], ["a"]), divide, by=4)
    _check(proto, [{"x": _rows(n)} for n in range(1, 9)], _INT64)


def test_divisors_that_may_have_either_sign() -> None:
    """No expression says which; elements do."""
    proto = _of_size(_node("Sub", ["less", "n"], ["by"]), _node("Div", ["less", "by"], ["y"]), less=5)
    _check(proto, [{"x": _rows(n)} for n in (1, 2, 4, 6, 9)], _INT64)


def test_a_slice_up_to_a_quotient_of_sizes() -> None:
    nodes = [_node("Neg", ["n"], ["a"]), _node("Div", ["a", "by"], ["b"]), _node("Neg", ["b"], ["end"])]
    proto = _of_size(*nodes, _node("Slice", ["x", "zero", "ends", "zero"], ["y"]), by=4, zero=[0])
    proto.graph.node.insert(len(proto.graph.node) - 1, _node("Unsqueeze", ["end", "zero"], ["ends"]))
    _check(proto, [{"x": _rows(n)} for n in (2, 6, 9)])
