"""Activation functions as bodies."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from ...dialect.bindings import ir
from .builder import LinalgBuilder
from .registry import Source, lowering
from .scalar import Scalar, at_least, math, maximum, minimum, select

__all__: list[str] = []


def _gelu(x: Scalar) -> Scalar:
    return x * 0.5 * (1 + math("erf", x * numbers.sqrt(0.5)))


def _gelu_tanh(x: Scalar) -> Scalar:
    """``(1 + tanh(u)) / 2`` is the sigmoid of ``2 * u``, which costs an exp and keeps what the sum cancels."""
    slope = -2 * numbers.sqrt(2 / numbers.pi)
    twice = x * math("fma", x * x, x.lift(slope * 0.044715), x.lift(slope))
    return x / (1 + math("exp", twice))


def _hardswish(x: Scalar) -> Scalar:
    """The large factor is at most 1: multiplied first, the largest numbers would overflow."""
    return x * (minimum(maximum(x + 3, 0), 6) / 6)


def _softplus(x: Scalar, beta: float, threshold: float) -> Scalar:
    """``max(x, 0) + log(1 + exp(-|x|))``, which does not overflow."""
    scaled = x if beta == 1 else x * beta
    smooth = maximum(scaled, 0) + math("log1p", math("exp", -math("absf", scaled)))
    return select(scaled.compare("gt", threshold), x, smooth if beta == 1 else smooth / beta)


_FUNCTIONS: dict[str, Callable[[Scalar], Scalar]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "hardswish": _hardswish,
    "relu": lambda x: at_least(x, 0),
    "silu": lambda x: x / (1 + math("exp", -x)),
}


@lowering(*(f"relax.{name}" for name in _FUNCTIONS))
def _lower(b: LinalgBuilder, source: Source) -> ir.Value:
    function = _FUNCTIONS[source.op.operation.name.removeprefix("relax.")]
    return b.elementwise(source.operands, source.result, function)


@lowering("relax.leaky_relu")
def _lower_leaky_relu(b: LinalgBuilder, source: Source) -> ir.Value:
    alpha = source.attrs["alpha"]
    return b.elementwise(source.operands, source.result, lambda x: select(x.compare("gt", 0), x, x * alpha))


@lowering("relax.softplus")
def _lower_softplus(b: LinalgBuilder, source: Source) -> ir.Value:
    beta, threshold = source.attrs["beta"], source.attrs["threshold"]
    return b.elementwise(source.operands, source.result, lambda x: _softplus(x, beta, threshold))
