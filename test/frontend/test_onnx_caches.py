"""Caches of keys and values as state: token by token the numbers that ONNX Runtime gives, which hands caches around."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxir as rx

Array = np.ndarray[Any, Any]
_HEADS, _SIZE, _WORDS, _HIDDEN = 2, 16, 20, 32
_NODE, _INPUT = helper.make_node, helper.make_tensor_value_info


def _model(nodes: list[onnx.NodeProto], weights: dict[str, Any], past: str, present: str, mask: str) -> onnx.ModelProto:
    """Embedding, products that give q, k and v, the nodes, and a product; ``h`` is what the nodes give."""
    rng = np.random.default_rng(0)
    names = {"emb": (_WORDS, _HIDDEN), "wq": (_HIDDEN, _HIDDEN), "wk": (_HIDDEN, _HIDDEN), "wv": (_HIDDEN, _HIDDEN)}
    arrays = {n: rng.standard_normal(s).astype(np.float32) * 0.3 for n, s in (names | {"wo": (_HIDDEN, _WORDS)}).items()}
    first = [_NODE("Gather", ["emb", "input_ids"], ["x"])] + [_NODE("MatMul", ["x", f"w{n}"], [n]) for n in "qkv"]
    last = [_NODE("MatMul", ["h", "wo"], ["logits"])]
    ids = [
        _INPUT("input_ids", TensorProto.INT64, ["batch", "length"]),
        _INPUT("attention_mask", TensorProto.INT64, ["batch", mask]),
    ]
    shapes = [["batch", _HEADS, size, _SIZE] for size in (past, present)]
    inputs = [_INPUT(f"past_key_values.0.{n}", TensorProto.FLOAT, shapes[0]) for n in ("key", "value")]
    outputs = [_INPUT(f"present.0.{n}", TensorProto.FLOAT, shapes[1]) for n in ("key", "value")]
    logits = _INPUT("logits", TensorProto.FLOAT, ["batch", "length", _WORDS])
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in (arrays | weights).items()]
    graph = helper.make_graph([*first, *nodes, *last], "graph", [*ids, *inputs], [logits, *outputs], tensors)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _concatenated() -> onnx.ModelProto:
    """As Optimum and torch.onnx write it: concatenations, and a mask of shapes."""
    nodes = [
        _NODE("Shape", ["input_ids"], ["length"], start=1, end=2),
        _NODE("Shape", ["attention_mask"], ["total"], start=1, end=2),
        _NODE("Squeeze", ["total"], ["to"]),
        _NODE("Sub", ["total", "length"], ["before"]),
        _NODE("Squeeze", ["before"], ["from"]),
        _NODE("Range", ["from", "to", "one"], ["rows"]),
        _NODE("Range", ["zero", "to", "one"], ["columns"]),
        _NODE("Unsqueeze", ["rows", "last"], ["column"]),
        _NODE("LessOrEqual", ["columns", "column"], ["seen"]),
        _NODE("Where", ["seen", "nothing", "hidden"], ["bias"]),
        *(_NODE("Reshape", [n, "heads"], [f"{n}r"]) for n in "qkv"),
        *(_NODE("Transpose", [f"{n}r"], [f"{n}t"], perm=[0, 2, 1, 3]) for n in "qkv"),
        _NODE("Concat", ["past_key_values.0.key", "kt"], ["present.0.key"], axis=-2),
        _NODE("Concat", ["past_key_values.0.value", "vt"], ["present.0.value"], axis=2),
        _NODE("Transpose", ["present.0.key"], ["turned"], perm=[0, 1, 3, 2]),
        _NODE("MatMul", ["qt", "turned"], ["plain"]),
        _NODE("Add", ["plain", "bias"], ["scores"]),
        _NODE("Softmax", ["scores"], ["weights"], axis=-1),
        _NODE("MatMul", ["weights", "present.0.value"], ["mixed"]),
        _NODE("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        _NODE("Reshape", ["back", "flat"], ["h"]),
    ]
    numbers = {"zero": 0, "one": 1, "last": [1], "heads": [0, 0, _HEADS, _SIZE], "flat": [0, 0, _HIDDEN]}
    weights: dict[str, Any] = {n: np.array(v, np.int64) for n, v in numbers.items()}
    weights |= {"nothing": np.float32(0), "hidden": np.float32(-1e9)}
    return _model(nodes, weights, "past", "past + length", "past + length")


def _grouped() -> onnx.ModelProto:
    """As the model builder of onnxruntime-genai writes it."""
    names = [f"past_key_values.0.{n}" for n in ("key", "value")], [f"present.0.{n}" for n in ("key", "value")]
    operands = ["q", "k", "v", *names[0], "ends", "total", "cos", "sin"]
    how: dict[str, Any] = {"domain": "com.microsoft", "num_heads": _HEADS, "kv_num_heads": _HEADS, "do_rotary": 1}
    nodes = [
        _NODE("ReduceSum", ["attention_mask", "one"], ["counts"], keepdims=0),
        _NODE("Sub", ["counts", "one"], ["wide"]),
        _NODE("Cast", ["wide"], ["ends"], to=TensorProto.INT32),
        _NODE("Shape", ["attention_mask"], ["shape"]),
        _NODE("Gather", ["shape", "second"], ["count"]),
        _NODE("Cast", ["count"], ["total"], to=TensorProto.INT32),
        _NODE("GroupQueryAttention", operands, ["h", *names[1]], **how),
    ]
    angles = np.outer(np.arange(40), 0.5 ** np.arange(_SIZE // 2)).astype(np.float32)
    weights = {"one": np.array([1], np.int64), "second": np.array(1, np.int64), "cos": np.cos(angles), "sin": np.sin(angles)}
    return _model(nodes, weights, "past", "total", "total")


class _Runtime:
    """ONNX Runtime, with the caches that it gave last."""

    def __init__(self, path: Path, batch: int):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        empty = np.zeros((batch, _HEADS, 0, _SIZE), np.float32)
        self.caches = {f"past_key_values.0.{n}": empty for n in ("key", "value")}

    def __call__(self, **inputs: Array) -> Array:
        logits, *caches = self.session.run(None, inputs | self.caches)
        self.caches = dict(zip(self.caches, caches, strict=True))
        return logits


def _steps(batch: int, lengths: tuple[int, ...]) -> list[dict[str, Array]]:
    rng, total, found = np.random.default_rng(1), 0, list[dict[str, Array]]()
    for length in lengths:
        total += length
        mask = np.ones((batch, total), np.int64)
        found.append({"input_ids": rng.integers(0, _WORDS, (batch, length)), "attention_mask": mask})
    return found


@pytest.mark.parametrize(("make", "batch"), [(_concatenated, 2), (_grouped, 1)])
def test_calls_continue_where_the_last_one_ended(make: Any, batch: int, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(make(), path)
    module = rx.from_onnx(path, dims={"batch": batch}, cache_length=12)
    assert [s.name for s in module.functions["main"].inputs] == ["input_ids", "attention_mask", *_Runtime(path, 1).caches]
    executable = rx.compile(module)
    executable.bind(executable.prepare(path))
    for _ in range(2):
        runtime = _Runtime(path, batch)
        for inputs in _steps(batch, (5, 1, 1)):
            # Sums of up to 32 products in another order.
            np.testing.assert_allclose(executable(**inputs), runtime(**inputs), rtol=1e-4, atol=1e-5)
        for name, cache in runtime.caches.items():
            np.testing.assert_allclose(np.asarray(executable.state[name])[:, :, :7], cache, rtol=1e-4, atol=1e-5)
        executable.reset_state()
    with pytest.raises(rx.RelaxError, match="run-time check failed"):
        executable(**_steps(batch, (13,))[0])


@pytest.mark.parametrize("make", [_concatenated, _grouped])
@pytest.mark.parametrize("total", ["past + length", "total"])
def test_less_tokens_in_all_than_new_ones_are_refused(make: Any, total: str) -> None:
    """A mask of the new tokens alone; keys were written to the last places of the cache."""
    proto = make()
    proto.graph.input[1].type.tensor_type.shape.dim[1].dim_param = total
    dims: dict[str, int | str] = {"batch": 1} | ({"past": "total - length"} if total == "total" else {})
    executable = rx.compile(rx.from_onnx(proto, dims=dims, cache_length=12))
    raw = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    executable.bind(executable.prepare({n: raw[n] for n in executable.manifest.raw_weights}))
    for counted in (1, 0):
        with pytest.raises(rx.RelaxError, match=r"to be 0 or more|to count new tokens, too|for some past"):
            executable(input_ids=np.ones((1, 2), np.int64), attention_mask=np.ones((1, counted), np.int64))
        executable.reset_state()
    executable(input_ids=np.ones((1, 2), np.int64), attention_mask=np.ones((1, 2), np.int64))


@pytest.mark.parametrize("make", [_concatenated, _grouped])
def test_entries_share_weights_and_state(make: Any, tmp_path: Path) -> None:
    """A prompt of any length, and one token, for which code is written."""
    path = tmp_path / "model.onnx"
    onnx.save(make(), path)
    entries: dict[str, dict[str, int | str]] = {"prefill": {}, "decode": {"length": 1}}
    module = rx.from_onnx(path, dims={"batch": 1}, cache_length=12, entries=entries)
    assert [str(module.functions[n].inputs[0]) for n in entries] == ["i64[1, length]", "i64[1, 1]"]
    executable = rx.compile(module)
    executable.bind(executable.prepare(path))
    state = executable.new_state()
    runtime = _Runtime(path, 1)
    for inputs, entry in zip(_steps(1, (5, 1, 1)), ("prefill", "decode", "decode"), strict=True):
        got = executable(**inputs, state=state, entry=entry)
        np.testing.assert_allclose(got, runtime(**inputs), rtol=1e-4, atol=1e-5)
    with pytest.raises(rx.RelaxError, match="expected entries, as"):
        rx.from_onnx(path, entries={})


def test_rows_of_a_batch_may_be_shorter() -> None:
    """The first row has five tokens, the second three and two that are none; what follows is at places of its own."""
    proto = _grouped()
    executable = rx.compile(rx.from_onnx(proto, dims={"batch": 2}, cache_length=8))
    raw = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    executable.bind(executable.prepare({n: raw[n] for n in executable.manifest.raw_weights}))
    single = rx.compile(rx.from_onnx(proto, dims={"batch": 1}, cache_length=8))
    single.bind(single.prepare({n: raw[n] for n in single.manifest.raw_weights}))
    ids, new = np.array([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0]]), np.array([[11], [12]])
    masks = [np.array([[1] * n + [0] * (t - n) for n in ends]) for ends, t in (([5, 3], 5), ([6, 4], 6))]
    executable(input_ids=ids, attention_mask=masks[0])
    both = executable(input_ids=new, attention_mask=masks[1])
    for row, count in ((0, 5), (1, 3)):
        state = single.new_state()
        single(input_ids=ids[row : row + 1, :count], attention_mask=np.ones((1, count), np.int64), state=state)
        alone = single(input_ids=new[row : row + 1], attention_mask=np.ones((1, count + 1), np.int64), state=state)
        np.testing.assert_allclose(both[row], alone[0], rtol=1e-4, atol=1e-5)


def test_rows_that_are_longer_than_the_cache_are_refused() -> None:
    """What is behind the last place of a row is another row's."""
    proto = _grouped()
    executable = rx.compile(rx.from_onnx(proto, dims={"batch": 2}, cache_length=4))
    raw = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    executable.bind(executable.prepare({n: raw[n] for n in executable.manifest.raw_weights}))
    with pytest.raises(rx.RelaxError, match=r"expected indices in \[0, 4\)"):
        executable(input_ids=np.ones((2, 2), np.int64), attention_mask=np.array([[4, 0, 1], [1, 1, 0]]))


