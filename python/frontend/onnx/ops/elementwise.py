"""ONNX operators that compute element by element."""

from __future__ import annotations

import math
from typing import Any

from onnx.helper import np_dtype_to_tensor_dtype

from ....dialect import ops
from ....dialect.bindings import ir
from ....dialect.dtypes import numpy_dtype
from ....dialect.errors import RelaxError
from ....dialect.inference import boolean, is_float
from ....dialect.op import EffectOp
from ....weights.onnx_codes import is_coded
from ...emit import bitcast, cast, emit, full, info_of, multiply_all, reshape, unsqueeze, within_largest
from ...norms import rms_norm_of
from ..codes import decoded, encoded
from ..equal_sizes import agreed_operands
from ..node import Node, UnmappedError, handles
from ..tensors import element_dtype
from ..values import coded_value

_UNARY: dict[str, type[EffectOp]] = {
    "Abs": ops.Abs, "Acos": ops.Acos, "Acosh": ops.Acosh, "Asin": ops.Asin, "Asinh": ops.Asinh, "Atan": ops.Atan,
    "Atanh": ops.Atanh, "Cos": ops.Cos, "Cosh": ops.Cosh, "Sin": ops.Sin, "Sinh": ops.Sinh, "Tan": ops.Tan, "Tanh": ops.Tanh,
    "Erf": ops.Erf, "Exp": ops.Exp, "Log": ops.Log, "Neg": ops.Negative, "Reciprocal": ops.Reciprocal, "Sigmoid": ops.Sigmoid,
    "Sqrt": ops.Sqrt, "Not": ops.LogicalNot, "BitwiseNot": ops.BitwiseNot, "Ceil": ops.Ceil,
    "Floor": ops.Floor, "Round": ops.Round, "IsNaN": ops.IsNan, "Softplus": ops.Softplus, "HardSwish": ops.HardSwish,
}  # fmt: skip

_BINARY: dict[str, type[EffectOp]] = {
    "Add": ops.Add, "Sub": ops.Subtract, "And": ops.LogicalAnd, "Or": ops.LogicalOr,
    "Xor": ops.LogicalXor, "Equal": ops.Equal, "Less": ops.Less, "LessOrEqual": ops.LessEqual, "Greater": ops.Greater,
    "GreaterOrEqual": ops.GreaterEqual, "BitwiseAnd": ops.BitwiseAnd, "BitwiseOr": ops.BitwiseOr, "BitwiseXor": ops.BitwiseXor,
}  # fmt: skip

#: Of any number of operands.
_SEVERAL: dict[str, type[EffectOp]] = {"Sum": ops.Add, "Max": ops.Maximum, "Min": ops.Minimum}


def _register() -> None:
    for key, op_class in _UNARY.items():
        handles(key)(lambda node, c=op_class: emit(c, node.tensor(0)))
    for key, op_class in _BINARY.items():
        handles(key)(lambda node, c=op_class: emit(c, *agreed_operands(*node.tensors())))
    for key, op_class in _SEVERAL.items():
        handles(key)(lambda node, c=op_class: _combined(node, c))


def _combined(node: Node, op_class: type[EffectOp]) -> ir.Value:
    result, *others = agreed_operands(*node.tensors())
    for other in others:
        result = emit(op_class, result, other)
    return result


_register()


@handles("Sign")
def _sign(node: Node) -> ir.Value:
    """NaN of NaN, as of ONNX Runtime and NumPy; relax's, as PyTorch's, is 0."""
    x = node.tensor(0)
    signs = emit(ops.Sign, x)
    return emit(ops.Where, emit(ops.IsNan, x), x, signs) if is_float(node.dtype()) else signs


@handles("Mean")
def _mean(node: Node) -> ir.Value:
    dtype = node.dtype()
    return emit(ops.Divide, _combined(node, ops.Add), full(len(node.operands), dtype))


@handles("Div")
def _div(node: Node) -> ir.Value:
    """Integers towards zero."""
    return emit(ops.Divide, *agreed_operands(*node.tensors()))


@handles("Mod")
def _mod(node: Node) -> ir.Value:
    return emit(ops.Fmod if node.attribute("fmod", 0) else ops.Mod, *agreed_operands(*node.tensors()))


@handles("Mul")
def _multiply(node: Node) -> ir.Value:
    """Two scales, of which the model's file has one (:meth:`Node.weight`); the end of a norm that is written out; any other."""
    scales = all(is_float(node.dtype(i)) and multiply_all(node.operand(i).shape) == 1 for i in range(2))
    a, b = agreed_operands(*(node.weight(i) if scales else node.tensor(i) for i in range(2)))
    return rms_norm_of(a, b) or emit(ops.Multiply, a, b)


