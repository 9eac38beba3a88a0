"""Elementwise torch ops: arithmetic, comparison, logic and choice, with torch's dtype promotion made explicit by casts."""

from __future__ import annotations

import math
from typing import Any

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean, is_float, is_integer
from ...dialect.op import EffectOp
from ..emit import cast, emit, full, info_of
from ..torch_op import TorchOp, handles
from ..torch_types import common_dtype

_UNARY: dict[str, type[EffectOp]] = {
    "abs": ops.Abs, "neg": ops.Negative, "sign": ops.Sign, "sgn": ops.Sign, "square": ops.Square, "cos": ops.Cos,
    "sin": ops.Sin, "erf": ops.Erf, "exp": ops.Exp, "log": ops.Log, "reciprocal": ops.Reciprocal, "rsqrt": ops.Rsqrt,
    "sigmoid": ops.Sigmoid, "sqrt": ops.Sqrt, "tanh": ops.Tanh, "silu": ops.Silu, "hardswish": ops.HardSwish,
}  # fmt: skip

_ROUNDING: dict[str, type[EffectOp]] = {"ceil": ops.Ceil, "floor": ops.Floor, "round": ops.Round, "trunc": ops.Trunc}

_BINARY: dict[str, type[EffectOp]] = {
    "mul.Tensor": ops.Multiply, "mul.Scalar": ops.Multiply, "div.Tensor": ops.Divide, "div.Scalar": ops.Divide,
    "floor_divide": ops.FloorDivide, "floor_divide.Scalar": ops.FloorDivide, "remainder.Tensor": ops.Mod,
    "remainder.Scalar": ops.Mod, "pow.Tensor_Tensor": ops.Power, "pow.Scalar": ops.Power, "maximum": ops.Maximum,
    "max.other": ops.Maximum, "minimum": ops.Minimum, "min.other": ops.Minimum, "bitwise_and.Tensor": ops.BitwiseAnd,
    "bitwise_and.Scalar": ops.BitwiseAnd, "bitwise_or.Tensor": ops.BitwiseOr, "bitwise_or.Scalar": ops.BitwiseOr,
    "__and__.Tensor": ops.BitwiseAnd, "__and__.Scalar": ops.BitwiseAnd, "__or__.Tensor": ops.BitwiseOr,
    "__or__.Scalar": ops.BitwiseOr, "__xor__.Tensor": ops.BitwiseXor, "__xor__.Scalar": ops.BitwiseXor,
    "bitwise_xor.Tensor": ops.BitwiseXor, "bitwise_xor.Scalar": ops.BitwiseXor, "bitwise_left_shift.Tensor": ops.LeftShift,
    "bitwise_left_shift.Tensor_Scalar": ops.LeftShift, "bitwise_right_shift.Tensor": ops.RightShift,
    "bitwise_right_shift.Tensor_Scalar": ops.RightShift, "__lshift__.Tensor": ops.LeftShift,
    "__lshift__.Scalar": ops.LeftShift, "__rshift__.Tensor": ops.RightShift, "__rshift__.Scalar": ops.RightShift,
}  # fmt: skip

_COMPARISONS: dict[str, type[EffectOp]] = {
    "eq": ops.Equal, "ne": ops.NotEqual, "lt": ops.Less, "le": ops.LessEqual, "gt": ops.Greater, "ge": ops.GreaterEqual,
}  # fmt: skip

_LOGICAL: dict[str, type[EffectOp]] = {
    "logical_and": ops.LogicalAnd, "logical_or": ops.LogicalOr, "logical_xor": ops.LogicalXor,
}  # fmt: skip

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
        handles(f"aten.{name}")(lambda op, c=op_class: emit(c, op.value_in(0, boolean()), op.value_in(1, boolean())))
    handles("aten.isnan")(lambda op: _predicate(op, ops.IsNan, False))
    handles("aten.isinf")(lambda op: _predicate(op, ops.IsInf, False))
    handles("aten.isfinite")(lambda op: _predicate(op, ops.IsFinite, True))


_register()