def test_what_state_cannot_be_made_of() -> None:
    refused: list[tuple[onnx.ModelProto, dict[str, Any], str]] = [
        (_grouped(), {"cache_length": 8}, "expected a cache 'past_key_values.0.key' of known sizes, got 'batch'"),
        (_grouped(), {"cache_length": 0, "dims": {"batch": 1}}, "expected a cache_length of 1 token or more, got 0"),
        (_grouped(), {"dims": {"rows": 1}}, "expected dims among batch, length, past, total, got 'rows'"),
        (_grouped(), {"dims": {"batch": -1}}, "expected sizes from 0 on"),
        (_grouped(), {"cache_length": 8, "dims": {"batch": 1, "past": 3}}, "expected a cache of any number of tokens"),
    ]
    other = _concatenated()
    del other.graph.output[1:]
    refused.append((other, {"cache_length": 8}, "expected caches, as inputs"))
    unknown = _concatenated()
    unknown.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "total"
    why = "expected inputs whose shapes determine 'past', how many tokens 'past_key_values.0.key' has"
    refused.append((unknown, {"cache_length": 8, "dims": {"batch": 1}}, why))
    for proto, options, message in refused:
        with pytest.raises(rx.RelaxError, match=re.escape(message)):
            rx.from_onnx(proto, **options)
    stated = {"batch": 1, "past": "total - length"}
    assert rx.from_onnx(unknown, cache_length=8, dims=stated).functions["main"].symbols == ("length", "total")


