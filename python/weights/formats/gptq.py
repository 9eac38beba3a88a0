"""GPTQ, as AutoGPTQ, GPTQModel and auto-round write it: 4 and 8 bits, groups, act-order, both conventions of zero points.

``qweight`` i32 ``[K / per, N]``, ``qzeros`` i32 ``[K / g, N / per]``, ``scales`` ``[K / g, N]``, ``g_idx`` i32 ``[K]``
(perhaps), with ``per`` fields in a word; ``w = (q - z) * s``. Version 1 stores ``z - 1``, version 2 ``z``. What metadata says
of the version is often wrong, but symmetric files show it: all zero points are in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ...dialect.errors import RelaxError
from ..arrays import Array
from ..source import TensorSource
from .config import StoredLayer, layers, quantization, whole_number
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
from .weight_math import MathValue

__all__ = ["decoded"]


def decoded(source: TensorSource) -> EncodedSource:
    """The layers of a GPTQ checkpoint. Raises RelaxError, with file and tensor, where one is not as the format has it."""
    config = quantization(source)
    bits = whole_number(source, config, ("bits",), 4)
    if bits not in (4, 8):
        raise RelaxError(f"'{source.path}': quantization_config.bits: expected 4 or 8, got {bits}")
    group = whole_number(source, config, ("group_size",), -1)
    found = list(layers(source, ".qweight"))
    plus_one = 0 if _is_version_2(found, bits, config) else bits
    weights = {layer.name(".weight"): _weight(layer, bits, group, plus_one) for layer in found}
    return EncodedSource(source, weights, f"gptq v{1 if plus_one else 2}")


def _is_version_2(found: list[StoredLayer], bits: int, config: Mapping[str, Any]) -> bool:
    """By what most zero points of symmetric layers say; where there are none, by what the metadata says."""
    middle = sum(1 << bits - 1 << at for at in range(0, 32, bits))
    one = sum(1 << at for at in range(0, 32, bits))
    first = second = 0
    for layer in found:
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


def _weight(layer: StoredLayer, bits: int, group: int, plus_one: int) -> EncodedWeight:
    per = 32 // bits
    rows, n = layer.spec(".qweight", ("int32",), 2).shape
    scales, zeros = layer.spec(".scales", FLOATS, 2), layer.spec(".qzeros", ("int32",), 2)
    k = rows * per
    size = k if group in (-1, 0) else group
    groups = -(-k // size)
    stored = {"q": layer.name(".qweight"), "z": layer.name(".qzeros"), "s": layer.name(".scales")}
    index = _index(layer, k, size, scales.shape[0])
    has_index = index is not None
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
    if not layer.has(".g_idx"):
        return None
    spec = layer.source.spec(layer.name(".g_idx"))
    if spec.shape == (0,):
        return None
    layer.expect_shape(".g_idx", layer.spec(".g_idx", ("int32",), 1), (k,))
    index = layer.source.get(layer.name(".g_idx"))
    if is_regular(index, group):
        return None
    check_groups(layer, ".g_idx", index, groups)
    return index


def _math(t: Mapping[str, MathValue], bits: int, group: int, plus_one: int) -> MathValue:
    q = fields(words(t["q"]), bits, 0, t["q"].shape[0] * 32 // bits)
    zero = fields(words(t["z"], plus_one), bits, 1, t["s"].shape[1])
    return grouped(q, t["s"], zero, 0, group, t.get("g")).permute(1, 0)


def _in_order(t: Mapping[str, MathValue], bits: int, group: int, plus_one: int) -> InOrder:
    order = order_of(t["g"])
    q = fields(words(t["q"]), bits, 0, t["q"].shape[0] * 32 // bits).take(order, 0)
    zero = fields(words(t["z"], plus_one), bits, 1, t["s"].shape[1])
    return InOrder(grouped(q, t["s"], zero, 0, group, None).permute(1, 0), order)
