"""compressed-tensors: ``pack-quantized`` weights of four and eight bits, plain ones of eight bits, and eight-bit floats.

``weight_packed`` i32 ``[N, ceil(b K / 32)]`` of fields ``q + 2 ** (b - 1)`` along K, ``weight_scale`` ``[N, G]``,
``weight_shape`` i64 ``[2]``; asymmetric: ``weight_zero_point`` i32 ``[ceil(N b / 32), G]``, fields along N with the same
offset (i8 ``[N, G]`` in old files, without); act-order: ``weight_g_idx`` i32 ``[K]``. Bits are those that the shapes say.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Array
from ..source import TensorSource
from .config import StoredLayer, layers, quantization
from .encoded import EncodedSource, EncodedWeight, InOrder, RowPlace
from .fp8 import float8_weights
from .grouped import (
    FLOATS,
    UNEQUAL,
    are_whole,
    check_groups,
    fields,
    grouped,
    is_regular,
    offset,
    order_of,
    too_short,
    words,
)
from .weight_math import MathValue, constant

__all__ = ["decoded"]


def decoded(source: TensorSource) -> EncodedSource:
    """The layers of a compressed-tensors checkpoint.

    Raises:
        RelaxError: with file and tensor, where one is not as the format has it.
    """
    sizes = _group_sizes(source)
    weights = {layer.name(".weight"): _packed(layer, sizes) for layer in layers(source, ".weight_packed")}
    weights |= {layer.name(".weight"): _plain(layer) for layer in layers(source, ".weight_scale") if _is_bytes(layer)}
    return EncodedSource(source, weights | float8_weights(source, (128, 128)), "compressed-tensors")


def _group_sizes(source: TensorSource) -> set[int]:
    """The sizes of groups that the configuration names: shapes do not say them where the last group is not whole."""
    tables: Any = quantization(source).get("config_groups")
    found = [t.get("weights") for t in tables.values() if isinstance(t, Mapping)] if isinstance(tables, Mapping) else []
    sizes = {w.get("group_size") for w in found if isinstance(w, Mapping)}
    return {s for s in sizes if type(s) is int and s > 0}


def _is_bytes(layer: StoredLayer) -> bool:
    return layer.has(".weight") and layer.source.spec(layer.name(".weight")).dtype == np.int8


def _shape(layer: StoredLayer) -> tuple[int, int]:
    layer.expect_shape(".weight_shape", layer.spec(".weight_shape", ("int64", "int32"), 1), (2,))
    n, k = (int(d) for d in layer.source.get(layer.name(".weight_shape")))
    if n < 1 or k < 1:
        raise layer.error(".weight_shape", f"expected two sizes, got {[n, k]}")
    return n, k


def _packed(layer: StoredLayer, sizes: set[int]) -> EncodedWeight:
    packed = layer.spec(".weight_packed", ("int32",), 2)
    n, k = _shape(layer)
    bits = next((b for b in (4, 8) if packed.shape == (n, -(-k * b // 32))), None)
    if bits is None:
        wanted = [[n, -(-k * b // 32)] for b in (4, 8)]
        raise layer.error(".weight_packed", f"expected {wanted[0]} (4 bits) or {wanted[1]} (8 bits), got {list(packed.shape)}")
    groups = _groups(layer, n, k)
    group = _group(layer, k, groups, sizes)
    stored = {"q": layer.name(".weight_packed"), "s": layer.name(".weight_scale")}
    rows = {"q": RowPlace(0), "s": RowPlace(0)}
    if layer.has(".weight_zero_point"):
        zero = layer.spec(".weight_zero_point", ("int32", "int8"), 2)
        is_packed = zero.dtype == np.int32
        layer.expect_shape(".weight_zero_point", zero, (-(-n * bits // 32) if is_packed else n, groups))
        stored["z"] = layer.name(".weight_zero_point")
        rows["z"] = RowPlace(0, 32 // bits if is_packed else 1)
    index = _index(layer, groups, k, group)
    has_index = index is not None
    stored |= {"g": layer.name(".weight_g_idx")} if has_index else {}
    kept = f"{bits} bits, a scale{' and zero point' if 'z' in stored else ''} per {group}"
    beside = layer.names(".weight_shape", ".weight_g_idx")
    reason = too_short(k, group) if index is None or are_whole(index, group) else UNEQUAL
    narrow = None if reason else f"{kept}{', in the order of groups' * has_index}"
    given = {"bits": bits, "k": k, "group": group}
    in_order = partial(_in_order, **given) if has_index else None
    return EncodedWeight((n, k), stored, partial(_math, **given), rows, 1, narrow, reason, beside, narrow_math=in_order)


def _groups(layer: StoredLayer, n: int, k: int) -> int:
    scale = layer.spec(".weight_scale", FLOATS, 2)
    groups = scale.shape[1]
    layer.expect_shape(".weight_scale", scale, (n, min(groups, k)))
    return groups


def _group(layer: StoredLayer, k: int, groups: int, sizes: set[int]) -> int:
    """How many inputs a group has: as the configuration says, where the last one may not be whole, else as the shape does."""
    fitting = sorted((s for s in sizes if -(-k // s) == groups), key=lambda s: (k % s != 0, s))
    size = k if groups == 1 else next(iter(fitting), k // groups if k % groups == 0 else None)
    if size is None:
        said = f"of a size in the configuration, {sorted(sizes) or 'none'}"
        raise layer.error(".weight_scale", f"expected groups that divide {k} inputs, or {said}, got {groups}")
    return size


def _index(layer: StoredLayer, groups: int, k: int, group: int) -> Array | None:
    """The group of each input, where it is not what positions say. Raises RelaxError where it is wrong."""
    if not layer.has(".weight_g_idx"):
        return None
    layer.expect_shape(".weight_g_idx", layer.spec(".weight_g_idx", ("int32",), 1), (k,))
    index = layer.source.get(layer.name(".weight_g_idx"))
    if bool((index == -1).all()) or is_regular(index, group):
        return None
    check_groups(layer, ".weight_g_idx", index, groups)
    return index


def _plain(layer: StoredLayer) -> EncodedWeight:
    n, k = layer.spec(".weight", ("int8",), 2).shape
    groups = _groups(layer, n, k)
    if k % groups:
        raise layer.error(".weight_scale", f"expected groups that divide {k} inputs, got {groups}")
    stored = {"w": layer.name(".weight"), "s": layer.name(".weight_scale")}
    return EncodedWeight(
        (n, k), stored, _bytes, {"w": RowPlace(0), "s": RowPlace(0)}, narrow=f"8 bits, a scale per {k // groups}"
    )


def _bytes(t: Mapping[str, MathValue]) -> MathValue:
    return t["w"].dequantize(t["s"].astype("f32"), constant(np.array(0, np.int8)))


def _math(t: Mapping[str, MathValue], bits: int, k: int, group: int) -> MathValue:
    return grouped(fields(words(t["q"]), bits, 1, k), t["s"], _zero(t, bits), 1, group, t.get("g"))


def _in_order(t: Mapping[str, MathValue], bits: int, k: int, group: int) -> InOrder:
    order = order_of(t["g"])
    q = fields(words(t["q"]), bits, 1, k).take(order, 1)
    return InOrder(grouped(q, t["s"], _zero(t, bits), 1, group, None), order)


def _zero(t: Mapping[str, MathValue], bits: int) -> MathValue:
    stored = t.get("z")
    if stored is None:
        return offset(bits)
    return (
        fields(words(stored), bits, 0, t["s"].shape[0]) if stored.dtype == np.int32 else stored.astype("i16") + (1 << bits - 1)
    )