@handles("Pow")
def _pow(node: Node) -> ir.Value:
    """In the dtype of the base, which the exponent need not have."""
    x, y = agreed_operands(*node.tensors())
    dtype, other = info_of(x).dtype, info_of(y).dtype
    exponent = node.operand(1).known
    if (
        exponent is not None
        and exponent.size == 1
        and is_float(dtype)
        and float(exponent.reshape(-1)[0]) == 2.0
        and not exponent.ndim
    ):
        return emit(ops.Square, x)
    if dtype == other:
        return emit(ops.Power, x, y)
    wide = ir.F64Type.get() if 64 in (_width(dtype), _width(other)) else ir.F32Type.get()
    if not is_float(dtype) and not is_float(other):
        return emit(ops.Power, x, cast(y, dtype))
    return cast(emit(ops.Power, cast(x, wide), cast(y, wide)), dtype)


def _width(dtype: ir.Type) -> int:
    return numpy_dtype(dtype).itemsize * 8


@handles("Identity")
def _identity(node: Node) -> Any:
    return node.operands[0]


@handles("Dropout")
def _dropout(node: Node) -> Any:
    """In inference nothing; the mask then keeps all."""
    training = node.number(2, False) if node.version >= 12 else False
    if training and node.number(1, 0.5) != 0:
        raise RelaxError("expected a model for inference, got dropout in training")
    mask = full(True, boolean(), node.operand(0).shape)
    return [node.operands[0], mask]


@handles("Cast")
def _cast(node: Node) -> Any:
    return converted(node, node.attribute("to"))


@handles("BitCast")
def _bit_cast(node: Node) -> ir.Value:
    return bitcast(node.tensor(0), element_dtype(node.attribute("to")))


@handles("CastLike")
def _cast_like(node: Node) -> Any:
    like = node.operand(1)
    return converted(node, like.coded or np_dtype_to_tensor_dtype(numpy_dtype(like.dtype)))


def converted(node: Node, element: int) -> Any:
    """The first operand in another element type, as ONNX casts."""
    x, saturate = node.operand(0), bool(node.attribute("saturate", 1))
    if x.coded == element:
        return x
    value = decoded(x.value, x.coded, ir.F32Type.get()) if x.coded else x.value
    if is_coded(element):
        codes = encoded(value, element, saturate, node.attribute("round_mode", "up"))
        return coded_value(node.name, codes, element)
    return saturated(value, element_dtype(element), saturate)


def saturated(x: ir.Value, dtype: ir.Type, saturate: bool = True) -> ir.Value:
    """The tensor in another dtype: floats of eight bits saturate, unless told not to."""
    if saturate and str(dtype).startswith("f8") and is_float(info_of(x).dtype) and info_of(x).dtype != dtype:
        return within_largest(x, dtype)
    return cast(x, dtype)


@handles("Clip")
def _clip(node: Node) -> ir.Value:
    """Bounds are attributes up to operator set 10, and may be computed."""
    x, dtype = node.tensor(0), node.dtype()
    if node.version < 11:
        low, high = node.attribute("min"), node.attribute("max")
        return emit(ops.Clip, x, min=low, max=high) if low is not None or high is not None else x
    for index, op_class in ((1, ops.Maximum), (2, ops.Minimum)):
        if node.has(index):
            x = emit(op_class, x, reshape(node.tensor(index), ()))
    return cast(x, dtype)


@handles("Relu")
def _relu(node: Node) -> ir.Value:
    x = node.tensor(0)
    return emit(ops.Relu, x) if is_float(node.dtype()) else emit(ops.Maximum, x, full(0, node.dtype()))


@handles("LeakyRelu")
def _leaky_relu(node: Node) -> ir.Value:
    return emit(ops.LeakyRelu, node.tensor(0), alpha=node.attribute("alpha", 0.01))


@handles("PRelu")
def _prelu(node: Node) -> ir.Value:
    x, slope = node.tensor(0), node.tensor(1)
    rank = node.rank(0)
    if node.scope.conversion.opset < 7 and node.rank(1) == 1 and rank > 2:  # one per channel, before there was broadcasting
        slope = unsqueeze(slope, *range(1, rank - 1))
    x, slope = agreed_operands(x, slope)
    return emit(ops.Where, emit(ops.Less, x, full(0, node.dtype())), emit(ops.Multiply, x, slope), x)


def _number(node: Node, name: str, default: float) -> ir.Value:
    return full(node.attribute(name, default), node.dtype())


