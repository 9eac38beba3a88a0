"""torch ops of graphs quantized by PT2E and torchao: ``quantized_decomposed``, as ``quantize`` and ``dequantize``.

torch multiplies by the reciprocal of a scale, relax divides by the scale: a number in the middle between two codes may get the
other one. Source of the formulas: ``torch/ao/quantization/fx/_decomposed.py``.
"""

from __future__ import annotations

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import normalize_axis
from ..emit import cast, emit, full, info_of, reshape
from ..torch_op import TorchOp, UnmappedError, handles


@handles(*(f"quantized_decomposed.quantize_per_tensor{overload}" for overload in ("", ".tensor", ".tensor2")))
def _quantize_per_tensor(op: TorchOp) -> ir.Value:
    return _quantized(op, _scalar(op, 1), _zero_point(op, 2, op.dtype), axis=0, bounds=3)


@handles(*(f"quantized_decomposed.dequantize_per_tensor{overload}" for overload in ("", ".tensor", ".tensor2")))
def _dequantize_per_tensor(op: TorchOp) -> ir.Value:
    return _dequantized(op, _scalar(op, 1), axis=0)


@handles("quantized_decomposed.quantize_per_channel")
def _quantize_per_channel(op: TorchOp) -> ir.Value:
    axis = op.axis(3, info_of(op.tensor(0)).rank)
    return _quantized(op, cast(op.tensor(1), ir.F32Type.get()), _zero_point(op, 2, op.dtype), axis, bounds=4)


@handles("quantized_decomposed.dequantize_per_channel")
def _dequantize_per_channel(op: TorchOp) -> ir.Value:
    axis = op.axis(3, info_of(op.tensor(0)).rank)
    return _dequantized(op, cast(op.tensor(1), ir.F32Type.get()), axis)


