"""ONNX's Resize and Upsample along axes whose sizes a call tells give what they give where sizes are known at import."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import relaxir as rx
from relaxir import backend

WAYS = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric", "tf_half_pixel_for_nn"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
#: Of these ONNX Runtime has the same places.
AGREED = {"half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", None}


def resizes() -> list[tuple[str, dict[str, Any]]]:
    """What the operand behind regions is, ``scales`` or ``sizes``, and attributes."""
    found: list[tuple[str, dict[str, Any]]] = []
    for how in WAYS:
        way = {"coordinate_transformation_mode": how}
        found += [(f, way | {"mode": "nearest", "nearest_mode": r}) for f in ("up", "down") for r in ROUNDINGS]
        if how != "tf_half_pixel_for_nn":
            found += [(f, way | {"mode": mode}) for f in ("up", "down", "sizes") for mode in ("linear", "cubic")]
    found += [("down", {"mode": mode, "antialias": 1}) for mode in ("linear", "cubic")]
    found += [
        ("up", {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}),
        ("up", {"mode": "linear", "antialias": 1}),
    ]
    found += [
        ("sizes", {"mode": "nearest"}),
        ("other", {"mode": "linear"}),
        ("other", {"mode": "nearest", "nearest_mode": "floor"}),
    ]
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    return found + [(f, crop | {"mode": mode}) for f in ("up", "sizes") for mode in ("nearest", "linear")]


def model(chosen: list[tuple[str, dict[str, Any]]], shape: list[int | str]) -> onnx.ModelProto:
    """A result for each; ``other`` are sizes of another input, read at each call."""
    nodes = [helper.make_node("Shape", ["z"], ["other"])]
    for number, (operand, attributes) in enumerate(chosen):
        inputs = ["x", "region", *(["", operand] if operand in ("sizes", "other") else [operand])]
        nodes.append(helper.make_node("Resize", inputs, [f"y{number}"], **attributes))
    weights = {
        "up": np.array([1, 1, 2.3, 1.5], np.float32),
        "down": np.array([1, 1, 0.31, 0.77], np.float32),
        "sizes": np.array([2, 3, 9, 4], np.int64),
        "region": np.array([0, 0, 0.2, -0.3, 1, 1, 0.9, 1.2], np.float32),
    }
    other = [2, 3, "h2", "w2"] if isinstance(shape[2], str) else [2, 3, 6, 11]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", 1, shape), helper.make_tensor_value_info("z", 1, other)],
        [onnx.ValueInfoProto(name=f"y{i}") for i in range(len(chosen))],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


@pytest.mark.parametrize("size", [(5, 8), (1, 1), (20, 3)])
def test_sizes_that_calls_tell(size: tuple[int, int]) -> None:
    """Places are rounded in single precision where factors are given, as in ONNX Runtime."""
    chosen, rng = resizes(), np.random.default_rng(0)
    given = {"x": rng.standard_normal((2, 3, *size), np.float32), "z": np.zeros((2, 3, 6, 11), np.float32)}
    if size == (1, 1):  # 0.31 of one place are none
        chosen = [c for c in chosen if c[0] != "down"]
    found = backend.prepare(model(chosen, [2, 3, "h", "w"])).run(given)
    known = backend.prepare(model(chosen, [2, 3, *size])).run(given)
    session = onnxruntime.InferenceSession(model(chosen, [2, 3, *size]).SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want, other, (operand, attributes) in zip(found, known, session.run(None, given), chosen, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=f"{operand} {attributes}")
        if attributes.get("coordinate_transformation_mode") in AGREED:
            np.testing.assert_allclose(got, other, rtol=1e-4, atol=1e-5, err_msg=f"{operand} {attributes}")


@pytest.mark.parametrize(("operator", "opset", "scales"), [("Upsample", 9, 2), ("Resize", 10, 1.6), ("Resize", 10, 0.7)])
def test_old_operator_sets(operator: str, opset: int, scales: float) -> None:
    factors = numpy_helper.from_array(np.array([1, 1, scales, 2], np.float32), "scales")
    x = np.random.default_rng(0).standard_normal((2, 1, 5, 4), np.float32)
    results = []
    for shape in (["n", 1, "h", "w"], [2, 1, 5, 4]):
        node = helper.make_node(operator, ["x", "scales"], ["y"], mode="nearest")
        info = helper.make_tensor_value_info("x", 1, shape)
        graph = helper.make_graph([node], "graph", [info], [onnx.ValueInfoProto(name="y")], [factors])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)
        results.append(backend.prepare(proto).run({"x": x})[0])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"antialias": 1, "mode": "linear"}, r"expected scales where antialias is set and a size is "),
        (
            {"keep_aspect_ratio_policy": "not_larger"},
            r"expected sizes that are known where keep_aspect_ratio_policy is 'not_larger'",
        ),
    ],
)
def test_what_needs_sizes_that_are_known(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(rx.RelaxError, match=message):
        rx.from_onnx(model([("sizes", attributes)], [2, 3, "h", "w"]))


def test_images_beside_what_is_shrunk_and_enlarged() -> None:
    """As in a U-Net, and in a pyramid of features: sizes are equal where a call's divide; where they do not, it is refused."""
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["half"], **pool),
        helper.make_node("Resize", ["half", "", "twice"], ["back"], mode="nearest"),
        helper.make_node("Concat", ["back", "x", "back"], ["beside"], axis=1),
        helper.make_node("Concat", ["back", "x"], ["pair"], axis=1),
        helper.make_node("Add", ["x", "back"], ["sum"]),
        helper.make_node("Greater", ["sum", "x"], ["mask"]),
        helper.make_node("Where", ["mask", "back", "x"], ["chosen"]),
        helper.make_node("Max", ["x", "back", "x"], ["most"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", 1, ["n", 2, "h", "w"])],
        [onnx.ValueInfoProto(name=n) for n in ("beside", "pair", "sum", "chosen", "most")],
        [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "twice")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    executable, rng = rx.compile(rx.from_onnx(proto)), np.random.default_rng(0)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for shape in ((2, 2, 6, 8), (1, 2, 2, 2)):
        x = rng.standard_normal(shape, np.float32)
        for got, want in zip(executable(x), session.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(got, want)
    with pytest.raises(rx.RelaxError, match=r"expected dimension 2 to be "):
        executable(np.zeros((1, 2, 5, 8), np.float32))
