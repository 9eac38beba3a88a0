"""Nodes whose operands and attributes are easily taken the wrong way, several of a kind in one model, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import relaxir as rx
from relaxir import backend
from relaxir.compiler import default_pipeline
from relaxir.lowering.target import Target

Array = np.ndarray[Any, Any]
_MICROSOFT = "com.microsoft"


@dataclass
class _Model:
    """Nodes with their operands, None for one that is absent; ``kept`` says which elements of a result are defined."""

    opset: int = 18
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    weights: dict[str, Array] = field(default_factory=dict[str, Array])
    kept: dict[str, Callable[[Array], Array]] = field(default_factory=dict[str, Callable[[Array], Array]])

    def add(
        self,
        operator: str,
        operands: Sequence[Array | None],
        weights: Sequence[int] = (),
        results: int = 1,
        domain: str = _MICROSOFT,
        kept: Callable[[Array], Array] = lambda x: x,
        **attributes: Any,
    ) -> None:
        number, names = len(self.nodes), list[str]()
        for i, operand in enumerate(operands):
            names.append("" if operand is None else f"x{number}.{i}")
            if operand is not None:
                (self.weights if i in weights else self.inputs)[names[-1]] = np.asarray(operand)
        outputs = [f"y{number}.{i}" for i in range(results)]
        self.kept |= dict.fromkeys(outputs, kept)
        self.nodes.append(helper.make_node(operator, names, outputs, domain=domain, **attributes))

    def check(self) -> None:
        kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in self.inputs.items()}
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in self.inputs.items()],
            [onnx.ValueInfoProto(name=o) for o in self.kept],
            [numpy_helper.from_array(a, n) for n, a in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(_MICROSOFT, 1)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        found = backend.prepare(proto).run(self.inputs)
        for (name, kept), got, want in zip(self.kept.items(), found, session.run(None, self.inputs), strict=True):
            assert got.shape == want.shape, name
            # Sums of up to 80 products in another order.
            np.testing.assert_allclose(kept(got), kept(want), rtol=2e-4, atol=2e-4, err_msg=name)


_RNG = np.random.default_rng(0)


def _f(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


def _bytes(*shape: int) -> Array:
    return _RNG.integers(0, 256, shape).astype(np.uint8)


def _blocks() -> _Model:
    """Zero points as floats are in steps of the scale; an index says which block's scale an element has; two bits."""
    made, x = _Model(), _f(3, 80)
    for bits, zero in ((4, _f(6, 3)), (4, None), (2, _bytes(6)), (8, _bytes(6, 3))):
        operands = [x, _bytes(6, 3, 4 * bits), abs(_f(18)), zero]
        made.add("MatMulNBits", operands, (1, 2, 3), K=80, N=6, bits=bits, block_size=32)
    groups = _RNG.integers(0, 3, 80).astype(np.int32)
    made.add("MatMulNBits", [x, _bytes(6, 3, 16), abs(_f(18)), None, groups], (1, 2, 4), K=80, N=6, bits=4, block_size=32)
    for bits, zero in ((4, _bytes(6, 2)), (4, None), (8, _bytes(6, 3)), (8, None)):  # rows in eight bits, in the same blocks
        operands = [x, _bytes(6, 3, 4 * bits), abs(_f(18)), zero, None, _f(6)]
        made.add("MatMulNBits", operands, (1, 2, 3, 5), K=80, N=6, bits=bits, block_size=32, accuracy_level=4)
    ids = np.array([[1, 3], [0, 9]], np.int64)
    rows = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16}
    made.add("GatherBlockQuantized", [_bytes(10, 32), ids, _f(10, 4), _bytes(10, 2)], (0, 2, 3), bits=4, **rows)
    made.add("GatherBlockQuantized", [_bytes(10, 32), ids, _f(10, 2)], (0, 2), bits=8, **rows)
    return made


def _masks() -> _Model:
    """Masks of keys, of queries and keys, by ends and begins; a row that sees no key; causal or not."""
    made, x = _Model(), _f(2, 3, 32)
    masks: list[Any] = [[3, 2], [3, 2, 0, 1], [[1, 1, 0], [0, 0, 0]], [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]] * 2]
    for i, mask in enumerate(masks):
        operands = [x, _f(32, 96), _f(96), np.array(mask, np.int32)]
        made.add("Attention", operands, (1, 2), num_heads=4, unidirectional=i % 2)
    keys, ends = _f(2, 5, 32), np.array([3, 2], np.int32)
    made.add("MultiHeadAttention", [x, keys, keys, _f(96), ends], (3,), num_heads=4)
    made.add("MultiHeadAttention", [x, _f(2, 4, 5, 8), _f(2, 4, 5, 8)], num_heads=4)
    return made


