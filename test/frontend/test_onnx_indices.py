"""ONNX operators that write at computed places: an index that a dimension has not is refused, as in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from support.onnx_models import model

_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64
#: What is written into, indices that are there and one that is not, what is written, attributes.
_CASES: dict[str, tuple[list[int], Any, Any, list[int], dict[str, Any]]] = {
    "ScatterND": ([3, 4], [[0, 3], [-3, -4]], [[0, 5], [1, 1]], [2], {}),
    "ScatterND before the first": ([3, 4], [[0, 3], [2, 0]], [[1, -5], [1, 1]], [2], {}),
    "ScatterElements": ([3, 4], [[3, -4]], [[4, 0]], [1, 2], {"axis": 1}),
    "ScatterElements before the first": ([3, 4], [[0, 1]], [[-5, 0]], [1, 2], {"axis": 1}),
    "TensorScatter": ([2, 4, 1], [0, 2], [3, 0], [2, 2, 1], {"axis": 1}),
    "TensorScatter before the first": ([2, 4, 1], [0, 2], [0, -1], [2, 2, 1], {"axis": 1}),
    "MaxUnpool": ([1, 1, 1, 2], [[[[3, 7]]]], [[[[3, -1]]]], [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
}


def _expected(operator: str, shape: list[int], indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Ones where it is written to."""
    result = np.zeros(shape if operator != "MaxUnpool" else [1, 1, 2, 4], np.float32)
    if operator == "ScatterND":
        result[tuple(indices.T)] = 1
    elif operator == "ScatterElements":
        result[0, indices[0]] = 1
    elif operator == "MaxUnpool":
        result.reshape(-1)[indices.reshape(-1)] = 1
    else:
        for row, start in enumerate(indices):
            result[row, start : start + 2] = 1
    return result


@pytest.mark.parametrize("case", _CASES)
def test_an_index_that_is_not_there_is_refused(case: str) -> None:
    operator = case.split()[0]
    shape, there, outside, updates, attributes = _CASES[case]
    kinds = {"x": (_FLOAT, shape), "i": (_INT64, list(np.shape(there))), "u": (_FLOAT, updates)}
    names = {"TensorScatter": ["x", "u", "i"], "MaxUnpool": ["x", "i"]}.get(operator, ["x", "i", "u"])
    node = helper.make_node(operator, names, ["y"], **attributes)
    executable = rx.compile(rx.from_onnx(model([node], {n: kinds[n] for n in names}, ["y"], opset=24)))
    x = np.ones(shape, np.float32) if operator == "MaxUnpool" else np.zeros(shape, np.float32)
    given = {"x": x, "i": np.array(there), "u": np.ones(updates, np.float32)}
    found: Any = executable(**{n: given[n] for n in names})
    np.testing.assert_array_equal(found, _expected(operator, shape, np.array(there)))
    with pytest.raises(rx.RelaxError, match="expected indices in"):
        executable(**{n: (given | {"i": np.array(outside)})[n] for n in names})
