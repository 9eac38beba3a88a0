"""Small ONNX models, written node by node: one of each kind of thing that an import has to take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["MODELS", "model"]

Array = np.ndarray[Any, Any]


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[Any, Sequence[Any]]],
    outputs: Sequence[str],
    weights: dict[str, Array] | None = None,
    opset: int = 18,
) -> onnx.ModelProto:
    """A model. Inputs are element type and shape by name; results have whatever type comes out."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(n, t, list(s)) for n, (t, s) in inputs.items()],
        [onnx.ValueInfoProto(name=o) for o in outputs],
        [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def perceptron() -> onnx.ModelProto:
    """Two layers, a symbolic batch."""
    node = helper.make_node
    nodes = [
        node("Gemm", ["x", "w0", "b0"], ["h"], transB=1, name="first"),
        node("Relu", ["h"], ["r"]),
        node("MatMul", ["r", "w1"], ["y"]),
    ]
    weights = {"w0": _random(8, 4), "b0": _random(8, seed=1), "w1": _random(8, 3, seed=2)}
    return model(nodes, {"x": (TensorProto.FLOAT, ["batch", 4])}, ["y"], weights)


def convolutions() -> onnx.ModelProto:
    """A convolution, statistics, pooling, resizing."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c", "s", "t", "m", "v"], ["n"]),
        node("MaxPool", ["n"], ["p"], kernel_shape=[2, 2], ceil_mode=1),
        node("Resize", ["p", "", "scales"], ["y"], mode="linear"),
    ]
    weights = {"w": _random(5, 3, 3, 3), "s": _random(5), "t": _random(5), "m": _random(5), "v": abs(_random(5)) + 1}
    weights["scales"] = np.array([1, 1, 2, 1.5], np.float32)
    return model(nodes, {"x": (TensorProto.FLOAT, [1, 3, 9, 10])}, ["y"], weights)


def sizes() -> onnx.ModelProto:
    """Shapes computed from shapes."""
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"], axis=0),
        node("Concat", ["batch", "rest"], ["new"], axis=0),
        node("Reshape", ["x", "new"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
        node("Slice", ["t", "zero", "two", "one"], ["y"]),
    ]
    numbers = {"zero": [0], "one": [1], "two": [2], "rest": [2, -1]}
    weights = {k: np.array(v, np.int64) for k, v in numbers.items()}
    return model(nodes, {"x": (TensorProto.FLOAT, ["n", 6])}, ["y"], weights)


def branches() -> onnx.ModelProto:
    """A branch at run time, and a loop."""
    node = helper.make_node

    def body(name: str, op: str) -> onnx.GraphProto:
        return helper.make_graph([node(op, ["x"], [name])], name, [], [onnx.ValueInfoProto(name=name)])

    types = {"i": (TensorProto.INT64, []), "c": (TensorProto.BOOL, []), "a": (TensorProto.FLOAT, [3])}
    infos = [helper.make_tensor_value_info(n, t, s) for n, (t, s) in types.items()]
    steps = [node("Identity", ["c"], ["c1"]), node("Mul", ["a", "k"], ["a1"]), node("Identity", ["a1"], ["out"])]
    loop = helper.make_graph(steps, "loop", infos, [onnx.ValueInfoProto(name=n) for n in ("c1", "a1", "out")])
    nodes = [
        node("If", ["flag"], ["chosen"], then_branch=body("t", "Exp"), else_branch=body("e", "Neg")),
        node("Loop", ["rounds", "true", "chosen"], ["last", "all"], body=loop),
    ]
    weights = {"rounds": np.array(3, np.int64), "true": np.array(True), "k": np.full(3, 1.5, np.float32)}
    return model(nodes, {"x": (TensorProto.FLOAT, [3]), "flag": (TensorProto.BOOL, [])}, ["last", "all"], weights)


def recurrent() -> onnx.ModelProto:
    """An LSTM over a sequence of symbolic length, both ways."""
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=4, direction="bidirectional")
    weights = {"w": _random(2, 16, 3), "r": _random(2, 16, 4, seed=1), "b": _random(2, 32, seed=2)}
    return model([node], {"x": (TensorProto.FLOAT, ["length", 2, 3])}, ["y", "h", "c"], weights)


def quantized() -> onnx.ModelProto:
    """Weights of four bits, and integers in between."""
    node = helper.make_node
    nodes = [
        node("MatMulNBits", ["x", "q", "s"], ["m"], domain="com.microsoft", K=32, N=64, bits=4, block_size=16),
        node("DynamicQuantizeLinear", ["m"], ["u", "scale", "zero"]),
        node("DequantizeLinear", ["u", "scale", "zero"], ["y"]),
    ]
    codes = np.random.default_rng(0).integers(0, 256, (64, 2, 8), np.uint8)
    weights = {"q": codes, "s": abs(_random(128)) + 0.1}
    return model(nodes, {"x": (TensorProto.FLOAT, [2, 32])}, ["y"], weights)


def normalized() -> onnx.ModelProto:
    """Operators that a schema defines by others, and a function of the model's own."""
    node = helper.make_node
    nodes = [
        node("LayerNormalization", ["x", "g", "b"], ["n"]),
        node("Twice", ["n"], ["t"], domain="local"),
        node("Celu", ["t"], ["c"]),
        node("Softmax", ["c"], ["y"]),
    ]
    found = model(nodes, {"x": (TensorProto.FLOAT, ["n", 5])}, ["y"], {"g": _random(5), "b": _random(5, seed=1)})
    found.opset_import.append(helper.make_opsetid("local", 1))
    body = [node("Add", ["a", "a"], ["z"])]
    found.functions.append(helper.make_function("local", "Twice", ["a"], ["z"], body, [helper.make_opsetid("", 18)]))
    return found


def data_sizes() -> onnx.ModelProto:
    """Results as large as data says: what is not zero, what differs, a branch's, those of a loop that data ends."""
    node = helper.make_node

    def branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])

    types = {"i": (TensorProto.INT64, []), "c": (TensorProto.BOOL, []), "a": (TensorProto.FLOAT, ["n"])}
    infos = [helper.make_tensor_value_info(n, t, s) for n, (t, s) in types.items()]
    steps = [
        node("ReduceSum", ["a"], ["sum"], keepdims=0),
        node("Less", ["sum", "most"], ["c1"]),
        node("Add", ["a", "k"], ["a1"]),
    ]
    results = [helper.make_tensor_value_info(n, t, None) for n, t in (("c1", TensorProto.BOOL), ("a1", TensorProto.FLOAT))]
    loop = helper.make_graph([*steps, node("Neg", ["a"], ["row"])], "loop", infos,
                             [*results, helper.make_tensor_value_info("row", TensorProto.FLOAT, None)])  # fmt: skip
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("Cast", ["places"], ["where"], to=TensorProto.FLOAT),
        node("Unique", ["x"], ["different"]),
        node("If", ["flag"], ["chosen"], then_branch=branch("t", [node("Concat", ["x", "x"], ["t"], axis=0)]),
             else_branch=branch("e", [node("Neg", ["x"], ["e"])])),
        node("Loop", ["rounds", "true", "x"], ["last", "rows"], body=loop),
    ]  # fmt: skip
    weights = {"rounds": np.array(7, np.int64), "true": np.array(True), "k": np.float32(2), "most": np.float32(20)}
    inputs = {"x": (TensorProto.FLOAT, ["n"]), "flag": (TensorProto.BOOL, [])}
    return model(nodes, inputs, ["where", "different", "chosen", "last", "rows"], weights)


def coded() -> onnx.ModelProto:
    """Element types that relax has as codes, in weights and between nodes."""
    node = helper.make_node
    nodes = [
        node("Cast", ["x"], ["few"], to=TensorProto.FLOAT8E4M3FNUZ),
        node("Cast", ["few"], ["back"], to=TensorProto.FLOAT),
        node("DequantizeLinear", ["w", "s"], ["r"], axis=1),
        node("MatMul", ["back", "r"], ["y"]),
    ]
    codes = np.random.default_rng(0).integers(0, 64, (5, 4)).astype(np.uint8)
    weights = {"w": codes.view(ml_dtypes.float8_e4m3fnuz), "s": abs(_random(4)) + 0.1}
    return model(nodes, {"x": (TensorProto.FLOAT, ["n", 5])}, ["y"], weights, opset=21)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    f.__name__: f for f in (perceptron, convolutions, sizes, branches, recurrent, quantized, normalized, data_sizes, coded)
}
