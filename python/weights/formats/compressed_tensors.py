"""compressed-tensors: ``pack-quantized`` weights of four and eight bits, plain ones of eight bits, and eight-bit floats.

``weight_packed`` i32 ``[N, ceil(b K / 32)]`` of fields ``q + 2 ** (b - 1)`` along K, ``weight_shape`` i64 ``[2]``, or plain
``weight`` i8 ``[N, K]``; ``weight_scale`` ``[N, G]``, or one for all, ``[1]`` or ``[]``, or of blocks ``[ceil(N / R), G]``;
asymmetric: ``weight_zero_point`` i8 like the scales, of packed ones also i32 ``[ceil(N b / 32), G]``, fields along N with that
offset; act-order: ``weight_g_idx`` i32 ``[K]``. Bits and sizes of groups are those of the layer's scheme
(:mod:`.compressed_schemes`); what it does not say is what shapes say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from ..arrays import Array, ArraySpec
from ..source import TensorSource
from .compressed_schemes import Scheme, Schemes
from .config import StoredLayer, check_companions, layers
from .encoded import EncodedSource, EncodedWeight, InOrder, RowPlace
from .fp8 import float8_weights
from .grouped import (
    FLOATS,
    UNEQUAL,
    are_whole,
    blocks,
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

_BITS = (4, 8)

#: What may be beside a weight, and is read.
_COMPANIONS = ("packed", "scale", "zero_point", "shape", "g_idx", "scale_inv")


def decoded(source: TensorSource) -> EncodedSource:
    """The layers of a compressed-tensors checkpoint.

    Raises:
        RelaxError: with file and tensor, where one is not as the format or its scheme has it.
    """
    schemes = Schemes(source)
    weights = {layer.name(".weight"): _packed(layer, schemes) for layer in layers(source, ".weight_packed")}
    weights |= {layer.name(".weight"): _plain(layer, schemes) for layer in layers(source, ".weight_scale") if _is_bytes(layer)}
    floats = float8_weights(source, lambda layer: _float_blocks(schemes.of(layer)))
    for name in floats:
        _check_no_zero_points(StoredLayer(source, name.removesuffix(".weight")))
    weights |= floats
    check_companions(source, ".weight_", _COMPANIONS, {name.removesuffix(".weight") for name in weights})
    return EncodedSource(source, weights, "compressed-tensors")


def _is_bytes(layer: StoredLayer) -> bool:
    return layer.has(".weight") and layer.source.spec(layer.name(".weight")).dtype == np.int8


def _float_blocks(schemes: tuple[Scheme, ...]) -> tuple[tuple[int, int], ...]:
    """The blocks that weights of these schemes may have."""
    said = (s.block or ((1, s.group) if s.group and s.group > 0 else (128, 128)) for s in schemes)
    return tuple(dict.fromkeys(said)) or ((128, 128),)


def _check_no_zero_points(layer: StoredLayer) -> None:
    """Raises RelaxError where floats have zero points other than zero."""
    if layer.has(".weight_zero_point") and layer.source.get(layer.name(".weight_zero_point")).astype(np.float32).any():
        raise layer.error(".weight_zero_point", "expected zeros beside floats of eight bits, got others")


def _shape(layer: StoredLayer) -> tuple[int, int]:
    layer.expect_shape(".weight_shape", layer.spec(".weight_shape", ("int64", "int32"), 1), (2,))
    n, k = (int(d) for d in layer.source.get(layer.name(".weight_shape")))
    if n < 1 or k < 1:
        raise layer.error(".weight_shape", f"expected two sizes, got {[n, k]}")
    return n, k


def _packed(layer: StoredLayer, schemes: Schemes) -> EncodedWeight:
    packed, own = layer.spec(".weight_packed", ("int32",), 2), schemes.of(layer.prefix)
    n, k = _shape(layer)
    bits = _bits(layer, packed, (n, k), own)
    return _weight(layer, ".weight_packed", (n, k), bits, tuple(s for s in own if s.bits in (None, bits)))


def _plain(layer: StoredLayer, schemes: Schemes) -> EncodedWeight:
    n, k = layer.spec(".weight", ("int8",), 2).shape
    return _weight(layer, ".weight", (n, k), 0, schemes.of(layer.prefix))


def _bits(layer: StoredLayer, packed: ArraySpec, shape: tuple[int, int], schemes: tuple[Scheme, ...]) -> int:
    """How wide integers are: as the layer's scheme says, or of several the only one that fits."""
    n, k = shape
    said = sorted({b for s in schemes or (Scheme(),) for b in (_BITS if s.bits is None else (s.bits,))})
    fitting = [b for b in said if packed.shape == (n, -(-k * b // 32))]
    if len(fitting) > 1:
        wanted = f"num_bits of this layer in the configuration, as its shape is that of {' and '.join(map(str, fitting))} bits"
        raise layer.error(".weight_packed", f"expected {wanted}, got none")
    if not set(fitting or said) & set(_BITS):
        raise layer.error(".weight_packed", f"expected 4 or 8 bits, got {' or '.join(map(str, fitting or said))}")
    if not fitting:
        wanted = " or ".join(f"{[n, -(-k * b // 32)]} ({b} bits)" for b in said)
        raise layer.error(".weight_packed", f"expected {wanted}, got {list(packed.shape)}")
    return fitting[0]


def _weight(
    layer: StoredLayer, end: str, shape: tuple[int, int], bits: int, schemes: tuple[Scheme, ...]
) -> EncodedWeight:  # fmt: skip
    """A weight of integers, in words of so many bits each, or, where these are 0, of bytes."""
    n, k = shape
    scale = _scale_shape(layer, n, k, schemes)
    tall, group = _tall_and_wide(layer, shape, scale, schemes)
    own = "q" if bits else "w"
    stored = {own: layer.name(end), "s": layer.name(".weight_scale")}
    rows = {own: RowPlace(0)} | ({"s": RowPlace(0, tall)} if scale else {})
    each = _zero_rows(layer, n, bits, tall, scale, schemes)
    if each is not None:
        stored["z"] = layer.name(".weight_zero_point")
        rows |= {"z": RowPlace(0, each)} if each else {}
    index = _index(layer, scale[1] if scale else 1, k, group)
    has_index = index is not None
    stored |= {"g": layer.name(".weight_g_idx")} if has_index else {}
    shares = "matrix" if not scale else group if tall == 1 else f"{tall} x {group}"
    kept = f"{bits or 8} bits, a scale{' and zero point' if 'z' in stored else ''} per {shares}"
    beside = layer.names(".weight_shape", ".weight_g_idx", ".weight_zero_point")
    reason = too_short(k, group) if index is None or are_whole(index, group) else UNEQUAL
    narrow = None if reason else f"{kept}{', in the order of groups' * has_index}"
    given = {"bits": bits, "k": k, "group": group, "tall": tall}
    in_order = partial(_in_order, **given) if has_index else None
    return EncodedWeight((n, k), stored, partial(_math, **given), rows, 1, narrow, reason, beside, narrow_math=in_order)


def _scale_shape(layer: StoredLayer, n: int, k: int, schemes: tuple[Scheme, ...]) -> tuple[int, int] | None:
    """Of scales of groups or blocks; None where there is one scale."""
    scale = layer.spec(".weight_scale", FLOATS)
    if scale.shape in ((), (1,)) or (scale.shape == (1, 1) and n > 1):
        return None
    columns = scale.shape[1] if len(scale.shape) == 2 else 1
    tall = [(-(-n // s.block[0]), -(-k // s.block[1])) for s in schemes if s.block is not None]
    layer.expect_shape(".weight_scale", scale, (n, min(columns, k)), *tall)
    return scale.shape[0], columns


def _tall_and_wide(
    layer: StoredLayer, shape: tuple[int, int], scale: tuple[int, int] | None, schemes: tuple[Scheme, ...]
) -> tuple[int, int]:  # fmt: skip
    """How many outputs and inputs share a scale: as the configuration says, else as the shape does.

    Without a scheme that says it, groups divide the inputs: of others the last one is not whole, and shapes do not say how many
    inputs the others have.
    """
    n, k = shape
    if scale is None or scale == (n, 1):
        return 1, k
    said = {s.block or (1, k if s.group == -1 else s.group) for s in schemes if s.block or s.group}
    fitting = {(tall, wide) for tall, wide in said if wide and (-(-n // tall), -(-k // wide)) == scale}
    if not fitting and (not said or any(not (s.block or s.group) for s in schemes)) and k % scale[1] == 0:
        fitting = {(1, k // scale[1])}
    if len(fitting) != 1:
        got = "which fits both" if len(fitting) > 1 else f"{scale[1]}"
        sizes = sorted({wide for _, wide in said if wide})
        what = f"groups that divide {k} inputs, or of a size in the configuration, {sizes or 'none'}"
        wanted = what if not sizes else f"groups of {' or '.join(map(str, sizes))} of {k} inputs, as the configuration says"
        raise layer.error(".weight_scale", f"expected {wanted}, got {got}")
    return next(iter(fitting))


def _zero_rows(
    layer: StoredLayer, n: int, bits: int, tall: int, scale: tuple[int, int] | None, schemes: Iterable[Scheme]
) -> int | None:  # fmt: skip
    """The rows of the weight for each of the zero points, 0 where one is for all; None without zero points.

    Raises:
        RelaxError: they are missing where the scheme is asymmetric, or of another dtype or shape.
    """
    end = ".weight_zero_point"
    if not layer.has(end):
        if {s.is_symmetric for s in schemes} == {False}:
            layer.spec(end, ("int8",))
        return None
    zero = layer.spec(end, ("int32", "int8") if bits else ("int8",))
    if scale is None:
        layer.expect_shape(end, zero, (), (1,), (1, 1))
        return 0
    is_packed = zero.dtype == np.int32
    layer.expect_shape(end, zero, (-(-n * bits // 32), scale[1]) if is_packed else scale)
    return 32 // bits if is_packed else tall


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


def _math(t: Mapping[str, MathValue], bits: int, k: int, group: int, tall: int) -> MathValue:
    q = _integers(t, bits, k)
    return grouped(q, _spread(t["s"], q, tall), _zero(t, q, bits, tall), 1, group, t.get("g"))


def _in_order(t: Mapping[str, MathValue], bits: int, k: int, group: int, tall: int) -> InOrder:
    order = order_of(t["g"])
    q = _integers(t, bits, k).take(order, 1)
    return InOrder(grouped(q, _spread(t["s"], q, tall), _zero(t, q, bits, tall), 1, group, None), order)


def _integers(t: Mapping[str, MathValue], bits: int, k: int) -> MathValue:
    return fields(words(t["q"]), bits, 1, k) if bits else t["w"]


def _spread(x: MathValue, q: MathValue, tall: int) -> MathValue:
    """Parameters of blocks as those of rows where blocks are tall, and one for all as a scalar."""
    if len(x.shape) < 2 or (x.shape == (1, 1) and q.shape[0] > 1):
        return x.reshape()
    return blocks(x, 0, q.shape[0], tall) if tall > 1 else x


def _zero(t: Mapping[str, MathValue], q: MathValue, bits: int, tall: int) -> MathValue:
    stored = t.get("z")
    if stored is None:
        return offset(bits) if bits else constant(np.array(0, np.int8))
    if stored.dtype == np.int32:
        return fields(words(stored), bits, 0, q.shape[0])
    zero = _spread(stored, q, tall)
    return zero.astype("i16") + (1 << bits - 1) if bits else zero
