"""Short functions that build the relax ops a frontend needs most, at the current location and insertion point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..dialect import ops
from ..dialect.bindings import arith, ir
from ..dialect.dtypes import numpy_dtype
from ..dialect.errors import RelaxError
from ..dialect.inference import boolean, broadcast_shapes, is_float
from ..dialect.op import EffectOp
from ..dialect.struct_info import TensorInfo
from ..dialect.symbolic import Dim, Expr, multiply_all

__all__ = [
    "agreed", "alike", "bitcast", "broadcast", "cast", "common_size", "concat", "cut", "emit", "emit_check", "expand",
    "extreme_flag", "float_table", "full", "in_dtype", "info_of", "integer", "match", "multiply_all", "neutral", "permute",
    "plus_bias", "require_at_least", "require_different", "reshape", "sequence", "size_value", "slice_axis", "squeeze", "table",
    "tile", "unrounded", "unsqueeze", "within_largest",
]  # fmt: skip


def info_of(value: ir.Value) -> TensorInfo:
    """Shape and dtype of a relax value."""
    return TensorInfo.of(value)


def emit(op_class: type[EffectOp], *operands: ir.Value | None, **attrs: Any) -> ir.Value:
    """The first result of a new op. Raises RelaxError when operands or attributes do not fit it."""
    return op_class.create(*operands, **attrs).results[0]


def emit_check(value: ir.Value) -> None:
    """Keeps the run-time checks that making a value takes, though nothing reads it."""
    ops.Keep.create(value)


def require_at_least(number: int | Expr | ir.Value, least: int | Expr | ir.Value, text: str) -> None:
    """A check of each call that a size, or the element of a tensor of i64 without dimensions, is another one or more."""
    holds = arith.CmpIOp(arith.CmpIPredicate.sge, _scalar(number), _scalar(least)).result
    ir.Operation.create("cf.assert", [], [holds], {"msg": ir.StringAttr.get(text)})


def require_different(a: int | Expr, b: int | Expr, text: str) -> None:
    """A check of each call that two sizes are not equal."""
    holds = arith.CmpIOp(arith.CmpIPredicate.ne, _scalar(a), _scalar(b)).result
    ir.Operation.create("cf.assert", [], [holds], {"msg": ir.StringAttr.get(text)})


def _scalar(number: int | Expr | ir.Value) -> ir.Value:
    if isinstance(number, ir.Value):
        return ir.Operation.create("tensor.extract", [integer()], [number]).result
    if isinstance(number, int):
        return arith.ConstantOp(integer(), number).result
    return arith.IndexCastOp(integer(), emit(ops.PrimValue, value=[number], result_types=[ir.IndexType.get()])).result


def integer(width: int = 64) -> ir.Type:
    """The signless integer dtype of that width."""
    return ir.IntegerType.get_signless(width)


def extreme_flag(op_class: type[EffectOp], x: ir.Value, **how: Any) -> ir.Value:
    """``Max`` or ``Min`` of booleans: whether any is set, or all are; of nothing, False and True."""
    found = emit(op_class, cast(x, integer(8)), **how)
    # The maximum of nothing is the least integer, the minimum the greatest one, which is true.
    return emit(ops.Greater, found, full(0, integer(8))) if op_class is ops.Max else cast(found, boolean())


def cast(x: ir.Value, dtype: ir.Type) -> ir.Value:
    """The tensor in another dtype; itself when it has that one."""
    return x if info_of(x).dtype == dtype else emit(ops.AsType, x, dtype=dtype)


def unrounded(dtype: ir.Type) -> ir.Type | None:
    """The ``out_dtype`` of a product of such factors whose sums are rounded later: f32 of narrower floats, else their own."""
    return ir.F32Type.get() if is_float(dtype) and dtype.width < 32 else None


def wide(dtype: ir.Type) -> ir.Type:
    """The dtype that formulas of several ops are computed in: f32 for narrower floats, which are rounded once, at the end."""
    return ir.F32Type.get() if is_float(dtype) and dtype.width < 32 else dtype


def plus_bias(product: ir.Value, bias: ir.Value, dtype: ir.Type) -> ir.Value:
    """A product (see :func:`unrounded`) and a bias, rounded once, to ``dtype``."""
    return cast(emit(ops.Add, product, cast(bias, info_of(product).dtype)), dtype)


def bitcast(x: ir.Value, dtype: ir.Type) -> ir.Value:
    """The elements' bits in another dtype of as many; a boolean is a byte, 0 or 1."""
    if info_of(x).dtype == dtype:
        return x
    x = cast(x, ir.IntegerType.get_unsigned(8)) if info_of(x).dtype == boolean() else x
    return x if info_of(x).dtype == dtype else emit(ops.Bitcast, x, dtype=dtype)


