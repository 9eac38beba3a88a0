"""Rows of floats as several rows of signed bytes each, whose products with integers add up to the row's own.

With the largest element of a row, m::

    s0 = m / 127                 q0 = round(x / s0)                    x = q0 * s0 + r0, where |r0| is at most s0 / 2
    s1 = s0 / 254                q1 = round(r0 / s1)                  r0 = q1 * s1 + r1, where |r1| is at most s1 / 2
    s2 = s1 / 254                q2 = round(r1 / s2)

Three rows leave at most ``m / 127 / 254**2 / 2``, less than ``m * 2**-23``: an element of the row is off by no more than
twice what rounding to f32 moves its largest, or by 1e-38, where all are less than 1e-31. Two leave ``m * 2**-16``, as much for
bf16 and f16. A row that has an infinity gives NaN.
"""

from __future__ import annotations

import functools
from math import prod

from ...bindings import ir
from ...ops import Concat, Dequantize, Maximum, Multiply, Quantize, Subtract, Sum
from ...struct_info import TensorInfo
from ..emit import cast
from ..packing.block_movement import reshaped
from .given_integers import full

__all__ = ["are_beside", "can_split", "is_one_row", "parts_of_row", "split_rows", "sum_of_rows"]

# What integers of the first row are at most; of the next ones it is a remainder, at most half a step.
_LARGEST, _STEPS = 127, 254
# The least scale: that of the third row is still a normal f32.
_LEAST = 1e-33
# Two rows of f32 are six of bytes. 4096 x 4096 of int8, Zen 5, one thread: 229 us, part after part 345, floats 318; four rows
# of 1024 x 1024 32 and 33, floats 39.
_BESIDE = 2
# Rows by the bits of an element.
_ROWS = {32: 3, 16: 2}


def can_split(x: ir.Value) -> bool:
    """Whether these are rows [..., m, k] of floats that are split."""
    info = TensorInfo.of(x)
    return info.rank > 1 and info.dtype.width in _ROWS


def is_one_row(x: ir.Value) -> bool:
    """Whether this is a single row [..., 1, k]."""
    return all(d == 1 for d in TensorInfo.of(x).shape[:-1])


def are_beside(x: ir.Value) -> bool:
    """Whether parts of all rows [..., m, k] are rows beside each other: of so few a tile of registers reads a weight once."""
    shape = TensorInfo.of(x).shape[:-1]
    return all(isinstance(d, int) for d in shape) and prod(d for d in shape if isinstance(d, int)) <= _BESIDE


def sum_of_rows(product: ir.Value, x: ir.Value) -> ir.Value:
    """What products [..., parts * m, n] of the parts of rows ``x`` beside each other add up to, [..., m, n]."""
    if is_one_row(x):
        return Sum.create(product, axis=[-2], keepdims=True).result
    *outer, rows, _ = TensorInfo.of(x).shape
    parts, columns = parts_of_row(x), TensorInfo.of(product).shape[-1]
    return Sum.create(reshaped(product, [*outer, parts, rows, columns]), axis=[-3]).result


def parts_of_row(x: ir.Value) -> int:
    """How many rows of bytes each row is split in."""
    return _ROWS[TensorInfo.of(x).dtype.width]


def split_rows(x: ir.Value, magnitude: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    """Integers and scales of parts of rows, all first parts, then all second ones, along a dimension of theirs.

    Args:
        x: the rows, ``[..., k]``.
        magnitude: the largest of each row, without its sign, f32 ``[..., 1]``.
        axis: the dimension.
    """
    count = parts_of_row(x)
    f32, byte = ir.F32Type.get(), ir.IntegerType.get_signless(8)
    zero, rest = full(0, byte, []), cast(x, f32)
    scale = _times(Maximum.create(magnitude, full(_LARGEST * _LEAST, f32, [])).result, 1 / _LARGEST)
    integers, scales = list[ir.Value](), list[ir.Value]()
    for i in range(count):
        row = Quantize.create(rest, scale, zero, dtype=byte).result
        integers.append(row)
        scales.append(scale)
        if i + 1 < count:
            rest = Subtract.create(rest, Dequantize.create(row, scale, zero).result).result
            scale = _times(scale, 1 / _STEPS)
    return _joined(integers, axis), _joined(scales, axis)


def _joined(rows: list[ir.Value], axis: int) -> ir.Value:
    return functools.reduce(lambda above, row: Concat.create(above, row, axis=axis).result, rows)


def _times(value: ir.Value, factor: float) -> ir.Value:
    return Multiply.create(value, full(factor, ir.F32Type.get(), [])).result
