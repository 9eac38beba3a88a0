"""Sizes of heads that a model's caches leave open, as onnxruntime-genai's model builder writes them: attention tells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx

from .tensors import attribute_value

__all__ = ["head_sizes"]


def head_sizes(graph: onnx.GraphProto, inputs: Iterable[onnx.ValueInfoProto]) -> dict[str, int]:
    """The names of last dimensions of inputs that GroupQueryAttention reads as caches, with their sizes, where all agree."""
    caches = {v.name: v.type.tensor_type.shape.dim for v in inputs}
    types = {v.name: v.type.tensor_type.shape.dim for v in graph.value_info} | caches
    found: dict[str, set[int]] = {}
    for node in graph.node:
        if node.op_type != "GroupQueryAttention" or len(node.input) < 5:
            continue
        size = _size(node, types)
        for past in node.input[3:5]:
            dims = caches.get(past, [])
            if size is not None and len(dims) == 4 and dims[3].dim_param:
                found.setdefault(dims[3].dim_param, set()).add(size)
    return {name: sizes.pop() for name, sizes in found.items() if len(sizes) == 1}


def _size(node: onnx.NodeProto, types: Mapping[str, Any]) -> int | None:
    """That of a head, of queries alone or of queries, keys and values side by side; None where the model does not say it."""
    attributes = {a.name: attribute_value(a) for a in node.attribute}
    heads, groups = attributes.get("num_heads", 0), attributes.get("kv_num_heads", 0)
    count = heads if node.input[1] else heads + 2 * groups
    dims = types.get(node.input[0], [])
    width = dims[2].dim_value if len(dims) == 3 else 0
    return width // count if isinstance(count, int) and count > 0 and width > 0 and width % count == 0 else None
