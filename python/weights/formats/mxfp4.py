"""MXFP4, as gpt-oss has it: four-bit floats (E2M1) in blocks of 32 with an exponent (E8M0) each.

``NAME_blocks`` u8 ``[E, R, K / 32, 16]``, the low nibble first, ``NAME_scales`` u8 ``[E, R, K / 32]``. The weight ``NAME`` is
``[E, K, R]``, as models of transformers have it. Source: OCP Microscaling Formats Specification, version 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..source import TensorSource
from .config import StoredLayer, layers
from .encoded import EncodedSource, EncodedWeight, RowPlace
from .fp8 import exponents
from .weight_math import MathValue, constant

__all__ = ["E2M1", "decoded"]

_MAGNITUDES = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
#: What codes of four bits stand for.
E2M1 = np.array([*_MAGNITUDES, *(-m for m in _MAGNITUDES)], np.float32)
E2M1[8] = -0.0


def decoded(source: TensorSource) -> EncodedSource:
    """The experts of an MXFP4 checkpoint. Raises RelaxError, with file and tensor, where one is not as the format has it."""
    return EncodedSource(source, {layer.prefix: _weight(layer) for layer in layers(source, "_blocks")}, "mxfp4")


def _weight(layer: StoredLayer) -> EncodedWeight:
    blocks = layer.spec("_blocks", ("uint8",), 4)
    *outer, count, size = blocks.shape
    layer.expect_shape("_blocks", blocks, (*outer, count, 16))
    layer.expect_shape("_scales", layer.spec("_scales", ("uint8", "float8_e8m0fnu"), 3), (*outer, count))
    stored = {"b": layer.name("_blocks"), "s": layer.name("_scales")}
    shape = (outer[0], count * size * 2, outer[1])
    rows = {"b": RowPlace(0), "s": RowPlace(0)}
    return EncodedWeight(shape, stored, _math, rows, narrow="floats of 4 bits, an exponent per 32")


def _math(t: Mapping[str, MathValue]) -> MathValue:
    experts, rows, count, size = t["b"].shape
    codes = t["b"].reshape(experts, rows, count, size, 1).unpack_nibbles(4, 2).reshape(experts, rows, count * 2 * size)
    return codes.look_up(constant(E2M1)).scaled(exponents(t["s"]).astype("f32")).permute(0, 2, 1)
