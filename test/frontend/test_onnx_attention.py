"""Graphs that write attention out, as torch.onnx's exporters do, and small changes of them: one op, with the same numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relaxir as rx
from relaxir import backend
from support.onnx_models import model

Array = np.ndarray[Any, Any]
_FLOAT, _BOOL = TensorProto.FLOAT, TensorProto.BOOL
_SHAPE = (2, 4, 5, 8)


@dataclass(frozen=True)
class _Form:
    """How a graph is written.

    Attributes:
        keys: how these are transposed: in ``four`` dimensions, in ``three``, or as ``heads`` from beside the rows.
        scale: what is scaled: ``both`` factors, the ``scores``, by a ``quotient``; or ``none``.
        mask: ``none``, of ``numbers``, of ``truth`` values with -inf, or with the ``least`` number.
        zeros: whether NaN becomes 0.
        groups: heads of keys.
        fused: whether it is one op.
    """

    keys: str = "four"
    scale: str = "both"
    mask: str = "none"
    zeros: bool = False
    groups: int = 4
    axis: int = -1
    fused: bool = True


_FORMS = [
    _Form(),
    _Form(keys="three", mask="numbers", zeros=True),
    _Form(keys="three", groups=2, scale="scores", mask="truth", zeros=True),
    _Form(keys="heads", scale="quotient", mask="least"),
    _Form(mask="least", zeros=True),
    _Form(scale="none", mask="truth"),
    _Form(axis=2, fused=False),
    _Form(mask="wider", fused=False),
]


def _model(form: _Form) -> onnx.ModelProto:
    node = helper.make_node
    batch, heads, length, depth = _SHAPE
    nodes: list[onnx.NodeProto] = []
    numbers: dict[str, Array] = {"root": np.array(depth**-0.25, np.float32), "zero": np.array(0, np.float32)}
    keys = "k"
    if form.groups != heads:
        numbers |= {"two": np.array([2], np.int64), "each": np.array([batch, form.groups, 2, length, depth], np.int64)}
        numbers["joined"] = np.array([batch, heads, length, depth], np.int64)
        for x in "kv":
            nodes += [node("Unsqueeze", [x, "two"], [f"{x}1"]), node("Expand", [f"{x}1", "each"], [f"{x}2"])]
            nodes += [node("Reshape", [f"{x}2", "joined"], [f"{x}3"])]
        keys = "k3"
    if form.keys == "three":
        numbers["flat"] = np.array([-1, length, depth], np.int64)
        numbers["four"] = np.array([batch, heads, depth, length], np.int64)
        nodes += [node("Reshape", [keys, "flat"], ["kf"]), node("Transpose", ["kf"], ["kt"], perm=[0, 2, 1])]
        nodes += [node("Reshape", ["kt", "four"], ["turned"])]
    else:
        order = [0, 2, 3, 1] if form.keys == "heads" else [0, 1, 3, 2]
        nodes += [node("Transpose", [keys], ["turned"], perm=order)]
    query, turned = "q", "turned"
    if form.scale == "both":
        nodes += [node("Mul", ["q", "root"], ["qs"]), node("Mul", ["root", "turned"], ["ks"])]
        query, turned = "qs", "ks"
    nodes += [node("MatMul", [query, turned], ["s"])]
    if form.scale in ("scores", "quotient"):
        numbers["by"] = np.array(0.3 if form.scale == "scores" else 3, np.float32)
        nodes += [node("Mul" if form.scale == "scores" else "Div", ["s", "by"], ["scaled"])]
    scores = nodes[-1].output[0]
    if form.mask in ("truth", "least"):
        numbers["hidden"] = np.array(-np.inf if form.mask == "truth" else np.finfo(np.float32).min, np.float32)
        nodes += [node("Where", ["m", "zero", "hidden"], ["mask"]), node("Add", [scores, "mask"], ["masked"])]
    elif form.mask != "none":
        nodes += [node("Add", ["m", scores], ["masked"])]
    nodes += [node("Softmax", [nodes[-1].output[0]], ["p"], axis=form.axis)]
    if form.zeros:
        nodes += [node("IsNaN", ["p"], ["nan"]), node("Where", ["nan", "zero", "p"], ["p0"])]
    nodes += [node("MatMul", [nodes[-1].output[0], "v" if form.groups == heads else "v3"], ["y"])]
    inputs: dict[str, tuple[Any, Any]] = {n: (_FLOAT, list(a.shape)) for n, a in _inputs(form).items()}
    if "m" in inputs and form.mask in ("truth", "least"):
        inputs["m"] = (_BOOL, inputs["m"][1])
    found = model(nodes, inputs, ["y"], numbers)
    found.graph.output[0].type.tensor_type.elem_type = _FLOAT
    return found


def _inputs(form: _Form) -> dict[str, Array]:
    """Of the masks one row hides all keys."""
    rng = np.random.default_rng(0)
    batch, _, length, depth = _SHAPE
    shared = (batch, form.groups, length, depth)
    shapes = {"q": _SHAPE, "k": (batch, length, 4, depth) if form.keys == "heads" else shared, "v": shared}
    found = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    seen = rng.random((batch, 1, length, length)) > 0.3
    seen[0, 0, 2] = False
    seen[:, :, 0, 0] = True
    if form.mask in ("truth", "least"):
        found["m"] = seen
    elif form.mask == "numbers":
        found["m"] = np.where(seen, rng.standard_normal(seen.shape), -np.inf).astype(np.float32)
    elif form.mask == "wider":
        found["m"] = np.zeros((3, 1, 1, 1, 1), np.float32)
    return found


@pytest.mark.parametrize("form", _FORMS, ids=str)
def test_attention_is_one_op_with_the_same_numbers(form: _Form) -> None:
    proto, inputs = _model(form), _inputs(form)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, inputs)
    text = str(rx.from_onnx(proto).run("relax-canonicalize,cse"))
    assert text.count("relax.attention") == form.fused
    assert ("relax.softmax" in text) == (not form.fused)
    assert "relax.broadcast_to" not in text
    assert ("relax.permute_dims" in text) == (form.keys == "heads" or not form.fused)
    (found,) = backend.run_model(proto, inputs)
    # Sums of at most eight products in another order, and exponentials.
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