def apply(op_class: type[EffectOp], lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """A binary op on two tensors of one dtype, booleans included."""
    is_bool = info_of(lhs).dtype == boolean()
    return emit(_ON_BOOLEANS.get(op_class, op_class) if is_bool else op_class, lhs, rhs)


def combine(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    """A binary op computed in the dtype of its result; multiplying with or dividing by the number 1 is left out."""
    if op_class in (ops.Multiply, ops.Divide) and not op.is_tensor(1) and op.number(1) == 1:
        return op.value_in(0, op.dtype)
    return apply(op_class, op.value_in(0, op.dtype), op.value_in(1, op.dtype))


@handles("aten.add.Tensor", "aten.add.Scalar")
def _add(op: TorchOp) -> ir.Value:
    """Adding the integer 0 is left out: masks of transformers start from ``arange(n) + 0``."""
    if is_integer(op.dtype) and not op.is_tensor(1) and op.number(1) == 0:
        return op.value_in(0, op.dtype)
    return apply(ops.Add, op.value_in(0, op.dtype), _scaled(op, 1, op.number(2, 1)))


@handles("aten.sub.Tensor", "aten.sub.Scalar")
def _sub(op: TorchOp) -> ir.Value:
    return apply(ops.Subtract, op.value_in(0, op.dtype), _scaled(op, 1, op.number(2, 1)))


@handles("aten.rsub.Scalar", "aten.rsub.Tensor")
def _rsub(op: TorchOp) -> ir.Value:
    return apply(ops.Subtract, op.value_in(1, op.dtype), _scaled(op, 0, op.number(2, 1)))


def _scaled(op: TorchOp, index: int, alpha: Any) -> ir.Value:
    value = op.value_in(index, op.dtype)
    return value if alpha == 1 else emit(ops.Multiply, value, full(alpha, op.dtype))


@handles("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def _div_mode(op: TorchOp) -> ir.Value:
    mode = op.number(2)
    if mode == "floor":
        return combine(op, ops.FloorDivide)
    quotient = combine(op, ops.Divide)
    return emit(ops.Trunc, quotient) if mode == "trunc" and is_float(op.dtype) else quotient


@handles("aten.fmod.Tensor", "aten.fmod.Scalar")
def _fmod(op: TorchOp) -> ir.Value:
    lhs, rhs = op.value_in(0, op.dtype), op.value_in(1, op.dtype)
    quotient = emit(ops.Divide, lhs, rhs)
    whole = emit(ops.Trunc, quotient) if is_float(op.dtype) else quotient
    return emit(ops.Subtract, lhs, emit(ops.Multiply, whole, rhs))


@handles("aten.pow.Tensor_Scalar")
def _pow_scalar(op: TorchOp) -> ir.Value:
    """Small exponents as products and roots, as torch computes them: https://github.com/pytorch/pytorch, PowKernel.cpp."""
    x, exponent = op.value_in(0, op.dtype), op.number(1)
    if exponent == 1:
        return x
    if exponent == 2:
        return emit(ops.Square, x)
    if exponent == 3:
        return emit(ops.Multiply, emit(ops.Square, x), x)
    if is_float(op.dtype) and exponent in (0.5, -0.5, -1):
        return emit({0.5: ops.Sqrt, -0.5: ops.Rsqrt, -1: ops.Reciprocal}[exponent], x)
    return emit(ops.Power, x, full(exponent, op.dtype))


@handles("aten.log2", "aten.log10")
def _log_base(op: TorchOp) -> ir.Value:
    factor = 1 / math.log(2 if op.key == "aten.log2" else 10)
    return emit(ops.Multiply, emit(ops.Log, cast(op.tensor(0), op.dtype)), full(factor, op.dtype))


@handles("aten.exp2")
def _exp2(op: TorchOp) -> ir.Value:
    return emit(ops.Exp, emit(ops.Multiply, cast(op.tensor(0), op.dtype), full(math.log(2), op.dtype)))


@handles("aten.log1p")
def _log1p(op: TorchOp) -> ir.Value:
    """``log(u)`` with ``u = 1 + x``, plus what rounding took from u; that term is 0/0 or inf/inf at the ends."""
    x = cast(op.tensor(0), op.dtype)
    one = full(1, op.dtype)
    u = emit(ops.Add, x, one)
    lost = emit(ops.Divide, emit(ops.Subtract, x, emit(ops.Subtract, u, one)), u)
    lost = emit(ops.Where, emit(ops.IsFinite, lost), lost, full(0, op.dtype))
    return emit(ops.Add, emit(ops.Log, u), lost)


@handles("aten.expm1")
def _expm1(op: TorchOp) -> ir.Value:
    return expm1(cast(op.tensor(0), op.dtype))


def expm1(x: ir.Value) -> ir.Value:
    """``tanh(x / 2) * (exp(x) + 1)``, which is ``exp(x) - 1`` without its cancellation near 0."""
    dtype = info_of(x).dtype
    half = emit(ops.Tanh, emit(ops.Multiply, x, full(0.5, dtype)))
    return emit(ops.Multiply, half, emit(ops.Add, emit(ops.Exp, x), full(1, dtype)))


@handles("aten.elu")
def _elu(op: TorchOp) -> ir.Value:
    """``scale * x`` above 0, else ``scale * alpha * (exp(input_scale * x) - 1)``."""
    x, alpha, scale, input_scale = op.tensor(0), op.number(1, 1), op.number(2, 1), op.number(3, 1)
    inner = x if input_scale == 1 else emit(ops.Multiply, x, full(input_scale, op.dtype))
    low = emit(ops.Multiply, expm1(emit(ops.Minimum, inner, full(0, op.dtype))), full(alpha * scale, op.dtype))
    high = x if scale == 1 else emit(ops.Multiply, x, full(scale, op.dtype))
    return emit(ops.Where, emit(ops.Greater, x, full(0, op.dtype)), high, low)


@handles("aten.relu", "aten.relu6")
def _relu(op: TorchOp) -> ir.Value:
    if op.key == "aten.relu6":
        return emit(ops.Clip, op.tensor(0), min=0, max=6)
    if is_float(op.dtype):
        return emit(ops.Relu, op.tensor(0))
    return emit(ops.Maximum, op.tensor(0), full(0, op.dtype))


@handles("aten.clamp", "aten.clip", "aten.clamp_min", "aten.clamp_max", "aten.hardtanh")
def _clamp(op: TorchOp) -> ir.Value:
    low, high = op.number(1), op.number(2)
    if op.key == "aten.clamp_max":
        low, high = None, op.number(1)
    x = cast(op.tensor(0), op.dtype)
    kind = float if is_float(op.dtype) else int
    return emit(ops.Clip, x, min=None if low is None else kind(low), max=None if high is None else kind(high))


@handles("aten.clamp.Tensor", "aten.clamp_min.Tensor", "aten.clamp_max.Tensor")
def _clamp_tensor(op: TorchOp) -> ir.Value:
    result = cast(op.tensor(0), op.dtype)
    low, high = (1, 2) if op.key == "aten.clamp.Tensor" else (1, None) if "min" in op.key else (None, 1)
    if low is not None and op.optional(low) is not None:
        result = emit(ops.Maximum, result, op.value_in(low, op.dtype))
    if high is not None and op.optional(high) is not None:
        result = emit(ops.Minimum, result, op.value_in(high, op.dtype))
    return result


@handles("aten.gelu")
def _gelu(op: TorchOp) -> ir.Value:
    return emit(ops.GeluTanh if op.number(1, "none") == "tanh" else ops.Gelu, op.tensor(0))


@handles("aten.leaky_relu")
def _leaky_relu(op: TorchOp) -> ir.Value:
    return emit(ops.LeakyRelu, op.tensor(0), alpha=op.number(1, 0.01))


@handles("aten.softplus")
def _softplus(op: TorchOp) -> ir.Value:
    """torch returns x itself above a threshold (20): the difference is below 3e-9."""
    x, beta = op.tensor(0), op.number(1, 1)
    if beta == 1:
        return emit(ops.Softplus, x)
    scaled = emit(ops.Softplus, emit(ops.Multiply, x, full(beta, op.dtype)))
    return emit(ops.Divide, scaled, full(beta, op.dtype))


@handles("aten.logical_not")
def _logical_not(op: TorchOp) -> ir.Value:
    return emit(ops.LogicalNot, op.tensor(0))


@handles("aten.bitwise_not")
def _bitwise_not(op: TorchOp) -> ir.Value:
    return emit(ops.LogicalNot if op.dtype == boolean() else ops.BitwiseNot, op.tensor(0))


@handles("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def _where(op: TorchOp) -> ir.Value:
    condition = cast(op.tensor(0), boolean())
    return emit(ops.Where, condition, op.value_in(1, op.dtype), op.value_in(2, op.dtype))


@handles("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def _masked_fill(op: TorchOp) -> ir.Value:
    return emit(ops.Where, op.tensor(1), op.value_in(2, op.dtype), op.tensor(0))


@handles("aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten._to_copy", "aten.type_as",
         "prims.convert_element_type")  # fmt: skip
def _to(op: TorchOp) -> ir.Value:
    return cast(op.tensor(0), op.dtype)


@handles("aten.clone", "aten.alias", "aten.contiguous", "aten.detach",
         "aten.positive")  # fmt: skip
def _same(op: TorchOp) -> ir.Value:
    return op.tensor(0)


@handles("aten._assert_tensor_metadata", "aten._assert_async.msg", "aten._assert_scalar", "aten.sym_constrain_range",
         "aten.sym_constrain_range_for_size", "aten._assert_async")  # fmt: skip
def _nothing(op: TorchOp) -> list[ir.Value | None]:
    """Checks of what export has already assumed; ranges of symbols are checked when the function is called."""
    return []


@handles("aten.dropout")
def _dropout(op: TorchOp) -> list[ir.Value | None]:
    if op.number(2) and op.number(1) != 0:
        raise RelaxError("expected a model in evaluation mode, got dropout in training")
    return [op.tensor(0)]


def _rounded(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    return emit(op_class, op.tensor(0)) if is_float(op.dtype) else op.tensor(0)


def _compared(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    dtype = common_dtype([op.operand_dtype(0), op.operand_dtype(1)])
    return emit(op_class, op.value_in(0, dtype), op.value_in(1, dtype))


def _predicate(op: TorchOp, op_class: type[EffectOp], of_integers: bool) -> ir.Value:
    x = op.tensor(0)
    return emit(op_class, x) if is_float(info_of(x).dtype) else full(of_integers, boolean(), info_of(x).shape)