@handles("quantized_decomposed.dequantize_per_channel_group")
def _dequantize_per_channel_group(op: TorchOp) -> ir.Value:
    """Of rows that are cut into groups, each with a scale."""
    x = op.tensor(0)
    (rows, columns), group = info_of(x).shape, op.integer(6, "size of groups", 128)
    if not isinstance(columns, int) or columns % min(group, columns):
        raise RelaxError(f"expected rows of whole groups of {group}, got {columns} columns")
    groups = (rows, columns // min(group, columns))
    scale, zero = cast(op.tensor(1), ir.F32Type.get()), _zero_point(op, 2, info_of(op.tensor(0)).dtype)
    zero = reshape(zero, groups) if info_of(zero).rank else zero
    return emit(ops.Dequantize, x, reshape(scale, groups), zero, axis=normalize_axis(-1, 2), out_dtype=op.dtype)


@handles("torchao.quantize_affine")
def _quantize_affine(op: TorchOp) -> ir.Value:
    return _quantized(op, *_of_blocks(op, op.dtype), bounds=5)


@handles("torchao.dequantize_affine")
def _dequantize_affine(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    scale, zero, axis = _of_blocks(op, info_of(x).dtype)
    return emit(ops.Dequantize, x, scale, zero, axis=axis, out_dtype=op.dtype)


def _of_blocks(op: TorchOp, codes: ir.Type) -> tuple[ir.Value, ir.Value, int]:
    """Scale, zero point and axis of blocks: all is one, or they are parts of rows. Raises UnmappedError for others."""
    shape, blocks = info_of(op.tensor(0)).shape, [op.values.number(v) for v in op.op.operands[1].owner.operands]
    scale = cast(op.tensor(2), ir.F32Type.get())
    zero = op.optional(3)
    zero = full(0, ir.IntegerType.get_signless(32)) if zero is None or 0 in info_of(zero).shape else _zero_point(op, 3, codes)
    if list(shape) == blocks:
        return reshape(scale, ()), reshape(zero, ()), 0
    if any(b != 1 for b in blocks[:-1]) or not isinstance(shape[-1], int) or shape[-1] % blocks[-1]:
        raise UnmappedError(f"expected blocks that are parts of rows, got {blocks}")
    groups = (*shape[:-1], shape[-1] // blocks[-1])
    zero = reshape(zero, groups) if info_of(zero).rank else zero
    return reshape(scale, groups), zero, len(shape) - 1


@handles("aten._int_mm")
def _integer_product(op: TorchOp) -> ir.Value:
    """Sums of products of integers are exact in f64."""
    one, zero = full(1.0, ir.F64Type.get()), full(0, ir.IntegerType.get_signless(8))
    left, right = (emit(ops.Dequantize, op.tensor(i), one, zero, axis=0) for i in (0, 1))
    return cast(emit(ops.MatMul, left, right), op.dtype)


@handles("quantized_decomposed.choose_qparams.tensor")
def _choose(op: TorchOp) -> list[ir.Value]:
    """Scale and zero point of the range from the least to the greatest element, and 0."""
    low, high = _range(op)
    least, most = float(op.integer(1, "least code")), float(op.integer(2, "greatest code"))
    scale = _scale(op, emit(ops.Divide, emit(ops.Subtract, high, low), full(most - least, info_of(low).dtype)))
    point = emit(ops.Subtract, full(least, info_of(low).dtype), emit(ops.Round, emit(ops.Divide, low, scale)))
    code = cast(emit(ops.Clip, point, min=least, max=most), _codes(op))
    return [_declared(op, 0, scale), _declared(op, 1, code)]


@handles("quantized_decomposed.choose_qparams_symmetric.tensor")
def _choose_symmetric(op: TorchOp) -> list[ir.Value]:
    """The scale of a range that is as long on both sides of 0, whose code is the middle one of all that there are."""
    low, high = _range(op)
    least, most = op.integer(1, "least code"), op.integer(2, "greatest code")
    wide = emit(ops.Maximum, emit(ops.Negative, low), high)
    scale = _scale(op, emit(ops.Divide, wide, full((most - least) / 2, info_of(low).dtype)))
    codes = _codes(op)
    middle = 1 << (codes.width - 1) if codes.is_unsigned else 0
    return [_declared(op, 0, scale), _declared(op, 1, full(middle, codes))]


#: How torch numbers the dtypes of codes.
_NUMBERED = {0: (8, True), 1: (8, False), 2: (16, False), 3: (32, False)}


def _codes(op: TorchOp) -> ir.IntegerType:
    found = _NUMBERED.get(op.integer(4, "dtype"))
    if found is None:
        raise RelaxError("expected codes of uint8, int8, int16 or int32")
    width, is_unsigned = found
    return ir.IntegerType.get_unsigned(width) if is_unsigned else ir.IntegerType.get_signless(width)


def _range(op: TorchOp) -> tuple[ir.Value, ir.Value]:
    f32 = ir.F32Type.get()
    x, zero = cast(op.tensor(0), f32), full(0.0, f32)
    return emit(ops.Minimum, emit(ops.Min, x), zero), emit(ops.Maximum, emit(ops.Max, x), zero)


def _scale(op: TorchOp, scale: ir.Value) -> ir.Value:
    return emit(ops.Maximum, scale, full(float(op.number(3)), info_of(scale).dtype))


def _declared(op: TorchOp, index: int, value: ir.Value) -> ir.Value:
    """In the dtype and, of one element, the shape that torch says."""
    info = op.results[index]
    if info is None:
        raise RelaxError("expected tensors as results")
    return reshape(cast(value, info.dtype), info.shape)


def _quantized(op: TorchOp, scale: ir.Value, zero: ir.Value, axis: int, bounds: int) -> ir.Value:
    """Codes within what the operands behind ``bounds`` allow, where that is less than the dtype does."""
    dtype = op.dtype
    if not isinstance(dtype, ir.IntegerType):
        raise RelaxError(f"expected codes that are integers, got {dtype}")
    codes = emit(ops.Quantize, cast(op.tensor(0), ir.F32Type.get()), scale, zero, axis=axis, dtype=dtype)
    bits = dtype.width
    low, high = (0, (1 << bits) - 1) if dtype.is_unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    least, most = op.integer(bounds, "least code", low), op.integer(bounds + 1, "greatest code", high)
    codes = codes if least <= low else emit(ops.Maximum, codes, full(least, dtype))
    return codes if most >= high else emit(ops.Minimum, codes, full(most, dtype))


def _dequantized(op: TorchOp, scale: ir.Value, axis: int) -> ir.Value:
    x = op.tensor(0)
    return emit(ops.Dequantize, x, scale, _zero_point(op, 2, info_of(x).dtype), axis=axis, out_dtype=op.dtype)


def _scalar(op: TorchOp, index: int) -> ir.Value:
    """A scale, a number or a tensor of one element, in f32."""
    return reshape(op.value_in(index, ir.F32Type.get()), ())


def _zero_point(op: TorchOp, index: int, codes: ir.Type) -> ir.Value:
    """A zero point: as a scalar of the codes' dtype where it is a number, or all elements of a tensor are known to be one."""
    stored = codes if isinstance(codes, ir.IntegerType) else ir.IntegerType.get_signless(32)
    if not op.is_tensor(index):
        return full(op.number(index, 0), stored)
    value = op.tensor(index)
    known = op.values.alike.get(value)
    if known is not None:
        return full(known, stored)
    if info_of(value).shape not in ((), (1,)):
        return value
    return reshape(_as_code(value, codes), ())


def _as_code(value: ir.Value, codes: ir.Type) -> ir.Value:
    """What a number was before it was widened, where that was one of the codes, as :func:`_choose` makes it."""
    before = value
    while not isinstance(before, ir.BlockArgument) and before.owner.name in ("relax.reshape", "relax.astype"):
        before = before.owner.operands[0]
        if info_of(before).dtype == codes:
            return before
    return value