def _pasts() -> _Model:
    made, x = _Model(), _f(2, 3, 32)
    for causal in (0, 1):
        made.add("Attention", [x, _f(32, 96), _f(96), None, _f(2, 2, 4, 5, 8)], (1, 2), 2, num_heads=4, unidirectional=causal)
        old = [_f(2, 4, 2, 8), _f(2, 4, 2, 8)]
        made.add("MultiHeadAttention", [x, x, x, None, None, None, *old], (), 3, num_heads=4, unidirectional=causal)
    return made


def _grouped(length: int, room: int, ends: list[int], total: int, extra: Sequence[Any] = (), packed: bool = False) -> list[Any]:
    batch = len(ends)
    new = [_f(batch, length, 128), None, None] if packed else [_f(batch, length, s) for s in (64, 32, 32)]
    cache = [_f(batch, 2, room, 16), _f(batch, 2, room, 16)]
    return [*new, *cache, np.array(ends, np.int32), np.array(total, np.int32), *extra]


def _groups() -> _Model:
    """Rows of a batch that have as many keys, or fewer than others; a cache that grows, or has room."""
    made, tables = _Model(), [_f(16, 8), _f(16, 8)]
    plain: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2, "results": 3, "weights": (6,)}
    made.add("GroupQueryAttention", _grouped(3, 0, [2, 2], 3, tables), do_rotary=1, **plain)
    made.add("GroupQueryAttention", _grouped(1, 4, [4, 4], 5, tables), do_rotary=1, rotary_interleaved=1, **plain)
    made.add("GroupQueryAttention", _grouped(1, 4, [4, 4], 5, tables, packed=True), do_rotary=1, **plain)
    made.add("GroupQueryAttention", _grouped(1, 4, [4, 2], 5, tables), do_rotary=1, kept=lambda x: x[:, :, :3], **plain)
    made.add("GroupQueryAttention", _grouped(1, 8, [4, 3], 5, tables), do_rotary=1, kept=lambda x: x[:, :, :4], **plain)
    made.add("GroupQueryAttention", _grouped(3, 8, [2, 2], 3, tables), do_rotary=1, kept=lambda x: x[:, :, :3], **plain)
    made.add("GroupQueryAttention", _grouped(2, 4, [5], 6), local_window_size=3, scale=0.3, **plain)
    made.add("GroupQueryAttention", _grouped(3, 0, [2, 2], 3), causal=0, **plain)
    return made


def _products() -> _Model:
    """Either factor turned, its batches in front or in the middle."""
    made = _Model()
    for a, b in (((3, 2, 4), (4, 2, 5)), ((4, 2, 3), (5, 2, 4))):
        turned = int(a[0] == 4)
        options = {"transA": turned, "transB": turned, "transBatchA": 1, "transBatchB": 1}
        made.add("FusedMatMul", [_f(*a), _f(*b)], alpha=0.5, **options)
    made.add("FusedMatMul", [_f(3, 2, 4), _f(2, 4, 5)], transBatchA=1)
    return made


def _scores() -> _Model:
    """Scores that are limited, and those with one more key, of the head's own score or of none."""
    made = _Model()
    plain: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2, "results": 3, "weights": (6,)}
    made.add("GroupQueryAttention", _grouped(3, 2, [4], 5), softcap=2.0, **plain)
    made.add("GroupQueryAttention", _grouped(3, 2, [4], 5), smooth_softmax=1, **plain)
    made.add("GroupQueryAttention", _grouped(3, 4, [6], 7, [None] * 4 + [_f(4)]), local_window_size=3, **plain)
    made.add("GroupQueryAttention", _grouped(3, 2, [4], 5, [None] * 3 + [_f(1, 1, 3, 5)]), **plain)
    return made


def _old_sets() -> _Model:
    """Up to operator set 12 softmax takes the axis and all behind it as one; a resize before 11 has no modes of rounding."""
    made = _Model(opset=10)
    for operator in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in ({"axis": 2}, {"axis": 1}, {}):
            made.add(operator, [_f(3, 4, 5)], domain="", **axis)
    made.add("Resize", [_f(1, 2, 4, 5), np.array([1, 1, 1.7, 0.6], np.float32)], (1,), domain="", mode="nearest")
    return made


def _negative_axes() -> _Model:
    made = _Model(opset=11)
    for operator in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (-1, -2):
            made.add(operator, [_f(3, 4, 5)], domain="", axis=axis)
    scales = np.array([1, 1, 1.6, 0.7], np.float32)
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "round_prefer_ceil"}
    made.add("Resize", [_f(1, 2, 4, 5), np.zeros(0, np.float32), scales], (1, 2), domain="", mode="nearest", **how)
    return made


