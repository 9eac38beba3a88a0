"""Affine quantization per tensor, per channel or per block: ``real = (stored - zero_point) * scale``.

A scale or zero point is a scalar, a vector with one element per index of ``axis``, or a tensor of the operand's rank whose
dimensions divide the operand's: one element per block. For ``[k, n]`` in groups of 32 along k it is ``[k / 32, n]``.

Four-bit integers have a byte each, except where ``pack_nibbles`` put several of them in a word.
"""

from __future__ import annotations

from .. import attributes
from ..bindings import ir
from ..errors import RelaxError
from ..inference import normalize_axis, require_float, require_integer, require_number, shape_text
from ..op import Attrs, Op, Operand, Result, Tensor
from ..struct_info import TensorInfo
from ..symbolic import Dim, same

__all__ = ["Dequantize", "PackNibbles", "Quantize", "UnpackNibbles"]


def _check_parameters(x: TensorInfo, scale: TensorInfo, zero_point: TensorInfo, axis: int) -> None:
    require_float(scale, "scale")
    require_integer(zero_point, "zero point")
    require_number(zero_point, "zero point")
    channels = [x.shape[normalize_axis(axis, x.rank)]] if x.rank else []
    for info, what in ((scale, "scale"), (zero_point, "zero point")):
        if not _fits(info, x, channels):
            wanted = " or ".join(dict.fromkeys(["[]", shape_text(channels), f"blocks of {shape_text(x.shape)}"]))
            raise RelaxError(f"expected a {what} of shape {wanted}, got {shape_text(info.shape)}")


def _fits(parameter: TensorInfo, x: TensorInfo, channels: list[Dim]) -> bool:
    """Whether a scale or zero point is a scalar, one per channel, or one per block of elements."""
    if not parameter.rank:
        return True
    if parameter.rank == 1 and x.rank and same(parameter.shape[0], channels[0]):
        return True
    return parameter.rank == x.rank and all(_divides(p, d) for p, d in zip(parameter.shape, x.shape, strict=True))


def _divides(blocks: Dim, size: Dim) -> bool:
    """Whether a dimension falls into that many equal blocks."""
    if blocks == 1:
        return True
    if isinstance(blocks, int) and isinstance(size, int):
        return blocks > 0 and size % blocks == 0
    return same(blocks, size)


class Quantize(Op, name="quantize"):
    """``clip(round(x / scale) + zero_point)`` to the range of ``dtype``; halves round to even.

    Computed in f32, in f64 when an operand is f64; a NaN has no defined result.
    """

    x: Operand[Tensor]
    scale: Operand[Tensor]
    zero_point: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1), "dtype": attributes.dtype()}

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, scale, zero_point = operands
        require_float(x)
        _check_parameters(x, scale, zero_point, attrs["axis"])
        result = x.with_(dtype=attrs["dtype"])
        require_integer(result, "dtype")
        require_number(result, "dtype")
        return result


class Dequantize(Op, name="dequantize"):
    """``(x - zero_point) * scale`` in the scale's dtype.

    The difference is exact, the product is in f32 (f64 for an f64 scale) and rounded once.
    """

    x: Operand[Tensor]
    scale: Operand[Tensor]
    zero_point: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1)}

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, scale, zero_point = operands
        require_integer(x)
        require_number(x)
        _check_parameters(x, scale, zero_point, attrs["axis"])
        return x.with_(dtype=scale.dtype)


class PackNibbles(Op, name="pack_nibbles"):
    """Four-bit integers in words of unsigned ``dtype``: of those in a word, the first along ``axis`` has the lowest bits.

    What the last word has room for beyond the last element is 0.
    """

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1), "dtype": attributes.dtype()}

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        (x,) = operands
        if not _is_four_bits(x.dtype):
            raise RelaxError(f"expected a four-bit integer operand, got {x.dtype}")
        axis, per_word = _axis(x, attrs["axis"]), _per_word(attrs["dtype"], "dtype")
        return x.with_(shape=[_words(d, per_word) if i == axis else d for i, d in enumerate(x.shape)], dtype=attrs["dtype"])


class UnpackNibbles(Op, name="unpack_nibbles"):
    """The inverse of :class:`PackNibbles`: words to ``size`` integers of ``dtype`` along ``axis``."""

    x: Operand[Tensor]
    result: Result[Tensor]
    attrs = {"axis": attributes.integer(default=-1), "dtype": attributes.dtype(), "size": attributes.integer()}

    @staticmethod
    def infer(operands: list[TensorInfo], attrs: Attrs) -> TensorInfo:
        x, dtype, size = operands[0], attrs["dtype"], attrs["size"]
        per_word = _per_word(x.dtype, "operand")
        if not _is_four_bits(dtype):
            raise RelaxError(f"expected dtype i4 or ui4, got {dtype}")
        axis = _axis(x, attrs["axis"])
        if size < 0 or not same(x.shape[axis], _words(size, per_word)):
            shape = shape_text(x.shape)
            raise RelaxError(f"expected a size with {per_word} elements in each word of axis {axis}, got {size} for {shape}")
        return x.with_(shape=[size if i == axis else d for i, d in enumerate(x.shape)], dtype=dtype)


def _is_four_bits(dtype: ir.Type) -> bool:
    return isinstance(dtype, ir.IntegerType) and dtype.width == 4


def _per_word(dtype: ir.Type, what: str) -> int:
    """How many four-bit integers a word holds."""
    if not isinstance(dtype, ir.IntegerType) or not dtype.is_unsigned or dtype.width not in (8, 16, 32, 64):
        raise RelaxError(f"expected ui8, ui16, ui32 or ui64 as {what}, got {dtype}")
    return dtype.width // 4


def _axis(x: TensorInfo, axis: int) -> int:
    if not x.rank:
        raise RelaxError("expected an operand of rank 1 or more, got a scalar")
    return normalize_axis(axis, x.rank)


def _words(size: Dim, per_word: int) -> Dim:
    return None if size is None else (size + per_word - 1) // per_word
