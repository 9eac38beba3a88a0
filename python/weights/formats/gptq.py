"""GPTQ, as AutoGPTQ, GPTQModel and auto-round write it: 4 and 8 bits, groups, act-order, both conventions of zero points.

``qweight`` i32 ``[K / per, N]``, ``qzeros`` i32 ``[K / g, N / per]``, ``scales`` ``[K / g, N]``, ``g_idx`` i32 ``[K]``
(perhaps), with ``per`` fields in a word; ``w = (q - z) * s``. Version 1 stores ``z - 1``, version 2 ``z``. What metadata says
of the version is often wrong, but symmetric files show it: all zero points are in the middle. Layers may have bits and groups
of their own (:mod:`.layer_numbers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ...dialect.errors import RelaxError
from ..arrays import Array
from ..source import TensorSource
from . import awq
from .config import StoredLayer, layers, quantization
from .encoded import EncodedSource, EncodedWeight, InOrder, RowPlace
from .grouped import (
    FLOATS,
    UNEQUAL,
    are_whole,
    check_groups,
    fields,
    grouped,
    is_regular,
    order_of,
    too_short,
    words,
)
from .layer_numbers import LayerNumbers, Numbers
from .weight_math import MathValue

__all__ = ["decoded"]

_BITS = (4, 8)


def decoded(source: TensorSource) -> EncodedSource:
    """The layers of a GPTQ checkpoint. Raises RelaxError, with file and tensor, where one is not as the format has it."""
    config = quantization(source)
    if "awq" in str(config.get("packing_format")):  # of AutoRound
        return awq.decoded(source)
    numbers = LayerNumbers(source, -1, ("bits",), ("group_size",))
    if numbers.common.bits not in _BITS:
        raise RelaxError(f"'{source.path}': quantization_config.bits: expected 4 or 8, got {numbers.common.bits}")
    found = {layer: numbers.of(layer.prefix) for layer in layers(source, ".qweight")}
    for layer, own in found.items():
        if own.bits not in _BITS:
            raise layer.error(".qweight", f"expected 4 or 8 bits in the configuration, got {own.bits}")
    is_second, is_ordered = _is_version_2(found, config), config.get("desc_act") is True
    weights = {layer.name(".weight"): _weight(layer, own, is_second, is_ordered) for layer, own in found.items()}
    return EncodedSource(source, weights, f"gptq v{2 if is_second else 1}")


def _is_version_2(found: Mapping[StoredLayer, Numbers], config: Mapping[str, Any]) -> bool:
    """By what most zero points of symmetric layers say; where there are none, by what the metadata says."""
    first = second = 0
    for layer, (bits, _) in found.items():
        middle = sum(1 << bits - 1 << at for at in range(0, 32, bits))
        one = sum(1 << at for at in range(0, 32, bits))
        layer.spec(".qzeros", ("int32",), 2)
        stored = layer.source.get(layer.name(".qzeros")).view(np.uint32)
        first += stored.size * bool((stored == middle - one).all())
        second += stored.size * bool((stored == middle).all())
    return _declared_version_2(config) if first == second else second > first


def _declared_version_2(config: Mapping[str, Any]) -> bool:
    method, packing = str(config.get("quant_method")), str(config.get("packing_format") or "")
    if "auto-round" in method:  # "auto_round:auto_gptq" is version 1, the others are 2
        return "gptq" not in packing.replace("gptqmodel", "")
    return (config.get("checkpoint_format") or config.get("format")) == "gptq_v2"


def _weight(layer: StoredLayer, numbers: Numbers, is_second: bool, is_ordered: bool) -> EncodedWeight:
    (bits, group), plus_one = numbers, 0 if is_second else numbers.bits
    per = 32 // bits
    rows, n = layer.spec(".qweight", ("int32",), 2).shape
    scales, zeros = layer.spec(".scales", FLOATS, 2), layer.spec(".qzeros", ("int32",), 2)
    k = rows * per
    size = k if group in (-1, 0) else group
    groups = -(-k // size)
    stored = {"q": layer.name(".qweight"), "z": layer.name(".qzeros"), "s": layer.name(".scales")}
    index = _index(layer, k, size, scales.shape[0])
    has_index = index is not None
    if is_ordered and groups > 1 and _index_shape(layer) is None:
        layer.spec(".g_idx", ("int32",), 1)
    layer.expect_shape(".scales", scales, (scales.shape[0] if has_index else groups, n))
    layer.expect_shape(".qzeros", zeros, (scales.shape[0], -(-n // per)))
    stored |= {"g": layer.name(".g_idx")} if has_index else {}
    given = {"bits": bits, "group": size, "plus_one": plus_one}
    parts = {"q": RowPlace(1), "z": RowPlace(1, per), "s": RowPlace(1)}
    reason = too_short(k, size) if index is None or are_whole(index, size) else UNEQUAL
    narrow = None if reason else f"{bits} bits, a scale and zero point per {size}{', in the order of groups' * has_index}"
    in_order = partial(_in_order, **given) if has_index else None
    beside = layer.names(".g_idx")
    return EncodedWeight((n, k), stored, partial(_math, **given), parts, 1, narrow, reason, beside, narrow_math=in_order)


def _index(layer: StoredLayer, k: int, group: int, groups: int) -> Array | None:
    """The group of each input, where it is not what positions say. Raises RelaxError where it is wrong."""
    if _index_shape(layer) is None:
        return None
    layer.expect_shape(".g_idx", layer.spec(".g_idx", ("int32",), 1), (k,))
    index = layer.source.get(layer.name(".g_idx"))
    if is_regular(index, group):
        return None
    check_groups(layer, ".g_idx", index, groups)
    return index


def _index_shape(layer: StoredLayer) -> tuple[int, ...] | None:
    """Of the groups of inputs; None where there are none, or as many as that."""
    shape = layer.source.spec(layer.name(".g_idx")).shape if layer.has(".g_idx") else (0,)
    return None if shape == (0,) else shape


def _math(t: Mapping[str, MathValue], bits: int, group: int, plus_one: int) -> MathValue:
    q = fields(words(t["q"]), bits, 0, t["q"].shape[0] * 32 // bits)
    zero = fields(words(t["z"], plus_one), bits, 1, t["s"].shape[1])
    return grouped(q, t["s"], zero, 0, group, t.get("g")).permute(1, 0)


def _in_order(t: Mapping[str, MathValue], bits: int, group: int, plus_one: int) -> InOrder:
    order = order_of(t["g"])
    q = fields(words(t["q"]), bits, 0, t["q"].shape[0] * 32 // bits).take(order, 0)
    zero = fields(words(t["z"], plus_one), bits, 1, t["s"].shape[1])
    return InOrder(grouped(q, t["s"], zero, 0, group, None).permute(1, 0), order)