def full(value: float | Expr, dtype: ir.Type, shape: Sequence[Dim] = ()) -> ir.Value:
    """A tensor of one number, which may be a symbolic expression."""
    if isinstance(value, Expr):
        scalar = emit(ops.ShapeValue, value=[value], result_types=[TensorInfo((), integer()).type])
        return expand(cast(scalar, dtype), shape)
    return emit(ops.Full, value=in_dtype(value, dtype), result_types=[TensorInfo(tuple(shape), dtype).type])


def size_value(size: Dim) -> ir.Value:
    """A size as a number of i64. Raises RelaxError for an unknown one."""
    if size is None:
        raise RelaxError("expected sizes that are known or symbolic, got an unknown one")
    return full(size, integer())


def in_dtype(value: float, dtype: ir.Type) -> float:
    """A number as torch takes it for an operand of that dtype: integers wrap."""
    if is_float(dtype):
        return float(value)
    if dtype.width == 1:
        return bool(value)
    low = 0 if dtype.is_unsigned else -(1 << dtype.width - 1)
    return (int(value) - low) % (1 << dtype.width) + low


def within_largest(x: ir.Value, dtype: ir.Type) -> ir.Value:
    """A tensor as floats of eight bits: what is too large becomes the largest number; infinities too, a NaN stays."""
    largest = float(ml_dtypes.finfo(numpy_dtype(dtype)).max)
    return cast(emit(ops.Clip, cast(x, ir.F32Type.get()), min=-largest, max=largest), dtype)


