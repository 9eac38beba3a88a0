"""Elementwise torch ops: arithmetic, comparison, logic and choice, with torch's dtype promotion made explicit by casts."""

from __future__ import annotations

import math
from typing import Any

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean, is_float
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
    "mul": ops.Multiply, "div": ops.Divide, "floor_divide": ops.FloorDivide, "remainder": ops.Mod, "pow": ops.Power,
    "bitwise_and": ops.BitwiseAnd, "bitwise_or": ops.BitwiseOr, "bitwise_xor": ops.BitwiseXor,
    "bitwise_left_shift": ops.LeftShift, "bitwise_right_shift": ops.RightShift,
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
        handles(*(f"aten.{name}{o}" for o in ("", ".Tensor", ".Scalar", ".Tensor_Scalar", ".Tensor_Tensor")))(
            lambda op, c=op_class: combine(op, c)
        )
    for name, op_class in _COMPARISONS.items():
        handles(f"aten.{name}.Tensor", f"aten.{name}.Scalar")(lambda op, c=op_class: _compared(op, c))
    for name, op_class in _LOGICAL.items():
        handles(f"aten.{name}")(lambda op, c=op_class: emit(c, op.value_in(0, boolean()), op.value_in(1, boolean())))
    handles("aten.maximum", "aten.max.other")(lambda op: combine(op, ops.Maximum))
    handles("aten.minimum", "aten.min.other")(lambda op: combine(op, ops.Minimum))
    handles("aten.isnan")(lambda op: _predicate(op, ops.IsNan, False))
    handles("aten.isinf")(lambda op: _predicate(op, ops.IsInf, False))
    handles("aten.isfinite")(lambda op: _predicate(op, ops.IsFinite, True))


_register()


def apply(op_class: type[EffectOp], lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """A binary op on two tensors of one dtype, booleans included."""
    is_bool = info_of(lhs).dtype == boolean()
    return emit(_ON_BOOLEANS.get(op_class, op_class) if is_bool else op_class, lhs, rhs)


def combine(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    """A binary op computed in the dtype of its result."""
    return apply(op_class, op.value_in(0, op.dtype), op.value_in(1, op.dtype))


@handles("aten.add.Tensor", "aten.add.Scalar")
def _add(op: TorchOp) -> ir.Value:
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


@handles("aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten.to.other", "aten._to_copy", "aten.type_as",
         "prims.convert_element_type", "aten.to.prim_Device")  # fmt: skip
def _to(op: TorchOp) -> ir.Value:
    return cast(op.tensor(0), op.dtype)


@handles("aten.clone", "aten.alias", "aten.contiguous", "aten.detach", "aten.lift_fresh", "aten.lift_fresh_copy", "aten.lift",
         "aten.positive", "aten.expand_as_same", "prims.device_put", "aten._conj", "aten.resolve_conj", "aten.resolve_neg")  # fmt: skip
def _same(op: TorchOp) -> ir.Value:
    return op.tensor(0)


@handles("aten._assert_tensor_metadata", "aten._assert_async.msg", "aten._assert_scalar", "aten.sym_constrain_range",
         "aten.sym_constrain_range_for_size", "aten._assert_async")  # fmt: skip
def _nothing(op: TorchOp) -> list[ir.Value | None]:
    """Checks of what export has already assumed; ranges of symbols are checked when the function is called."""
    return []


@handles("aten.dropout", "aten.native_dropout", "aten.feature_dropout", "aten.alpha_dropout")
def _dropout(op: TorchOp) -> list[ir.Value | None]:
    if op.number(2) and op.number(1) != 0:
        raise RelaxError("expected a model in evaluation mode, got dropout in training")
    return [op.tensor(0), None][: len(op.results)]


def _rounded(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    return emit(op_class, op.tensor(0)) if is_float(op.dtype) else op.tensor(0)


def _compared(op: TorchOp, op_class: type[EffectOp]) -> ir.Value:
    dtype = common_dtype([op.operand_dtype(0), op.operand_dtype(1)])
    return emit(op_class, op.value_in(0, dtype), op.value_in(1, dtype))


def _predicate(op: TorchOp, op_class: type[EffectOp], of_integers: bool) -> ir.Value:
    x = op.tensor(0)
    return emit(op_class, x) if is_float(info_of(x).dtype) else full(of_integers, boolean(), info_of(x).shape)
