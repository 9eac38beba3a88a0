"""ONNX models with changes in their bytes or in their fields: each imports, or is refused by a RelaxError, and what imports
verifies. One in eight of those is compiled, too.
"""

from __future__ import annotations

import random
from typing import Any

import onnx
from google.protobuf.message import DecodeError

import relaxir as rx
from support.onnx_models import MODELS

__all__ = ["check"]

_NUMBERS = (-1, 0, 1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**40, 2**62, -(2**62), -(2**31))
_OPERATORS = ("Add", "Conv", "Gather", "If", "Loop", "LSTM", "MatMul", "Pad", "Reshape", "Resize", "Scan", "Slice", "Split",
              "Softmax", "TopK", "Transpose", "Unsqueeze", "Where", "Nothing", "SequenceAt", "Cast", "QuantizeLinear", "Einsum",
              "AveragePool", "OneHot", "ScatterND", "Expand", "Tile", "LayerNormalization", "Attention", "NonZero",
              "Unique", "Compress", "NonMaxSuppression", "DequantizeLinear")  # fmt: skip


def check(seed: int) -> str | None:
    """None where the mutant imports."""
    source = random.Random(seed)
    proto = MODELS[source.choice(list(MODELS))]()
    if source.random() < 0.4:
        found = _changed_bytes(source, proto.SerializeToString())
        if found is None:
            return "no protobuf any more"
        proto = found
    else:
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            _change_field(source, proto)
    try:
        module = rx.from_onnx(proto)
        if source.random() < 0.125:
            rx.compile(module)
    except rx.RelaxError:
        return "refused"
    return None


def _changed_bytes(source: random.Random, content: bytes) -> onnx.ModelProto | None:
    changed = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 5))):
        place = source.randrange(len(changed))
        kind = source.randrange(3)
        if kind == 0:
            changed[place] = source.randrange(256)
        elif kind == 1:
            del changed[place : place + source.randrange(1, 9)]
        else:
            changed[place:place] = source.randbytes(source.randrange(1, 9))
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(bytes(changed))
    except DecodeError:
        return None
    return proto


def _change_field(source: random.Random, proto: onnx.ModelProto) -> None:
    graph = proto.graph
    nodes = list(graph.node)
    inner = [a.g for n in nodes for a in n.attribute if a.HasField("g")]
    target = source.choice([graph, *inner]) if inner else graph
    change = source.choice((_node, _attribute, _tensor, _value, _opset, _order))
    change(source, proto, target)


def _names(graph: onnx.GraphProto) -> list[str]:
    names = [i for n in graph.node for i in (*n.input, *n.output)]
    return [*names, *(t.name for t in graph.initializer), "", "nothing"]


def _node(source: random.Random, proto: onnx.ModelProto, graph: onnx.GraphProto) -> None:
    node = source.choice(graph.node)
    kind = source.randrange(6)
    if kind == 0:
        node.op_type = source.choice(_OPERATORS)
    elif kind == 1 and node.input:
        node.input[source.randrange(len(node.input))] = source.choice(_names(graph))
    elif kind == 2:
        node.input.append(source.choice(_names(graph)))
    elif kind == 3 and node.input:
        del node.input[-1]
    elif kind == 4 and node.output:
        node.output[source.randrange(len(node.output))] = source.choice(_names(graph))
    else:
        node.domain = source.choice(("", "com.microsoft", "ai.onnx.ml", "nobody"))


def _attribute(source: random.Random, proto: onnx.ModelProto, graph: onnx.GraphProto) -> None:
    found = [(n, a) for n in graph.node for a in n.attribute]
    if not found:
        return
    node, attribute = source.choice(found)
    kind = source.randrange(4)
    if kind == 0:
        node.attribute.remove(attribute)
    elif kind == 1 and attribute.ints:
        attribute.ints[source.randrange(len(attribute.ints))] = source.choice(_NUMBERS)
    elif kind == 2 and attribute.ints:
        attribute.ints.append(source.choice(_NUMBERS))
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = source.choice(_NUMBERS)
    else:
        name = attribute.name
        attribute.Clear()
        attribute.CopyFrom(onnx.helper.make_attribute(name, source.choice((1, 1.5, "text", [1, 2], [0.5]))))


def _tensor(source: random.Random, proto: onnx.ModelProto, graph: onnx.GraphProto) -> None:
    if not graph.initializer:
        return
    tensor = source.choice(graph.initializer)
    kind = source.randrange(6)
    if kind == 0:
        tensor.data_type = source.randrange(0, 30)
    elif kind == 1 and tensor.dims:
        tensor.dims[source.randrange(len(tensor.dims))] = source.choice(_NUMBERS)
    elif kind == 2:
        tensor.dims.append(source.choice(_NUMBERS))
    elif kind == 3:
        tensor.raw_data = tensor.raw_data[: source.randrange(len(tensor.raw_data) + 1)]
    elif kind == 4:
        graph.initializer.remove(tensor)
    else:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", source.choice(("../secret", "/etc/passwd", "", "data", "a\0b"))


def _value(source: random.Random, proto: onnx.ModelProto, graph: onnx.GraphProto) -> None:
    values: list[Any] = [*graph.input, *graph.output]
    if not values:
        return
    value = source.choice(values)
    kind = source.randrange(5)
    dims = value.type.tensor_type.shape.dim
    if kind == 0:
        value.name = source.choice(_names(graph))
    elif kind == 1 and dims:
        source.choice(dims).dim_value = source.choice(_NUMBERS)
    elif kind == 2 and dims:
        source.choice(dims).dim_param = source.choice(
            ("n", "n + 1", "2 * n", "n // 0", "é", "-", "x" * 300, "__import__('os')")
        )
    elif kind == 3:
        value.type.tensor_type.elem_type = source.randrange(0, 30)
    else:
        value.ClearField("type")


def _opset(source: random.Random, proto: onnx.ModelProto, graph: onnx.GraphProto) -> None:
    if proto.opset_import:
        source.choice(proto.opset_import).version = source.choice((-1, 0, 1, 6, 7, 11, 13, 20, 26, 999, 2**40))


def _order(source: random.Random, proto: onnx.ModelProto, graph: onnx.GraphProto) -> None:
    nodes = list(graph.node)
    source.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)
