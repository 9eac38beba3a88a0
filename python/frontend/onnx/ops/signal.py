"""ONNX operators of signals: Fourier transforms as products with matrices of cosines and sines."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.errors import RelaxError
from ...emit import cast, concat, emit, info_of, permute, slice_axis, squeeze, unsqueeze
from ..node import Node, handles
from ..values import known_value
from .manipulate import padded

#: The longest transform: its matrices are constants in the module. Longer ones want a fast algorithm.
_LONGEST = 1024


@handles("DFT")
def _dft(node: Node) -> ir.Value:
    """Source: https://onnx.ai/onnx/operators/onnx__DFT.html."""
    x = node.tensor(0)
    rank = node.rank(0)
    given = node.attribute("axis", 1) if node.version < 20 else node.number(2, -2)
    axis = node.axes([given], rank)[0]
    length = int(node.number(1, 0)) or node.known_size(0, axis)
    inverse, one_sided = bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    if one_sided and inverse:
        given = int(node.number(1, 0))
        length = given or 2 * (node.known_size(0, axis) - 1)
        x = _resized(x, axis, length // 2 + 1)
    else:
        x = _resized(x, axis, length)
    parts = [squeeze(slice_axis(x, rank - 1, i, i + 1), rank - 1) for i in range(_parts(x))]
    if one_sided and inverse:
        result = _transformed(_both_sides(parts, axis, length), axis, length, True, False)
        return slice_axis(result, rank - 1, 0, 1)
    return _transformed(parts, axis, length, inverse, one_sided)


def _parts(x: ir.Value) -> int:
    count = info_of(x).shape[-1]
    if not isinstance(count, int) or count not in (1, 2):
        raise RelaxError(f"expected real or complex numbers in the last dimension, got {count}")
    return count


def _resized(x: ir.Value, axis: int, length: int) -> ir.Value:
    size = info_of(x).shape[axis]
    if not isinstance(size, int):
        raise RelaxError("expected a transform of a dimension of known size")
    return padded(x, axis, 0, length - size, "constant", 0.0)


def _both_sides(parts: list[ir.Value], axis: int, length: int) -> list[ir.Value]:
    """The other half of the transform of real numbers: its conjugate, backwards."""
    half = length // 2 + 1
    if len(parts) != 2:
        raise RelaxError("expected complex numbers for an inverse transform of one side")
    rest = [emit(ops.Flip, slice_axis(p, axis, 1, length - half + 1), axis=axis) for p in parts]
    rest[1] = emit(ops.Negative, rest[1])
    return [concat([slice_axis(p, axis, 0, half), r], axis) for p, r in zip(parts, rest, strict=True)]


def _transformed(parts: list[ir.Value], axis: int, length: int, inverse: bool, one_sided: bool) -> ir.Value:
    """Real and imaginary part by products along the axis, side by side in a last dimension."""
    if length > _LONGEST:
        raise RelaxError(f"expected a transform of at most {_LONGEST} elements, got {length}")
    dtype, wide = info_of(parts[0]).dtype, ir.F64Type.get()  # sums of f32 would leave 1e-6 where zeros belong
    parts = [cast(p, wide) for p in parts]
    count = length // 2 + 1 if one_sided and not inverse else length
    angle = 2 * np.pi * np.outer(np.arange(length), np.arange(count)) / length * (1 if inverse else -1)
    factor = 1 / length if inverse else 1.0
    cosine, sine = (known_value("table", f(angle) * factor).value for f in (np.cos, np.sin))
    rank = info_of(parts[0]).rank
    order = [a for a in range(rank) if a != axis] + [axis]
    back = [*range(axis), rank - 1, *range(axis, rank - 1)]

    def times(x: ir.Value, table: ir.Value) -> ir.Value:
        return permute(emit(ops.MatMul, permute(x, order), table), back)

    real, imaginary = times(parts[0], cosine), times(parts[0], sine)
    if len(parts) == 2:
        real = emit(ops.Subtract, real, times(parts[1], sine))
        imaginary = emit(ops.Add, imaginary, times(parts[1], cosine))
    return cast(concat([unsqueeze(p, rank) for p in (real, imaginary)], rank), dtype)


@handles("STFT")
def _stft(node: Node) -> ir.Value:
    """Windows of a signal, each transformed. Source: https://onnx.ai/onnx/operators/onnx__STFT.html."""
    step = int(node.number(1))
    x = node.tensor(0)
    x = x if node.rank(0) == 3 else unsqueeze(x, 2)
    length = int(node.number(3, 0)) or (node.known_size(2, 0) if node.has(2) else 0)
    size = info_of(x).shape[1]
    if not isinstance(size, int) or not length:
        raise RelaxError("expected a signal and frames of known length")
    count = (size - length) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(length)[None, :]
    frames = emit(ops.Take, x, known_value("places", places.astype(np.int64)).value, axis=1)
    parts = [squeeze(slice_axis(frames, 3, i, i + 1), 3) for i in range(_parts(frames))]
    if node.has(2):
        window = node.tensor(2)
        parts = [emit(ops.Multiply, p, window) for p in parts]
    return _transformed(parts, 2, length, False, bool(node.attribute("onesided", 1)))


@handles("MelWeightMatrix")
def _mel_weights(node: Node) -> np.ndarray[Any, Any]:
    """Triangles on the mel scale, over the bins of a spectrum. Source: https://onnx.ai/onnx/operators/onnx__MelWeightMatrix.html."""
    bands, length, rate, low, high = (node.number(i) for i in range(5))
    ends = 2595 * np.log1p(np.array([low, high], np.float64) / 700) / np.log(10)
    mels = ends[0] + np.arange(bands + 2) * (ends[1] - ends[0]) / (bands + 2)
    places = ((length + 1) * (700 * np.expm1(mels / 2595 * np.log(10))) // rate).astype(np.int64)
    bins = np.arange(length // 2 + 1)[:, None]
    below, middle, above = places[None, :-2], places[None, 1:-1], places[None, 2:]
    with np.errstate(all="ignore"):
        rising, falling = (bins - below) / (middle - below), (above - bins) / (above - middle)
    rises = (below <= bins) & (bins <= middle)
    table = np.where(rises, np.where(middle == below, 1.0, rising), 0.0)
    table = np.where((middle <= bins) & (bins < above), falling, table)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(node.attribute("output_datatype", onnx.TensorProto.FLOAT))
    return table.astype(dtype)
