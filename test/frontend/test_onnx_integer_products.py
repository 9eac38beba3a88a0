"""Random products of quantized tensors, in each form that ONNX writes them, against ONNX's own reference."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import relaxir as rx
from support.onnx_models import model

Array = np.ndarray[Any, Any]
FORMS = ("qdq", "qlinear", "integer", "dynamic", "microsoft")
_U8, _I8 = np.dtype(np.uint8), np.dtype(np.int8)


@dataclass
class _Case:
    """One product: what is written how, of which numbers."""

    form: str
    proto: onnx.ModelProto
    inputs: dict[str, Array]
    depth: int


def _codes(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def _zero(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Any zero point, often that of symmetric integers."""
    if rng.random() < 0.3:
        return np.full(shape, 128 if dtype == _U8 else 0, dtype)
    return _codes(rng, dtype, shape)


def _case(seed: int) -> _Case:
    rng, node = np.random.default_rng(seed), helper.make_node
    form = FORMS[seed % len(FORMS)]
    k, n = int(rng.choice([3, 8, 20, 64, 260])), int(rng.choice([1, 5, 32, 40]))
    x_type, w_type = (_U8 if form in ("dynamic", "microsoft") or rng.random() < 0.6 else _I8), rng.choice([_U8, _I8])
    per_column = (n,) if rng.random() < 0.5 else ()
    weights = {
        "w": _codes(rng, w_type, (k, n)),
        "ws": rng.uniform(0.002, 0.02, per_column).astype(np.float32),
        "wz": _zero(rng, w_type, per_column),
        "xs": np.array(rng.uniform(0.005, 0.05), np.float32),
        "xz": _zero(rng, x_type, ()),
        "b": rng.standard_normal(n).astype(np.float32),
        "ys": np.array(np.sqrt(k) * 0.01, np.float32),
        "yz": _zero(rng, x_type, ()),
    }
    dims, sizes = (["b", "m", k], (2, 3, k)) if rng.random() < 0.5 else (["m", k], (int(rng.choice([1, 7, 13])), k))
    x = _codes(rng, x_type, sizes) if form in ("qlinear", "integer") else rng.standard_normal(sizes).astype(np.float32)
    sums = [node("Cast", ["i"], ["f"], to=1), node("Mul", ["xs", "ws"], ["s"]), node("Mul", ["f", "s"], ["p"])]
    nodes = {
        "qdq": [
            node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
            node("DequantizeLinear", ["q", "xs", "xz"], ["a"]),
            node("DequantizeLinear", ["w", "ws", "wz"], ["d"], axis=1),
            node("MatMul", ["a", "d"], ["p"]),
            node("Add", ["p", "b"], ["y"]),
        ],
        "qlinear": [node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])],
        "integer": [node("MatMulInteger", ["x", "w", "xz", "wz"], ["i"]), *sums, node("Add", ["p", "b"], ["y"])],
        "dynamic": [
            node("DynamicQuantizeLinear", ["x"], ["q", "xs", "xz"]),
            node("MatMulInteger", ["q", "w", "xz", "wz"], ["i"]),
            *sums,
            node("Add", ["p", "b"], ["y"]),
        ],
        "microsoft": [node("DynamicQuantizeMatMul", ["x", "w", "ws", "wz", "b"], ["y"], domain="com.microsoft")],
    }[form]
    read = {name for each in nodes for name in each.input}
    made = {name for each in nodes for name in each.output}
    held = {name: value for name, value in weights.items() if name in read - made}
    proto = model(nodes, {"x": (helper.np_dtype_to_tensor_dtype(x.dtype), dims)}, ["y"], held, opset=21)
    return _Case(form, proto, {"x": x}, k)


#: Two of each form, with both signs of either operand, scales of columns and of tensors, one row and several, a depth that is
#: no multiple of four, one column. ``RELAXIR_PRODUCTS=<n>`` draws seeds 0 to n.
_SEEDS = (6, 7, 9, 10, 13, 19, 21, 23, 30, 32)
_DRAWN = range(int(os.environ.get("RELAXIR_PRODUCTS", "0")))


def _reference(case: _Case) -> Array:
    if case.form != "microsoft":
        (found,) = ReferenceEvaluator(case.proto).run(None, case.inputs)
        return np.asarray(found)
    import onnxruntime

    session = onnxruntime.InferenceSession(case.proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, case.inputs)[0])


def _compiled(proto: onnx.ModelProto, folder: Path) -> rx.Executable:
    path = folder / "model.onnx"
    onnx.save(proto, str(path))
    executable = rx.compile(path)
    return executable.bind(executable.prepare(path))


@pytest.mark.parametrize("seed", _DRAWN or _SEEDS)
def test_products_are_those_of_the_reference(seed: int, tmp_path: Path) -> None:
    case = _case(seed)
    case.proto.graph.output[0].type.tensor_type.elem_type = 1
    if case.form == "qlinear":
        case.proto.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(case.inputs["x"].dtype)
    wanted = _reference(case)
    executable = _compiled(case.proto, tmp_path)
    text = executable.module_text
    assert text is not None
    assert ("relax.quantized_matmul" in text) == (case.depth % 4 == 0)
    # Layers that differ in their scales alone have the same kernels; two that are known at import are one number.
    assert case.form == "integer" or "ws" in executable.manifest.raw_weights
    found = executable(**case.inputs)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    # A code may differ by one where the number is at the edge between two.
    tolerance = 1 if case.form == "qlinear" else 1e-5 * float(np.abs(wanted).max()) + 1e-5
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=tolerance)


def test_integers_are_exact(tmp_path: Path) -> None:
    """Sums that a float of 32 bits does not hold."""
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"])]
    weights = {"w": _codes(rng, _U8, (4096, 5)), "wz": np.array(3, np.uint8), "xz": np.array(250, np.uint8)}
    proto = model(nodes, {"x": (2, ["m", 4096])}, ["y"], weights)
    x = _codes(rng, _U8, (3, 4096))
    executable = _compiled(proto, tmp_path)
    wanted = (x.astype(np.int64) - 250) @ (weights["w"].astype(np.int64) - 3)
    assert np.abs(wanted).max() > 1 << 25
    np.testing.assert_array_equal(executable(x), wanted)
