"""Eight-bit floats with scales: per block (DeepSeek), per tensor or per output (compressed-tensors, FBGEMM). Scales multiply.

``weight`` f8E4M3FN ``[N, K]``; ``weight_scale_inv`` ``[ceil(N / 128), ceil(K / 128)]``, or ``weight_scale``: a scalar,
``[1]``, ``[N, 1]``. Bytes as scales are exponents (E8M0). Experts that are one tensor, ``NAME`` ``[E, A, B]`` in the order of
the model's own, have ``NAME_scale_inv`` or ``NAME_scale``: ``[E, ceil(A / 128), ceil(B / 128)]``, ``[E, A, 1]``,
``[E, 1, B]``, ``[E, 1, 1]``, ``[E]``, a scalar. compressed-tensors has blocks of any size, those of one output, too.
NVIDIA's modelopt has ``weight_scale``: a scalar, ``[N]`` or of blocks; ComfyUI has it or ``scale_weight``, a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...dialect.errors import RelaxError
from ..source import TensorSource
from .config import StoredLayer, check_companions, layers, quantization
from .encoded import EncodedSource, EncodedWeight, RowPlace
from .grouped import FLOATS, blocks, too_short
from .weight_math import MathValue

__all__ = ["decoded", "exponents", "float8_weights", "modelopt_decoded", "plain_decoded"]

_FLOATS = ("float8_e4m3fn", "float8_e5m2")
_SCALES = (*FLOATS, "float8_e8m0fnu", "uint8")

#: What may be beside a weight; a bound of what inputs are quantized to changes no weight.
_COMPANIONS = ("scale_inv", "scale", "scale_ub")

#: What modelopt calls the ways to quantize that are read; all that they differ in is the shape of scales.
_MODELOPT = ("FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO")

_Block = tuple[int, int]


def decoded(source: TensorSource) -> EncodedSource:
    """The layers of an FP8 checkpoint. Raises RelaxError, with file and tensor, where one is not as the format has it."""
    block = _block(source)
    weights = float8_weights(source, lambda _: (block,))
    check_companions(source, ".weight_", _COMPANIONS, {name.removesuffix(".weight") for name in weights})
    return EncodedSource(source, weights, "fp8")


def modelopt_decoded(source: TensorSource) -> EncodedSource:
    """The layers of a checkpoint of NVIDIA's modelopt. Raises RelaxError as :func:`decoded`, and for other bits than eight."""
    algorithm = quantization(source).get("quant_algo")
    if str(algorithm).upper() not in _MODELOPT:
        what = f"'{source.path}': quantization_config.quant_algo"
        raise RelaxError(f"{what}: expected one out of {', '.join(_MODELOPT)}, got {algorithm!r}")
    return decoded(source)


def plain_decoded(source: TensorSource) -> TensorSource:
    """The layers of a checkpoint without configuration, where a scale is of a matrix or of its rows; else the source itself.

    Raises:
        RelaxError: a weight has two scales.
    """
    found: dict[str, EncodedWeight] = {}
    for end in (".weight_scale", ".scale_weight"):
        for layer in (one for one in layers(source, end) if _is_plain(one, end)):
            name = layer.name(".weight")
            if name in found:
                raise layer.error(end, f"expected one scale of a weight, got {layer.name('.weight_scale')!r}, too")
            found[name] = _weight(layer, end, ())
    return EncodedSource(source, found, "fp8") if found else source


def _is_plain(layer: StoredLayer, end: str) -> bool:
    """Whether a scale is one that belongs to a matrix of eight-bit floats, whoever wrote it."""
    if not layer.has(".weight"):
        return False
    try:
        weight, scale = layer.source.spec(layer.name(".weight")), layer.source.spec(layer.name(end))
    except RelaxError:  # of a dtype that NumPy lacks, which is said where it is read
        return False
    is_matrix = weight.dtype.name in _FLOATS and len(weight.shape) == 2
    return is_matrix and scale.dtype.name in FLOATS and scale.shape in ((), (1,), *_row_shapes(end, weight.shape[0]))


def float8_weights(source: TensorSource, blocks_of: Callable[[str], tuple[_Block, ...]]) -> dict[str, EncodedWeight]:
    """The weights of eight-bit floats that have scales, by name.

    Args:
        source: the tensors as the file has them.
        blocks_of: by the name of a layer, the sizes of blocks that it may have.

    Raises:
        RelaxError: a scale is missing, is there twice, has another dtype or shape, or fits blocks of several sizes.
    """
    ends = ("_scale_inv", "_scale")
    pairs = [(layer, end) for end in ends for layer in layers(source, end) if layer.has("")]
    found: dict[str, EncodedWeight] = {}
    for layer, end in pairs:
        spec = source.spec(layer.prefix)
        if not spec.dtype.name.startswith("float8_e"):
            continue
        if layer.prefix in found:
            raise layer.error(end, f"expected one scale of a weight, got {layer.name('_scale_inv')!r}, too")
        if len(spec.shape) == 3:
            found[layer.prefix] = _experts(layer, end, blocks_of(layer.prefix)[0])
        elif layer.prefix.endswith(".weight"):
            matrix = StoredLayer(source, layer.prefix.removesuffix(".weight"))
            found[layer.prefix] = _weight(matrix, f".weight{end}", blocks_of(matrix.prefix))
    return found