def _with_open_heads() -> onnx.ModelProto:
    """As newer versions of onnxruntime-genai's model builder leave the size of heads open."""
    proto = _grouped()
    for value in (*proto.graph.input[2:], *proto.graph.output[1:]):
        value.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
    return proto


def test_sizes_of_heads_are_those_of_attention() -> None:
    proto = _with_open_heads()
    with pytest.raises(rx.RelaxError, match="of known sizes, got 'kv_cache_dim'; dims="):
        rx.from_onnx(proto, dims={"batch": 1}, cache_length=8)
    proto.graph.value_info.append(_INPUT("q", TensorProto.FLOAT, ["batch", "length", _HIDDEN]))
    (function,) = rx.from_onnx(proto, dims={"batch": 1}, cache_length=8).functions.values()
    assert [str(i) for i in function.inputs[2:]] == [f"f32[1, {_HEADS}, 8, {_SIZE}]"] * 2
    (function,) = rx.from_onnx(proto).functions.values()
    assert [str(i) for i in function.inputs[2:]] == [f"f32[batch, {_HEADS}, past, {_SIZE}]"] * 2


def test_forms_of_attention_that_are_not_taken_are_named() -> None:
    for options, message in (
        ({"k_quant_type": "PER_TENSOR"}, "without k_quant_type"),
        ({"kv_cache_bit_width": 8}, "without kv_cache_bit_width"),
        ({"sliding_window_cache": 1, "local_window_size": 4}, "or with a cache that is state, which keeps all"),
    ):
        proto = _grouped()
        node = next(n for n in proto.graph.node if n.op_type == "GroupQueryAttention")
        node.attribute.extend(helper.make_attribute(k, v) for k, v in options.items())
        with pytest.raises(rx.RelaxError, match=message):
            rx.from_onnx(proto)


