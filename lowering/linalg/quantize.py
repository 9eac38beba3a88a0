"""Affine quantization per tensor, channel or block, computed in f32 (f64 when an operand is f64), and nibbles, as bodies."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.inference import is_float, normalize_axis
from ...dialect.symbolic import Dim, same
from .builder import ZERO, Builder, Exprs, Input, Tensor, index, read
from .conversion import convert, load, store
from .dtypes import compute_type, integer_range, is_unsigned, storage_dtype
from .registry import Source, lowering
from .scalar import Scalar, constant, emit, math, select

__all__: list[str] = []


class _Parameters:
    """Scale and zero point as inputs of a body; a known zero point is a constant there."""

    def __init__(self, source: Source):
        x, self.scale, self.zero_point = source.operands
        axis = normalize_axis(source.attrs["axis"], x.rank) if x.rank else 0
        tensors = [self.scale] if self.zero_point.splat is not None else [self.scale, self.zero_point]
        self.inputs: list[Input] = [(t.value, _exprs(t, x, axis)) for t in tensors]

    def read(self, elements: list[ir.Value], dtype: ir.Type) -> tuple[Scalar, Scalar]:
        """In a body: the scale, and the zero point as a dtype."""
        splat = self.zero_point.splat
        step = load(elements[0], self.scale.dtype)
        if splat is not None:
            return step, constant(dtype, splat)
        if is_float(dtype):
            return step, Scalar(convert(load(elements[1], self.zero_point.dtype), self.zero_point.dtype, dtype))
        return step, _as_integer(elements[1], self.zero_point.dtype, dtype)


def _exprs(parameter: Tensor, x: Tensor, axis: int) -> Exprs:
    """Where the scale or zero point of an element is: there is one for all, one per channel, or one per block."""
    if parameter.rank == 1 and same(parameter.shape[0], x.shape[axis]):
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
def _lower_quantize(b: Builder, source: Source) -> ir.Value:
    x, dtype = source.operands[0], source.result.dtype
    parameters, wide = _Parameters(source), _float_type(*source.operands[:2])

    def body(value: ir.Value, *others: ir.Value) -> ir.Value:
        step, offset = parameters.read(list(others), wide)
        steps = math("roundeven", _widened(load(value, x.dtype), wide) / _widened(step, wide))
        return store(_limited(steps + offset, dtype), dtype)

    inputs: list[Input] = [(x.value, range(x.rank)), *parameters.inputs]
    return b.generic("p" * x.rank, inputs, b.empty(b.sizes(x), storage_dtype(dtype)), body)


def _limited(value: Scalar, dtype: ir.Type) -> Scalar:
    """A number as an integer in the dtype's range; a NaN is the least. What does not fit never reaches the conversion.

    A limit that the float type rounds up to the next power of two still separates what fits from what does not.
    """
    low, high = integer_range(dtype)
    type_, unsigned = compute_type(dtype), is_unsigned(dtype)
    above_low, below_high = value.compare("gt", low), value.compare("lt", high)
    fitting = select(above_low & below_high, value, 0)
    number = Scalar(emit("arith.fptoui" if unsigned else "arith.fptosi", type_, fitting.value), unsigned)
    return select(value.compare("ge", high), high, select(above_low, number, low))


@lowering("relax.dequantize")
def _lower_dequantize(b: Builder, source: Source) -> ir.Value:
    x, scale, zero_point = source.operands
    parameters, wide = _Parameters(source), _float_type(scale)
    narrow = all(_width(t.dtype) <= 16 for t in (x, zero_point))
    integer = ir.IntegerType.get_signless(32 if narrow else 64)

    def body(value: ir.Value, *others: ir.Value) -> ir.Value:
        step, offset = parameters.read(list(others), integer)
        distance = _as_integer(value, x.dtype, integer) - offset
        real = Scalar(emit("arith.sitofp", wide, distance.value)) * step
        return store(real, source.result.dtype)

    inputs: list[Input] = [(x.value, range(x.rank)), *parameters.inputs]
    return b.generic("p" * x.rank, inputs, b.empty(b.sizes(x), storage_dtype(source.result.dtype)), body)


def _as_integer(value: ir.Value, dtype: ir.Type, wide: ir.Type) -> Scalar:
    """A stored integer in a wider type. Four bits are cut out there: processors do not shift vectors of bytes."""
    if _width(dtype) != 4:
        return Scalar(convert(load(value, dtype), dtype, wide))
    extended = Scalar(emit("arith.extui", wide, value))
    return extended & 15 if is_unsigned(dtype) else (extended << wide.width - 4) >> wide.width - 4


def _width(dtype: ir.Type) -> int:
    return dtype.width if isinstance(dtype, ir.IntegerType) else 64


@lowering("relax.pack_nibbles")
def _lower_pack_nibbles(b: Builder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis, byte = normalize_axis(source.attrs["axis"], x.rank), ir.IntegerType.get_signless(8)
    sizes = b.sizes(x)
    size = sizes[axis]
    sizes[axis] = b.arith("ceildivsi", size, 2)

    def both(low: Scalar, high: Scalar) -> ir.Value:
        return ((low & 15) | (high << 4)).value

    def clamped(_: ir.Value) -> ir.Value:
        place = [index(i) for i in range(x.rank)]
        first = place[axis] * 2
        inside = (first + 1).compare("lt", Scalar(b.as_index(size)))
        second = select(inside, first + 1, first)
        low, high = (Scalar(read(x.value, [*place[:axis], at, *place[axis + 1 :]])) for at in (first, second))
        return both(low, select(inside, high, 0))

    out = b.empty(sizes, byte)
    if not isinstance(size, int) or size % 2:
        return b.generic("p" * x.rank, [], out, clamped)
    first = ir.AffineExpr.get_dim(axis) * 2
    inputs: list[Input] = [(x.value, [e if i == axis else i for i in range(x.rank)]) for e in (first, first + 1)]
    return b.generic("p" * x.rank, inputs, out, lambda low, high, _: both(Scalar(low), Scalar(high)))


@lowering("relax.unpack_nibbles")
def _lower_unpack_nibbles(b: Builder, source: Source) -> ir.Value:
    (x,) = source.operands
    axis, wide = normalize_axis(source.attrs["axis"], x.rank), ir.IntegerType.get_signless(32)
    sizes = b.sizes(x)
    sizes[axis] = source.attrs["size"]

    unsigned = is_unsigned(source.result.dtype)

    def body(byte: ir.Value, _: ir.Value) -> ir.Value:
        # With or without the sign, the byte's high half is the number after one shift.
        bits = Scalar(emit("arith.extui" if unsigned else "arith.extsi", wide, byte), unsigned)
        half = Scalar(emit("arith.index_cast", wide, (index(axis) & 1).value)) << 2
        return emit("arith.trunci", byte.type, ((bits >> half) & 15).value)

    place = [ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(i), 2) if i == axis else i for i in range(x.rank)]
    return b.generic("p" * x.rank, [(x.value, place)], b.empty(sizes, ir.IntegerType.get_signless(8)), body)
