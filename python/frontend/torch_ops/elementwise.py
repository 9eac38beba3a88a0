"""Elementwise torch ops: arithmetic, comparison, logic and choice, with torch's dtype promotion made explicit by casts."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.dtypes import numpy_dtype
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean, is_float, is_integer
from ...dialect.op import EffectOp
from ...dialect.symbolic import Expr
from ..emit import (
    agreed,
    bitcast,
    broadcast,
    cast,
    emit,
    emit_check,
    full,
    in_dtype,
    info_of,
    integer,
    reshape,
    wide,
    within_largest,
)  # fmt: skip
from ..torch_op import TorchOp, handles
from ..torch_types import common_dtype

_UNARY: dict[str, type[EffectOp]] = {
    "abs": ops.Abs, "acos": ops.Acos, "acosh": ops.Acosh, "asin": ops.Asin, "asinh": ops.Asinh, "atan": ops.Atan,
    "atanh": ops.Atanh, "cos": ops.Cos, "cosh": ops.Cosh, "erf": ops.Erf, "exp": ops.Exp, "exp2": ops.Exp2,
    "expm1": ops.Expm1, "hardswish": ops.HardSwish, "log": ops.Log, "log10": ops.Log10, "log1p": ops.Log1p, "log2": ops.Log2,
    "neg": ops.Negative, "reciprocal": ops.Reciprocal, "rsqrt": ops.Rsqrt, "sgn": ops.Sign, "sigmoid": ops.Sigmoid,
    "sign": ops.Sign, "silu": ops.Silu, "sin": ops.Sin, "sinh": ops.Sinh, "sqrt": ops.Sqrt, "square": ops.Square,
    "tan": ops.Tan, "tanh": ops.Tanh,
}  # fmt: skip

_ROUNDING: dict[str, type[EffectOp]] = {"ceil": ops.Ceil, "floor": ops.Floor, "round": ops.Round, "trunc": ops.Trunc}

_BINARY: dict[str, type[EffectOp]] = {
    "mul.Tensor": ops.Multiply, "mul.Scalar": ops.Multiply, "div.Tensor": ops.Divide, "div.Scalar": ops.Divide,
    "floor_divide": ops.FloorDivide, "floor_divide.Scalar": ops.FloorDivide, "remainder.Tensor": ops.Mod,
    "remainder.Scalar": ops.Mod, "fmod.Tensor": ops.Fmod, "fmod.Scalar": ops.Fmod, "pow.Tensor_Tensor": ops.Power,
    "pow.Scalar": ops.Power, "maximum": ops.Maximum,
    "max.other": ops.Maximum, "minimum": ops.Minimum, "min.other": ops.Minimum, "bitwise_and.Tensor": ops.BitwiseAnd,
    "bitwise_and.Scalar": ops.BitwiseAnd, "bitwise_or.Tensor": ops.BitwiseOr, "bitwise_or.Scalar": ops.BitwiseOr,
    "__and__.Tensor": ops.BitwiseAnd, "__and__.Scalar": ops.BitwiseAnd, "__or__.Tensor": ops.BitwiseOr,
    "__or__.Scalar": ops.BitwiseOr, "__xor__.Tensor": ops.BitwiseXor, "__xor__.Scalar": ops.BitwiseXor,
    "bitwise_xor.Tensor": ops.BitwiseXor, "bitwise_xor.Scalar": ops.BitwiseXor, "bitwise_left_shift.Tensor": ops.LeftShift,
    "bitwise_left_shift.Tensor_Scalar": ops.LeftShift, "bitwise_right_shift.Tensor": ops.RightShift,
    "bitwise_right_shift.Tensor_Scalar": ops.RightShift, "__lshift__.Tensor": ops.LeftShift,
    "bitwise_left_shift.Scalar_Tensor": ops.LeftShift, "bitwise_right_shift.Scalar_Tensor": ops.RightShift,
    "__lshift__.Scalar": ops.LeftShift, "__rshift__.Tensor": ops.RightShift, "__rshift__.Scalar": ops.RightShift,
}  # fmt: skip

_COMPARISONS: dict[str, type[EffectOp]] = {
    "eq": ops.Equal, "ne": ops.NotEqual, "lt": ops.Less, "le": ops.LessEqual, "gt": ops.Greater, "ge": ops.GreaterEqual,
}  # fmt: skip

_LOGICAL: dict[str, type[EffectOp]] = {
    "logical_and": ops.LogicalAnd, "logical_or": ops.LogicalOr, "logical_xor": ops.LogicalXor,
}  # fmt: skip

#: torch rounds no number among their operands, other ops' numbers to the tensor's dtype.
_WITH_EXACT_NUMBERS = (ops.Multiply, ops.Divide, ops.FloorDivide)

#: Arithmetic on booleans is logic.
_ON_BOOLEANS: dict[type[EffectOp], type[EffectOp]] = {
    ops.Add: ops.LogicalOr, ops.Multiply: ops.LogicalAnd, ops.Maximum: ops.LogicalOr, ops.Minimum: ops.LogicalAnd,
}  # fmt: skip


def _register() -> None:
    for name, op_class in _UNARY.items():
        handles(f"aten.{name}")(lambda op, c=op_class: emit(c, cast(op.tensor(0), op.dtype)))
    for name, op_class in _ROUNDING.items():
        handles(f"aten.{name}")(lambda op, c=op_class: _rounded(op, c))
    for name, op_class in _BINARY.items():
        handles(f"aten.{name}")(lambda op, c=op_class: combine(op, c))
    for name, op_class in _COMPARISONS.items():
        handles(f"aten.{name}.Tensor", f"aten.{name}.Scalar")(lambda op, c=op_class: _compared(op, c))
    for name, op_class in _LOGICAL.items():
        handles(f"aten.{name}")(lambda op, c=op_class: emit(c, *agreed(op.value_in(0, boolean()), op.value_in(1, boolean()))))
    handles("aten.isnan")(lambda op: _predicate(op, ops.IsNan, False))
    handles("aten.isinf")(lambda op: _predicate(op, ops.IsInf, False))
    handles("aten.isfinite")(lambda op: _predicate(op, ops.IsFinite, True))


_register()


def apply(op_class: type[EffectOp], lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """A binary op on two tensors of one dtype, booleans included."""
    is_bool = info_of(lhs).dtype == boolean()
    return emit(_ON_BOOLEANS.get(op_class, op_class) if is_bool else op_class, *agreed(lhs, rhs))


def combine(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    """A binary op computed in the dtype of its result; multiplying with or dividing by the number 1 is left out."""
    if op_class in (ops.Multiply, ops.Divide) and op.is_number(1) and op.number(1) == 1:
        return op.value_in(0, op.dtype)
    dtype = _dtype_for_numbers(op) if op_class in _WITH_EXACT_NUMBERS else op.dtype
    return cast(apply(op_class, op.value_in(0, dtype), op.value_in(1, dtype)), op.dtype)


def _dtype_for_numbers(op: TorchOp) -> ir.Type:
    """The result's dtype, or a wider one where that does not hold a number among its operands."""
    numbers = [op.number(i) for i in range(2) if op.is_number(i)]
    is_known = not any(op.is_from_data(i) for i in range(2))
    held = is_known and all(isinstance(n, Expr) or not is_float(op.dtype) or _holds(op.dtype, n) for n in numbers)
    return op.dtype if held else wide(op.dtype)


