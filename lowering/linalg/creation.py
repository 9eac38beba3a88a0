"""Tensors made from no tensor: constants, and bodies that compute elements from loop indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialect.bindings import ir
from ...dialect.dtypes import numpy_dtype
from ...dialect.elements import to_numpy
from ...dialect.errors import RelaxError
from ...dialect.inference import is_float
from ...dialect.reference.numeric import convert as in_dtype
from ...dialect.struct_info import TensorInfo
from ...dialect.symbolic import Dim
from .builder import LinalgBuilder, Size, Tensor, index
from .conversion import convert
from .dtypes import is_boolean, storage_dtype, storage_type
from .registry import Source, lowering
from .scalar import Number, Scalar, constant, emit, select

__all__ = ["constant_tensor", "splat_tensor", "stored_number"]


def stored_number(number: Number, dtype: ir.Type) -> Number:
    """The element in memory that stands for a number in a dtype."""
    if is_float(dtype):
        if dtype.width > 8:
            return float(number)
        return int(in_dtype(np.asarray(number, np.float64), numpy_dtype(dtype)).view(np.int8))
    if is_boolean(dtype):
        return int(bool(number))
    return int(number) & 15 if dtype.width == 4 else int(number)


def splat_tensor(b: LinalgBuilder, number: Number, info: TensorInfo, sizes: Sequence[Size]) -> Tensor:
    """A tensor whose elements all are a number. Elementwise readers take the number instead."""
    stored = storage_dtype(info.dtype)
    scalar = stored_number(number, info.dtype)
    if not info.rank:
        kind = ir.FloatAttr.get(stored, scalar) if is_float(stored) else constant_attribute(stored, scalar)
        attribute = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], stored), kind)
        value = emit("arith.constant", attribute.type, value=attribute)
    else:
        out = b.empty(sizes, stored)
        value = b.generic("p" * info.rank, [], out, lambda _: constant(stored, scalar).value)
    return Tensor(value, info, _rounded(number, info.dtype))


def _rounded(number: Number, dtype: ir.Type) -> Number:
    """A number as a dtype holds it: bodies compute in wider ones."""
    if is_float(dtype):
        with np.errstate(over="ignore"):
            return float(in_dtype(np.asarray(number, np.float64), numpy_dtype(dtype)))
    return bool(number) if is_boolean(dtype) else int(number)


def constant_attribute(type_: ir.Type, number: Number) -> ir.Attribute:
    """An integer attribute; a number beyond the type's range wraps."""
    half = 1 << (type_.width - 1)
    return ir.IntegerAttr.get(type_, (int(number) + half) % (2 * half) - half)


@lowering("relax.full")
def _lower_full(b: LinalgBuilder, source: Source) -> Tensor:
    return splat_tensor(b, source.attrs["value"], source.result, [b.evaluate(d) for d in source.result.shape])


@lowering("relax.constant")
def _lower_constant(b: LinalgBuilder, source: Source) -> Tensor:
    return constant_tensor(b, source.attrs["value"])


def constant_tensor(b: LinalgBuilder, attribute: ir.Attribute) -> Tensor:
    """``arith.constant`` of a relax elements attribute, stored as its dtype is; a filled tensor where all are one number.

    A resource becomes elements: LLVM reads as much of it as the type says, whatever there is.

    Raises:
        RelaxError: a resource has no data, or not as much as its type says.
    """
    info = TensorInfo.of(attribute.type)
    stored = storage_type(attribute.type)
    splat = _splat_number(attribute, info)
    if splat is not None and info.rank:
        return splat_tensor(b, splat, info, [d for d in info.shape if isinstance(d, int)])
    if stored != attribute.type or not isinstance(attribute, ir.DenseElementsAttr):
        attribute = _stored_elements(attribute, info.dtype, stored)
    return Tensor(emit("arith.constant", stored, value=attribute), info, splat)


def _stored_elements(attribute: ir.Attribute, dtype: ir.Type, stored: ir.Type) -> ir.Attribute:
    """The same data under the type it is stored as: truth values as bytes, unsigned integers without sign, no encoding."""
    data = to_numpy(attribute)
    if isinstance(dtype, ir.IntegerType) and dtype.width <= 4:
        data = data.astype(np.int8) & (1 if is_boolean(dtype) else 15)
    bits = np.dtype(f"i{data.dtype.itemsize}") if not is_float(stored.element_type) or data.dtype.kind == "V" else data.dtype
    return ir.DenseElementsAttr.get(np.ascontiguousarray(data).reshape(data.shape).view(bits), type=stored)


def _splat_number(attribute: ir.Attribute, info: TensorInfo) -> Number | None:
    """The number that all elements are, where the attribute is one element and that has a Python value."""
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat or 0 in info.shape:
        return None
    value = attribute.get_splat_value()
    if isinstance(value, ir.FloatAttr):
        return float(value.value) if info.dtype.width > 8 else None
    if not isinstance(value, ir.IntegerAttr):
        return None
    return bool(value.value) if is_boolean(info.dtype) else int(value.value)


@lowering("relax.arange")
def _lower_arange(b: LinalgBuilder, source: Source) -> ir.Value:
    start, end, step = (b.evaluate(source.attrs[key][0]) for key in ("start", "end", "step"))
    dtype, i64 = source.result.dtype, ir.IntegerType.get_signless(64)
    size = _arange_length(b, source.result.shape[0], start, end, source.attrs["step"][0])
    first, stride = Scalar(b.as_index(start)), Scalar(b.as_index(step))

    def element(_: ir.Value) -> ir.Value:
        number = Scalar(emit("arith.index_cast", i64, (first + index(0) * stride).value))
        return convert(number, i64, dtype)

    return b.generic("p", [], b.empty([size], storage_dtype(dtype)), element)


def _arange_length(b: LinalgBuilder, dim: Dim, start: Size, end: Size, step: Dim) -> Size:
    if isinstance(dim, int):
        return dim
    if dim is not None and b.symbols.knows(dim):
        length = b.evaluate(dim)
    elif isinstance(step, int):
        span = b.arith("subi", end, start) if step > 0 else b.arith("subi", start, end)
        length = b.arith("ceildivsi", span, abs(step))
    else:
        raise RelaxError("expected a result of known length or a constant step")
    return b.arith("maxsi", length, 0)


@lowering("relax.shape_value")
def _lower_shape_value(b: LinalgBuilder, source: Source) -> ir.Value | Tensor:
    value = b.evaluate(source.attrs["value"][0])
    dtype, i64 = source.result.dtype, ir.IntegerType.get_signless(64)
    if isinstance(value, int):
        return splat_tensor(b, value, source.result, [])

    def element(_: ir.Value) -> ir.Value:
        return convert(Scalar(emit("arith.index_cast", i64, value)), i64, dtype)

    return b.generic("", [], b.empty([], storage_dtype(dtype)), element)


@lowering("relax.tril", "relax.triu")
def _lower_triangle(b: LinalgBuilder, source: Source) -> ir.Value:
    (x,) = source.operands
    kept = "le" if source.op.operation.name == "relax.tril" else "ge"
    rank, diagonal = x.rank, source.attrs["k"]

    def element(value: ir.Value, _: ir.Value) -> ir.Value:
        row, column = index(rank - 2), index(rank - 1)
        return select(column.compare(kept, row + diagonal), Scalar(value), 0).value

    return b.generic("p" * rank, [(x.value, range(rank))], b.empty(b.sizes(x), storage_dtype(x.dtype)), element)
