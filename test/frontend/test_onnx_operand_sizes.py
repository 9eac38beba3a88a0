"""ONNX operators whose operands have equal dimensions, of other names or of none, give what they give of known sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxir as rx

Array = np.ndarray[Any, Any]
_RNG = np.random.default_rng(0)


def _f32(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


def _scales(*shape: int) -> Array:
    return (_RNG.random(shape) + 0.1).astype(np.float32)


def _ui8(*shape: int) -> Array:
    return _RNG.integers(0, 255, shape).astype(np.uint8)


def _i8(*shape: int) -> Array:
    return _RNG.integers(-127, 127, shape).astype(np.int8)


def _places(below: int, *shape: int) -> Array:
    return _RNG.integers(0, below, shape)


def _i32(below: int, *shape: int) -> Array:
    return _places(below, *shape).astype(np.int32)


#: A node: its operator, operands (``_``: none), which of these are inputs, known sizes of inputs by axis, attributes.
_Case = tuple[str, list[Any], str, dict[int, list[int]], dict[str, Any]]
_STEP = [np.float32(0.1), np.uint8(7)]
_SCALE, _POINT = _STEP
_ALL = "all"


def _case(
    operator: str, operands: list[Any], inputs: str = _ALL, known: dict[int, list[int]] | None = None, **how: Any
) -> _Case:
    return operator, operands, inputs, known or {}, how


def _recurrent(operator: str, gates: int) -> list[_Case]:
    def weights(count: int) -> list[Array]:
        return [_f32(count, 2 * gates, 4), _f32(count, 2 * gates, 2), _f32(count, 4 * gates)]

    lengths, state = np.array([5, 3, 1], np.int32), _f32(1, 3, 2)
    cell = [_f32(1, 3, 2), _f32(1, 6)] if operator == "LSTM" else []
    return [
        _case(operator, [_f32(5, 3, 4), *weights(1), lengths, state, *cell], "0 4 5 6 7", hidden_size=2),
        _case(operator, [_f32(3, 5, 4), *weights(1), "_", _f32(3, 1, 2)], hidden_size=2, layout=1),
        _case(operator, [_f32(5, 3, 4), *weights(2)], hidden_size=2, direction="bidirectional"),
        _case(operator, [_f32(5, 3, 4), *weights(2)], "0", hidden_size=2, direction="bidirectional"),
    ]


def _einsum(equation: str, *shapes: tuple[int, ...]) -> _Case:
    return _case("Einsum", [_f32(*s) for s in shapes], equation=equation)


def _heads(*axes: int) -> dict[int, list[int]]:
    return {i: [1, 3] for i in axes}


_FOUR = [0, 1, 2, 3]
#: For each key of two rows, and for each query and key.
_SEEN = [np.array([[1, 1, 0], [1, 1, 1]], np.int32), np.tri(3, dtype=np.int32)[None].repeat(2, 0)]

_CASES: dict[str, list[_Case]] = {
    "Einsum": [
        _einsum("ij,jk->ik", (3, 4), (4, 5)),
        _einsum("ij,ij->", (3, 4), (3, 4)),
        _einsum("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
        _einsum("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
        _einsum("iJ,J", (3, 4), (4,)),
        _einsum("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
        _einsum("iij,jk->ik", (3, 3, 4), (4, 2)),
    ],
    "quantized products": [
        _case("MatMulInteger", [_ui8(3, 4), _i8(4, 5)]),
        _case("MatMulInteger", [_ui8(3, 4), _i8(4, 5), _ui8(3), _i8(5)]),
        _case("MatMulInteger", [_ui8(3, 4), _i8(4, 5), _POINT, _i8(5)], "0"),
        _case("QLinearMatMul", [_ui8(3, 4), _SCALE, _POINT, _i8(4, 5), _scales(5), _i8(5), np.float32(20), _POINT], "0 3"),
        _case("QLinearMatMul", [_ui8(3, 4), _SCALE, _POINT, _i8(4, 5), _scales(5), _i8(5), np.float32(20), _POINT], "0 3 4 5"),
        _case("ConvInteger", [_ui8(1, 3, 6, 6), _i8(2, 3, 3, 3), _POINT, _i8(2)], "0 1 3", {1: [2, 3]}),
        _case("QLinearConv", [_ui8(1, 3, 6, 6), *_STEP, _i8(2, 3, 3, 3), _scales(2), _i8(2), np.float32(9), _POINT], "0"),
    ],
    "LSTM": _recurrent("LSTM", 4),
    "GRU": _recurrent("GRU", 3),
    "RNN": _recurrent("RNN", 1),
    "quantizing": [
        *(
            _case(operator, [x, _scales(3), _ui8(3)], inputs, axis=axis)
            for operator, make in (("QuantizeLinear", _f32), ("DequantizeLinear", _ui8))
            for axis, x in ((0, make(3, 4)), (-2, make(3, 4)), (1, make(4, 3)))
            for inputs in ("0", _ALL)
        ),
        _case("QuantizeLinear", [_f32(3, 4), _scales(3)], axis=0, output_dtype=TensorProto.FLOAT8E4M3FN),
        _case("DequantizeLinear", [_ui8(3, 4), _scales(3, 2)], _ALL, {0: [1]}, axis=1, block_size=2),
    ],
    "convolutions and norms": [
        _case("Conv", [_f32(1, 3, 6, 6), _f32(2, 3, 3, 3), _f32(2)], _ALL, {1: [2, 3]}),
        _case("ConvTranspose", [_f32(1, 3, 6, 6), _f32(3, 2, 3, 3), _f32(2)], "0"),
        _case("BatchNormalization", [_f32(2, 3, 4), _f32(3), _f32(3), _f32(3), _scales(3)]),
        _case("BatchNormalization", [_f32(2, 3, 4), _f32(3), _f32(3), _f32(3), _scales(3)], training_mode=1),
        _case("InstanceNormalization", [_f32(2, 3, 4), _f32(3), _f32(3)]),
        _case("LayerNormalization", [_f32(2, 3, 4), _f32(4), _f32(4)]),
        _case("GroupNormalization", [_f32(2, 4, 3), _f32(4), _f32(4)], "0", num_groups=2),
    ],
    "places": [
        _case("GatherElements", [_f32(5, 3), _places(5, 2, 3)], axis=0),
        _case("GatherND", [_f32(5, 3), _places(3, 5, 1)], _ALL, {1: [1]}, batch_dims=1),
        _case("ScatterElements", [_f32(5, 3), np.array([[1, 0, 4], [2, 3, 0]]), _f32(2, 3)], axis=0),
        _case("ScatterND", [_f32(5, 3), np.array([[1], [3]]), _f32(2, 3)], _ALL, {1: [1]}),
        _case("ScatterND", [_f32(5, 3, 2), np.array([[1, 2], [3, 0]]), _f32(2, 2)], _ALL, {1: [1]}, reduction="add"),
        _case("ReverseSequence", [_f32(5, 3, 2), np.array([5, 2, 1])], time_axis=0, batch_axis=1),
        _case("NonMaxSuppression", [_scales(1, 6, 4), _scales(1, 2, 6), np.array([3])], "0 1", {0: [2]}),
        _case("GridSample", [_f32(2, 3, 5, 6), _f32(2, 4, 3, 2)], _ALL, {1: [3]}),
        _case("RoiAlign", [_f32(2, 3, 5, 6), _scales(3, 4), np.array([0, 1, 1])], _ALL, {1: [1]}, sampling_ratio=2),
        _case("MaxUnpool", [_f32(1, 1, 2, 2), np.array([[[[0, 2], [8, 10]]]])], "1", kernel_shape=[2, 2], strides=[2, 2]),
        _case("Concat", [_f32(2, 3), _f32(1, 3), _f32(4, 3)], axis=0),
    ],
    "losses": [
        _case("NegativeLogLikelihoodLoss", [_f32(4, 3, 2), _places(3, 4, 2), _f32(3)]),
        _case("SoftmaxCrossEntropyLoss", [_f32(4, 3, 2), _places(3, 4, 2), _scales(3)]),
    ],
    "norms of com.microsoft": [
        _case("SkipLayerNormalization", [_f32(2, 3, 4), _f32(2, 3, 4), _f32(4), _f32(4), _f32(4)]),
        _case("SkipSimplifiedLayerNormalization", [_f32(2, 3, 4), _f32(2, 3, 4), _f32(4)], "0 1"),
        _case(
            "EmbedLayerNormalization",
            [_i32(5, 2, 3), _i32(2, 2, 3), _f32(5, 4), _f32(6, 4), _f32(2, 4), _f32(4), _f32(4), np.ones((2, 3), np.int32)],
        ),
        _case("BiasGelu", [_f32(3, 4), _f32(4)]),
        _case("FastGelu", [_f32(3, 4), _f32(4)]),
    ],
    "products of com.microsoft": [
        _case("FusedMatMul", [_f32(2, 3, 4), _f32(2, 5, 4)], transB=1),
        _case("FusedGemm", [_f32(3, 4), _f32(4, 5), _f32(5)], activation="Relu"),
        _case("FusedConv", [_f32(1, 3, 6, 6), _f32(2, 3, 3, 3), _f32(2), _f32(1, 2, 4, 4)], "0 3", activation="Relu"),
        _case("MatMulNBits", [_f32(3, 64), _ui8(6, 2, 16), _scales(12)], "0", K=64, N=6, bits=4, block_size=32),
        _case("DynamicQuantizeMatMul", [_f32(3, 4), _i8(4, 5), _scales(5), _i8(5), _f32(5)]),
        _case("MatMulIntegerToFloat", [_ui8(3, 4), _i8(4, 5), _SCALE, _scales(5), _POINT, _i8(5), _f32(5)], "0 1 3 5 6"),
        _case("QGemm", [_ui8(3, 4), _SCALE, _POINT, _i8(4, 5), _scales(5), _i8(5), _i32(9, 5)], "0 3 6"),
        _case("QLinearAdd", [_ui8(3, 4), _SCALE, _POINT, _ui8(3, 4), _SCALE, _POINT, _SCALE, _POINT], "0 3"),
        _case("QLinearConcat", [_SCALE, _POINT, _ui8(3, 4), _SCALE, _POINT, _ui8(2, 4), _SCALE, _POINT], "2 5", axis=0),
        _case("QLinearWhere", [_f32(3, 4) > 0, _ui8(3, 4), *_STEP, _ui8(3, 4), *_STEP, *_STEP], "0 1 4"),
    ],
    "attention": [
        _case("RotaryEmbedding", [_f32(2, 3, 4, 8), _places(9, 2, 4), _f32(9, 4), _f32(9, 4)], "0 1", {0: [3]}),
        _case("Attention", [_f32(2, 3, 8), _f32(8, 24), _f32(24), np.ones((2, 3), np.int32)], "0 3", num_heads=2),
        _case(
            "QAttention",
            [_ui8(2, 3, 8), _i8(8, 24), _f32(24), _SCALE, _SCALE, np.ones((2, 3), np.int32), np.uint8(128), np.int8(0)],
            "0 5",
            num_heads=2,
        ),
        _case(
            "Attention",
            [_f32(2, 3, 8), _f32(8, 24), _f32(24), "_", _f32(2, 2, 2, 5, 4)],
            "0 4",
            {4: [0, 2, 4]},
            num_heads=2,
        ),
        _case(
            "MultiHeadAttention",
            [_f32(2, 3, 8), _f32(2, 5, 8), _f32(2, 5, 8), "_", np.ones((2, 5), np.int32)],
            _ALL,
            {i: [2] for i in range(3)},
            num_heads=2,
        ),
        _case(
            "MultiHeadAttention",
            [_f32(2, 3, 8), _f32(2, 5, 8), _f32(2, 5, 8), "_", "_", _f32(1, 2, 3, 9), _f32(2, 2, 4, 4), _f32(2, 2, 4, 4)],
            _ALL,
            {i: [2] for i in range(3)} | {5: [0]} | _heads(6, 7),
            num_heads=2,
        ),
        _case(
            "MultiHeadAttention",
            [_f32(2, 3, 8), _f32(2, 2, 5, 4), _f32(2, 2, 5, 4)],
            _ALL,
            {0: [2]} | _heads(1, 2),
            num_heads=2,
        ),
        _case("Attention", [_f32(2, 3, 8), _f32(8, 24)], "0", num_heads=2),
        _case("Attention", [_f32(2, 3, 8), _f32(8, 24), "_", np.array([3, 2], np.int32)], "0 3", num_heads=2),
        _case("Attention", [_f32(2, 3, 8), _f32(8, 24), _f32(24), np.array([3, 2], np.int32)], "0 3", {3: [0]}, num_heads=2),
        *(_case("Attention", [_f32(2, 3, 8), _f32(8, 24), "_", m], "0 3", {3: [m.ndim - 1]}, num_heads=2) for m in _SEEN[:2]),
        _case("Attention", [_f32(2, 3, 8), _f32(8, 24), "_", "_", "_", _f32(1, 2, 3, 3)], "0 5", {5: _FOUR}, num_heads=2),
        *(
            _case(
                "Attention",
                [_f32(2, 3, 8), _f32(8, 24), _f32(24), np.ones((2, 8), np.int32), _f32(2, 2, 2, 5, 4)],
                "0 3 4",
                {3: [1], 4: [0, 2, 4]} | more,
                num_heads=2,
            )
            for more in ({}, {0: [1]}, {4: [0, 2, 3, 4]})
        ),
        _case(
            "QAttention",
            [_ui8(2, 3, 8), _i8(8, 24), _f32(24), _SCALE, _SCALE, np.array([3, 2], np.int32), np.uint8(128), np.int8(0)],
            "0 5",
            num_heads=2,
        ),
        *(
            _case("MultiHeadAttention", [*[_f32(2, 3, 8)] * 3, "_", m], _ALL, {0: [2], 1: [2], 2: [2], 4: [0]}, num_heads=2)
            for m in (np.array([3, 2], np.int32), _SEEN[0])
        ),
        _case(
            "MultiHeadAttention",
            [_f32(2, 3, 8), *[_f32(2, 5, 8)] * 2, "_", "_", _f32(1, 2, 3, 5)],
            _ALL,
            {i: [2] for i in range(3)} | {5: _FOUR},
            num_heads=2,
        ),
        _case("MultiHeadAttention", [_f32(2, 3, 2, 3, 4), "_", "_", "_", _SEEN[0]], "0 4", {0: [2, 3, 4], 4: [1]}, num_heads=2),
        _case(
            "GroupQueryAttention",
            [_f32(2, 3, 24), "_", "_", _f32(2, 2, 4, 4), _f32(2, 2, 4, 4), np.array([6, 6], np.int32), np.array([7], np.int32)],
            "0 3 4 5",
            {0: [2]} | _heads(3, 4),
            num_heads=2,
            kv_num_heads=2,
        ),
    ],
}  # fmt: skip


def _built(cases: list[_Case], names: str, domain: str) -> tuple[onnx.ModelProto, dict[str, Array], dict[str, Array]]:
    """A node and a result for each case; sizes are ``known``, ``named`` by input and axis, or without a name: its inputs, its
    weights.
    """
    nodes, infos = list[onnx.NodeProto](), list[onnx.ValueInfoProto]()
    given, weights = dict[str, Array](), dict[str, Array]()
    for number, (operator, operands, inputs, known, how) in enumerate(cases):
        chosen = range(len(operands)) if inputs == _ALL else [int(i) for i in inputs.split()]
        called = ["" if isinstance(o, str) else f"{operator}{number}_{i}" for i, o in enumerate(operands)]
        for i, (name, operand) in enumerate(zip(called, operands, strict=True)):
            if not name:
                continue
            (given if i in chosen else weights)[name] = array = np.asarray(operand)
            if i in chosen:
                shape = [
                    d if names == "known" or axis in known.get(i, []) else f"{name}_{axis}s" if names == "named" else None
                    for axis, d in enumerate(array.shape)
                ]
                infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
        nodes.append(helper.make_node(operator, called, [f"y{number}"], domain=domain, **how))
    graph = helper.make_graph(
        nodes,
        "graph",
        infos,
        [onnx.ValueInfoProto(name=n.output[0]) for n in nodes],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), given, weights


def _results(family: str, names: str) -> list[Array]:
    """``SkipLayerNormalization`` and the like are of com.microsoft."""
    domain = "com.microsoft" if "microsoft" in family or family == "attention" else ""
    proto, given, weights = _built(_CASES[family], names, domain)
    executable = rx.compile(rx.from_onnx(proto))
    if weights:
        executable.bind(executable.prepare(weights))
    found: Any = executable(**given)
    return list(found) if isinstance(found, tuple) else [found]


def test_attention_of_known_sizes_is_onnx_runtimes() -> None:
    """Packed keys it has on GPUs alone, and caches where they are results, too."""
    cases = [c for c in _CASES["attention"] if c[0] in ("Attention", "MultiHeadAttention") and not isinstance(c[1][1], str)]
    cases = [c for c in cases if (c[0], len(c[1])) not in (("Attention", 5), ("MultiHeadAttention", 8))]
    proto, given, weights = _built(cases, "known", "com.microsoft")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = rx.compile(rx.from_onnx(proto))
    found = executable.bind(executable.prepare(weights))(**given)
    for case, got, wanted in zip(cases, found, session.run(None, given), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=f"{case[0]} {case[4]}")


@pytest.mark.parametrize("family", _CASES)
def test_sizes_of_other_names_or_none(family: str) -> None:
    known = _results(family, "known")
    for names in ("named", "none"):
        for case, found, wanted in zip(_CASES[family], _results(family, names), known, strict=True):
            np.testing.assert_allclose(
                found.astype(np.float64),
                wanted.astype(np.float64),
                rtol=1e-4,
                atol=1e-4,
                err_msg=f"{names}: {case[0]} {case[4]}",
            )


@pytest.mark.parametrize(
    ("case", "shapes"),
    [
        (_einsum("ij,jk->ik", (3, 4), (4, 5)), ((3, 4), (5, 4))),
        (_case("QuantizeLinear", [_f32(3, 4), _scales(3)], axis=0), ((3, 4), (4,))),
        (_case("InstanceNormalization", [_f32(2, 3, 4), _f32(3), _f32(3)]), ((2, 3, 4), (3,), (2,))),
        (_case("ScatterElements", [_f32(5, 3), _places(2, 2, 3), _f32(2, 3)], axis=0), ((5, 3), (2, 3), (3, 2))),
    ],
)
def test_calls_whose_sizes_are_not_equal_are_refused(case: _Case, shapes: tuple[tuple[int, ...], ...]) -> None:
    proto, given, _ = _built([case], "none", "")
    arrays = [np.zeros(s, a.dtype) for s, a in zip(shapes, given.values(), strict=True)]
    with pytest.raises(rx.RelaxError, match=r"y0, which takes sizes to be equal unless dims= .*expected dimension \d to be"):
        rx.compile(rx.from_onnx(proto))(*arrays)
