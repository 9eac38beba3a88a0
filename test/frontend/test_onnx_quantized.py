"""Operators of ONNX Runtime on quantized tensors, against ONNX Runtime itself."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from relaxir import backend
from support.onnx_models import model

_GENERATOR = np.random.default_rng(0)
Array = np.ndarray[Any, Any]


def _codes(*shape: int, dtype: Any = np.uint8) -> Array:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
    return _GENERATOR.integers(low, high, shape).astype(dtype)


def _scale(value: float) -> Array:
    return np.array(value, np.float32)


def _zero(value: int, dtype: Any = np.uint8) -> Array:
    return np.array(value, dtype)


_X, _S, _Z = _codes(2, 3, 6, 8), _scale(0.03), _zero(130)
_OUT = (_scale(0.05), _zero(120))

#: Operator, operands, attributes.
_NODES: dict[str, tuple[str, list[Array], dict[str, Any]]] = {
    "sigmoid": ("QLinearSigmoid", [_X, _S, _Z, _scale(1 / 256), _zero(0)], {}),
    "leaky_relu": ("QLinearLeakyRelu", [_X, _S, _Z, *_OUT], {"alpha": 0.2}),
    "softmax": ("QLinearSoftmax", [_X, _S, _Z, _scale(1 / 256), _zero(0)], {"axis": -1, "opset": 13}),
    "softmax of old": ("QLinearSoftmax", [_X, _S, _Z, _scale(1 / 1024), _zero(0)], {"axis": 2, "opset": 11}),
    "average_pool": ("QLinearAveragePool", [_X, _S, _Z, *_OUT], {"kernel_shape": [2, 3], "pads": [0, 1, 0, 1]}),
    "average_pool of ceil": (
        "QLinearAveragePool", [_X, _S, _Z, *_OUT], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ),
    "global_average_pool": ("QLinearGlobalAveragePool", [_X, _S, _Z, *_OUT], {"channels_last": 0}),
    "add": ("QLinearAdd", [_X, _S, _Z, _codes(6, 1), _scale(0.02), _zero(3), *_OUT], {}),
    "mul": ("QLinearMul", [_codes(4, 5, dtype=np.int8), _S, _zero(-5, np.int8), _codes(5, dtype=np.int8), _scale(0.02),
                           _zero(2, np.int8), _scale(0.07), _zero(9, np.int8)], {}),
    "where": ("QLinearWhere", [_codes(4, 5) > 99, _codes(4, 5), _S, _Z, _codes(5), _scale(0.02), _zero(3), *_OUT], {}),
    "concat": ("QLinearConcat", [*_OUT, _X, _S, _Z, _codes(2, 1, 6, 8), _scale(0.02), _zero(3)], {"axis": 1}),
    "product": (
        "QGemm", [_codes(4, 6), _S, _Z, _codes(5, 6, dtype=np.int8), _scale(0.02), _zero(0, np.int8),
                  _GENERATOR.integers(-99, 99, 5).astype(np.int32), *_OUT], {"transB": 1},
    ),
    "attention": ("QAttention", [_codes(2, 5, 8), _codes(8, 24, dtype=np.int8),
                                 _GENERATOR.standard_normal(24).astype(np.float32),
                                 _scale(0.01), _scale(0.02), np.array([5, 3], np.int32), _zero(128), _zero(0, np.int8)],
                  {"num_heads": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", _NODES)
def test_results_are_those_of_onnx_runtime(name: str) -> None:
    operator, operands, attributes = _NODES[name]
    names = [f"i{k}" for k in range(len(operands))]
    node = helper.make_node(operator, names, ["y"], domain="com.microsoft", **attributes)
    given = dict(zip(names, operands, strict=True))
    taken = {n for n, o in given.items() if o.ndim > 1 or operator == "QAttention"}
    types = {n: (helper.np_dtype_to_tensor_dtype(given[n].dtype), given[n].shape) for n in taken}
    proto = model([node], types, ["y"], {n: o for n, o in given.items() if n not in taken})
    codes = next(o.dtype for o in operands if o.dtype in (np.uint8, np.int8))
    dtype = np.dtype(np.float32) if operator == "QAttention" else codes
    proto.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(dtype)
    inputs = {n: given[n] for n in taken}
    (wanted,) = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)
    (found,) = backend.run_model(proto, inputs)
    assert found.dtype == np.asarray(wanted).dtype
    # Of codes one where the number is at the edge between two: ONNX Runtime uses tables and fixed-point factors.
    tolerance = 2e-5 if found.dtype == np.float32 else 1
    np.testing.assert_allclose(found.astype(np.float64), np.asarray(wanted, np.float64), rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [ml_dtypes.uint4, ml_dtypes.int4])
@pytest.mark.parametrize("has_zero", [False, True])
@pytest.mark.parametrize(
    ("shape", "gather", "along"),
    [
        ((32, 64), 0, 1),
        ((32, 64), 0, 0),
        ((32, 64), 1, 0),
        ((40, 6), 1, 0),
        ((6, 40), 0, 1),
        ((40, 6), 0, 0),
        ((5, 20, 7), 2, 1),
    ],
)
def test_parts_of_a_table_with_blocks_along_any_axis(
    dtype: Any, has_zero: bool, shape: tuple[int, ...], gather: int, along: int
) -> None:
    """The last block may be shorter. Source: ContribOperators.md of ONNX Runtime, GatherBlockQuantized."""
    rng, block = np.random.default_rng(0), 16
    low, high = (0, 16) if dtype is ml_dtypes.uint4 else (-8, 8)
    blocks = [-(-n // block) if axis == along else n for axis, n in enumerate(shape)]
    data, zero = (rng.integers(low, high, s) for s in (shape, blocks))
    scale = (rng.random(blocks) + 0.1).astype(np.float32)
    arrays = {"d": data.astype(dtype), "s": scale} | ({"z": zero.astype(dtype)} if has_zero else {})
    how = {"domain": "com.microsoft", "gather_axis": gather, "quantize_axis": along, "block_size": block}
    node = helper.make_node("GatherBlockQuantized", ["d", "i", "s", *(["z"] if has_zero else [])], ["y"], **how)
    executable = rx.compile(rx.from_onnx(model([node], {"i": (TensorProto.INT64, ["n", 2])}, ["y"], arrays, opset=21)))
    executable.bind(executable.prepare(arrays))
    each = np.arange(shape[along]) // block
    wide = (data - np.take(zero if has_zero else zero * 0, each, along)) * np.take(scale, each, along)
    indices = np.array([[1, -1], [3, 0]])
    np.testing.assert_allclose(executable(indices), np.take(wide, indices, gather), rtol=1e-6)
