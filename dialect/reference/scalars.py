"""Scalars around control flow: the arith, index and tensor ops on them, as functions of NumPy scalars.

Integers are kept in the NumPy type of their width, index in int64. Arithmetic wraps; what MLIR leaves undefined is an error: a
division by zero, and a quotient, shift, index or converted number beyond what there is.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..bindings import ir
from ..dtypes import numpy_dtype
from ..elements import to_numpy
from ..errors import RelaxError
from .numeric import Array

__all__ = ["SCALAR_OPS", "compute_scalar", "scalar", "scalar_dtype", "unsigned"]

_Op = ir.OpView
_Handler = Callable[..., Any]


def scalar_dtype(type_: ir.Type) -> np.dtype[Any]:
    """The NumPy dtype of a scalar type. Raises RelaxError when it has none."""
    return np.dtype(np.int64) if isinstance(type_, ir.IndexType) else numpy_dtype(type_)


def scalar(value: Any, type_: ir.Type) -> Any:
    """A number as a NumPy scalar of an MLIR type; integers wrap to its width."""
    dtype = scalar_dtype(type_)
    if isinstance(type_, ir.FloatType):
        return np.asarray(value).astype(dtype)[()]
    bits = 1 if dtype == np.bool_ else dtype.itemsize * 8
    wrapped = int(value) & ((1 << bits) - 1)
    if dtype.kind == "i" and wrapped >> (bits - 1):
        wrapped -= 1 << bits
    return dtype.type(wrapped)


def _signed(value: Any) -> int:
    """i1 holds 0 and -1 when read as signed."""
    return -int(value) if isinstance(value, np.bool_) else int(value)


def unsigned(value: Any) -> int:
    """An integer of a NumPy type read without sign."""
    bits = 1 if isinstance(value, np.bool_) else value.dtype.itemsize * 8
    return int(value) & ((1 << bits) - 1)


def _integer(function: Callable[[int, int], int], read: Callable[[Any], int] = _signed) -> _Handler:
    return lambda op, a, b: scalar(function(read(a), read(b)), op.results[0].type)


def _float(function: Callable[[Any, Any], Any]) -> _Handler:
    return lambda op, a, b: scalar(function(a, b), op.results[0].type)


def _quotient(function: Callable[[int, int], int], read: Callable[[Any], int] = _signed) -> _Handler:
    def divide(op: _Op, a: Any, b: Any) -> Any:
        type_, left, right = op.results[0].type, read(a), read(b)
        if right == 0:
            raise RelaxError("expected a divisor other than 0")
        if read is _signed and right == -1 and left == _least(type_):
            raise RelaxError(f"expected a quotient within {type_}, got {left} / -1")
        return scalar(function(left, right), type_)

    return divide


def _least(type_: ir.Type) -> int:
    """The least number of a signed type."""
    return -1 if str(type_) == "i1" else -(1 << (scalar_dtype(type_).itemsize * 8 - 1))


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return a - b * _truncated(a, b)


def _shift(function: Callable[[int, int], int], read: Callable[[Any], int]) -> _Handler:
    def shift(op: _Op, a: Any, b: Any) -> Any:
        type_ = op.results[0].type
        bits = scalar_dtype(type_).itemsize * 8
        if not 0 <= int(b) < bits:
            raise RelaxError(f"expected a shift below {bits}, got {b}")
        return scalar(function(read(a), int(b)), type_)

    return shift


_COMPARE_INTEGERS: list[tuple[Callable[[Any, Any], bool], Callable[[Any], int]]] = [
    (operator.eq, _signed), (operator.ne, _signed), (operator.lt, _signed), (operator.le, _signed), (operator.gt, _signed),
    (operator.ge, _signed), (operator.lt, unsigned), (operator.le, unsigned), (operator.gt, unsigned),
    (operator.ge, unsigned),
]  # fmt: skip
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_ORDERED = {1: operator.eq, 2: operator.gt, 3: operator.ge, 4: operator.lt, 5: operator.le, 6: operator.ne}


def _compare_integers(op: _Op, a: Any, b: Any) -> Any:
    function, read = _COMPARE_INTEGERS[ir.IntegerAttr(op.attributes["predicate"]).value]
    return np.bool_(function(read(a), read(b)))


def _compare_index(op: _Op, a: Any, b: Any) -> Any:
    # The bindings have no class for the attribute; it prints as `#index<cmp_predicate slt>`.
    predicate = next(p for p in re.findall(r"\w+", str(op.attributes["pred"])) if p in _INTEGER_PREDICATES)
    function, read = _COMPARE_INTEGERS[_INTEGER_PREDICATES.index(predicate)]
    return np.bool_(function(read(a), read(b)))


def _compare_floats(op: _Op, a: Any, b: Any) -> Any:
    """Predicates by number: 0 false, 1-6 ordered comparisons, 7 ordered, 8-13 unordered comparisons, 14 unordered, 15 true."""
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    unordered = bool(np.isnan(a) or np.isnan(b))
    if predicate in (0, 15):
        return np.bool_(predicate == 15)
    if predicate in (7, 14):
        return np.bool_(unordered == (predicate == 14))
    if unordered:
        return np.bool_(predicate > 7)
    return np.bool_(_ORDERED[predicate if predicate < 7 else predicate - 7](a, b))


def _cast(read: Callable[[Any], Any]) -> _Handler:
    return lambda op, a: scalar(read(a), op.results[0].type)


def _to_integer(op: _Op, a: Any) -> Any:
    """Without the fraction. Raises RelaxError for what the type cannot hold."""
    type_, is_unsigned = op.results[0].type, op.operation.name == "arith.fptoui"
    bits = 1 if str(type_) == "i1" else scalar_dtype(type_).itemsize * 8
    low, high = (0, 1 << bits) if is_unsigned else (-(1 << (bits - 1)), 1 << (bits - 1))
    if not np.isfinite(a) or not low <= math.trunc(float(a)) < high:
        raise RelaxError(f"expected a number within {type_}, got {a}")
    return scalar(math.trunc(float(a)), type_)


def _select(op: _Op, condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, np.ndarray):
        raise RelaxError(f"expected a scalar condition, got {op.operands[0].type}")
    return a if condition else b


def _constant(op: _Op) -> Any:
    value = op.attributes["value"]
    if isinstance(op.results[0].type, ir.RankedTensorType):
        return to_numpy(value)
    attribute = ir.FloatAttr(value) if isinstance(op.results[0].type, ir.FloatType) else ir.IntegerAttr(value)
    return scalar(attribute.value, op.results[0].type)


def _extract(op: _Op, tensor: Array, *indices: Any) -> Any:
    return tensor[tuple(_within(i, d) for i, d in zip(indices, tensor.shape, strict=True))]


def _within(index: Any, size: int) -> int:
    if not 0 <= index < size:
        raise RelaxError(f"expected an index in [0, {size}), got {index}")
    return int(index)


def _from_elements(op: _Op, *values: Any) -> Array:
    type_ = ir.RankedTensorType(op.results[0].type)
    return np.array(values, scalar_dtype(type_.element_type)).reshape(list(type_.shape))


def _dim(op: _Op, tensor: Array, index: Any) -> Any:
    return np.int64(tensor.shape[_within(index, tensor.ndim)])


def compute_scalar(op: _Op, operands: Sequence[Any]) -> Any:
    """The result of an op of :data:`SCALAR_OPS`.

    Raises:
        RelaxError: an arith op on tensors, a division by zero, an index out of range.
    """
    name = op.operation.name
    whole = next((o for o, v in zip(op.operands, operands, strict=True) if isinstance(v, np.ndarray) and v.ndim), None)
    if whole is not None and not name.startswith("tensor.") and name != "arith.select":
        raise RelaxError(f"expected scalars, got {whole.type}")
    return SCALAR_OPS[name](op, *operands)


#: Handlers by op name: the op and its operands' values to the one result.
SCALAR_OPS: dict[str, _Handler] = {
    "arith.constant": _constant,
    "arith.select": _select,
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.addi": _integer(operator.add),
    "arith.subi": _integer(operator.sub),
    "arith.muli": _integer(operator.mul),
    "arith.divsi": _quotient(_truncated),
    "arith.divui": _quotient(operator.floordiv, unsigned),
    "arith.floordivsi": _quotient(operator.floordiv),
    "arith.ceildivsi": _quotient(lambda a, b: -(-a // b)),
    "arith.remsi": _quotient(_remainder),
    "arith.remui": _quotient(operator.mod, unsigned),
    "arith.andi": _integer(operator.and_),
    "arith.ori": _integer(operator.or_),
    "arith.xori": _integer(operator.xor),
    "arith.shli": _shift(operator.lshift, unsigned),
    "arith.shrsi": _shift(operator.rshift, _signed),
    "arith.shrui": _shift(operator.rshift, unsigned),
    "arith.maxsi": _integer(max),
    "arith.minsi": _integer(min),
    "arith.maxui": _integer(max, unsigned),
    "arith.minui": _integer(min, unsigned),
    "arith.addf": _float(operator.add),
    "arith.subf": _float(operator.sub),
    "arith.mulf": _float(operator.mul),
    "arith.divf": _float(operator.truediv),
    "arith.remf": _float(np.fmod),
    "arith.maximumf": _float(np.maximum),
    "arith.minimumf": _float(np.minimum),
    "arith.negf": _cast(operator.neg),
    "arith.index_cast": _cast(_signed),
    "arith.index_castui": _cast(unsigned),
    "arith.extsi": _cast(_signed),
    "arith.extui": _cast(unsigned),
    "arith.trunci": _cast(_signed),
    "arith.sitofp": _cast(lambda a: float(_signed(a))),
    "arith.uitofp": _cast(lambda a: float(unsigned(a))),
    "arith.fptosi": _to_integer,
    "arith.fptoui": _to_integer,
    "arith.extf": _cast(float),
    "arith.truncf": _cast(float),
    "index.constant": _constant,
    "index.add": _integer(operator.add),
    "index.sub": _integer(operator.sub),
    "index.mul": _integer(operator.mul),
    "index.divs": _quotient(_truncated),
    "index.divu": _quotient(operator.floordiv, unsigned),
    "index.rems": _quotient(_remainder),
    "index.remu": _quotient(operator.mod, unsigned),
    "index.maxs": _integer(max),
    "index.mins": _integer(min),
    "index.cmp": _compare_index,
    "index.casts": _cast(_signed),
    "index.castu": _cast(unsigned),
    "tensor.extract": _extract,
    "tensor.from_elements": _from_elements,
    "tensor.dim": _dim,
}
