"""ONNX reductions of integers whose formulas are of real numbers, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import relaxir as rx
from support.onnx_models import model


@pytest.mark.parametrize("operator", ["ReduceLogSum", "ReduceLogSumExp"])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("how", [{}, {"keepdims": 0}])
def test_logarithms_of_integers(operator: str, kind: Any, how: dict[str, int]) -> None:
    """Rounded towards zero. Of exponentials ONNX Runtime rounds each, which shows where many are added that are no largest."""
    x = np.array([[1, 2, 3], [7, 7, 7], [100, 3, 1], [2**20, 1, 2**30]], kind)
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    nodes = [helper.make_node(operator, ["x", "axes"], ["y"], **how)]
    proto = model(nodes, {"x": (element, ["n", 3])}, ["y"], {"axes": np.array([1])})
    proto.graph.output[0].type.tensor_type.elem_type = element
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found, wanted = rx.compile(rx.from_onnx(proto))(x), session.run(None, {"x": x})[0]
    assert found.dtype == kind
    np.testing.assert_array_equal(found, wanted)
