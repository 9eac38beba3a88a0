"""Affine quantization per tensor, channel or block, computed in f32 (f64 when an operand is f64), and nibbles, as bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialect.bindings import ir
from ...dialect.inference import is_float, normalize_axis
from ...dialect.packed_layout import NIBBLES, PackedLayout, Word
from ...dialect.symbolic import Dim
from ..marks import INTEGRAL, WORD
from . import quantized_convolution, quantized_products
from .builder import ZERO, Exprs, Input, LinalgBuilder, Tensor, index, read, value_type
from .conversion import convert, load, store
from .dtypes import compute_type, integer_range, is_unsigned, storage_dtype
from .registry import Source, lowering
from .scalar import Scalar, constant, emit, larger, math, select, smaller
from .stored_integers import as_integer, place_in_word, width_of

__all__ = ["quantized_convolution", "quantized_products"]


# Integers below are exact in f32.
_EXACT = 1 << 24


class _Parameters:
    """Scale and zero point as inputs of a body; a known zero point is a constant there."""

    def __init__(self, source: Source):
        x, self.scale, self.zero_point = source.operands
        axis = normalize_axis(source.attrs["axis"], x.rank) if x.rank else 0
        tensors = [self.scale] if self.zero_point.splat is not None else [self.scale, self.zero_point]
        self.inputs: list[Input] = [(t.value, _exprs(t, x, axis)) for t in tensors]

    @property
    def distance_is_exact(self) -> bool:
        """Whether the distance of a zero point from the limits of a narrow dtype is exact in f32."""
        known, dtype = self.zero_point.splat, self.zero_point.dtype
        return width_of(dtype) <= 16 if known is None else abs(known) < _EXACT // 2

    def read(self, elements: list[ir.Value], dtype: ir.Type) -> tuple[Scalar, Scalar]:
        """In a body: the scale, and the zero point as a dtype."""
        splat = self.zero_point.splat
        step = load(elements[0], self.scale.dtype)
        if splat is not None:
            return step, constant(dtype, splat)
        if is_float(dtype):
            return step, Scalar(convert(load(elements[1], self.zero_point.dtype), self.zero_point.dtype, dtype))
        return step, as_integer(elements[1], self.zero_point.dtype, dtype)


def _exprs(parameter: Tensor, x: Tensor, axis: int) -> Exprs:
    """Where the scale or zero point of an element is: there is one for all, one per channel, or one per block."""
    if parameter.rank == 1 and x.rank != 1:
        return [axis]
    return [_block(i, *sizes) for i, sizes in enumerate(zip(parameter.shape, x.shape, strict=True))] if parameter.rank else []


def _block(loop: int, blocks: Dim, size: Dim) -> int | ir.AffineExpr:
    if blocks == 1:
        return ZERO
    if not isinstance(blocks, int) or not isinstance(size, int) or blocks == size:
        return loop
    return ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(loop), size // blocks)


def _float_type(*tensors: Tensor) -> ir.Type:
    types = [compute_type(t.dtype) for t in tensors]
    return ir.F64Type.get() if ir.F64Type.get() in types else ir.F32Type.get()


def _widened(x: Scalar, type_: ir.Type) -> Scalar:
    return x if x.type == type_ else Scalar(emit("arith.extf", type_, x.value))


@lowering("relax.quantize")
def _lower_quantize(b: LinalgBuilder, source: Source) -> ir.Value:
    x, scale, _ = source.operands
    dtype, parameters, wide = source.result.dtype, _Parameters(source), _float_type(x, scale)
    limits_first = integer_range(dtype)[1] < _EXACT and parameters.distance_is_exact

    def body(value: ir.Value, *others: ir.Value) -> ir.Value:
        step, offset = parameters.read(list(others), wide)
        steps = _widened(load(value, x.dtype), wide)
        steps = steps if scale.splat == 1 else steps / _widened(step, wide)
        if limits_first:
            return store(_rounded(steps, offset, dtype), dtype)
        return store(_limited(math("roundeven", steps) + offset, dtype), dtype)

    inputs: list[Input] = [(x.value, range(x.rank)), *parameters.inputs]
    return b.generic("p" * x.rank, inputs, b.empty(b.sizes(x), storage_dtype(dtype)), body)


def _rounded(steps: Scalar, offset: Scalar, dtype: ir.Type) -> Scalar:
    """What is limited to the dtype's range, then rounded: limits are integers, so that is as exact as the other order.

    Processors round and convert such a number in one instruction. A NaN is the least number. The sum has no negative zero.
    """
    low, high = (_distance(limit, offset) for limit in integer_range(dtype))
    whole = math("roundeven", smaller(larger(low, steps), high))
    return _converted(whole if is_unsigned(dtype) and offset.number == 0 else whole + offset, dtype)


def _distance(limit: int, offset: Scalar) -> Scalar:
    known = offset.number
    return constant(offset.type, limit) - offset if known is None else constant(offset.type, limit - known)


def _limited(value: Scalar, dtype: ir.Type) -> Scalar:
    """A number as an integer in the dtype's range; a NaN is the least. What does not fit never reaches the conversion.

    Limits that the float type has are two instructions, in place of six. One that it rounds up to the next power of two still
    separates what fits from what does not.
    """
    low, high = integer_range(dtype)
    if high < _EXACT:
        return _converted(smaller(larger(constant(value.type, low), value), constant(value.type, high)), dtype)
    above_low, below_high = value.compare("gt", low), value.compare("lt", high)
    number = _converted(select(above_low & below_high, value, 0), dtype)
    return select(value.compare("ge", high), high, select(above_low, number, low))


def _converted(value: Scalar, dtype: ir.Type) -> Scalar:
    """An integral number in the dtype's range, and no negative zero."""
    unsigned, mark = is_unsigned(dtype), {INTEGRAL: ir.UnitAttr.get()}
    return Scalar(emit("arith.fptoui" if unsigned else "arith.fptosi", compute_type(dtype), value.value, **mark), unsigned)