def _numbers_of_activations() -> _Model:
    made = _Model()
    numbers: dict[str, Any] = {"activation_alpha": [0.3, 0.7], "activation_beta": [0.4], "hidden_size": 4}
    names = ["HardSigmoid", "Relu", "Elu"]
    made.add("LSTM", [_f(5, 2, 3), _f(1, 16, 3), _f(1, 16, 4)], (1, 2), 3, "", activations=names, **numbers)
    made.add("ReduceMean", [np.array([[-7, 2], [4, 4]], np.int32)], domain="")
    return made


def _regions() -> _Model:
    """Regions inside, across the border, outside and turned around, half a place apart or not."""
    made, x, images = _Model(opset=16), _f(2, 3, 8, 7), np.array([0, 1, 0, 1], np.int64)
    regions = np.array([[1, 1, 5, 6], [-3, -2, 3.5, 20], [30, 30, 40, 50], [4, 4, 4.2, 4.1]], np.float32)
    sizes: dict[str, Any] = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.9}
    for mode in ("half_pixel", "output_half_pixel"):
        made.add("RoiAlign", [x, regions, images], domain="", coordinate_transformation_mode=mode, **sizes)
    return made


def _no_rounds() -> _Model:
    """A loop of no rounds gives tensors of no rows."""
    made = _Model()
    state = [helper.make_tensor_value_info("s", 1, [2, 3])]
    given = [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("c", 9, []), *state]
    outputs = [helper.make_tensor_value_info(n, k, s) for n, k, s in (("d", 9, []), ("t", 1, [2, 3]), ("r", 1, [4, 3]))]
    nodes = [
        helper.make_node("Identity", ["c"], ["d"]),
        helper.make_node("Abs", ["s"], ["t"]),
        helper.make_node("Concat", ["t", "s"], ["r"], axis=0),
    ]
    body = helper.make_graph(nodes, "body", given, outputs)
    for count, going in ((0, True), (5, False)):
        made.add("Loop", [np.array(count), np.array(going), _f(2, 3)], (0, 1), 2, "", body=body)
    return made


def _compositions() -> _Model:
    """Operators that ONNX Runtime had before ONNX, and some of other results."""
    made, square = _Model(), _f(2, 4, 4) + 4 * np.eye(4, dtype=np.float32)
    made.add("Inverse", [square])
    for domain in ("", _MICROSOFT):
        for upper in (0, 1):
            for k in (-2, 0, 1, 9):
                made.add("Trilu", [_f(2, 3, 5), np.array(k)], (), domain=domain, upper=upper)
                made.add("Trilu", [_f(3, 2), np.array(k)], (1,), domain=domain, upper=upper)
    made.add("GatherND", [_f(2, 3, 4), np.array([[0, 1], [1, -1]])])
    for axis in (0, 2, -1):
        made.add("ExpandDims", [_f(3, 4), np.array(axis, np.int32)], (1,))
    made.add("Unique", [np.array([3, 1, 3, 2, 1, 3], np.float32)], (), 3)
    made.add("Range", [np.array(2), np.array(9), np.array(3)], (0, 1, 2))
    return made


@pytest.mark.parametrize(
    "make",
    [
        _compositions,
        _blocks,
        _masks,
        _pasts,
        _groups,
        _products,
        _scores,
        _old_sets,
        _negative_axes,
        _numbers_of_activations,
        _regions,
        _no_rounds,
    ],
)
def test_results_are_those_of_onnx_runtime(make: Callable[[], _Model]) -> None:
    make().check()


@pytest.mark.parametrize("level", [0, 4])
def test_what_rows_of_blocks_are_multiplied_in(level: int) -> None:
    """Integers where the file asks for rows in eight bits, floats where it does not."""
    node = helper.make_node(
        "MatMulNBits", ["x", "q", "s"], ["y"], domain=_MICROSOFT, K=64, N=48, bits=4, block_size=32, accuracy_level=level
    )
    weights = {"q": _bytes(48, 2, 16), "s": _f(96)}
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", 1, ["m", 64])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
    module = rx.from_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=9))
    layouts = Target.parse("cpu:znver4").weight_layouts
    passed = str(module.with_weight_layouts(layouts).run(default_pipeline()))
    assert ("relax.quantized_matmul" in passed) == (level == 4)


