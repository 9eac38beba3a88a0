"""torchao's narrow floats in blocks: ``MXTensor`` (eight or four bits, exponents as scales) and ``NVFP4Tensor``.

``a._weight_qdata`` f8 ``[n, k]``, or u8 ``[n, k / 2]`` with the first of two codes (E2M1) in the low nibble;
``a._weight_scale`` ``[n, k / block]``: E8M0 for MX; for NVFP4 f8E4M3FN, times ``a._weight_per_tensor_scale`` if there is one.
Scales may be swizzled, as tensor cores take them: 128 rows of 4 scales are 32 rows of 16, all filled up to whole ones.
Source: ``torchao.prototype.mx_formats``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from .config import StoredLayer
from .encoded import EncodedWeight, RowPlace
from .fp8 import exponents
from .mxfp4 import E2M1
from .weight_math import MathValue, constant

__all__ = ["CLASSES", "block_weight"]

#: The classes, and of what dtypes their scales are.
CLASSES: dict[str, tuple[str, ...]] = {"MXTensor": ("float8_e8m0fnu", "uint8"), "NVFP4Tensor": ("float8_e4m3fn",)}

#: What NVFP4 has for a scale; of MX the metadata say it.
_NVFP4_BLOCK = 16

#: Rows and columns of scales that are swizzled together, and as what they are stored.
_TILE, _STORED = (128, 4), (32, 16)


def block_weight(layer: StoredLayer, kind: str, data: Mapping[str, Any], rounded: str | None) -> EncodedWeight:
    """A weight of one of these classes.

    Args:
        layer: its tensors.
        kind: its class.
        data: what the metadata say of it.
        rounded: the dtype that it is rounded to.

    Raises:
        RelaxError: a tensor is missing, or of another dtype or shape.
    """
    q = layer.spec("_qdata", ("uint8", "float8_e4m3fn", "float8_e5m2"), 2)
    is_four_bits = q.dtype.name == "uint8"
    n, k = q.shape[0], q.shape[1] * (2 if is_four_bits else 1)
    block = data.get("block_size", _NVFP4_BLOCK)
    if type(block) is not int or block < 1 or k % block:
        raise layer.error("_qdata", f"expected blocks that {k} inputs divide into, got {block!r}")
    element = data.get("elem_dtype")
    said = element.get("_data") if isinstance(element, Mapping) else None
    if kind == "MXTensor" and is_four_bits and said != "float4_e2m1fn_x2":
        raise layer.error("_qdata", f"expected elem_dtype float8_e4m3fn, float8_e5m2 or float4_e2m1fn_x2, got {said}")
    is_swizzled = bool(data.get("is_swizzled_scales"))
    scale = layer.spec("_scale", CLASSES[kind], 2)
    tiles = (-(-n // _TILE[0]), -(-(k // block) // _TILE[1]))
    swizzled = (tiles[0] * _STORED[0], tiles[1] * _STORED[1])
    layer.expect_shape("_scale", scale, swizzled if is_swizzled else (n, k // block))
    stored = {"q": layer.name("_qdata"), "s": layer.name("_scale")}
    if layer.has("_per_tensor_scale"):
        layer.expect_shape("_per_tensor_scale", layer.spec("_per_tensor_scale", ("float32",)), (), (1,))
        stored["p"] = layer.name("_per_tensor_scale")
    rows = {"q": RowPlace(0), "s": RowPlace(0, _TILE[0] // _STORED[0] if is_swizzled else 1)}
    if is_swizzled and n % _TILE[0]:  # the last rows are among those that fill up a tile
        rows = {}
    math = partial(_math, block=block, is_swizzled=is_swizzled)
    kept = f"floats of {4 if is_four_bits else 8} bits, {'an exponent' if kind == 'MXTensor' else 'a scale'} per {block}"
    beside = layer.names("_act_per_tensor_scale")
    return EncodedWeight((n, k), stored, math, rows, _TILE[0] if is_swizzled else 1, kept, beside=beside, dtype=rounded)


def _math(t: Mapping[str, MathValue], block: int, is_swizzled: bool) -> MathValue:
    q, scale = t["q"], t["s"]
    if q.dtype.itemsize == 1 and q.dtype.name == "uint8":
        n, count = q.shape
        q = q.reshape(n, count, 1).unpack_nibbles(2, 2).reshape(n, count * 2).look_up(constant(E2M1))
    scale = _in_order(scale, q.shape[0], q.shape[1] // block) if is_swizzled else scale
    if scale.dtype.name in CLASSES["MXTensor"]:
        return q.scaled((exponents(scale) if scale.dtype.name == "uint8" else scale).astype("f32"))
    return q.scaled(scale.scaled(t["p"].reshape()) if "p" in t else scale.astype("f32"))


def _in_order(scale: MathValue, rows: int, columns: int) -> MathValue:
    """Scales that were swizzled, without those that fill them up."""
    tall, wide = (-(-size // tile) for size, tile in zip((rows, columns), _TILE, strict=True))
    tiles = scale.reshape(tall, wide, 32, 4, 4).permute(0, 3, 2, 1, 4)  # tile row, run of 32 rows, row, tile column, column
    return tiles.reshape(tall * _TILE[0], wide * _TILE[1]).part(0, 0, rows).part(1, 0, columns)
