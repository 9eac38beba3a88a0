"""Puts eight four-bit integers of a packed weight in a word, and takes them apart where products read it.

Before::

    %w = "relax.dequantize"(%q, %scale, %zero) : (tensor<96x768x32xui4>, ...) -> tensor<96x768x32xf32>
    %y = "relax.packed_matmul"(%x, %w) {layout = "tile 32", n = 3072 : i64}

after::

    %0 = "relax.pack_nibbles"(%q) {axis = 1 : i64, dtype = ui32, layout = "tile 32, rows 4, u4x8"}    // tensor<96x96x32xui32>
    %1 = "relax.unpack_nibbles"(%0) {axis = 1 : i64, dtype = ui4, layout = "tile 32, rows 4, u4x8", size = 768 : i64, ...}
    %w = "relax.dequantize"(%1, %scale, %zero)
    %y = "relax.packed_matmul"(%x, %w) {layout = "tile 32", n = 3072 : i64}

A shift and a mask give as many rows at once as products of integers take, where the target has these for such weights: all
products read the same words, those of one row as integers (``relax-quantize-activations``), those of more as floats.

Lifting packs when weights are prepared; products take words apart in registers. A word has neighbouring rows of a column, so
that a row of words is a vector, and it is as wide as an f32: a mask gives a vector of integers to convert. Signed integers
become unsigned ones, 8 more, and so does their zero point: a sign would take as long as the rest. Where more than products read
the weight, taking it apart is a pass over memory: it stays.

Bytes that are integers of five or six bits, by what they are computed from, are in two words, the second of the high bits::

    %0 = "relax.pack_nibbles"(%low) {axis = 1 : i64, dtype = ui32, layout = "tile 32, u4x8"}
    %1 = "relax.pack_nibbles"(%high) {axis = 1 : i64, dtype = ui32, layout = "tile 32, rows 8, u2x16"}
    %2 = "relax.unpack_planes"(%0, %1) {layout = "tile 32, rows 8, u2x16", size = 768 : i64}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...analysis.integer_bits import bits_of
from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import ir
from ...context import operations
from ...functions import functions, num_input
from ...lift_override import LIFT, NEVER
from ...op import grows_from
from ...ops import (
    Add,
    AsType,
    BitwiseAnd,
    BitwiseXor,
    Dequantize,
    Full,
    PackedGroupedMatMul,
    PackedMatMul,
    PackNibbles,
    RightShift,
    UnpackNibbles,
    UnpackPlanes,
)
from ...packed_layout import NIBBLES, PLANES, PackedLayout
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...struct_info import TensorInfo
from ...weight_layouts import WeightLayouts

__all__ = ["PackIntoNibbles"]

# The rows of panels [panel, row, column].
_ROWS = 1
# What signed four-bit integers are more by when they are unsigned.
_OFFSET = PackedLayout.offset_of(NIBBLES.bits)


@dataclass(frozen=True)
class PackIntoNibbles(Pass):
    """Packs what widens to a weight that only packed products read, in functions that have ``relax.num_input``."""

    name: ClassVar[str] = "relax-pack-nibbles"

    def run(self, op: ir.Operation) -> None:
        rules, layouts = FlowRules.of(op), WeightLayouts.of(op)
        rows = layouts.int8_rows if layouts.int8_groups else 1
        for function in functions(op):
            if num_input(function) is not None:
                walk(function, _Words(rules.flow(function), rows).patterns())


class _Words:
    """What is packed in one function: each weight once, as it is or as unsigned integers."""

    def __init__(self, flow: WeightFlow, rows: int):
        self._flow, self._rows = flow, rows
        self._packed: dict[tuple[ir.Value, bool], ir.Value] = {}

    def patterns(self) -> Patterns:
        return [(kind, self._widen_from_words) for kind in operations() if kind.grows is not None]

    def _widen_from_words(self, op: Any, rewriter: Rewriter) -> bool:
        x = op.operands[0]
        if not self._flow.once_from_weights(op.results[0]) or not self._flow.once_from_weights(x):
            return False
        if not _products(op.results[0]):
            return False
        if high := _high_bits(x, _products(op.results[0])[0].layout):
            return self._widen_from_planes(op, high, rewriter)
        if not _can_pack(x):
            return False
        with rewriter.before(op):
            zero = _raised_zero(op) if isinstance(op, Dequantize) else None
            key = x, zero is not None
            if key not in self._packed:
                integers = x if zero is None else _raised(x)
                self._packed[key] = _through_words(integers, self._layout(op.results[0], zero is not None))
            zero = zero or (_whole_zero(op) if isinstance(op, Dequantize) else None)
        op.operands[0] = self._packed[key]
        if zero is not None:
            op.operands[2] = zero
        return True

    def _layout(self, grown: ir.Value, is_raised: bool) -> PackedLayout:
        """How words are packed whose integers products read in panels; all readers have these, as they read the same."""
        return replace(_products(grown)[0].layout, rows=self._rows, word=NIBBLES, offset=_OFFSET if is_raised else 0)

    def _widen_from_planes(self, op: Any, high: int, rewriter: Rewriter) -> bool:
        x, layout = op.operands[0], _products(op.results[0])[0].layout
        with rewriter.before(op):
            if (x, False) not in self._packed:
                self._packed[x, False] = _through_planes(x, layout, high)
        op.operands[0] = self._packed[x, False]
        return True


def _products(grown: ir.Value) -> list[PackedMatMul | PackedGroupedMatMul]:
    """The products that read what a weight grew to, or what grows out of that; none where anything else does."""
    found: list[PackedMatMul | PackedGroupedMatMul] = []
    for reader in [use.owner for use in grown.uses]:
        if isinstance(reader, PackedMatMul | PackedGroupedMatMul) and reader.weight == grown:
            found.append(reader)
        elif (x := grows_from(reader)) is not None and x == grown and (more := _products(reader.results[0])):
            found += more
        else:
            return []
    return found


def _can_pack(value: ir.Value) -> bool:
    info = TensorInfo.of(value)
    if not isinstance(info.dtype, ir.IntegerType) or info.dtype.width != NIBBLES.bits or info.rank != _ROWS + 2:
        return False
    return isinstance(info.shape[_ROWS], int) and not isinstance(value.owner, UnpackNibbles)


def _high_bits(value: ir.Value, layout: PackedLayout) -> int:
    """How many bits beyond four the integers of a packed weight have that are bytes; 0 where they do not go into planes.

    Panels of one column are for targets that read neighbours along its rows.
    """
    info, bits = TensorInfo.of(value), bits_of(value)
    is_panel = info.rank == _ROWS + 2 and isinstance(info.shape[_ROWS], int) and layout.tile > 1 and layout.rows == 1
    is_byte = isinstance(info.dtype, ir.IntegerType) and info.dtype.width == 8 and info.dtype.is_unsigned
    fits = is_panel and is_byte and bits - NIBBLES.bits in PLANES and not isinstance(value.owner, UnpackPlanes)
    return bits - NIBBLES.bits if fits else 0


def _raised_zero(op: Dequantize) -> ir.Value | None:
    """The zero point of the raised integers; None when these are unsigned as they are."""
    zero = op.zero_point
    info, stored = TensorInfo.of(zero), TensorInfo.of(op.x).dtype
    if not isinstance(stored, ir.IntegerType) or stored.is_unsigned or not isinstance(info.dtype, ir.IntegerType):
        return None
    wide = info.with_(dtype=ir.IntegerType.get_signless(min(64, max(8, 2 * info.dtype.width))))
    maker: Any = zero.owner
    if isinstance(maker, Full):
        return Full.create(value=maker.value + _OFFSET, result_types=[wide.type]).result
    return Add.create(AsType.create(zero, dtype=wide.dtype).result, _number(_OFFSET, wide)).result


def _whole_zero(op: Dequantize) -> ir.Value | None:
    """Zero points of half a byte as bytes, which they take anyway; None for others. Products of integers want them so, too."""
    info = TensorInfo.of(op.zero_point)
    if not isinstance(info.dtype, ir.IntegerType) or info.dtype.width >= 8 or isinstance(op.zero_point.owner, Full):
        return None
    return AsType.create(op.zero_point, dtype=ir.IntegerType.get_signless(8)).result


def _raised(value: ir.Value) -> ir.Value:
    """Signed integers as unsigned ones, 8 more: the sign is the highest bit the other way round."""
    dtype = ir.IntegerType.get_unsigned(4)
    bits = AsType.create(value, dtype=dtype).result
    return BitwiseXor.create(bits, _number(_OFFSET, TensorInfo.of(bits))).result


def _number(number: int, like: TensorInfo) -> ir.Value:
    return Full.create(value=number, result_types=[like.with_(shape=[]).type]).result


def _through_words(value: ir.Value, layout: PackedLayout) -> ir.Value:
    """The value through words of several elements each."""
    info, word = TensorInfo.of(value), ir.IntegerType.get_unsigned(NIBBLES.width)
    packed = PackNibbles.create(value, axis=_ROWS, dtype=word, layout=layout).result
    result = UnpackNibbles.create(packed, axis=_ROWS, dtype=info.dtype, size=info.shape[_ROWS], layout=layout).result
    # Taking words apart ahead would undo all this; for small weights lifting would think it worth the memory.
    result.owner.attributes[LIFT] = ir.StringAttr.get(NEVER)
    return result


def _through_planes(value: ir.Value, layout: PackedLayout, high: int) -> ir.Value:
    """The same of bytes whose four lowest bits are in words, and their others in words of their own."""
    info, word, nibble = TensorInfo.of(value), *(ir.IntegerType.get_unsigned(n) for n in (NIBBLES.width, NIBBLES.bits))
    low = BitwiseAnd.create(value, _number((1 << NIBBLES.bits) - 1, info)).result
    parts = (low, RightShift.create(value, _number(NIBBLES.bits, info)).result)
    layouts = (replace(layout, word=NIBBLES), replace(layout, word=PLANES[high], rows=NIBBLES.count))
    packed = [
        PackNibbles.create(AsType.create(part, dtype=nibble).result, axis=_ROWS, dtype=word, layout=own).result
        for part, own in zip(parts, layouts, strict=True)
    ]
    result = UnpackPlanes.create(*packed, layout=layouts[1], size=info.shape[_ROWS]).result
    result.owner.attributes[LIFT] = ir.StringAttr.get(NEVER)
    return result
