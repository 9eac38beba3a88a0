"""ONNX initializers and constants that are sparse, and what no result depends on, whatever it is, against ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxir as rx
from support.onnx_models import model

Array = np.ndarray[Any, Any]
_FLOAT, _INT64, _STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
_X = np.array([[1, -2, 3]], np.float32)
_node = helper.make_node


def _sparse(places: Any, shape: Sequence[int], name: str = "w") -> onnx.SparseTensorProto:
    array = np.array(places, np.int64)
    values = numpy_helper.from_array(np.arange(1, len(array) + 1, dtype=np.float32), name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(array, f"{name}_places"), list(shape))


def _model(*nodes: onnx.NodeProto, **weights: Array) -> onnx.ModelProto:
    found = model(nodes, {"x": (_FLOAT, [1, 3])}, ["y"], weights)
    found.graph.output[0].type.tensor_type.elem_type = _FLOAT
    return found


def _runtime(proto: onnx.ModelProto) -> Array:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found: Any = session.run(None, {"x": _X})[0]
    return found


@pytest.mark.parametrize("places", [[1, 5], [[0, 1], [1, 2]], []], ids=["flat", "places", "none"])
@pytest.mark.parametrize("rows", [2, 5000])
def test_sparse_weights_are_dense(places: Any, rows: int, tmp_path: Path) -> None:
    """ONNX Runtime takes none by itself; those of many elements are read from the file as all weights are."""
    sparse, wanted = _sparse(places, [rows, 3]), np.zeros((rows, 3), np.float32)
    wanted.reshape(-1)[np.array([1, 5])[: len(places)]] = [1, 2][: len(places)]
    initializer = _model(_node("Add", ["x", "w"], ["y"]))
    initializer.graph.sparse_initializer.append(sparse)
    constant = _model(_node("Constant", [], ["c"], sparse_value=sparse), _node("Add", ["x", "c"], ["y"]))
    for proto in (initializer, constant):
        onnx.save(proto, tmp_path / "model.onnx")
        executable = rx.compile(rx.from_onnx(tmp_path / "model.onnx"))
        if executable.manifest.raw_weights:
            executable.bind(executable.prepare(tmp_path / "model.onnx"))
        np.testing.assert_array_equal(executable(_X), _X + wanted)
    if places:
        np.testing.assert_array_equal(_runtime(constant), _X + wanted)


_NOT_SPARSE: list[tuple[Any, list[int], str]] = [
    ([1, 6], [2, 3], "expected ascending places in shape [2, 3] for each element of sparse 'w'"),
    ([-1, 0], [2, 3], "expected ascending places in shape"),
    ([2, 1], [2, 3], "expected ascending places in shape"),
    ([1, 1], [2, 3], "expected ascending places in shape"),
    ([[0, 3], [1, 0]], [2, 3], "expected ascending places in shape"),
    ([[0], [1]], [2, 3], "expected ascending places in shape"),
    ([1], [-1, 3], "bytes at most, got shape [-1, 3]"),
    ([1], [1 << 40], "expected a sparse tensor 'w' of 2147483647 bytes at most, got shape [1099511627776]"),
]


@pytest.mark.parametrize(("places", "shape", "message"), _NOT_SPARSE)
def test_sparse_weights_that_are_none(places: Any, shape: list[int], message: str) -> None:
    proto = _model(_node("Add", ["x", "w"], ["y"]))
    proto.graph.sparse_initializer.append(_sparse(places, shape))
    with pytest.raises(rx.RelaxError, match=re.escape(message)):
        rx.from_onnx(proto)


def test_sparse_weights_of_other_files_are_refused() -> None:
    proto = _model(_node("Add", ["x", "w"], ["y"]))
    sparse = _sparse([1], [2, 3])
    onnx.external_data_helper.set_external_data(sparse.values, "w.bin")
    sparse.values.data_location = TensorProto.EXTERNAL
    proto.graph.sparse_initializer.append(sparse)
    with pytest.raises(rx.RelaxError, match="expected a sparse tensor 'w' of numbers that are in the model itself"):
        rx.from_onnx(proto)


def _branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), "branch", [], [helper.make_tensor_value_info("z", _FLOAT, None)])


_UNUSED: dict[str, list[onnx.NodeProto]] = {
    "no relax form": [_node("RandomNormalLike", ["x"], ["r"]), _node("Neg", ["r"], ["s"])],
    "text": [_node("Constant", [], ["t"], value_string="text")],
    "a weight": [_node("Add", ["x", "w"], ["s"])],
    "in a branch": [
        _node("ReduceSum", ["x"], ["total"], keepdims=0),
        _node("Cast", ["total"], ["above"], to=TensorProto.BOOL),
        _node(
            "If",
            ["above"],
            ["b"],
            then_branch=_branch(_node("Constant", [], ["t"], value_string="text"), _node("Abs", ["x"], ["z"])),
            else_branch=_branch(_node("Relu", ["x"], ["z"])),
        ),
        _node("Neg", ["b"], ["y"]),
    ],
}


@pytest.mark.parametrize("name", _UNUSED)
def test_what_no_result_depends_on(name: str) -> None:
    nodes = _UNUSED[name]
    proto = _model(
        *nodes, *([] if nodes[-1].output[0] == "y" else [_node("Neg", ["x"], ["y"])]), w=np.zeros((9000, 3), np.float32)
    )
    proto.graph.initializer.append(helper.make_tensor("labels", _STRING, [1], [b"cat"]))
    module = rx.from_onnx(proto)
    assert module.functions["main"].weights == ()
    np.testing.assert_array_equal(rx.compile(module)(_X), _runtime(proto))


def test_text_that_a_result_depends_on_is_refused() -> None:
    proto = _model(_node("Identity", ["labels"], ["y"]))
    proto.graph.initializer.append(helper.make_tensor("labels", _STRING, [1], [b"cat"]))
    with pytest.raises(rx.RelaxError, match="expected an element type with numbers, got STRING"):
        rx.from_onnx(proto)
