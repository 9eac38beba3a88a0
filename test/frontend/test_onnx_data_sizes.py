"""ONNX operators, branches and loops whose results are as large as data says, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from support.onnx_models import model

Array = np.ndarray[Any, Any]
_FLOAT, _INT64, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def _check(proto: onnx.ModelProto, kinds: Sequence[int], calls: Sequence[dict[str, Array]]) -> None:
    for value, kind in zip(proto.graph.output, kinds, strict=True):  # ONNX Runtime wants them
        value.type.tensor_type.elem_type = kind
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = rx.compile(rx.from_onnx(proto))
    for inputs in calls:
        found: Any = executable(**inputs)
        wanted = session.run(None, inputs)
        for got, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


def _numbers(*shape: int, seed: int = 0, values: int = 3) -> Array:
    return np.random.default_rng(seed).integers(0, values, shape).astype(np.float32)


def test_places_that_are_not_zero() -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Transpose", ["places"], ["rows"])]
    proto = model(nodes, {"x": (_FLOAT, ["n", 4])}, ["rows"])
    _check(proto, [_INT64], [{"x": _numbers(n, 4)} for n in (3, 5)] + [{"x": np.zeros((2, 4), np.float32)}])


def test_places_of_a_scalar() -> None:
    proto = model([helper.make_node("NonZero", ["x"], ["y"])], {"x": (_FLOAT, [])}, ["y"])
    _check(proto, [_INT64], [{"x": np.array(3, np.float32)}, {"x": np.array(0, np.float32)}])


@pytest.mark.parametrize("options", [{}, {"axis": 1}])
def test_what_a_condition_keeps(options: dict[str, int]) -> None:
    proto = model(
        [helper.make_node("Compress", ["x", "c"], ["y"], **options)], {"x": (_FLOAT, ["n", 4]), "c": (_BOOL, ["k"])}, ["y"]
    )
    calls = [{"x": _numbers(3, 4), "c": np.array(c)} for c in ([True, False, True], [False] * 4)]
    _check(proto, [_FLOAT], calls)


@pytest.mark.parametrize("options", [{}, {"sorted": 0}, {"axis": 1}, {"axis": 0, "sorted": 0}])
def test_what_differs(options: dict[str, int]) -> None:
    names = ["y", "places", "inverse", "counts"]
    proto = model([helper.make_node("Unique", ["x"], names, **options)], {"x": (_FLOAT, ["n", 4])}, names)
    calls = [{"x": _numbers(n, 4, seed=n, values=2)} for n in (1, 6)]
    _check(proto, [_FLOAT, _INT64, _INT64, _INT64], calls)


def test_nothing_differs_of_nothing() -> None:
    names = ["y", "places", "inverse", "counts"]
    proto = model([helper.make_node("Unique", ["x"], names)], {"x": (_FLOAT, ["n"])}, names)
    assert [a.shape for a in rx.compile(rx.from_onnx(proto))(np.zeros(0, np.float32))] == [(0,)] * 4


@pytest.mark.parametrize("centered", [0, 1])
def test_boxes_that_no_better_one_covers(centered: int) -> None:
    random = np.random.default_rng(1)
    proto = model(
        [helper.make_node("NonMaxSuppression", ["b", "s", "most", "iou", "least"], ["y"], center_point_box=centered)],
        {"b": (_FLOAT, [2, "n", 4]), "s": (_FLOAT, [2, 3, "n"]), "most": (_INT64, [1]), "least": (_FLOAT, [1])},
        ["y"],
        {"iou": np.array([0.3], np.float32)},
    )
    calls = [
        {
            "b": random.random((2, n, 4)).astype(np.float32),
            "s": random.random((2, 3, n)).astype(np.float32),
            "most": np.array([most]),
            "least": np.array([0.2], np.float32),
        }
        for n, most in ((20, 3), (4, 100), (7, 0))
    ]
    _check(proto, [_INT64], calls)


def _graph(nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[Any]]], outputs: dict[str, int]) -> onnx.GraphProto:
    return helper.make_graph(
        nodes,
        "inner",
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
    )


def test_branches_whose_results_differ_in_size() -> None:
    node = helper.make_node
    both = _graph([node("Concat", ["x", "x"], ["t"], axis=0)], {}, {"t": _FLOAT})
    one = _graph([node("Neg", ["x"], ["e"])], {}, {"e": _FLOAT})
    nodes = [node("If", ["c"], ["y"], then_branch=both, else_branch=one), node("ReduceSum", ["y"], ["s"], keepdims=0)]
    proto = model(nodes, {"c": (_BOOL, []), "x": (_FLOAT, ["n", 4])}, ["y", "s"])
    _check(proto, [_FLOAT, _FLOAT], [{"c": np.array(c), "x": _numbers(3, 4)} for c in (True, False)])


def _doubling(limited: bool, with_results: bool) -> onnx.ModelProto:
    """Doubles while the sum is below a bound; each round gives what it began with."""
    node = helper.make_node
    nodes = [
        node("Add", ["v", "v"], ["w"]),
        node("ReduceSum", ["w"], ["total"], keepdims=0),
        node("Less", ["total", "bound"], ["on"]),
        *([node("Neg", ["v"], ["row"])] if with_results else []),
    ]
    inputs = {"i": (_INT64, []), "c": (_BOOL, []), "v": (_FLOAT, [4])}
    body = _graph(nodes, inputs, {"on": _BOOL, "w": _FLOAT} | ({"row": _FLOAT} if with_results else {}))
    loop = node("Loop", ["most" if limited else "", "start", "x"], ["y", *(["rows"] if with_results else [])], body=body)
    given = {"x": (_FLOAT, [4]), "bound": (_FLOAT, []), "start": (_BOOL, [])}
    weights = {"most": np.array(5)} if limited else {}
    return model([loop], given, ["y", *(["rows"] if with_results else [])], weights)


@pytest.mark.parametrize("limited", [True, False])
def test_loops_that_data_ends(limited: bool) -> None:
    calls = [
        {"x": np.ones(4, np.float32), "bound": np.array(b, np.float32), "start": np.array(s)}
        for b, s in ((20, True), (1000, True), (20, False))
    ]
    proto = _doubling(limited, with_results=limited)
    _check(proto, [_FLOAT] * len(proto.graph.output), calls)


@pytest.mark.parametrize(("most", "by_data"), [(None, True), (2**63 - 1, True), (20, True), (20, False)])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_sizes_of_what_rounds_carry_are_those_that_they_want(most: int | None, by_data: bool, order: str) -> None:
    """Of tensors whose sizes have no name: one that rounds add another one to is as large as that, which each call checks."""
    node, first, other = helper.make_node, order[0], order[1]
    types = {"i": (_INT64, []), "c": (_BOOL, []), "v": (_FLOAT, [None, 3])}
    nodes = [node("Add", ["v", other], ["v1"]), node("ReduceMax", ["v1"], ["top"], keepdims=0)]
    nodes.append(node("Less", ["top", "limit"], ["c1"]) if by_data else node("Identity", ["c"], ["c1"]))
    body = helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in types.items()],
        [helper.make_tensor_value_info("c1", _BOOL, None), helper.make_tensor_value_info("v1", _FLOAT, None)],
    )
    weights = {"limit": np.float32(9), "most": np.array(most or 0), "true": np.array(True)}
    loop = node("Loop", ["" if most is None else "most", "true", first], ["y"], body=body)
    proto = model([loop], {n: (_FLOAT, [None, 3]) for n in "ab"}, ["y"], weights)
    executable = rx.compile(rx.from_onnx(proto))
    arrays = {first: np.zeros((2, 3), np.float32), other: np.ones((2, 3), np.float32)}
    np.testing.assert_array_equal(executable(**arrays), np.full((2, 3), 9 if by_data else 20))
    with pytest.raises(rx.RelaxError, match="expected dimension 0 to be"):
        executable(**(arrays | {"b": np.ones((4, 3), np.float32)}))


def test_results_of_rounds_without_a_limit_are_refused() -> None:
    with pytest.raises(rx.RelaxError, match="are limited by a number that is known or symbolic, got no limit"):
        rx.from_onnx(_doubling(limited=False, with_results=True))


def test_a_number_of_rounds_that_is_computed() -> None:
    node = helper.make_node
    body = _graph(
        [node("Identity", ["c"], ["on"]), node("Add", ["v", "v"], ["w"])],
        {"i": (_INT64, []), "c": (_BOOL, []), "v": (_FLOAT, [2])},
        {"on": _BOOL, "w": _FLOAT},
    )
    proto = model([node("Loop", ["n", "", "x"], ["y"], body=body)], {"n": (_INT64, []), "x": (_FLOAT, [2])}, ["y"])
    _check(proto, [_FLOAT], [{"n": np.array(n), "x": np.ones(2, np.float32)} for n in (0, 3, 20)])


def test_names_of_sizes_that_the_model_has_are_not_used_again() -> None:
    proto = model([helper.make_node("NonZero", ["x"], ["y"])], {"x": (_FLOAT, ["nonzero_0"])}, ["y"])
    _check(proto, [_INT64], [{"x": _numbers(7)}])
    assert "nonzero_1" in str(rx.from_onnx(proto))
