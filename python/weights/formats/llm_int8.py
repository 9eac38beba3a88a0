"""bitsandbytes, eight bits (LLM.int8): integers with the greatest magnitude of each output.

``weight`` i8 ``[N, K]``, ``SCB`` f32 ``[N]``, ``weight_format`` a scalar; ``w = q * SCB / 127``. Other layouts than rows (0),
which old versions wrote on GPUs of their time, are refused. Inputs that are outliers are multiplied with the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..source import TensorSource
from .config import StoredLayer, layers
from .encoded import EncodedWeight, RowPlace
from .grouped import FLOATS
from .weight_math import MathValue

__all__ = ["int8_weights"]

_STEP = float(np.float32(1) / np.float32(127))


def int8_weights(source: TensorSource) -> dict[str, EncodedWeight]:
    """The weights in eight bits, by name.

    Raises:
        RelaxError: with file and tensor, where one is not as the format has it.
    """
    return {layer.name(".weight"): _weight(layer) for layer in layers(source, ".SCB")}


def _weight(layer: StoredLayer) -> EncodedWeight:
    n, k = layer.spec(".weight", ("int8",), 2).shape
    layer.expect_shape(".SCB", layer.spec(".SCB", FLOATS, 1), (n,))
    if layer.has(".weight_format"):
        layer.expect_shape(".weight_format", layer.spec(".weight_format", ("uint8", "int8", "int32", "int64")), (), (1,))
        layout = int(layer.source.get(layer.name(".weight_format")).reshape(()))
        if layout:
            raise layer.error(".weight_format", f"expected 0, a matrix in rows, got {layout}")
    stored, rows = {"w": layer.name(".weight"), "s": layer.name(".SCB")}, {"w": RowPlace(0), "s": RowPlace(0)}
    kept, beside = "8 bits, a scale per output", layer.names(".weight_format")
    return EncodedWeight((n, k), stored, _math, rows, narrow=kept, beside=beside)


def _math(t: Mapping[str, MathValue]) -> MathValue:
    scale = t["s"].astype("f32") * _STEP
    return t["w"].scaled(scale.reshape(scale.shape[0], 1))
