"""bitsandbytes, four bits (NF4 and FP4): a table of 16 values, and a scale per block of elements in row-major order.

``weight`` u8 ``[ceil(N K / 2), 1]``, the high nibble first; ``weight.quant_map`` f32 ``[16]``; ``weight.absmax`` f32 per
block, or u8 through ``weight.nested_quant_map`` and ``weight.nested_absmax`` plus an offset; the rest is JSON in
``weight.quant_state.bitsandbytes__nf4``, of which the offset is a tensor ``weight.nested_offset`` here: checkpoints of a model
differ in it. The product is rounded to the dtype that the JSON names. The bytes of ``weight`` may be those of another dtype
(``bnb_4bit_quant_storage``). Of eight bits see :mod:`.llm_int8`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .byte_tensors import ByteTensors
from .config import StoredLayer, layers
from .encoded import EncodedSource, EncodedWeight, RowPlace
from .grouped import SHORTEST
from .llm_int8 import int8_weights
from .weight_math import MathValue, constant

__all__ = ["decoded"]

_OFFSET = ".weight.nested_offset"

#: Dtypes that the bytes of weights are stored as.
_STORAGE = ("bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64")

_DTYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


class _State(NamedTuple):
    """What the JSON says."""

    shape: tuple[int, int]
    dtype: str
    block: int
    nested_block: int
    offset: float


def decoded(source: TensorSource) -> EncodedSource:
    """The layers of a checkpoint of bitsandbytes in four or eight bits.

    Raises:
        RelaxError: with file and tensor, where one is not as the format has it.
    """
    ends = [f".weight.quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4")]
    states = {layer.prefix: (end, _state(layer, end)) for end in ends for layer in layers(source, end)}
    stored = _in_bytes(source, {prefix: state for prefix, (_, state) in states.items()})
    weights = {f"{at}.weight": _weight(StoredLayer(stored, at), end, state) for at, (end, state) in states.items()}
    return EncodedSource(stored, weights | int8_weights(source), "bitsandbytes")


def _in_bytes(source: TensorSource, states: Mapping[str, _State]) -> TensorSource:
    """The source with weights as bytes and offsets as tensors, of the layers of these names; itself, where it is so."""
    found = [StoredLayer(source, prefix) for prefix in states]
    columns = [layer.name(".weight") for layer in found if layer.has(".weight") and _is_wide(layer)]
    nested = [layer for layer in found if layer.has(".weight.nested_absmax")]
    taken = next((layer for layer in nested if layer.has(_OFFSET)), None)
    if taken is not None:
        raise taken.error(_OFFSET, "expected the offset in the state of the quantized matrix, got a tensor, too")
    offsets = {layer.name(_OFFSET): np.array(states[layer.prefix].offset, np.float32) for layer in nested}
    return ByteTensors(source, columns, offsets) if columns or offsets else source


def _is_wide(layer: StoredLayer) -> bool:
    """Whether the bytes of a weight are stored as another dtype, in a column or row."""
    try:
        spec = layer.source.spec(layer.name(".weight"))
    except RelaxError:  # of a dtype that NumPy lacks, which is said where the weight is looked at
        return False
    return spec.dtype.name in _STORAGE and len(spec.shape) == 2 and 1 in spec.shape


def _state(layer: StoredLayer, end: str) -> _State:
    layer.spec(end, ("uint8",), 1)
    text = layer.source.get(layer.name(end)).tobytes()
    try:
        found: Any = json.loads(text)
        n, k = found["shape"]
        numbers = (n, k, found["blocksize"], found.get("nested_blocksize", 1))
        if not all(type(v) is int and v > 0 for v in numbers):
            raise ValueError(f"sizes {numbers}")
        return _State((n, k), _DTYPES[found["dtype"]], numbers[2], numbers[3], float(found.get("nested_offset", 0)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise layer.error(
            end, f"expected the state of a quantized matrix in JSON, got {type(error).__name__}: {error}"
        ) from None


def _weight(layer: StoredLayer, end: str, state: _State) -> EncodedWeight:
    count = state.shape[0] * state.shape[1]
    blocks = -(-count // state.block)
    layer.expect_shape(".weight", layer.spec(".weight", ("uint8",), 2), (-(-count // 2), 1), (1, -(-count // 2)))
    layer.expect_shape(".weight.quant_map", layer.spec(".weight.quant_map", ("float32",), 1), (16,))
    absmax = layer.spec(".weight.absmax", ("float32", "uint8"), 1)
    layer.expect_shape(".weight.absmax", absmax, (blocks,))
    names = ["weight", "weight.absmax", "weight.quant_map"]
    elements = {"weight": 2, "weight.absmax": state.block}
    if absmax.dtype == np.uint8:
        nested = layer.spec(".weight.nested_absmax", ("float32",), 1)
        layer.expect_shape(".weight.nested_absmax", nested, (-(-blocks // state.nested_block),))
        layer.expect_shape(".weight.nested_quant_map", layer.spec(".weight.nested_quant_map", ("float32",), 1), (256,))
        names += ["weight.nested_absmax", "weight.nested_quant_map", _OFFSET[1:]]
        elements["weight.nested_absmax"] = state.block * state.nested_block
    k = state.shape[1]
    rows = {name: RowPlace(0, Fraction(each, k)) for name, each in elements.items()}
    is_column = layer.source.spec(layer.name(".weight")).shape[1] == 1 and k > 1  # rows of one input share bytes
    stored = {name: layer.name(f".{name}") for name in names}
    block = gcd(state.block, k)  # rows need not begin where blocks do
    reason = "" if block >= SHORTEST or block == k else f"blocks of {state.block} across rows of {k}"
    narrow = None if reason else f"codes of 4 bits, a scale per {block}"
    math, beside = partial(_math, state=state), layer.names(end)
    return EncodedWeight(state.shape, stored, math, rows if is_column else {}, 1, narrow, reason, beside, state.dtype)


def _math(t: Mapping[str, MathValue], state: _State) -> MathValue:
    count, k = max(t["weight"].shape), state.shape[1]
    nibbles = t["weight"].reshape(count, 1).unpack_nibbles(1, 2).take(constant(np.array([1, 0], np.int32)), 1)
    size = min(2 * count // k, state.shape[0]) * k  # the last nibble may be no element, and looks like a row of one input
    codes = nibbles.reshape(2 * count).part(0, 0, size).reshape(size // k, k)
    block = gcd(state.block, k)  # rows begin where blocks do
    scales = _scales(t, state).repeat(state.block // block, 0).part(0, 0, size // block).reshape(size // k, k // block)
    return codes.look_up(t["weight.quant_map"]).scaled(scales, state.dtype)


def _scales(t: Mapping[str, MathValue], state: _State) -> MathValue:
    absmax = t["weight.absmax"]
    if absmax.dtype == np.float32:
        return absmax
    blocks = absmax.shape[0]
    nested = t["weight.nested_absmax"].repeat(state.nested_block, 0).part(0, 0, blocks)
    wide = absmax.look_up(t["weight.nested_quant_map"]) * nested
    return wide + t[_OFFSET[1:]]
