"""Rows of a product that are integers already: what of these is multiplied, and what their zero point takes away.

With rows ``(q - z) * s`` and a column that stands for ``w``::

    sum over k: (q - z) * s * w  =  s * (sum over k: q * w)  -  s * z * (sum over k: w)

The last sum comes from the weight alone: lifting moves it to preparation, and with it all that is taken away where s and z are
weights, too. Integers without a sign are made less by half of their range, and so is z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...bindings import ir
from ...inference import is_float, normalize_axis
from ...ops import AsType, BitwiseXor, BroadcastTo, Dequantize, Full, Multiply, StridedSlice, Subtract, Sum
from ...struct_info import TensorInfo
from ...symbolic import Dim, same
from ..emit import cast
from ..packing.block_movement import per_index, reshaped

__all__ = ["GivenRows", "column_sums", "full", "given_rows", "known_sizes", "turned"]

# Zero points of so many bits are exact in f32.
_EXACT = 16


@dataclass(frozen=True)
class GivenRows:
    """Rows that are dequantized bytes.

    Attributes:
        source: what dequantizes them; its parameters are one for all, one for each row, or
            scales are for each group of a row, and its zero point takes nothing away.
    """

    source: Dequantize

    def integers(self) -> ir.Value:
        """The bytes, with a sign."""
        return turned(self.source.x) if self._is_unsigned else self.source.x

    def scale(self, groups: int) -> ir.Value:
        """The scale of each row, f32, or of each of so many groups of it, a multiple of those that have one."""
        *outer, _ = TensorInfo.of(self.source.x).shape
        scale = self._scale()
        if self.groups > 1:
            return per_index(scale, len(outer), groups)
        info = TensorInfo((*outer, 1), ir.F32Type.get(), None)
        return BroadcastTo.create(scale, result_types=[info.type]).result

    def offset(self) -> ir.Value | None:
        """By how much numbers are less than their integers times the scale, f32; None where that is 0."""
        if self.offset_is_zero:
            return None
        more = self._more
        zero = cast(self._shaped(self.source.zero_point), ir.F32Type.get())
        if more:
            zero = Subtract.create(zero, full(more, ir.F32Type.get(), [])).result
        return Multiply.create(self._scale(), zero).result

    @property
    def offset_is_zero(self) -> bool:
        """Whether nothing is taken away from the product of :meth:`integers`."""
        maker = self.source.zero_point.owner
        return isinstance(maker, Full) and maker.value == self._more

    @property
    def _more(self) -> int:
        """By how much the bytes are more than :meth:`integers`."""
        return 1 << 7 if self._is_unsigned else 0

    @property
    def groups(self) -> int:
        """How many groups of a row have a scale of their own."""
        shape = _shape(self.source.scale, self.source)
        return shape[-1] if shape and isinstance(shape[-1], int) else 1

    @property
    def _is_unsigned(self) -> bool:
        return ir.IntegerType(TensorInfo.of(self.source.x).dtype).is_unsigned

    def _scale(self) -> ir.Value:
        return cast(self._shaped(self.source.scale), ir.F32Type.get())

    def _shaped(self, parameter: ir.Value) -> ir.Value:
        return reshaped(parameter, _shape(parameter, self.source))


def given_rows(x: ir.Value) -> GivenRows | None:
    """The rows that a value is, None where it is not made of bytes like that."""
    op = x.owner
    if not isinstance(op, Dequantize) or not isinstance(TensorInfo.of(x).dtype, ir.F32Type):
        return None
    stored, zero = TensorInfo.of(op.x).dtype, TensorInfo.of(op.zero_point).dtype
    narrow = isinstance(stored, ir.IntegerType) and stored.width == 8 and not is_float(zero) and zero.width <= _EXACT  # pyright: ignore[reportAttributeAccessIssue]
    if not narrow or None in TensorInfo.of(x).shape or not _is_by_row(op.zero_point, op):
        return None
    rows = GivenRows(op)
    return rows if _is_by_row(op.scale, op) or (_has_groups(op) and rows.offset_is_zero) else None


def _is_by_row(parameter: ir.Value, source: Dequantize) -> bool:
    """Whether a scale or zero point is one for all, or one for each row."""
    shape = _shape(parameter, source)
    return not shape or (shape[-1] == 1 and _has_rows(shape, source))


def _has_rows(shape: Sequence[Dim], source: Dequantize) -> bool:
    rows = TensorInfo.of(source.x).shape
    return all(d == 1 or same(d, size) for d, size in zip(shape[:-1], rows[:-1], strict=True))


def _has_groups(source: Dequantize) -> bool:
    """Whether groups of each row have a scale: a known number of known ones, as products of integers read them."""
    shape = list(TensorInfo.of(source.scale).shape)
    return len(shape) == TensorInfo.of(source.x).rank and isinstance(shape[-1], int) and _has_rows(shape, source)


def _shape(parameter: ir.Value, source: Dequantize) -> list[Dim]:
    """The shape of a scale or zero point, that of a vector at the rank of the rows."""
    shape, rank = list(TensorInfo.of(parameter).shape), TensorInfo.of(source.x).rank
    if len(shape) in (0, rank):
        return shape
    axis = normalize_axis(source.axis, rank)
    return [shape[0] if i == axis else 1 for i in range(rank)]


def column_sums(integers: ir.Value, parameters: Sequence[ir.Value], more: int, n: int) -> ir.Value:
    """The sums of what the ``n`` columns of a packed weight stand for, f32.

    Args:
        integers: ``[panels, k, tile]``.
        parameters: scales of its groups, ``[panels, groups, tile]`` of f32; zero points, of integers, or a scalar for all.
        more: by how much zero points are too large.
    """
    i32, (scale, zero) = ir.IntegerType.get_signless(32), parameters
    panels, groups, tile = known_sizes(scale)
    every = known_sizes(integers)[1] // groups
    summed = Sum.create(reshaped(cast(integers, i32), [panels, groups, every, tile]), axis=[2]).result
    zeros = Subtract.create(cast(zero, i32), full(more, i32, [])).result
    exact = Subtract.create(summed, Multiply.create(zeros, full(every, i32, [])).result).result
    by_group = Multiply.create(cast(exact, ir.F32Type.get()), scale).result
    flat = reshaped(Sum.create(by_group, axis=[1]).result, [panels * tile])
    return flat if panels * tile == n else StridedSlice.create(flat, axes=[0], begin=[0], end=[n]).result


def known_sizes(value: ir.Value) -> list[int]:
    """The dimensions of a tensor that are numbers."""
    return [d for d in TensorInfo.of(value).shape if isinstance(d, int)]


def turned(value: ir.Value) -> ir.Value:
    """Signed integers as unsigned ones that are more by half of their range, or back: the highest bit the other way round."""
    dtype = ir.IntegerType(TensorInfo.of(value).dtype)
    other = ir.IntegerType.get_unsigned(dtype.width)
    if dtype.is_unsigned and dtype.width == 8:
        return AsType.create(_flipped(value), dtype=ir.IntegerType.get_signless(8)).result
    return _flipped(AsType.create(value, dtype=other).result)


def _flipped(value: ir.Value) -> ir.Value:
    dtype = ir.IntegerType(TensorInfo.of(value).dtype)
    return BitwiseXor.create(value, full(1 << (dtype.width - 1), dtype, [])).result


def full(value: float, dtype: ir.Type, shape: Sequence[Dim]) -> ir.Value:
    """A tensor of one number."""
    return Full.create(value=value, result_types=[TensorInfo(tuple(shape), dtype, None).type]).result
