"""AWQ, version ``gemm``: four bits along the outputs, in an order of their own.

``qweight`` i32 ``[K, N / 8]``, ``qzeros`` i32 ``[K / g, N / 8]``, ``scales`` ``[K / g, N]``; the fields of a word, lowest
first, are the columns 0, 2, 4, 6, 1, 3, 5, 7 of its eight; ``w = (q - z) * s``. ``act.scales`` divide what an activation gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .config import StoredLayer, layers, quantization
from .encoded import EncodedSource, EncodedWeight, RowPlace
from .grouped import FLOATS, fields, grouped, too_short, words
from .layer_numbers import LayerNumbers, Numbers
from .weight_math import MathValue

__all__ = ["decoded"]


def decoded(source: TensorSource) -> EncodedSource:
    """The layers of an AWQ checkpoint. Raises RelaxError, with file and tensor, where one is not as the format has it."""
    version = str(quantization(source).get("version", "gemm")).lower()
    numbers = LayerNumbers(source, 128, ("bits", "w_bit"), ("group_size", "q_group_size"))
    if numbers.common.bits != 4 or version != "gemm":
        got = f"{numbers.common.bits} of {version}"
        raise RelaxError(f"'{source.path}': quantization_config: expected 4 bits of version gemm, got {got}")
    weights = {layer.name(".weight"): _weight(layer, numbers.of(layer.prefix)) for layer in layers(source, ".qweight")}
    divisors = [layer.name(".scales") for layer in layers(source, ".scales") if not layer.has(".qweight")]
    return EncodedSource(source, weights, "awq", divisors)


def _weight(layer: StoredLayer, numbers: Numbers) -> EncodedWeight:
    bits, group = numbers
    if bits != 4:
        raise layer.error(".qweight", f"expected 4 bits in the configuration, got {bits}")
    k, columns = layer.spec(".qweight", ("int32",), 2).shape
    n, size = columns * 8, k if group in (-1, 0) else group
    scales, zeros = layer.spec(".scales", FLOATS, 2), layer.spec(".qzeros", ("int32",), 2)
    layer.expect_shape(".scales", scales, (-(-k // size), n))
    layer.expect_shape(".qzeros", zeros, (-(-k // size), columns))
    stored = {"q": layer.name(".qweight"), "z": layer.name(".qzeros"), "s": layer.name(".scales")}
    parts = {"q": RowPlace(1, 8), "z": RowPlace(1, 8), "s": RowPlace(1)}
    narrow, reason = f"4 bits, a scale and zero point per {size}", ""
    if too_short(k, size):
        narrow, reason = None, too_short(k, size)
    return EncodedWeight((n, k), stored, partial(_math, group=size), parts, narrow=narrow, reason=reason)


def _columns(x: MathValue) -> MathValue:
    """The columns of words, in order: field ``4 a + b`` is column ``2 b + a``."""
    rows, count = x.shape
    in_words = fields(words(x), 4, 1, count * 8).reshape(rows, count, 2, 4)
    return in_words.permute(0, 1, 3, 2).reshape(rows, count * 8)


def _math(t: Mapping[str, MathValue], group: int) -> MathValue:
    n = t["s"].shape[1]
    q, zero = (_columns(t[name]).part(1, 0, n) for name in ("q", "z"))
    return grouped(q, t["s"], zero, 0, group, None).permute(1, 0)