def test_windows_of_a_cache_are_read_from_one_that_keeps_all() -> None:
    proto = _grouped()
    node = next(n for n in proto.graph.node if n.op_type == "GroupQueryAttention")
    node.attribute.extend([helper.make_attribute("sliding_window_cache", 1), helper.make_attribute("local_window_size", 3)])
    executable = rx.compile(rx.from_onnx(proto, dims={"batch": 1}, cache_length=12))
    raw = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    executable.bind(executable.prepare({n: raw[n] for n in executable.manifest.raw_weights}))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    caches = {f"past_key_values.0.{n}": np.zeros((1, _HEADS, 4, _SIZE), np.float32) for n in ("key", "value")}
    for inputs in _steps(1, (5, 1, 1)):
        logits, *found = session.run(None, inputs | caches)
        caches = dict(zip(caches, found, strict=True))
        np.testing.assert_allclose(executable(**inputs), logits, rtol=1e-4, atol=1e-5)


def test_sizes_that_no_input_determines_are_symbols_of_their_own() -> None:
    """A model may write the size of an input by others that it does not name."""
    kinds = [_INPUT("x", TensorProto.FLOAT, ["n // 2", 3]), _INPUT("y", TensorProto.FLOAT, ["m * 2", 3])]
    graph = helper.make_graph([_NODE("Abs", ["x"], ["a"]), _NODE("Abs", ["y"], ["b"])], "graph", kinds,
                              [onnx.ValueInfoProto(name=n) for n in "ab"])  # fmt: skip
    executable = rx.compile(rx.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])))
    x, y = np.full((3, 3), -1, np.float32), np.full((4, 3), -2, np.float32)
    a, b = executable(x, y)
    np.testing.assert_array_equal(a, -x)
    np.testing.assert_array_equal(b, -y)