def test_a_size_that_is_open_stays_where_others_are_resized() -> None:
    """As torch.onnx writes it of a batch: scales of 1, or sizes of which the first is that of the operand."""
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["a"], mode="linear"),
        helper.make_node("Shape", ["x"], ["kept"], end=2),
        helper.make_node("Concat", ["kept", "new"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["b"], mode="nearest", nearest_mode="floor"),
    ]
    x = _f(3, 2, 4, 5)
    weights = {"scales": np.array([1, 1, 1.5, 2], np.float32), "new": np.array([7, 3], np.int64)}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", 1, ["batch", 2, 4, 5])],
        [onnx.ValueInfoProto(name=n) for n in "ab"],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want in zip(backend.prepare(proto).run({"x": x}), session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_an_initializer_that_is_an_input_is_its_default() -> None:
    """A caller that gives it is not given results of the default."""
    node = helper.make_node("Add", ["x", "w"], ["y"])
    kinds = [helper.make_tensor_value_info(n, 1, [2]) for n in ("x", "w")]
    default = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    graph = helper.make_graph([node], "graph", kinds, [onnx.ValueInfoProto(name="y")], [default])
    prepared = backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    x, w = np.array([3, 4], np.float32), np.array([10, 20], np.float32)
    for given, wanted in (({"x": x}, [4, 6]), ({"x": x, "w": w}, [13, 24]), ({"x": x}, [4, 6])):
        np.testing.assert_array_equal(prepared.run(given)[0], wanted)


def _attention(operator: str, operands: dict[str, Array | None], **options: Any) -> Array:
    """The first result of one node."""
    kinds = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in operands.items() if a is not None]  # fmt: skip
    names = [n if a is not None else "" for n, a in operands.items()]
    node = helper.make_node(operator, names, ["y"], domain=_MICROSOFT, **options)
    graph = helper.make_graph([node], "graph", kinds, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_MICROSOFT, 1)]
    return backend.run_model(helper.make_model(graph, opset_imports=opsets), [a for a in operands.values() if a is not None])[0]


def test_packed_queries_keys_and_values() -> None:
    """ONNX Runtime takes them on GPUs alone: the same numbers as of separate ones."""
    parts = [_f(2, 3, 4, 8) for _ in range(3)]
    q, k, v = (p.reshape(2, 3, 32) for p in parts)
    bias = _f(96)
    want = _attention("MultiHeadAttention", {"q": q, "k": k, "v": v, "b": bias}, num_heads=4)
    whole = {"q": np.stack(parts, 3), "k": None, "v": None, "b": bias}
    half = {"q": q, "k": np.stack(parts[1:], 3), "v": None, "b": bias}
    for packed in (whole, half):
        np.testing.assert_allclose(_attention("MultiHeadAttention", packed, num_heads=4), want, rtol=1e-5, atol=1e-5)


def test_norms_of_queries_and_keys() -> None:
    """ONNX Runtime takes them on GPUs alone: the same numbers as of heads that are normed before."""
    q, k, v = _f(1, 3, 64), _f(1, 3, 32), _f(1, 3, 32)
    weights = {"qw": _f(16), "kw": _f(16)}

    def normed(x: Array, weight: Array) -> Array:
        heads = x.reshape(1, 3, -1, 16)
        return (heads / np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-5) * weight).reshape(x.shape).astype(np.float32)

    ends: dict[str, Array | None] = {"ends": np.array([2], np.int32), "total": np.array(3, np.int32)}
    empty: dict[str, Array | None] = {n: np.zeros((1, 2, 0, 16), np.float32) for n in ("pk", "pv")}
    absent: dict[str, Array | None] = {f"absent{i}": None for i in range(7)}
    plain: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2}
    given = {"q": q, "k": k, "v": v} | empty | ends | absent | weights
    got = _attention("GroupQueryAttention", given, qk_norm_epsilon=1e-5, **plain)
    before = {"q": normed(q, weights["qw"]), "k": normed(k, weights["kw"]), "v": v} | empty | ends
    np.testing.assert_allclose(got, _attention("GroupQueryAttention", before, **plain), rtol=1e-4, atol=1e-5)


def test_sequences_are_lists_of_arrays() -> None:
    """As inputs and results of the backend alone: a module has a fixed number of tensors."""
    graph = helper.make_graph(
        [helper.make_node("SequenceInsert", ["s", "x"], ["y"])],
        "graph",
        [helper.make_tensor_sequence_value_info("s", 1, None), helper.make_tensor_value_info("x", 1, [2])],
        [onnx.ValueInfoProto(name="y")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    prepared, given = backend.prepare(proto), [_f(2), _f(2, 3), _f(2)]
    for count in (0, 2):
        (found,) = prepared.run([given[:count], given[2]])
        assert [f.tolist() for f in found] == [g.tolist() for g in [*given[:count], given[2]]]
    with pytest.raises(rx.RelaxError, match="expected tensors as inputs, got 's' of sequence_type"):
        rx.from_onnx(proto)
