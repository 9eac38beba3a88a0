"""Which numbers a weight may have where it is stored narrow: a manifest in, the limits by name out."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ..dialect.array_spec import dtype_text
from ..dialect.reports.weights import QuantizedWeights
from ..lowering.manifest import Manifest
from ..weights.arrays import Array
from ..weights.casts import has_nonfinite

__all__ = ["MOVES", "ScaleLimits", "rounded_weights"]

#: Ops that change no number but for its dtype.
MOVES = frozenset(("astype", "pack_weight", "permute_dims", "reshape"))

_F32_MAX = float(np.finfo(np.float32).max)

#: Where scales in f16 are cut off: from half a step (16) before it on, numbers are not told from those that were cut off.
_F16_MAX = 65504.0

#: The greatest magnitude of an integer that weights are quantized to.
_GREATEST = {4: 8, 8: 127}


def rounded_weights(manifest: Manifest) -> list[str]:
    """The raw weights in f32 or f64 that are stored in bf16, in another order at most."""
    made = [w for w in manifest.prepared_weights.values() if w.array.dtype == ml_dtypes.bfloat16]
    sources = {w.sources[0] for w in made if len(w.sources) == 1 and MOVES.issuperset(w.ops)}
    return [n for n, spec in manifest.raw_weights.items() if n in sources and spec.array.dtype.kind == "f"]


class ScaleLimits:
    """What scales of quantized weights may be, so that scales times integers are numbers of f32."""

    def __init__(self, manifest: Manifest):
        """Takes what is prepared, and what the report says of it."""
        sections = [s for s in manifest.report.sections if isinstance(s, QuantizedWeights)]
        bits = {frozenset(w.sources): w.bits for section in sections for w in section.narrow}
        self._limits: dict[str, tuple[float, str]] = {}
        for name, weight in manifest.prepared_weights.items():
            dtype = weight.array.dtype
            if "quantize" not in weight.ops or (dtype.kind != "f" and dtype != ml_dtypes.bfloat16):
                continue
            greatest = _GREATEST[bits.get(frozenset(weight.sources), 8)]
            limit = _F16_MAX if dtype == np.float16 else _beyond(greatest, dtype)
            self._limits[name] = limit, ", ".join(f"'{n}'" for n in weight.sources)

    def problem(self, name: str, array: Array) -> str | None:
        """Why a prepared weight, or a piece of one, is no scale of numbers of f32; None where it is one, or is no scale."""
        limit, sources = self._limits.get(name, (0.0, ""))
        if not sources or not has_nonfinite(array, limit):
            return None
        return (
            f"weight {sources}: expected numbers that integers with scales in {dtype_text(array.dtype)} hold, got greater ones"
        )


def _beyond(greatest: int, dtype: np.dtype[np.generic]) -> float:
    """The least scale of a dtype with which the greatest integer is no number of f32 any more."""
    scale = np.array(_F32_MAX / greatest, np.float32).astype(dtype)
    while np.isfinite(np.float32(scale) * np.float64(greatest)) and float(scale) * greatest <= _F32_MAX:
        scale = np.nextafter(scale, np.array(np.inf, dtype))
    return float(scale)
