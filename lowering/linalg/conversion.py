"""Elements in memory to scalars to compute on, back, and from one dtype to another. See :mod:`.dtypes` for the table."""

from __future__ import annotations

from ...dialect.bindings import ir
from ...dialect.inference import is_float
from . import float8
from .dtypes import compute_type, is_boolean, is_unsigned, storage_dtype
from .scalar import Scalar, constant, emit, select

__all__ = ["convert", "load", "store"]


def load(value: ir.Value, dtype: ir.Type) -> Scalar:
    """What an element in memory means, in the type that ops compute in."""
    scalar = Scalar(value, is_unsigned(dtype))
    if is_float(dtype):
        return _load_float(scalar, dtype)
    if is_boolean(dtype):
        return scalar.compare("ne", 0)
    if isinstance(dtype, ir.IntegerType) and dtype.width == 4:
        return (scalar << 4) >> 4
    return scalar


def _load_float(scalar: Scalar, dtype: ir.Type) -> Scalar:
    if dtype.width == 8:
        return float8.decode(scalar, dtype)
    if dtype.width == 16:
        return Scalar(emit("arith.extf", ir.F32Type.get(), scalar.value))
    return scalar


def store(scalar: Scalar, dtype: ir.Type) -> ir.Value:
    """The element in memory that stands for a scalar of the dtype's compute type; for a float, of ``f32`` or ``f64``."""
    if is_float(dtype):
        return _store_float(scalar, dtype)
    if is_boolean(dtype):
        return emit("arith.extui", storage_dtype(dtype), scalar.value)
    if isinstance(dtype, ir.IntegerType) and dtype.width == 4:
        return (scalar & 15).value
    return scalar.value


def _store_float(scalar: Scalar, dtype: ir.Type) -> ir.Value:
    if dtype.width >= 32:
        return _to_float(scalar, scalar.type, dtype).value
    if scalar.type.width == 64:
        scalar = _round_to_odd(scalar)
    if dtype.width == 8:
        return float8.encode(scalar, dtype)
    return emit("arith.truncf", dtype, scalar.value)


def _round_to_odd(x: Scalar) -> Scalar:
    """f64 to f32 so that an inexact result has its last bit set; rounding that to fewer bits then is exact.

    Source: Boldo and Melquiond, When double rounding is odd, 2005.
    """
    f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
    nearest = Scalar(emit("arith.truncf", f32, x.value))
    exact = Scalar(emit("arith.extf", x.type, nearest.value))
    bits = Scalar(emit("arith.bitcast", i32, nearest.value))
    away = Scalar(emit("math.absf", x.type, exact.value)).compare("gt", Scalar(emit("math.absf", x.type, x.value)))
    neighbour = bits + select(away, constant(i32, -1), 1)
    infinite = (bits & 0x7F800000).compare("eq", 0x7F800000)
    inexact = exact.compare("lt", x) | exact.compare("gt", x)
    even = (bits & 1).compare("eq", 0)
    fixed = select(inexact & even & ~infinite, neighbour, bits)
    return Scalar(emit("arith.bitcast", f32, fixed.value))


def convert(x: Scalar, source: ir.Type, target: ir.Type) -> ir.Value:
    """An element of one dtype, in its compute type, as an element in memory of another.

    Floats round to nearest even once, floats to integers truncate in 32 bits or 64 of which fewer are kept, integers wrap, and
    anything to ``i1`` is ``!= 0``.
    """
    if is_boolean(target):
        return store(x.compare("ne", 0), target)
    if is_float(target):
        return store(_to_float(x, source, target), target)
    return store(_to_integer(x, source, target), target)


def _to_float(x: Scalar, source: ir.Type, target: ir.Type) -> Scalar:
    if is_float(source):
        if target.width == 64 and x.type.width == 32:
            return Scalar(emit("arith.extf", target, x.value))
        if target.width == 32 and x.type.width == 64:
            return Scalar(emit("arith.truncf", target, x.value))
        return x
    # A narrow float of a wide integer goes by way of f64, so that it rounds once.
    wide = target.width < 32 and isinstance(source, ir.IntegerType) and source.width > 16
    type_ = ir.F64Type.get() if wide else compute_type(target)
    return Scalar(emit("arith.uitofp" if x.unsigned else "arith.sitofp", type_, x.value))


def _to_integer(x: Scalar, source: ir.Type, target: ir.Type) -> Scalar:
    type_ = compute_type(target)
    unsigned = is_unsigned(target)
    if is_float(source):
        return _truncated(x, type_, unsigned, target.width)
    if isinstance(source, ir.IndexType):
        return Scalar(emit("arith.index_cast", type_, x.value), unsigned)
    if x.type.width == type_.width:
        return Scalar(x.value, unsigned)
    if x.type.width > type_.width:
        return Scalar(emit("arith.trunci", type_, x.value), unsigned)
    return Scalar(emit("arith.extui" if x.unsigned else "arith.extsi", type_, x.value), unsigned)


def _truncated(x: Scalar, type_: ir.Type, unsigned: bool, kept: int) -> Scalar:
    """A float as an integer of 32 or 64 bits, and its lowest ones; what those cannot hold is the least one.

    LLVM leaves the conversion of what does not fit undefined; x86's instruction gives the same, but may not be the one chosen.
    """
    width = ir.IntegerType(type_).width
    # An f32 beyond 32 bits has none of the lowest 8.
    is_byte = unsigned and kept == 8 and x.type.width == 64
    bits = 64 if width == 64 or is_byte or (width == 32 and unsigned) else 32
    wide, half = ir.IntegerType.get_signless(bits), 2.0 ** (bits - 1)
    # -2**31 - 1 is no f32: there, less than -2**31 is too little.
    above = x.compare("gt", -half - 1) if x.type.width > bits else x.compare("ge", -half)
    number = _in_range(x, above & x.compare("lt", half), "arith.fptosi", wide, -(1 << (bits - 1)))
    if width == 64 and unsigned:
        number = _in_range(x, x.compare("ge", half) & x.compare("lt", 2 * half), "arith.fptoui", wide, number)
    return Scalar(number.value if width == bits else emit("arith.trunci", type_, number.value), unsigned)


def _in_range(x: Scalar, fits: Scalar, name: str, type_: ir.Type, other: Scalar | int) -> Scalar:
    """The conversion where a number fits, which others never reach."""
    return select(fits, Scalar(emit(name, type_, select(fits, x, 0).value)), other)