@lowering("relax.dequantize")
def _lower_dequantize(b: LinalgBuilder, source: Source) -> ir.Value:
    x, scale, zero_point = source.operands
    parameters, wide = _Parameters(source), _float_type(scale)
    narrow = all(width_of(t.dtype) <= 16 for t in (x, zero_point) if not is_float(t.dtype))
    integer = ir.IntegerType.get_signless(32 if narrow else 64)

    def of_integer(value: ir.Value, *others: ir.Value) -> ir.Value:
        step, offset = parameters.read(list(others), integer)
        distance = as_integer(value, x.dtype, integer) - offset
        real = Scalar(emit("arith.sitofp", wide, distance.value)) * step
        return store(real, source.result.dtype)

    def of_float(value: ir.Value, *others: ir.Value) -> ir.Value:
        step, offset = parameters.read(list(others), wide)
        if is_float(x.dtype):
            number = convert(load(value, x.dtype), x.dtype, wide)
        else:
            number = emit("arith.sitofp", wide, as_integer(value, x.dtype, integer).value)
        real = Scalar(number) * step
        return store(real if zero_point.splat == 0 else real - offset, source.result.dtype)

    body = of_float if is_float(zero_point.dtype) else of_integer
    inputs: list[Input] = [(x.value, range(x.rank)), *parameters.inputs]
    return b.generic("p" * x.rank, inputs, b.empty(b.sizes(x), storage_dtype(source.result.dtype)), body)


@lowering("relax.look_up")
def _lower_look_up(b: LinalgBuilder, source: Source) -> ir.Value:
    codes, table = source.operands
    loops, element = range(codes.rank), value_type(table.value).element_type
    if width_of(codes.dtype) > NIBBLES.bits:

        def entry(_: Sequence[Scalar], code: ir.Value) -> ir.Value:
            return read(table.value, [Scalar(emit("arith.index_castui", ir.IndexType.get(), code))])

        return b.gather(b.sizes(codes), element, entry, (codes.value, loops))

    def chosen(code: ir.Value, *others: ir.Value) -> ir.Value:
        """By a bit of the code after the other: entries that all lanes share are registers, which no load by index is."""
        wide, entries = Scalar(emit("arith.extui", ir.IntegerType.get_signless(32), code)), [Scalar(v) for v in others[:-1]]
        for bit in range(NIBBLES.bits):
            is_set = (wide & 1 << bit).compare("ne", 0)
            entries = [select(is_set, one, zero) for zero, one in zip(entries[::2], entries[1::2], strict=True)]
        return entries[0].value

    places = [[ir.AffineExpr.get_constant(i)] for i in range(1 << NIBBLES.bits)]
    inputs: list[Input] = [(codes.value, loops), *((table.value, place) for place in places)]
    return b.generic("p" * codes.rank, inputs, b.empty(b.sizes(codes), element), chosen)


