"""torchao's tensors in safetensors: integers or narrow floats with scales, as transformers saves quantized models.

A weight ``a.weight`` is ``a._weight_qdata`` ``[n, k]``, ``a._weight_scale`` and, of integers, ``a._weight_zero_point``, with an
element for each block; the file's metadata has its class, and the dtype to which it is rounded, as JSON. Of some classes there
are other tensors, see :mod:`.torchao_floats`.
Source: ``torchao.prototype.safetensors``, ``dequantize_affine``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .config import StoredLayer, layers
from .encoded import EncodedSource, EncodedWeight, RowPlace
from .grouped import FLOATS
from .torchao_floats import CLASSES, block_weight
from .weight_math import MathValue, constant, is_integer

__all__ = ["decoded"]

# What does where a class cannot be read.
_INSTEAD = "load the model by transformers, export it by torch.export, and import the program"

_CLASSES = ("Int8Tensor", "IntxUnpackedToInt8Tensor", "Float8Tensor", *CLASSES)
_DTYPES = {"float32": None, "bfloat16": "bf16", "float16": "f16"}


def decoded(source: TensorSource) -> EncodedSource:
    """The weights of a torchao checkpoint. Raises RelaxError, with file and tensor, where one is of another class or shape."""
    for name, text in source.metadata.items():
        if '"_type"' in text:  # also of what has other tensors than those below
            _class(source, name)
    return EncodedSource(source, {_name(layer): _weight(layer, _name(layer)) for layer in layers(source, "_qdata")}, "torchao")


def _name(layer: StoredLayer) -> str:
    """The weight's own: ``a.weight`` of ``a._weight``."""
    module, _, last = layer.prefix.rpartition(".")
    return f"{module}.{last.removeprefix('_')}" if module else last.removeprefix("_")


def _class(source: TensorSource, name: str) -> tuple[str, Mapping[str, Any]]:
    """The class of a weight, and what the metadata say of it; of a plain tensor, or where they say nothing, nothing.

    Raises:
        RelaxError: it is of a class that is not known here, or no JSON object.
    """
    text = source.metadata.get(name)
    try:
        found: Any = json.loads(text) if text is not None else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RelaxError(f"'{source.path}': metadata of tensor {name!r}: expected a JSON object, got {text!r}")
    kind, data = found.get("_type", "Tensor"), found.get("_data")
    if kind != "Tensor" and kind not in _CLASSES:
        wanted = f"expected a class of torchao out of {', '.join(_CLASSES)}"
        raise RelaxError(f"'{source.path}': tensor {name!r}: {wanted}, got {kind!r}: {_INSTEAD}")
    return kind, data if isinstance(data, dict) and kind != "Tensor" else {}


def _weight(layer: StoredLayer, name: str) -> EncodedWeight:
    kind, data = _class(layer.source, name)
    dtype = data.get("dtype", data.get("orig_dtype"))
    rounded = _DTYPES.get(str(dtype.get("_data"))) if isinstance(dtype, dict) else None
    if kind in CLASSES:
        return block_weight(layer, kind, data, rounded)
    q = layer.spec("_qdata", ("int8", "float8_e4m3fn", "float8_e5m2"), 2)
    n, k = q.shape
    scale = layer.spec("_scale", FLOATS)
    counts = (scale.shape[0], scale.shape[1]) if len(scale.shape) == 2 else (1, 1)
    if len(scale.shape) not in (0, 2) or n % counts[0] or k % counts[1]:
        raise layer.error("_scale", f"expected a number of blocks that divides each of {[n, k]}, got {list(scale.shape)}")
    stored, rows = {"q": layer.name("_qdata"), "s": layer.name("_scale")}, {"q": RowPlace(0)}
    if layer.has("_zero_point"):
        layer.expect_shape("_zero_point", layer.spec("_zero_point", ("int8",)), scale.shape)
        stored["z"] = layer.name("_zero_point")
    if counts[0] > 1:
        rows |= {role: RowPlace(0, n // counts[0]) for role in stored if role != "q"}
    what = "bits" if q.dtype == np.int8 else "bits, floats"
    kept = f"8 {what}, a scale{' and zero point' if 'z' in stored else ''} per {n // counts[0]} x {k // counts[1]}"
    return EncodedWeight((n, k), stored, _math, rows, n // counts[0], kept, dtype=rounded)


def _math(t: Mapping[str, MathValue]) -> MathValue:
    q, scale = t["q"], t["s"].astype("f32")
    if not is_integer(q.dtype):
        return q.scaled(scale)
    return q.dequantize(scale, t.get("z", constant(np.array(0, np.int8))))