def _negative(node: Node, low: ir.Value, high: ir.Value) -> ir.Value:
    """One value below 0, another one from 0 on."""
    return emit(ops.Where, emit(ops.Less, node.tensor(0), full(0, node.dtype())), low, high)


@handles("Elu")
def _elu(node: Node) -> ir.Value:
    x = node.tensor(0)
    return _negative(node, emit(ops.Multiply, emit(ops.Expm1, x), _number(node, "alpha", 1.0)), x)


@handles("Celu")
def _celu(node: Node) -> ir.Value:
    x, alpha = node.tensor(0), _number(node, "alpha", 1.0)
    return _negative(node, emit(ops.Multiply, emit(ops.Expm1, emit(ops.Divide, x, alpha)), alpha), x)


@handles("Selu")
def _selu(node: Node) -> ir.Value:
    x, gamma = node.tensor(0), _number(node, "gamma", 1.05070102214813232421875)
    alpha = _number(node, "alpha", 1.67326319217681884765625)
    return emit(ops.Multiply, _negative(node, emit(ops.Multiply, emit(ops.Expm1, x), alpha), x), gamma)


@handles("HardSigmoid")
def _hard_sigmoid(node: Node) -> ir.Value:
    scaled = emit(ops.Multiply, node.tensor(0), _number(node, "alpha", 0.2))
    return emit(ops.Clip, emit(ops.Add, scaled, _number(node, "beta", 0.5)), min=0.0, max=1.0)


@handles("ThresholdedRelu")
def _thresholded_relu(node: Node) -> ir.Value:
    x = node.tensor(0)
    return emit(ops.Where, emit(ops.Greater, x, _number(node, "alpha", 1.0)), x, full(0, node.dtype()))


@handles("Softsign")
def _softsign(node: Node) -> ir.Value:
    x = node.tensor(0)
    return emit(ops.Divide, x, emit(ops.Add, emit(ops.Abs, x), full(1, node.dtype())))


@handles("Mish")
def _mish(node: Node) -> ir.Value:
    x = node.tensor(0)
    return emit(ops.Multiply, x, emit(ops.Tanh, emit(ops.Softplus, x)))


@handles("Swish")
def _swish(node: Node) -> ir.Value:
    x, alpha = node.tensor(0), node.attribute("alpha", 1.0)
    if alpha == 1.0:
        return emit(ops.Silu, x)
    return emit(ops.Multiply, x, emit(ops.Sigmoid, emit(ops.Multiply, x, full(alpha, node.dtype()))))


@handles("Gelu")
def _gelu(node: Node) -> ir.Value:
    how = node.attribute("approximate", "none")
    if how not in ("none", "tanh"):
        raise RelaxError(f"expected approximate to be none or tanh, got '{how}'")
    return emit(ops.GeluTanh if how == "tanh" else ops.Gelu, node.tensor(0))


@handles("Shrink")
def _shrink(node: Node) -> ir.Value:
    x, dtype = node.tensor(0), node.dtype()
    bias, edge = node.attribute("bias", 0.0), node.attribute("lambd", 0.5)
    if not is_float(dtype):
        raise UnmappedError("expected floats")
    low = emit(ops.Where, emit(ops.Less, x, full(-edge, dtype)), emit(ops.Add, x, full(bias, dtype)), full(0, dtype))
    return emit(ops.Where, emit(ops.Greater, x, full(edge, dtype)), emit(ops.Subtract, x, full(bias, dtype)), low)


@handles("IsInf")
def _is_inf(node: Node) -> ir.Value:
    x, dtype = node.tensor(0), node.dtype()
    positive, negative = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)
    if positive and negative:
        return emit(ops.IsInf, x)
    if not positive and not negative:
        return full(False, boolean(), node.operand(0).shape)
    return emit(ops.Equal, x, full(math.inf if positive else -math.inf, dtype))


@handles("Where")
def _where(node: Node) -> ir.Value:
    return emit(ops.Where, *agreed_operands(*node.tensors()))


@handles("BitShift")
def _bit_shift(node: Node) -> ir.Value:
    direction = node.attribute("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise RelaxError(f"expected direction to be LEFT or RIGHT, got '{direction}'")
    return emit(ops.LeftShift if direction == "LEFT" else ops.RightShift, *agreed_operands(*node.tensors()))


@handles("ai.onnx.ml.Binarizer")
def _binarizer(node: Node) -> ir.Value:
    x, dtype = node.tensor(0), node.dtype()
    return cast(emit(ops.Greater, x, full(node.attribute("threshold", 0.0), dtype)), dtype)
