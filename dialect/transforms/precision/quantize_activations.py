"""Multiplies quantized weights with activations that are quantized, too, when the model runs: integers, in exact sums.

Before::

    %w = "relax.dequantize"(%q, %scale, %zero) : (tensor<96x768x32xi4>, tensor<96x24x32xf32>, ...) -> tensor<96x768x32xf32>
    %y = "relax.packed_matmul"(%x, %w) {layout = "tile 32", n = 3072 : i64}

after::

    %0 = ...                                       // the largest of 32 elements of a row over 127: tensor<?x24xf32>
    %1 = "relax.quantize"(%x, %0, 0) {dtype = i8}  // tensor<?x768xi8>
    %2 = ...                                       // the sums of 32 of these: tensor<?x24xi32>
    %3 = "relax.pack_nibbles"(...)                 // %q in other order: tensor<96x96x32xui32>
    %y = "relax.quantized_matmul"(%1, %0, %2, %3, %scale, 8) {layout = "tile 32, rows 4, u4x8, offset 8", n = 3072 : i64}

A scale is ``max |x| / 127``, symmetric, for each row and group of rows of the weight that has a scale (as ONNX Runtime's
MatMulNBits with accuracy_level 4 and llama.cpp's Q8_0 do), for the whole row where a column of the weight has one. An
activation is off by at most 1/254 of the largest in its group. Products that read the same activations share them.

Rows that are dequantized bytes stay those integers, and nothing is rounded::

    %x = "relax.dequantize"(%r, %s, %zero)         // tensor<?x768xui8>, one scale and zero point, or one for each row
    %x = "relax.dequantize"(%r, %s, 0)             // tensor<?x768xi8>, tensor<?x24xf32>: or a scale for each group of a row

Bytes without a sign get one, and what the zero point adds to the product of each column is taken away behind it
(:mod:`.given_integers`). With ``floats=false`` only products of such rows are rewritten; with ``exact=true`` those of a single
row of floats and integers of four bits, too, as two or three rows of bytes that say all that it does (:mod:`.exact_rows`).
Where ``int8_exact`` of ``relax.weight_layouts`` says so, all rows of f32 are, if so many rows of the weight have one scale, and
it has not few columns. Parts of few rows are rows beside each other, those of others are multiplied one after the other, and
their products added at once (``parts``).

What the weight becomes comes from it alone: lifting moves that to preparation. Products of other weights stay, as do those of
groups that the instructions do not divide, and on targets whose kernels sum bytes, and scale sums, those of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf, lcm
from typing import ClassVar

from ...analysis.weight_flow import FlowRules, WeightFlow
from ...bindings import func, ir
from ...errors import RelaxError
from ...functions import functions, name_of, num_input
from ...inference import is_float, normalize_axis
from ...ops import (
    Abs,
    Add,
    AsType,
    Dequantize,
    Full,
    Max,
    Maximum,
    Multiply,
    PackedGroupedMatMul,
    PackedMatMul,
    PackNibbles,
    PermuteDims,
    Quantize,
    QuantizedGroupedMatMul,
    QuantizedMatMul,
    Subtract,
    Sum,
)
from ...ops.quantize import LONGEST_GROUP
from ...packed_layout import NIBBLES, PackedLayout
from ...passes.base import Pass
from ...passes.rewriting import Patterns, Rewriter, walk
from ...reports import report
from ...reports.activations import KeptProduct, QuantizedActivations, QuantizedProduct
from ...reports.report import plural
from ...struct_info import TensorInfo
from ...symbolic import Dim
from ...weight_layouts import WeightLayouts
from ..emit import cast
from ..packing.block_movement import per_index, reshaped
from .exact_rows import are_beside, can_split, is_one_row, parts_of_row, split_rows, sum_of_rows
from .given_integers import GivenRows, column_sums, full, given_rows, turned

__all__ = ["QuantizeActivations"]

_Packed = PackedMatMul | PackedGroupedMatMul

# Panels [panel, row, column].
_RANK, _ROWS = 3, 1
# Quotients of a row by its scale are at most this; -128 would make products one larger than what sums hold.
_LARGEST = 127
# The least scale: rows of zeros have it, and quotients stay finite.
_LEAST = 1e-30
# With so many rows side by side an instruction sums products of bytes, and of weights of so many bits three rows take less time
# than one of floats. 4096 x 4096 of int4, one row, Zen 4: 0.81 of the time; two threads, at the memory's limit: 0.94.
_EXACT_ROWS, _EXACT_BITS = 4, 4
# Of fewer columns many rows stay floats: what splits rows takes longer than is gained. 64 rows of 1024, Zen 5, one thread: 512
# columns 0.83 of the time of floats, 256 0.92, 128 1.0, 64 1.28.
_EXACT_COLUMNS = 256

# Sums are of integers, exact and scaled once per group; a row in three parts is off by 2**-23 of its largest.
_OF_SUMS = 1e-5


@dataclass(frozen=True)
class QuantizeActivations(Pass):
    """Rewrites packed products of dequantized weights, in functions that have ``relax.num_input``.

    Attributes:
        rows: how many rows of a weight the target's instruction takes side by side, 2 or 4; with 1 nothing changes. None: what
            the module's ``relax.weight_layouts`` say.
        unsigned: whether it takes 8-bit weights as unsigned ones; else as signed ones. None: the same.
        floats: whether rows of floats are quantized; else only products of rows that are integers already change.
        exact: whether single rows of floats, or all of them, become several of integers, where four are side by side.
    """

    name: ClassVar[str] = "relax-quantize-activations"
    rounding: ClassVar[float] = inf
    rows: int | None = None
    unsigned: bool | None = None
    floats: bool = True
    exact: bool = False

    @property
    def stated_rounding(self) -> float:
        return self.rounding if self.floats else _OF_SUMS

    def run(self, op: ir.Operation) -> None:
        layouts = WeightLayouts.of(op)
        rows = layouts.int8_rows if self.rows is None else self.rows
        unsigned = layouts.int8_unsigned if self.unsigned is None else self.unsigned
        if rows not in (1, 2, 4):
            raise RelaxError(f"expected 1, 2 or 4 rows, got {rows}")
        rules, exact = FlowRules.of(op), self.exact and rows == _EXACT_ROWS
        for function in functions(op) if rows > 1 else ():
            if num_input(function) is not None:
                _Function(function, rows, unsigned, layouts, self.floats, exact, rules.flow(function)).rewrite()


class _Form(Enum):
    """What rows of floats become: bytes that they are rounded to, or several rows of bytes each that say all of them.

    Those are rows beside each other, of all or of each row of a group, or parts ``[parts, ...]``.
    """

    ROUNDED = auto()
    ROWS = auto()
    ROWS_OF_GROUPS = auto()
    PARTS = auto()


@dataclass(frozen=True)
class _Rearranged:
    """A weight as a product of integers reads it: how it is packed, and its integers, scales and zero points."""

    layout: PackedLayout
    operands: tuple[ir.Value, ...]


@dataclass
class _Function:
    """One function; ``rearranged``, ``quantized`` and ``summed`` are what was made of weights, and of rows in groups."""

    function: func.FuncOp
    rows: int
    unsigned: bool
    layouts: WeightLayouts
    floats: bool
    exact: bool
    flow: WeightFlow
    integer: list[QuantizedProduct] = field(default_factory=list[QuantizedProduct])
    kept: list[KeptProduct] = field(default_factory=list[KeptProduct])
    rearranged: dict[ir.Value, _Rearranged] = field(default_factory=dict[ir.Value, _Rearranged])
    quantized: dict[tuple[ir.Value, int, _Form], tuple[ir.Value, ...]] = field(
        default_factory=dict[tuple[ir.Value, int, _Form], tuple[ir.Value, ...]]
    )
    summed: dict[tuple[ir.Value, int], ir.Value] = field(default_factory=dict[tuple[ir.Value, int], ir.Value])

    def rewrite(self) -> None:
        walk(self.function, self.patterns())
        if self.integer or self.kept:
            report.add(QuantizedActivations(name_of(self.function), tuple(self.integer), tuple(self.kept)))

    def patterns(self) -> Patterns:
        return [(product, self._multiply_integers) for product in (PackedMatMul, PackedGroupedMatMul)]

    def _multiply_integers(self, op: _Packed, rewriter: Rewriter) -> bool:
        weight = op.weight.owner
        if not isinstance(weight, Dequantize):
            return False
        exact = self._is_exact(op, weight)
        if not (self.floats or given_rows(op.x) or exact):
            return False
        reason, sources = self._refusal(op, weight), self.flow.sources(op.weight)
        if reason is not None:
            self.kept += [] if exact else [KeptProduct(sources, reason)]
            return False
        if exact:
            rewriter.discard(weight)
            return rewriter.replace(op, [self._exact_product(op, weight)])
        self.integer.append(QuantizedProduct(sources, _width(weight.x), _shape(weight.x)[_ROWS] // _groups(weight)))
        rewriter.discard(weight)
        given = given_rows(op.x)
        if given is not None and isinstance(op, PackedMatMul):
            rewriter.discard(given.source)
            return rewriter.replace(op, [self._product_of_given(op, weight, given)])
        rows = self._quantized_rows(op, _groups(weight), _Form.ROUNDED)
        return rewriter.replace(op, self._product(op, weight, rows, TensorInfo.of(op.result).dtype))

    def _is_exact(self, op: _Packed, weight: Dequantize) -> bool:
        """Whether all digits of rows are multiplied: of a single one, or of all where the target has much more of such sums."""
        if not self.exact or self.floats or given_rows(op.x) or not can_split(op.x):
            return False
        return (_are_few(op) and _width(weight.x) == _EXACT_BITS) or self._is_cheap(op, weight)

    def _is_cheap(self, op: _Packed, weight: Dequantize) -> bool:
        """Whether it is f32 by many columns of integers, few scales to each."""
        least, rows, groups = self.layouts.int8_exact, _shape(weight.x)[_ROWS], _groups(weight)
        columns, is_wide = TensorInfo.of(op.result).shape[-1], _width(op.x) == _width(weight.result) == 32
        has_few_scales = (_width(weight.x) == 8 and groups == 1) or rows >= least * groups
        return least > 0 and has_few_scales and is_wide and isinstance(columns, int) and columns >= _EXACT_COLUMNS

    def _exact_product(self, op: _Packed, weight: Dequantize) -> ir.Value:
        """The product of rows as several of integers each."""
        dtype, wide = TensorInfo.of(op.result).dtype, ir.F32Type.get()
        if isinstance(op, PackedGroupedMatMul) and _are_few(op):
            return self._exact_of_groups(op, weight)
        if isinstance(op, PackedGroupedMatMul) or not are_beside(op.x):
            rows = self._quantized_rows(op, _groups(weight), _Form.PARTS)
            return self._product(op, weight, rows, dtype, has_parts=True).result
        rows = self._quantized_rows(op, _groups(weight), _Form.ROWS)
        product = self._product(op, weight, rows, wide).result
        with ir.InsertionPoint(op), op.location:
            return cast(sum_of_rows(product, op.x), dtype)

    def _exact_of_groups(self, op: PackedGroupedMatMul, weight: Dequantize) -> ir.Value:
        """The same of few rows in groups, whose parts [m, parts, ...] are rows of the same group."""
        (count, columns), parts = _shape(op.result), parts_of_row(op.x)
        rows = self._quantized_rows(op, _groups(weight), _Form.ROWS_OF_GROUPS)
        with ir.InsertionPoint(op), op.location:
            flat = [reshaped(v, [count * parts, TensorInfo.of(v).shape[-1]]) for v in rows]
        product = self._product(op, weight, flat, ir.F32Type.get(), factor=parts).result
        with ir.InsertionPoint(op), op.location:
            found = Sum.create(reshaped(product, [count, parts, columns]), axis=[1]).result
            return cast(found, TensorInfo.of(op.result).dtype)

    def _refusal(self, op: _Packed, weight: Dequantize) -> str | None:
        """Why a product stays as it is."""
        shape, bits = _shape(weight.x), _width(weight.x)
        if not self.flow.once_from_weights(weight.x):
            return "the weight is computed when the model runs"
        if len(shape) != _RANK or bits not in (4, 8) or is_float(TensorInfo.of(weight.x).dtype):
            return f"the weight is {TensorInfo.of(weight.x)}"
        if any(_width(v) > 32 for v in (op.x, weight.result, weight.zero_point)):
            return "it is computed in 64 bits"
        if is_float(TensorInfo.of(weight.zero_point).dtype):
            return "its zero points are floats"
        if weight.out_dtype not in (None, TensorInfo.of(weight.scale).dtype, ir.F32Type.get()):
            return f"its elements are rounded to {weight.out_dtype}"
        if TensorInfo.of(op.x).shape.count(None) > 1:
            return "the shape of the activations is not known"
        readers = [use.owner for use in weight.result.uses]
        if not all(isinstance(r, _Packed) and r.weight == weight.result for r in readers):
            return "more than products read the weight"
        given = given_rows(op.x)
        if isinstance(op, PackedGroupedMatMul) and given is not None:
            return "rows in groups are integers already"
        if isinstance(op, PackedGroupedMatMul) and not self.layouts.int8_groups:
            return "rows are in groups, whose products kernels of the target take as those of floats"
        if given is not None and _groups(weight) % given.groups:
            return f"{plural(given.groups, 'group')} of its rows have a scale, of the weight {_groups(weight)}"
        if not self.layouts.int8_groups and (bits == NIBBLES.bits or _groups(weight) > 1):
            what = "it has integers of four bits" if bits == NIBBLES.bits else "groups of its rows have scales of their own"
            return f"{what}, which kernels of the target multiply as floats"
        every, whole = shape[_ROWS] // _groups(weight), NIBBLES.count if bits == NIBBLES.bits else self.rows
        if every % whole:
            what = f"words of {whole} integers" if bits == 4 else f"{whole} side by side"
            return f"its groups of {every} rows are no whole {what}"
        if not 0 < every <= LONGEST_GROUP:
            return f"sums of {every} products may not fit 32 bits"
        return None

    def _product(
        self,
        op: _Packed,
        weight: Dequantize,
        rows: Sequence[ir.Value],
        dtype: ir.Type,
        *,
        factor: int = 1,
        has_parts: bool = False,
    ) -> QuantizedMatMul | QuantizedGroupedMatMul:
        """The product of integers; of rows in groups so many, one after the other, stand for each that there was."""
        if weight.result not in self.rearranged:
            with ir.InsertionPoint(weight), weight.location:
                self.rearranged[weight.result] = self._rearranged(weight, _groups(weight))
        with ir.InsertionPoint(op), op.location:
            made, out_dtype = self.rearranged[weight.result], None if isinstance(dtype, ir.F32Type) else dtype
            factors, layout, parts = (*rows, *made.operands), made.layout, has_parts or None
            if isinstance(op, PackedMatMul):
                return QuantizedMatMul.create(*factors, layout=layout, n=op.n, out_dtype=out_dtype, parts=parts)
            ends = op.ends if factor == 1 else Multiply.create(op.ends, full(factor, TensorInfo.of(op.ends).dtype, [])).result
            return QuantizedGroupedMatMul.create(*factors, ends, layout=layout, n=op.n, out_dtype=out_dtype, parts=parts)

    def _quantized_rows(self, op: _Packed, groups: int, form: _Form) -> tuple[ir.Value, ...]:
        key = op.x, groups, form
        if key not in self.quantized:
            with _after(op.x), op.location:
                self.quantized[key] = _quantized(op.x, groups, form)
        return self.quantized[key]

    def _product_of_given(self, op: PackedMatMul, weight: Dequantize, rows: GivenRows) -> ir.Value:
        """The product of integers that are there, less what their zero point adds."""
        key = op.x, _groups(weight), _Form.ROUNDED
        if key not in self.quantized:
            with _after(op.x), op.location:
                self.quantized[key] = _given(rows, _groups(weight))
        product = self._product(op, weight, self.quantized[key], ir.F32Type.get()).result
        with ir.InsertionPoint(op), op.location:
            more = rows.offset()
            if more is not None:
                product = Subtract.create(product, Multiply.create(more, self._sums(op, weight)).result).result
            return cast(product, TensorInfo.of(op.result).dtype)

    def _sums(self, op: PackedMatMul, weight: Dequantize) -> ir.Value:
        """The sums of columns of a rearranged weight."""
        key = weight.result, op.n
        if key not in self.summed:
            made = self.rearranged[weight.result]
            with ir.InsertionPoint(weight), weight.location:
                self.summed[key] = column_sums(weight.x, made.operands[1:], made.layout.offset, op.n)
        return self.summed[key]

    def _rearranged(self, weight: Dequantize, groups: int) -> _Rearranged:
        """The integers side by side, their scales and their zero points."""
        panels, k, tile = _shape(weight.x)
        scale = _scale(weight, [panels, groups, tile])
        is_nibble, is_signed = _width(weight.x) == NIBBLES.bits, not _dtype(weight.x).is_unsigned
        moves = is_signed if is_nibble or self.unsigned else not is_signed
        half = PackedLayout.offset_of(_width(weight.x)) if moves else 0
        layout = PackedLayout(tile, self.rows, NIBBLES if is_nibble else None, half if is_signed else -half)
        zero = _zero(weight, layout.offset)
        if TensorInfo.of(zero).rank:
            zero = _spread(zero, [panels, groups, tile])
        integers = turned(weight.x) if moves else weight.x
        if is_nibble:
            word = ir.IntegerType.get_unsigned(NIBBLES.width)
            integers = PackNibbles.create(integers, axis=_ROWS, dtype=word, layout=layout).result
        else:
            sides = reshaped(integers, [panels, layout.depth(k), self.rows, tile])
            integers = PermuteDims.create(sides, axes=[0, 1, 3, 2]).result
        return _Rearranged(layout, (integers, scale, zero))


def _are_few(op: _Packed) -> bool:
    """Whether this is a single row, or, on the average, no more than one of each group."""
    if isinstance(op, PackedMatMul):
        return is_one_row(op.x)
    rows, (groups,) = TensorInfo.of(op.x).shape[0], TensorInfo.of(op.ends).shape
    return isinstance(rows, int) and isinstance(groups, int) and rows <= groups


def _scale(weight: Dequantize, shape: Sequence[int]) -> ir.Value:
    """The scales as they are stored, wider ones than f32 in that."""
    maker, dtype = weight.scale.owner, min(TensorInfo.of(weight.scale).dtype, ir.F32Type.get(), key=lambda t: t.width)
    if isinstance(maker, Full):
        return full(maker.value, dtype, shape)
    return _spread(cast(_blocks(weight.scale, weight), dtype), shape)


def _zero(weight: Dequantize, more: int) -> ir.Value:
    """The zero point of integers that are so much more: a scalar or one per block, at least 8 bits wide."""
    value, width = weight.zero_point, _width(weight.zero_point)
    maker = value.owner
    if isinstance(maker, Full):
        return full(maker.value + more, ir.IntegerType.get_signless(32), [])
    wide = value
    if more or width < 8:
        wide = cast(value, ir.IntegerType.get_signless(8 if width == 4 else 16 if width == 8 else 32))
    if more:
        wide = Add.create(wide, full(more, TensorInfo.of(wide).dtype, [])).result
    return _blocks(wide, weight) if TensorInfo.of(wide).rank else wide


def _quantized(x: ir.Value, groups: int, form: _Form) -> tuple[ir.Value, ...]:
    """Integers of rows, their scales and their sums by groups."""
    shape = TensorInfo.of(x).shape
    if form is _Form.PARTS:
        x = reshaped(x, [1, *shape])
    elif form is _Form.ROWS_OF_GROUPS:
        x = reshaped(x, [*shape[:-1], 1, shape[-1]])
    wide = cast(x, ir.F32Type.get())
    magnitude = _by_groups(Max, Abs.create(wide).result, groups if form is _Form.ROUNDED else 1)
    if form is not _Form.ROUNDED:
        integers, scale = split_rows(x, magnitude, 0 if form is _Form.PARTS else len(TensorInfo.of(x).shape) - 2)
        return integers, scale, _group_sums(integers, groups)
    least, step = (full(v, ir.F32Type.get(), []) for v in (_LARGEST * _LEAST, 1 / _LARGEST))
    scale = Multiply.create(Maximum.create(magnitude, least).result, step).result
    byte = ir.IntegerType.get_signless(8)
    integers = Quantize.create(wide, scale, full(0, byte, []), dtype=byte).result
    return integers, scale, _group_sums(integers, groups)


def _given(rows: GivenRows, groups: int) -> tuple[ir.Value, ...]:
    """Integers of rows that are there, their scales and their sums by groups."""
    integers = rows.integers()
    return integers, rows.scale(groups), _group_sums(integers, groups)


def _group_sums(integers: ir.Value, groups: int) -> ir.Value:
    return _by_groups(Sum, AsType.create(integers, dtype=ir.IntegerType.get_signless(32)).result, groups)


def _by_groups(reduction: type[Max] | type[Sum], x: ir.Value, groups: int) -> ir.Value:
    """One value per group of a row."""
    if groups == 1:
        return reduction.create(x, axis=[-1], keepdims=True).result
    *outer, k = TensorInfo.of(x).shape
    assert isinstance(k, int)
    return reduction.create(reshaped(x, [*outer, groups, k // groups]), axis=[-1]).result


def _groups(weight: Dequantize) -> int:
    """How many groups of rows have a scale or a zero point of their own."""
    return lcm(*(_static(_blocks_shape(v, weight))[_ROWS] for v in (weight.scale, weight.zero_point)))


def _blocks_shape(parameter: ir.Value, weight: Dequantize) -> list[Dim]:
    """The shape of a scale or zero point at the rank of the panels."""
    shape = list(TensorInfo.of(parameter).shape)
    if len(shape) == _RANK:
        return shape
    axis = normalize_axis(weight.axis, _RANK)
    return [shape[0] if shape and i == axis and shape[0] != 1 else 1 for i in range(_RANK)]


def _blocks(parameter: ir.Value, weight: Dequantize) -> ir.Value:
    return reshaped(parameter, _blocks_shape(parameter, weight))


def _spread(parameter: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A parameter with one element per panel, group and column."""
    for axis, size in enumerate(shape):
        parameter = per_index(parameter, axis, size)
    return parameter


def _after(value: ir.Value) -> ir.InsertionPoint:
    """Right behind where a value is made."""
    owner = value.owner
    return ir.InsertionPoint.at_block_begin(owner) if isinstance(owner, ir.Block) else ir.InsertionPoint.after(owner)


def _dtype(value: ir.Value) -> ir.IntegerType:
    return ir.IntegerType(TensorInfo.of(value).dtype)


def _width(value: ir.Value) -> int:
    width: int = TensorInfo.of(value).dtype.width  # pyright: ignore[reportAttributeAccessIssue]
    return width


def _shape(value: ir.Value) -> list[int]:
    return _static(TensorInfo.of(value).shape)


def _static(shape: Sequence[Dim]) -> list[int]:
    return [d for d in shape if isinstance(d, int)]
