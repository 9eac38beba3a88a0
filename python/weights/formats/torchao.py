"""torchao's tensors in safetensors: integers or narrow floats with scales, as transformers saves quantized models.

A weight ``a.weight`` is ``a._weight_qdata`` ``[n, k]``, ``a._weight_scale`` and, of integers, ``a._weight_zero_point``, with an
element for each block; the file's metadata has its class, and the dtype to which it is rounded, as JSON. What inputs are
multiplied by (``a._weight_act_pre_scale`` ``[k]``, of AWQ and SmoothQuant) the columns of the weight are multiplied by here.
Of some classes there are other tensors, see :mod:`.torchao_floats`.
Source: ``torchao.prototype.safetensors``, ``dequantize_affine``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .config import StoredLayer, check_companions, layers
from .encoded import EncodedSource, EncodedWeight, RowPlace
from .grouped import FLOATS
from .torchao_floats import CLASSES, block_weight
from .weight_math import MathValue, constant, is_integer

__all__ = ["decoded"]

# What does where a class cannot be read.
_INSTEAD = "load the model by transformers, export it by torch.export, and import the program"

#: The classes, and the tensors of each that are read, or say what activations are quantized to, which is not done here.
_CLASSES: dict[str, tuple[str, ...]] = {
    "Int8Tensor": ("qdata", "scale", "zero_point", "act_pre_scale", "act_quant_scale", "act_quant_zero_point"),
    "IntxUnpackedToInt8Tensor": ("qdata", "scale", "zero_point"),
    "Float8Tensor": ("qdata", "scale"),
    "MXTensor": ("qdata", "scale"),
    "NVFP4Tensor": ("qdata", "scale", "per_tensor_scale", "act_per_tensor_scale"),
}
#: Why a weight is decoded whose columns have factors of their own.
_PRE_SCALED = "a factor for each input (act_pre_scale)"

_DTYPES = {"float32": None, "bfloat16": "bf16", "float16": "f16"}


def decoded(source: TensorSource) -> EncodedSource:
    """The weights of a torchao checkpoint. Raises RelaxError, with file and tensor, where one is of another class or shape."""
    for name, text in source.metadata.items():
        if '"_type"' in text:  # also of what has other tensors than those below
            _class(source, name)
    found = list(layers(source, "_qdata"))
    kinds = {layer.prefix: _class(source, _name(layer))[0] for layer in found}
    for kind in dict.fromkeys(kinds.values()):
        known = _CLASSES.get(kind, _CLASSES["Int8Tensor"])  # where the metadata do not say it
        check_companions(source, "_", known, {prefix for prefix, k in kinds.items() if k == kind})
    return EncodedSource(source, {_name(layer): _weight(layer, _name(layer)) for layer in found}, "torchao")


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
        if q.dtype != np.int8:
            raise layer.error("_zero_point", f"expected none beside {q}, got one")
        layer.expect_shape("_zero_point", layer.spec("_zero_point", ("int8",)), scale.shape)
        stored["z"] = layer.name("_zero_point")
    if counts[0] > 1:
        rows |= {role: RowPlace(0, n // counts[0]) for role in stored if role != "q"}
    what = "bits" if q.dtype == np.int8 else "bits, floats"
    kept = f"8 {what}, a scale{' and zero point' if 'z' in stored else ''} per {n // counts[0]} x {k // counts[1]}"
    unit, beside = n // counts[0], layer.names("_act_quant_scale", "_act_quant_zero_point")
    if layer.has("_act_pre_scale"):
        layer.expect_shape("_act_pre_scale", layer.spec("_act_pre_scale", FLOATS), (k,), (1, k), (), (1,))
        stored["p"] = layer.name("_act_pre_scale")
        return EncodedWeight((n, k), stored, _math, rows, unit, None, _PRE_SCALED, beside, rounded)
    return EncodedWeight((n, k), stored, _math, rows, unit, kept, beside=beside, dtype=rounded)


def _math(t: Mapping[str, MathValue]) -> MathValue:
    q, scale = t["q"], t["s"].astype("f32")
    is_bytes, zero = is_integer(q.dtype), t.get("z", constant(np.array(0, np.int8)))
    wide = q.dequantize(scale, zero) if is_bytes else q.scaled(scale)
    if "p" not in t:
        return wide
    factor = t["p"].astype("f32")
    return wide * (factor.reshape(1, q.shape[1]) if prod(factor.shape) == q.shape[1] else factor.reshape())