@lowering("relax.pack_nibbles")
def _lower_pack_nibbles(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis, word = normalize_axis(source.attrs["axis"], x.rank), storage_dtype(source.result.dtype)
    sizes, kind = b.sizes(x), _word(source.result.dtype, source.attrs["layout"])
    places, mask = kind.places(_rows(source)), (1 << kind.bits) - 1
    size, per_word = sizes[axis], len(places)
    sizes[axis] = b.arith("ceildivsi", size, per_word)

    def packed(nibbles: Sequence[Scalar]) -> ir.Value:
        bits = [n.like(n.value if n.type == word else emit("arith.extui", word, n.value)) for n in nibbles]
        total = bits[0] & mask
        for value, at in list(zip(bits, places, strict=True))[1:]:
            total = total | ((value & mask) << at)
        return total.value

    def clamped(_: ir.Value) -> ir.Value:
        place, end = [index(i) for i in range(x.rank)], Scalar(b.as_index(size))
        first = place[axis] * per_word
        found: list[Scalar] = []
        for i in range(per_word):
            inside = (first + i).compare("lt", end)
            at = select(inside, first + i, first)
            found.append(select(inside, Scalar(read(x.value, [*place[:axis], at, *place[axis + 1 :]])), 0))
        return packed(found)

    out = b.empty(sizes, word)
    if not isinstance(size, int) or size % per_word:
        return b.generic("p" * x.rank, [], out, clamped)
    rows = [ir.AffineExpr.get_dim(axis) * per_word + i for i in range(per_word)]
    inputs: list[Input] = [(x.value, [e if i == axis else i for i in range(x.rank)]) for e in rows]
    return b.generic("p" * x.rank, inputs, out, lambda *e: packed([Scalar(v) for v in e[:-1]]))


@lowering("relax.unpack_nibbles")
def _lower_unpack_nibbles(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis, word, rows = normalize_axis(source.attrs["axis"], x.rank), _word(x.dtype, source.attrs["layout"]), _rows(source)
    sizes, byte = b.sizes(x), ir.IntegerType.get_signless(8)
    sizes[axis] = source.attrs["size"]

    mark = {WORD: ir.StringAttr.get(f"rows {rows}, {word}" if rows > 1 else str(word))}

    def body(stored: ir.Value, _: ir.Value) -> ir.Value:
        return emit("arith.trunci", byte, _integer_of_word(stored, index(axis), word, rows, mark))

    return b.generic("p" * x.rank, [(x.value, _word_places(x.rank, axis, word))], b.empty(sizes, byte), body)


def _integer_of_word(stored: ir.Value, step: Scalar, word: Word, rows: int, mark: Mapping[str, ir.Attribute]) -> ir.Value:
    """The integer of a step, of those of a word."""
    wide = ir.IntegerType.get_signless(max(32, word.width))
    value = stored if word.width == wide.width else emit("arith.extui", wide, stored)
    shifted = Scalar(value, unsigned=True) >> place_in_word(step, word, rows, wide)
    return emit("arith.andi", wide, shifted.value, constant(wide, (1 << word.bits) - 1).value, **mark)


def _word_places(rank: int, axis: int, word: Word) -> list[ir.AffineExpr | int]:
    """Where the word of an element is."""
    return [ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(i), word.count) if i == axis else i for i in range(rank)]


@lowering("relax.unpack_planes")
def _lower_unpack_planes(b: LinalgBuilder, source: Source) -> ir.Value:
    low, high = source.operands
    layout: PackedLayout = source.attrs["layout"]
    assert layout.word is not None
    wide, byte, rank, axis = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(8), low.rank, 1
    words = ((low.value, NIBBLES, 1), (high.value, layout.word, layout.rows))

    def body(*stored: ir.Value) -> ir.Value:
        parts = [
            Scalar(_integer_of_word(s, index(axis), word, rows, {})) for s, (_, word, rows) in zip(stored, words, strict=False)
        ]
        whole, most = parts[0] | (parts[1] << NIBBLES.bits), (1 << NIBBLES.bits + words[1][1].bits) - 1
        mark = {WORD: ir.StringAttr.get(f"{NIBBLES}+{layout.word}")}
        return emit("arith.trunci", byte, emit("arith.andi", wide, whole.value, constant(wide, most).value, **mark))

    sizes = b.sizes(low)
    sizes[axis] = source.attrs["size"]
    inputs: list[Input] = [(value, _word_places(rank, axis, word)) for value, word, _ in words]
    return b.generic("p" * rank, inputs, b.empty(sizes, byte), body)


def _word(dtype: ir.Type, layout: PackedLayout | None = None) -> Word:
    """Four-bit integers in a word of a dtype, or the high bits of a layout."""
    if layout is not None and layout.word is not None and layout.word != NIBBLES:
        return layout.word
    return Word(NIBBLES.bits, width_of(dtype) // NIBBLES.bits)


def _rows(source: Source) -> int:
    """How many of these come out of a word at once."""
    layout: PackedLayout | None = source.attrs["layout"]
    return 1 if layout is None else layout.rows