def reshape(x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
    """The elements under another shape; the tensor itself when it has that one.

    Where the number of elements is written in another way, as ``n`` and ``(n // 2) * 2``, it is checked at run time.
    """
    info = info_of(x)
    if info.shape == tuple(shape):
        return x
    before, after = multiply_all(info.shape), multiply_all(shape)
    if before != after and (isinstance(before, Expr) or isinstance(after, Expr)):
        flat = emit(ops.Reshape, x, result_types=[info.with_(shape=[before]).type])
        x = match(flat, info.with_(shape=[after]))
    return emit(ops.Reshape, x, result_types=[info.with_(shape=shape).type])


def expand(x: ir.Value, shape: Sequence[Dim]) -> ir.Value:
    """The tensor broadcast to a shape; itself when it has that one. Sizes that differ as symbols are compared at run time."""
    info = info_of(x)
    if info.shape == tuple(shape):
        return x
    own = [_same_or_one(d, n) for d, n in zip(info.shape, shape[len(shape) - info.rank :], strict=True)]
    x = x if own == list(info.shape) else match(x, info.with_(shape=own))
    return emit(ops.BroadcastTo, x, result_types=[info.with_(shape=shape).type])


def _same_or_one(size: Dim, wanted: Dim) -> Dim:
    """The size under which a dimension is broadcast: of two that only torch knows to be equal, the wanted one."""
    is_open = isinstance(size, Expr) or isinstance(wanted, Expr)
    return wanted if is_open and 1 not in (size, wanted) and None not in (size, wanted) else size


def permute(x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """The dimensions in another order; the tensor itself when it is the same one."""
    return x if list(axes) == list(range(len(axes))) else emit(ops.PermuteDims, x, axes=axes)


def unsqueeze(x: ir.Value, *axes: int) -> ir.Value:
    """Inserts dimensions of size one at these places of the result."""
    return emit(ops.ExpandDims, x, axis=axes) if axes else x


def squeeze(x: ir.Value, *axes: int) -> ir.Value:
    """Removes these dimensions, which have size one."""
    return emit(ops.Squeeze, x, axis=axes) if axes else x


def slice_axis(x: ir.Value, axis: int, begin: Dim, end: Dim, stride: int = 1) -> ir.Value:
    """``x[begin:end:stride]`` along one axis; the tensor itself when that is all of it."""
    if begin == 0 and stride == 1 and end == info_of(x).shape[axis]:
        return x
    return emit(ops.StridedSlice, x, axes=[axis], begin=[begin], end=[end], strides=[stride])


def concat(parts: Sequence[ir.Value], axis: int) -> ir.Value:
    """The tensors one after the other."""
    result = parts[0]
    for part in parts[1:]:
        result = emit(ops.Concat, result, part, axis=axis)
    return result


def match(x: ir.Value, info: TensorInfo) -> ir.Value:
    """The tensor under another type of it, checked at run time."""
    return emit(ops.MatchCast, x, result_types=[info.type])


def broadcast(values: Sequence[ir.Value]) -> list[ir.Value]:
    """The tensors, all in their common broadcast shape."""
    shape = broadcast_shapes(*(info_of(v).shape for v in values))
    return [expand(v, shape) for v in values]


def agreed(*values: ir.Value) -> list[ir.Value]:
    """Tensors that are broadcast, with one size where two have to be equal and we do not know it: checked at run time.

    A known number comes first, then what is shortest to write.
    """
    infos = [info_of(v) for v in values]
    rank = max(i.rank for i in infos)
    columns = list(zip(*([1] * (rank - i.rank) + list(i.shape) for i in infos), strict=True))
    if all(None in column or len({*column} - {1}) < 2 for column in columns):
        return list(values)
    sizes = [common_size({*column} - {1}) for column in columns]
    found: list[ir.Value] = []
    for value, info in zip(values, infos, strict=True):
        pairs = zip(info.shape, sizes[rank - info.rank :], strict=True)
        shape = tuple(dim if dim in (1, None) or size is None else size for dim, size in pairs)
        found.append(value if shape == tuple(info.shape) else match(value, info.with_(shape=shape)))
    return found


def alike(parts: Sequence[ir.Value], axis: int) -> list[ir.Value]:
    """Tensors with one size along all other axes, where two have to be equal and we do not know it: checked at run time."""
    columns = zip(*(info_of(p).shape for p in parts), strict=True)
    sizes = [None if i == axis else common_size(column) for i, column in enumerate(columns)]
    found: list[ir.Value] = []
    for part in parts:
        info = info_of(part)
        pairs = zip(info.shape, sizes, strict=True)
        shape = tuple(size if isinstance(dim, Expr) and size is not None else dim for dim, size in pairs)
        found.append(part if shape == tuple(info.shape) else match(part, info.with_(shape=shape)))
    return found


def common_size(sizes: Iterable[Dim]) -> Dim:
    """Which one is written of sizes that have to be equal: a known number, then what is shortest to write."""
    return min({*sizes} - {None}, key=_length, default=None)


def _length(size: Dim) -> tuple[bool, int, str]:
    return not isinstance(size, int), len(str(size)), str(size)


def neutral(reduction: str, dtype: ir.Type) -> float:
    """What changes nothing in a sum, a product, or what is the smallest or largest: ``add``, ``mul``, ``min``, ``max``."""
    if reduction in ("add", "mul"):
        return 0 if reduction == "add" else 1
    if is_float(dtype):
        return -math.inf if reduction == "max" else math.inf
    limits = np.iinfo(numpy_dtype(dtype)) if dtype != boolean() else None
    low, high = (0, 1) if limits is None else (limits.min, limits.max)
    return int(low if reduction == "max" else high)


def tile(x: ir.Value, repeats: Sequence[Dim]) -> ir.Value:
    """The tensor several times along each dimension; for symbolic numbers each is (repeats, size), broadcast and merged."""
    if all(isinstance(r, int) for r in repeats):
        return emit(ops.Tile, x, repeats=repeats)
    shape = info_of(x).shape
    apart = reshape(x, [d for size in shape for d in (1, size)])
    repeated = expand(apart, [d for pair in zip(repeats, shape, strict=True) for d in pair])
    return reshape(repeated, [multiply_all(pair) for pair in zip(repeats, shape, strict=True)])


def cut(x: ir.Value, axis: int, parts: Sequence[Dim]) -> list[ir.Value]:
    """The tensor in consecutive parts of these sizes."""
    if len(parts) > 1 and all(isinstance(p, int) and p == parts[0] for p in parts):
        return list(ops.Split.create(x, sections=len(parts), axis=axis).results)
    found: list[ir.Value] = []
    start: int | Expr = 0
    for part in parts:
        if part is None:
            raise RelaxError("expected parts of known sizes")
        found.append(slice_axis(x, axis, start, start + part))
        start = start + part
    return found


def sequence(start: Any, end: Any, step: int = 1, dtype: ir.Type | None = None) -> ir.Value:
    """``start, start + step, ...`` below end, of i64 by default; start and end may be symbolic."""
    length = (end - start + step - 1) // step if step > 0 else (start - end - step - 1) // -step
    length = max(length, 0) if isinstance(length, int) else length
    type_ = TensorInfo((length,), dtype or integer()).type
    return emit(ops.Arange, start=[start], end=[end], step=[step], result_types=[type_])


def float_table(values: np.ndarray[Any, Any], dtype: ir.Type) -> ir.Value:
    """A constant of floats, made in f64: rounded to f32, and for narrower floats from there, as torch has sequences."""
    kind = dtype if isinstance(dtype, ir.F64Type) else ir.F32Type.get()
    return cast(table(values.astype(numpy_dtype(kind)), kind), dtype)


def table(values: np.ndarray[Any, Any], dtype: ir.Type) -> ir.Value:
    """A small tensor written into the IR."""
    elements = ir.DenseElementsAttr.get(np.ascontiguousarray(values), type=dtype, shape=list(values.shape))
    return emit(ops.Constant, value=elements)
