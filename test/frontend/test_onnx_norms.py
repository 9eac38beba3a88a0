"""Norms that graphs write out, as torch.onnx's exporters do: one op, with the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from relaxir import backend
from support.onnx_models import model

_INVERSE = {
    "reciprocal": [("Sqrt", ["e"], "d"), ("Reciprocal", ["d"], "i"), ("Mul", ["x", "i"], "n")],
    "one": [("Sqrt", ["e"], "d"), ("Div", ["one", "d"], "i"), ("Mul", ["i", "x"], "n")],
    "quotient": [("Sqrt", ["e"], "d"), ("Div", ["x", "d"], "n")],
}


def _norm(inverse: str, axis: int, half: bool, scale: str) -> onnx.ModelProto:
    node = helper.make_node
    nodes = [node("Cast", ["given"], ["x"], to=TensorProto.FLOAT)] if half else [node("Neg", ["given"], ["x"])]
    nodes += [node("Pow", ["x", "two"], ["s"]), node("ReduceMean", ["s", "axis"], ["m"], keepdims=1)]
    nodes += [node("Add", ["m", "epsilon"], ["e"])]
    nodes += [node(op, operands, [result]) for op, operands, result in _INVERSE[inverse]]
    nodes += [node("Cast", ["n"], ["c"], to=TensorProto.FLOAT16)] if half else []
    nodes += [node("Mul", [scale, nodes[-1].output[0]] if half else [nodes[-1].output[0], scale], ["y"])]
    kind = np.float16 if half else np.float32
    numbers = {name: np.array(number, np.float32) for name, number in {"two": 2, "one": 1, "epsilon": 1e-3}.items()}
    weights = {**numbers, "axis": np.array([axis], np.int64), "w": np.linspace(0.5, 2, 6).astype(kind)}
    weights["rows"] = weights["w"].reshape(6, 1)
    element = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    found = model(nodes, {"given": (element, ["n", 6, 6])}, ["y"], {k: v for k, v in weights.items() if _reads(nodes, k)})
    found.graph.output[0].type.tensor_type.elem_type = element
    return found


def _reads(nodes: list[onnx.NodeProto], name: str) -> bool:
    return any(name in n.input for n in nodes)


@pytest.mark.parametrize(
    ("inverse", "axis", "half", "scale", "joined"),
    [
        ("reciprocal", -1, False, "w", True),
        ("one", 2, True, "w", True),
        ("quotient", -1, False, "w", True),
        ("quotient", 1, False, "w", False),
        ("reciprocal", -1, False, "rows", False),
    ],
)
def test_a_norm_is_one_op_with_the_same_numbers(inverse: str, axis: int, half: bool, scale: str, joined: bool) -> None:
    proto = _norm(inverse, axis, half, scale)
    x = np.random.default_rng(0).standard_normal((2, 6, 6)).astype(np.float16 if half else np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"given": x})
    text = str(rx.from_onnx(proto).run("relax-canonicalize,cse"))
    assert ("relax.rms_norm" in text) == joined
    assert ("relax.mean" in text) == (not joined)
    (found,) = backend.run_model(proto, [x])
    # In halves, ONNX Runtime rounds before it scales, too: one unit in the last place each.
    np.testing.assert_allclose(found, wanted, rtol=2e-3 if half else 1e-5, atol=0)


@pytest.mark.parametrize("rows", ["n", 3])
def test_batches_with_statistics_for_each_element(rows: str | int) -> None:
    """As operator sets up to 8 have them."""
    rng = np.random.default_rng(0)
    weights = {name: rng.random((3, 2)).astype(np.float32) + 0.5 for name in "sbmv"}
    nodes = [helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y"], spatial=0, epsilon=0.01)]
    proto = model(nodes, {"x": (TensorProto.FLOAT, ["b", rows, 2])}, ["y"], weights, opset=7)
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    x = rng.standard_normal((4, 3, 2)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = rx.compile(rx.from_onnx(proto))
    found = executable.bind(executable.prepare(weights))(x)
    np.testing.assert_allclose(found, session.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)
