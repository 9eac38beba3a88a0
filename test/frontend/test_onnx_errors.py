"""ONNX: what a node says that has no meaning, or none that an import can give it, is refused by its name, in words of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from support.onnx_models import model

FLOAT, INT32, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8
_MS = "com.microsoft"


def _node(operator: str, operands: str = "x", results: str = "y", domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """Names are apart by blanks; ``_`` is none."""
    return helper.make_node(
        operator, ["" if n == "_" else n for n in operands.split()], results.split(), domain=domain, **attributes
    )


def _scale(value: float = 1.0) -> np.ndarray[Any, Any]:
    return np.array(value, np.float32)


def _reason(nodes: list[onnx.NodeProto], inputs: dict[str, Any], weights: dict[str, Any] | None = None, opset: int = 21) -> str:
    proto = model(nodes, inputs, [nodes[-1].output[0]], weights, opset)
    with pytest.raises(rx.RelaxError) as error:
        rx.from_onnx(proto)
    return str(error.value)


#: Attributes that are no word of the operator's.
WORDS = {
    "Gelu": (_node("Gelu", approximate="sinh"), FLOAT, [4], "expected approximate to be none or tanh, got 'sinh'"),
    "BitShift": (_node("BitShift", "x x", direction="UP"), UINT8, [4], "expected direction to be LEFT or RIGHT, got 'UP'"),
    "FusedGemm": (
        _node("FusedGemm", "x x", domain=_MS, activation="Selu"), FLOAT, [4, 4],
        "expected an activation among Relu, Sigmoid, Tanh, LeakyRelu and Clip, got 'Selu'",
    ),
    "Conv": (
        _node("Conv", "x x", auto_pad="MOST"), FLOAT, [1, 1, 4, 4],
        "expected auto_pad to be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got 'MOST'",
    ),
    "Resize": (
        _node("Resize", "x _ _ sizes", mode="area"), FLOAT, [1, 1, 4, 4],
        "expected mode to be nearest, linear or cubic, got 'area'",
    ),
    "Pad": (
        _node("Pad", "x sizes", mode="mirror"), FLOAT, [4, 4],
        "expected a mode among constant, reflect, edge, wrap, got 'mirror'",
    ),
    "Concat": (_node("Concat", "x x"), FLOAT, [4], "expected an attribute 'axis'"),
    "QLinearAveragePool": (
        _node("QLinearAveragePool", "x one _ one _", domain=_MS, kernel_shape=[2, 2], channels_last=1), UINT8, [1, 1, 4, 4],
        "expected channels before positions",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_attributes_that_are_no_word_of_the_operators_are_said(name: str) -> None:
    node, dtype, shape, message = WORDS[name]
    weights = {"sizes": np.array([1, 1, 8, 8]), "one": _scale()}
    assert f"1 x {name if not node.domain else f'{_MS}.{name}'}: {message}" in _reason([node], {"x": (dtype, shape)}, weights)


#: What an import has to know that a model computes, or leaves open.
OPEN = {
    "a step": ([_node("Squeeze", "n", "s"), _node("Range", "zero ten s")],
               "expected a range of integers where its bounds are symbolic, got step n"),
    "axes": ([_node("ReduceSum", "x n")], "expected a constant integer, got n"),
    "frames": ([_node("Unsqueeze", "x axes", "s"), _node("STFT", "s ten _ ten")],
               "expected a signal and frames of known length"),
    "windows as strides fit": (
        [
            _node("Unsqueeze", "x axes", "s"),
            _node("MaxPool", "s", "t places", kernel_shape=[2], strides=[2], auto_pad="SAME_UPPER"),
            _node("Identity", "places", "y"),
        ],
        "expected padding that is known where places of largest elements are used",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_what_has_to_be_known_and_is_not_is_said(name: str) -> None:
    nodes, message = OPEN[name]
    axes = np.array([0, 1] if name == "windows as strides fit" else [0, 2])
    weights = {"zero": np.array(0), "ten": np.array(10), "axes": axes}
    assert message in _reason([_node("Shape", "x", "n"), *nodes], {"x": (FLOAT, ["n"])}, weights)


#: Operands and results that an operator does not have, or that have no relax form.
FORMS = {
    "two values": ([_node("ConstantOfShape", value=helper.make_tensor("v", FLOAT, [2], [1, 2]))], INT64, [1],
                   "expected one number as value, got 2"),
    "a deviation": ([_node("SimplifiedLayerNormalization", "x x", "z d"), _node("Add", "z d")], FLOAT, [4],
                    "expected no use of the deviation"),
    "nothing to concatenate": ([_node("QLinearConcat", "one one", domain=_MS, axis=0)], UINT8, [4],
                               "expected tensors to concatenate"),
    "an empty sequence": ([_node("SequenceEmpty", "", "s"), _node("ConcatFromSequence", "s", axis=0)], FLOAT, [4],
                          "expected a sequence with tensors to concatenate"),
    "no sequence": ([_node("ConcatFromSequence", "x", axis=0)], FLOAT, [4], "expected a sequence as operand 0"),
    "an empty optional": ([_node("Optional", "", "o"), _node("OptionalGetElement", "o")], FLOAT, [4],
                          "expected an optional with an element"),
    "half of real numbers": ([_node("DFT", "x _ one", inverse=1, onesided=1)], FLOAT, [1, 5, 1],
                             "expected complex numbers for an inverse transform of one side"),
    "a mask that is no square": ([_node("Attention", "x w b m", domain=_MS, num_heads=2)], FLOAT, [1, 4, 8],
                                 "expected a square mask, got "),
    "a quantized cache": (
        [_node("GroupQueryAttention", "x x x _ _ n n", domain=_MS, num_heads=2, kv_num_heads=2, kv_cache_bit_width=4)],
        FLOAT, [1, 4, 8], "expected attention without kv_cache_bit_width",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_operands_and_results_without_a_form_are_said(name: str) -> None:
    nodes, dtype, shape, message = FORMS[name]
    weights = {
        "one": np.array(1) if name.startswith("half") else _scale(),
        "w": np.zeros((8, 24), np.float32),
        "b": np.zeros(24, np.float32),
        "m": np.ones((1, 1, 4, 6), np.int32),
        "n": np.array([3], np.int32),
    }
    assert message in _reason(nodes, {"x": (dtype, shape)}, weights)