def _holds(dtype: ir.Type, number: float) -> bool:
    with np.errstate(over="ignore"):
        return float(np.asarray(number, np.float64).astype(numpy_dtype(dtype))) == number


@handles("aten.add.Tensor", "aten.add.Scalar")
def _add(op: TorchOp) -> ir.Value:
    """Adding the integer 0 is left out: masks of transformers start from ``arange(n) + 0``."""
    if is_integer(op.dtype) and not op.is_tensor(1) and op.number(1) == 0:
        return op.value_in(0, op.dtype)
    return _scaled_sum(op, ops.Add, 0, 1)


@handles("aten.sub.Tensor", "aten.sub.Scalar")
def _sub(op: TorchOp) -> ir.Value:
    return _scaled_sum(op, ops.Subtract, 0, 1)


@handles("aten.rsub.Scalar", "aten.rsub.Tensor")
def _rsub(op: TorchOp) -> ir.Value:
    return _scaled_sum(op, ops.Subtract, 1, 0)


def _scaled_sum(op: TorchOp, op_class: type[EffectOp], first: int, second: int) -> ir.Value:
    """``first + alpha * second``, or their difference, rounded once."""
    alpha = op.number_or_value(2) if op.is_from_data(2) else op.number(2, 1)
    lhs, rhs = op.value_in(first, op.dtype), op.value_in(second, op.dtype)
    if not isinstance(alpha, ir.Value) and alpha == 1:
        return apply(op_class, lhs, rhs)
    dtype = wide(op.dtype)
    return cast(apply(op_class, cast(lhs, dtype), _times(cast(rhs, dtype), alpha)), op.dtype)


