"""Weights of another checkpoint than the model's: what is numbers in the code has to be the same in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxir as rx

SCALE = np.array(0.01, np.float32)
WEIGHT = np.arange(48, dtype=np.float32).reshape(8, 6) / 7
#: Nodes, initializers, and those of another checkpoint: scalars, integers and masks are numbers in the code.
FIXED = {
    "a learned scalar": ([("Mul", "w", "t", "y")], {"w": WEIGHT, "t": SCALE}, {"t": np.array(3, np.float32)}),
    "integers": ([("Add", "i", "w64", "y")], {"i": np.arange(6), "w64": np.ones(6, np.int64)}, {"i": np.arange(6) + 1}),
    "a zero point": (
        [("DequantizeLinear", "q", "s", "z", "y")],
        {"q": WEIGHT.astype(np.int8), "s": np.full(6, SCALE), "z": np.zeros(6, np.int8)}, {"z": np.arange(6).astype(np.int8)},
    ),
    "a mask": ([("Where", "k", "w", "n", "y")], {"k": np.ones(6, bool), "w": WEIGHT, "n": SCALE}, {"k": np.arange(6) % 2 == 0}),
}  # fmt: skip


def save(path: Path, nodes: list[tuple[str, ...]], weights: dict[str, np.ndarray]) -> Path:
    """A model that adds what the nodes give to its input."""
    axis = {"DequantizeLinear": {"axis": 1}}
    made = [helper.make_node(kind, operands, [result], **axis.get(kind, {})) for kind, *operands, result in nodes]
    made += [helper.make_node("Cast", ["y"], ["f"], to=TensorProto.FLOAT), helper.make_node("Add", ["x", "f"], ["out"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])]
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)]
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(made, "g", inputs, outputs, initializer=initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


@pytest.mark.parametrize("name", FIXED)
def test_numbers_of_another_checkpoint_are_refused(name: str, tmp_path: Path) -> None:
    nodes, weights, others = FIXED[name]
    own = save(tmp_path / "own.onnx", nodes, weights)
    other = save(tmp_path / "other.onnx", nodes, weights | others)
    executable = rx.compile(str(own))
    executable.save(tmp_path / "own.relax")
    changed = next(iter(others))
    for each in (executable, rx.load(tmp_path / "own.relax")):
        each.prepare(own)
        with pytest.raises(rx.RelaxError, match=rf"weight '{changed}': expected the .* that the code was compiled with"):
            each.prepare(other)
    rx.compile(str(other)).prepare(other)


def test_what_nothing_reads_and_weights_may_differ(tmp_path: Path) -> None:
    nodes, weights, _ = FIXED["a learned scalar"]
    own = save(tmp_path / "own.onnx", nodes, weights | {"unread": SCALE})
    other = save(tmp_path / "other.onnx", nodes, weights | {"unread": SCALE * 2, "w": WEIGHT * 2})
    executable, x = rx.compile(str(own)), np.ones((8, 6), np.float32)
    executable.bind(executable.prepare(other))
    np.testing.assert_allclose(executable(x), x + WEIGHT * 2 * SCALE, rtol=1e-6)


def test_numbers_in_another_dtype_are_compared_as_they_were(tmp_path: Path) -> None:
    """Another order of bytes, or wider; a source without them has nothing to compare."""
    nodes, weights, _ = FIXED["a learned scalar"]
    executable = rx.compile(str(save(tmp_path / "own.onnx", nodes, weights)))
    for t in (SCALE.astype(">f4"), SCALE.astype(np.float64)):
        executable.prepare({"w": WEIGHT, "t": t})
    executable.prepare({"w": WEIGHT})
    with pytest.raises(rx.RelaxError, match="weight 't'"):
        executable.prepare({"w": WEIGHT, "t": np.array([np.nan])})