def _block(source: TensorSource) -> _Block:
    sizes: Any = quantization(source).get("weight_block_size") or [128, 128]
    if not isinstance(sizes, list) or len(sizes) != 2 or not all(type(s) is int and s > 0 for s in sizes):
        text = f"expected two sizes, got {sizes!r}"
        raise RelaxError(f"'{source.path}': quantization_config.weight_block_size: {text}")
    return sizes[0], sizes[1]


def _row_shapes(end: str, n: int) -> tuple[tuple[int, ...], ...]:
    """What scales of rows look like."""
    return ((n, 1), (1, 1), (n,)) if end == ".weight_scale" else ()


def _weight(layer: StoredLayer, end: str, sizes: tuple[_Block, ...]) -> EncodedWeight:
    n, k = layer.spec(".weight", _FLOATS, 2).shape
    scale = layer.spec(end, _SCALES)
    counts = {size: (-(-n // size[0]), -(-k // size[1])) for size in sizes}
    others = ((), (1,), *_row_shapes(end, n))
    layer.expect_shape(end, scale, *dict.fromkeys((*counts.values(), *others)))
    fitting = [size for size in sizes if counts[size] == scale.shape and scale.shape not in ((1, 1), (n, 1))]
    if len(fitting) > 1:
        raise layer.error(
            end, f"expected blocks of one size, got {list(scale.shape)}, which fits {' and '.join(map(str, fitting))}"
        )
    block = fitting[0] if fitting else None
    stored = {"w": layer.name(".weight"), "s": layer.name(end)}
    is_rows = scale.shape in ((n, 1), (n,))
    rows = {"w": RowPlace(0)} | ({"s": RowPlace(0, block[0])} if block else {"s": RowPlace(0)} if is_rows else {})
    beside = layer.names(".input_scale", ".scale_input", ".activation_scale", ".weight_zero_point")
    reason = too_short(k, block[1]) if block else ""
    shares = f"{block[0]} x {block[1]}" if block else "output" if is_rows else "matrix"
    narrow = None if reason else f"floats of 8 bits, a scale per {shares}"
    return EncodedWeight((n, k), stored, partial(_math, block=block), rows, beside=beside, narrow=narrow, reason=reason)


def _experts(layer: StoredLayer, end: str, block: _Block) -> EncodedWeight:
    """Matrices in one tensor."""
    count, *sizes = shape = layer.spec("", _FLOATS, 3).shape
    scale, (n, k) = layer.spec(end, _SCALES), sizes
    of_blocks = (count, *(-(-size // each) for size, each in zip(sizes, block, strict=True)))
    others = ((count, n, 1), (count, 1, k), (count, 1, 1), (count,), (), (1,))
    layer.expect_shape(end, scale, of_blocks, *others)
    is_block = scale.shape not in others
    stored = {"w": layer.name(""), "s": layer.name(end)}
    rows = {"w": RowPlace(0)} | ({"s": RowPlace(0)} if len(scale.shape) > 0 and scale.shape[0] == count else {})
    reason = "" if not is_block else too_short(n, block[0]) or too_short(k, block[1])
    shares = f"{block[0]} x {block[1]}" if is_block else "expert or output"
    narrow = None if reason else f"floats of 8 bits, a scale per {shares}"
    math = partial(_experts_math, block=block if is_block else None)
    beside = layer.names("_activation_scale", "_input_scale")
    return EncodedWeight(shape, stored, math, rows, beside=beside, narrow=narrow, reason=reason)


def _experts_math(t: Mapping[str, MathValue], block: _Block | None) -> MathValue:
    weight, scale = t["w"], t["s"]
    count, n, k = weight.shape
    scale = exponents(scale) if scale.dtype == np.uint8 else scale
    if block is not None:
        scale = blocks(blocks(scale, 1, n, block[0]), 2, k, block[1])
    elif len(scale.shape) == 1 and scale.shape[0] == count:
        scale = scale.reshape(count, 1, 1)
    elif len(scale.shape) == 1:
        scale = scale.reshape()
    return weight.scaled(scale.astype("f32"))


def exponents(x: MathValue) -> MathValue:
    """The powers of two that bytes stand for, ``2 ** (byte - 127)``; 255 is NaN."""
    return x.bitcast("f8E8M0FNU")


def _math(t: Mapping[str, MathValue], block: _Block | None) -> MathValue:
    (n, k), scale = t["w"].shape, t["s"]
    scale = exponents(scale) if scale.dtype == np.uint8 else scale
    if block is not None:
        scale = blocks(blocks(scale, 0, n, block[0]), 1, k, block[1])
    elif len(scale.shape) < 2:
        scale = scale.reshape(*((n, 1) if scale.shape == (n,) else ()))
    return t["w"].scaled(scale.astype("f32"))