@handles("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def _div_mode(op: TorchOp) -> ir.Value:
    mode = op.number(2)
    if mode == "floor":
        return combine(op, ops.FloorDivide)
    quotient = combine(op, ops.Divide)
    return emit(ops.Trunc, quotient) if mode == "trunc" and is_float(op.dtype) else quotient


@handles("aten.pow.Tensor_Scalar")
def _pow_scalar(op: TorchOp) -> ir.Value:
    """Small exponents as products and roots, as torch computes them: https://github.com/pytorch/pytorch, PowKernel.cpp."""
    if op.is_from_data(1):
        return combine(op, ops.Power)
    x, exponent = op.value_in(0, op.dtype), op.number(1)
    if exponent == 1:
        return x
    if exponent == 2:
        return emit(ops.Square, x)
    if exponent == 3:
        return emit(ops.Multiply, emit(ops.Square, x), x)
    # Roots of f16 are powers there: of minus infinity, infinite.
    roots = {} if isinstance(op.dtype, ir.F16Type) else {0.5: ops.Sqrt, -0.5: ops.Rsqrt}
    small = {**roots, -1: ops.Reciprocal} if is_float(op.dtype) else {}
    if exponent in small:
        return emit(small[exponent], x)
    if not is_float(op.dtype) or _holds(op.dtype, exponent):
        return emit(ops.Power, x, full(exponent, op.dtype))
    # torch does not round the exponent: of large powers, that would leave five digits.
    wider = ir.F64Type.get() if isinstance(op.dtype, ir.F32Type) else wide(op.dtype)
    return cast(emit(ops.Power, cast(x, wider), full(exponent, wider)), op.dtype)


@handles("aten.elu")
def _elu(op: TorchOp) -> ir.Value:
    """``scale * x`` above 0, else ``scale * alpha * (exp(input_scale * x) - 1)``."""
    dtype = wide(op.dtype)
    x, alpha, scale, input_scale = cast(op.tensor(0), dtype), op.number(1, 1), op.number(2, 1), op.number(3, 1)
    low = _times(emit(ops.Expm1, _times(x, input_scale)), alpha * scale)
    return cast(emit(ops.Where, emit(ops.Less, x, full(0, dtype)), low, _times(x, scale)), op.dtype)


def _times(x: ir.Value, number: Any) -> ir.Value:
    if isinstance(number, ir.Value):
        return emit(ops.Multiply, x, cast(number, info_of(x).dtype))
    return x if number == 1 else emit(ops.Multiply, x, full(number, info_of(x).dtype))


@handles("aten.relu", "aten.relu6")
def _relu(op: TorchOp) -> ir.Value:
    if op.key == "aten.relu6":
        return emit(ops.Clip, op.tensor(0), min=0, max=6)
    if is_float(op.dtype):
        return emit(ops.Relu, op.tensor(0))
    return emit(ops.Maximum, op.tensor(0), full(0, op.dtype))


@handles("aten.clamp", "aten.clip", "aten.clamp_min", "aten.clamp_max", "aten.hardtanh")
def _clamp(op: TorchOp) -> ir.Value:
    low, high = op.number_or_value(1), op.number_or_value(2)
    if op.key == "aten.clamp_max":
        low, high = None, low
    x = cast(op.tensor(0), op.dtype)
    if isinstance(low, Expr | ir.Value) or isinstance(high, Expr | ir.Value):
        x = x if low is None else emit(ops.Maximum, x, _bound(low, op.dtype))
        return x if high is None else emit(ops.Minimum, x, _bound(high, op.dtype))
    low, high = (None if v is None else in_dtype(v, op.dtype) for v in (low, high))
    return emit(ops.Clip, x, min=low, max=high)


@handles("aten.clamp.Tensor", "aten.clamp_min.Tensor", "aten.clamp_max.Tensor")
def _clamp_tensor(op: TorchOp) -> ir.Value:
    result = cast(op.tensor(0), op.dtype)
    low, high = (1, 2) if op.key == "aten.clamp.Tensor" else (1, None) if "min" in op.key else (None, 1)
    if low is not None and op.optional(low) is not None:
        result = emit(ops.Maximum, result, op.value_in(low, op.dtype))
    if high is not None and op.optional(high) is not None:
        result = emit(ops.Minimum, result, op.value_in(high, op.dtype))
    return result


@handles("aten.fmax", "aten.fmin")
def _of_numbers(op: TorchOp) -> ir.Value:
    """The larger or smaller one; of a number and a NaN the number."""
    x, y = op.value_in(0, op.dtype), op.value_in(1, op.dtype)
    found = apply(ops.Maximum if op.key == "aten.fmax" else ops.Minimum, x, y)
    if not is_float(op.dtype):
        return found
    return emit(ops.Where, emit(ops.IsNan, x), y, emit(ops.Where, emit(ops.IsNan, y), x, found))


@handles("aten.signbit")
def _signbit(op: TorchOp) -> ir.Value:
    return _is_negative(op.tensor(0))


@handles("aten.copysign.Tensor", "aten.copysign.Scalar")
def _copysign(op: TorchOp) -> ir.Value:
    x = emit(ops.Abs, op.value_in(0, op.dtype))
    return emit(ops.Where, _is_negative(op.value_in(1, op.dtype)), emit(ops.Negative, x), x)


@handles("aten.view.dtype")
def _bits(op: TorchOp) -> ir.Value:
    return bitcast(op.tensor(0), op.dtype)


@handles("aten.angle")
def _angle(op: TorchOp) -> ir.Value:
    """Of real numbers: pi below 0, else 0; of a NaN that."""
    x = cast(op.tensor(0), op.dtype)
    turned = emit(ops.Where, emit(ops.Less, x, full(0, op.dtype)), full(math.pi, op.dtype), full(0, op.dtype))
    return emit(ops.Where, emit(ops.IsNan, x), x, turned)


@handles("aten.nextafter")
def _nextafter(op: TorchOp) -> ir.Value:
    """The bits of a number as an integer, one more or less; next to 0 are the least ones of either sign."""
    x, y = broadcast([op.value_in(0, op.dtype), op.value_in(1, op.dtype)])
    bits, zero = integer(op.dtype.width), full(0, op.dtype)
    grows = emit(ops.Equal, emit(ops.Greater, y, x), emit(ops.Greater, x, zero))
    moved = emit(ops.Add, bitcast(x, bits), emit(ops.Where, grows, full(1, bits), full(-1, bits)))
    least = emit(ops.Where, emit(ops.Greater, y, zero), full(1, bits), full(1 - 2 ** (op.dtype.width - 1), bits))
    found = bitcast(emit(ops.Where, emit(ops.Equal, x, zero), least, moved), op.dtype)
    found = emit(ops.Where, emit(ops.Equal, x, y), y, found)
    return emit(ops.Where, emit(ops.IsNan, x), x, emit(ops.Where, emit(ops.IsNan, y), y, found))


@handles("aten.frexp.Tensor")
def _frexp(op: TorchOp) -> list[ir.Value]:
    """By the bits of f64, which has all numbers of narrower floats as normal ones; its own subnormal ones are made larger."""
    x = cast(op.tensor(0), ir.F64Type.get())
    is_small = emit(ops.Less, emit(ops.Abs, x), full(2.0**-1022, ir.F64Type.get()))
    bits = bitcast(emit(ops.Where, is_small, _times(x, 2.0**54), x), integer())
    above = emit(ops.BitwiseAnd, emit(ops.RightShift, bits, full(52, integer())), full(0x7FF, integer()))
    exponent = emit(ops.Subtract, above, emit(ops.Where, is_small, full(1022 + 54, integer()), full(1022, integer())))
    fraction = emit(ops.BitwiseAnd, bits, full(~(0x7FF << 52), integer()))
    mantissa = bitcast(emit(ops.BitwiseOr, fraction, full(1022 << 52, integer())), ir.F64Type.get())
    is_plain = emit(ops.LogicalAnd, emit(ops.IsFinite, x), emit(ops.NotEqual, x, full(0, ir.F64Type.get())))
    exponent = emit(ops.Where, is_plain, exponent, full(0, integer()))
    return [cast(emit(ops.Where, is_plain, mantissa, x), op.dtype), cast(exponent, integer(32))]


def _is_negative(x: ir.Value) -> ir.Value:
    """Whether a number has a minus sign; zeros and NaN may have one."""
    dtype = info_of(x).dtype
    if dtype == boolean():
        return full(False, boolean(), info_of(x).shape)
    if is_float(dtype):
        x = bitcast(x, integer(dtype.width))
    return emit(ops.Less, x, full(0, info_of(x).dtype))


@handles("aten.hypot")
def _hypot(op: TorchOp) -> ir.Value:
    """``sqrt(x * x + y * y)`` by the larger one times a root from 1 to 1.5: no square overflows. Infinite before NaN."""
    dtype = wide(op.dtype)
    x, y = (emit(ops.Abs, op.value_in(i, dtype)) for i in range(2))
    large, small = emit(ops.Maximum, x, y), emit(ops.Minimum, x, y)
    zero, infinite = full(0, dtype), full(math.inf, dtype)
    ratio = emit(ops.Where, emit(ops.Equal, large, zero), zero, emit(ops.Divide, small, large))
    length = emit(ops.Multiply, large, emit(ops.Sqrt, emit(ops.Add, emit(ops.Square, ratio), full(1, dtype))))
    is_infinite = emit(ops.LogicalOr, emit(ops.Equal, x, infinite), emit(ops.Equal, y, infinite))
    return cast(emit(ops.Where, is_infinite, infinite, length), op.dtype)


@handles("aten.gelu")
def _gelu(op: TorchOp) -> ir.Value:
    return emit(ops.GeluTanh if op.number(1, "none") == "tanh" else ops.Gelu, op.tensor(0))


@handles("aten.leaky_relu")
def _leaky_relu(op: TorchOp) -> ir.Value:
    return emit(ops.LeakyRelu, op.tensor(0), alpha=op.number(1, 0.01))


@handles("aten.rrelu_with_noise_functional", "aten.rrelu")
def _rrelu(op: TorchOp) -> list[ir.Value | None]:
    """The mean of both slopes; random ones are those of training. The noise, where there is one, is as it comes."""
    low = 1 if op.key == "aten.rrelu" else 2
    if op.number(low + 2, False):
        raise RelaxError("expected rrelu in eval mode, whose slope is not random")
    slope = (op.number(low, 1 / 8) + op.number(low + 1, 1 / 3)) / 2
    noise = [op.tensor(1)] if len(op.results) > 1 else []
    return [emit(ops.LeakyRelu, op.tensor(0), alpha=slope), *noise]


@handles("aten.softplus")
def _softplus(op: TorchOp) -> ir.Value:
    return emit(ops.Softplus, op.tensor(0), beta=float(op.number(1, 1)), threshold=float(op.number(2, 20)))


@handles("aten.logical_not")
def _logical_not(op: TorchOp) -> ir.Value:
    return emit(ops.LogicalNot, op.tensor(0))


@handles("aten.bitwise_not")
def _bitwise_not(op: TorchOp) -> ir.Value:
    return emit(ops.LogicalNot if op.dtype == boolean() else ops.BitwiseNot, op.tensor(0))


def _bound(bound: Any, dtype: ir.Type) -> ir.Value:
    return cast(bound, dtype) if isinstance(bound, ir.Value) else full(bound, dtype)


@handles("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def _where(op: TorchOp) -> ir.Value:
    condition = cast(op.tensor(0), boolean())
    return emit(ops.Where, *agreed(condition, op.value_in(1, op.dtype), op.value_in(2, op.dtype)))


@handles("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def _masked_fill(op: TorchOp) -> ir.Value:
    return emit(ops.Where, *agreed(op.tensor(1), op.value_in(2, op.dtype), op.tensor(0)))


@handles("aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten._to_copy", "aten.type_as",
         "prims.convert_element_type")  # fmt: skip
def _to(op: TorchOp) -> ir.Value:
    x, dtype = op.tensor(0), op.dtype
    is_coded = isinstance(dtype, ir.Float8E4M3FNType) and info_of(x).dtype != dtype
    return within_largest(x, dtype) if is_coded and _saturates() else cast(x, dtype)


@functools.cache
def _saturates() -> bool:
    """Whether this torch gives the largest number where f8E4M3FN has none as large: 2.13 does, others gave a NaN."""
    return bool(torch.full((), 1e9).to(torch.float8_e4m3fn).float() == 448)


@handles("aten.clone", "aten.alias", "aten.contiguous", "aten.detach",
         "aten.positive")  # fmt: skip
def _same(op: TorchOp) -> ir.Value:
    return op.tensor(0)


@handles("aten._assert_scalar")
def _asserted_number(op: TorchOp) -> list[ir.Value | None]:
    """What torch has assumed of elements is checked; of sizes it has assumed it, too, and ranges are checked beside."""
    if op.is_from_data(0):
        check(cast(op.values.element(op.operands[0]), boolean()), _message(op))
    return []


@handles("aten._assert_tensor_metadata", "aten.sym_constrain_range",
         "aten.sym_constrain_range_for_size")  # fmt: skip
def _nothing(op: TorchOp) -> list[ir.Value | None]:
    """Checks of what export has already assumed of sizes; ranges of symbols are checked when the function is called."""
    return []


@handles("aten._assert_async", "aten._assert_async.msg")
def _asserted(op: TorchOp) -> list[ir.Value | None]:
    check(cast(op.tensor(0), boolean()), _message(op))
    return []


def check(condition: ir.Value, wanted: str) -> None:
    """Reads the place 0 of one element where it holds; else the place 1, which is refused when the function runs.

    Args:
        condition: one boolean.
        wanted: what does not hold then, for the message.
    """
    with ir.Location.name(f"{wanted} ", ir.Location.current):
        fails = cast(emit(ops.LogicalNot, condition), integer())
        emit_check(emit(ops.Take, full(0, integer(), (1,)), reshape(fails, (1,)), axis=0))


def _message(op: TorchOp) -> str:
    """What an assertion says, without what torch says around it."""
    text = op.number(1) if len(op.operands) > 1 else None
    return text if isinstance(text, str) and text else "expected what the model asserts"


@handles("aten.dropout")
def _dropout(op: TorchOp) -> list[ir.Value | None]:
    if op.number(2) and op.number(1) != 0:
        raise RelaxError("expected a model in evaluation mode, got dropout in training")
    return [op.tensor(0)]


def _rounded(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    return emit(op_class, op.tensor(0)) if is_float(op.dtype) else op.tensor(0)


@handles("aten.round.decimals")
def _rounded_to_places(op: TorchOp) -> ir.Value:
    """A multiple of a power of ten; narrow floats are rounded once more, at the end."""
    places, dtype = op.integer(1, "number of places", 0), wide(op.dtype)
    if not is_float(op.dtype) or not places:
        return _rounded(op, ops.Round)
    power = full(10.0 ** abs(places), dtype)
    there, back = (ops.Multiply, ops.Divide) if places > 0 else (ops.Divide, ops.Multiply)
    whole = emit(ops.Round, emit(there, cast(op.tensor(0), dtype), power))
    return cast(emit(back, whole, power), op.dtype)


def _compared(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    dtype = common_dtype([op.operand_dtype(0), op.operand_dtype(1)])
    return emit(op_class, *agreed(op.value_in(0, dtype), op.value_in(1, dtype)))


def _predicate(op: TorchOp, op_class: type[EffectOp], of_integers: bool) -> ir.Value:
    x = op.tensor(0)
    return emit(op_class, x) if is_float(info_of(x).dtype) else full(of_integers, boolean(), info_of(x).shape)
