"""Elementwise functions of one tensor, as bodies."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from ...dialect.bindings import ir
from .builder import LinalgBuilder
from .registry import Source, lowering
from .scalar import Number, Scalar, at_least, at_most, math, select

__all__: list[str] = []

_Function = Callable[[Scalar], Scalar]


def _sigmoid(x: Scalar) -> Scalar:
    """``1 / (1 + exp(-x))``."""
    return 1 / (1 + math("exp", -x))


def _abs(x: Scalar) -> Scalar:
    if x.unsigned:
        return x
    return math("absf" if x.is_float else "absi", x)


def _sign(x: Scalar) -> Scalar:
    if x.unsigned:
        return select(x.compare("eq", 0), x, 1)
    return select(x.compare("gt", 0), 1, select(x.compare("lt", 0), x.lift(-1), 0))


def _of_math(name: str) -> _Function:
    return lambda x: math(name, x)


#: Ops of the math dialect under the same name.
_MATH = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1", "floor", "log",
    "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip

_FUNCTIONS: dict[str, _Function] = {
    **{name: _of_math(name) for name in _MATH},
    "abs": _abs,
    "bitwise_not": lambda x: ~x,
    "isfinite": lambda x: math("absf", x).compare("lt", numbers.inf),
    "isinf": lambda x: math("absf", x).compare("eq", numbers.inf),
    "isnan": lambda x: x.compare("ne", x),
    "logical_not": lambda x: x.compare("eq", 0),
    "negative": lambda x: -x,
    "reciprocal": lambda x: 1 / x,
    "round": lambda x: math("roundeven", x),
    "rsqrt": lambda x: 1 / math("sqrt", x),
    "sigmoid": _sigmoid,
    "sign": _sign,
    "square": lambda x: x * x,
}


@lowering(*(f"relax.{name}" for name in _FUNCTIONS))
def _lower(b: LinalgBuilder, source: Source) -> ir.Value:
    function = _FUNCTIONS[source.op.operation.name.removeprefix("relax.")]
    return b.elementwise(source.operands, source.result, function)


@lowering("relax.clip")
def _lower_clip(b: LinalgBuilder, source: Source) -> ir.Value:
    low, high = (_limit(source.attrs[key], source.result.dtype) for key in ("min", "max"))

    def clip(x: Scalar) -> Scalar:
        x = x if low is None else at_least(x, low)
        return x if high is None else at_most(x, high)

    return b.elementwise(source.operands, source.result, clip)


def _limit(limit: Number | None, dtype: ir.Type) -> Number | None:
    return int(limit) if limit is not None and isinstance(dtype, ir.IntegerType) else limit
