"""Elementwise torch functions on numbers and edges: what the import of each must give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from support.elementwise import NUMBERS, compared
from support.exact import Array, exact, explain, spacing, wrong

__all__ = ["BINARY", "UNARY", "Torch", "whats_wrong"]


@dataclass(frozen=True)
class Torch:
    """A function of tensors of one dtype.

    Attributes:
        function: the function.
        op: the op whose entry in the table of ops has its numbers; without one,
        double: whether results are near what torch gives in f64, or else what it gives in the same dtype.
        units: how far they may be, in units in the last place: with f64, those of f32, beside the rounding of narrower dtypes.
        why: what makes it more than 4.
        any_zero: whether a zero may have either sign.
    """

    function: Callable[..., Tensor]
    op: str = ""
    double: bool = False
    units: float = 0
    why: str = ""
    any_zero: bool = False


def _named(*names: str) -> dict[str, Torch]:
    return {name: Torch(getattr(torch, name), name) for name in names}


def _near(function: Callable[..., Tensor], units: float = 4, why: str = "") -> Torch:
    return Torch(function, double=True, units=units, why=why)


def _widened(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function that torch has of f32 and f64 alone."""
    return lambda x: function(x if x.dtype == torch.float64 else x.float()).to(x.dtype)


UNARY: dict[str, Torch] = {
    **_named(
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1",
        "floor", "log", "log10", "log1p", "log2", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh",
        "sqrt", "square", "tan", "tanh", "trunc",
    ),
    "neg": Torch(torch.neg, "negative"),
    "sgn": Torch(torch.sgn, "sign"),
    "gelu": Torch(F.gelu, "gelu"),
    "gelu_tanh": Torch(lambda x: F.gelu(x, approximate="tanh"), "gelu_tanh"),
    "silu": Torch(F.silu, "silu"),
    "hardswish": Torch(F.hardswish, "hardswish"),
    "softplus": Torch(F.softplus, "softplus"),
    "softplus_low": _near(lambda x: F.softplus(x, 3.0, 0.2), 110, "beta * x, up to 104, is rounded before exp"),
    "softplus_negative": _near(lambda x: F.softplus(x, -0.5, 0.25)),
    "relu6": Torch(F.relu6),
    "clamp": Torch(lambda x: x.clamp(0.0, 6.0)),
    "clamp_min": Torch(lambda x: x.clamp(min=-0.5)),
    "clamp_crossed": Torch(lambda x: x.clamp(2.0, 1.0)),
    "leaky_relu": Torch(lambda x: F.leaky_relu(x, 0.2)),
    "elu": _near(F.elu),
    "selu": _near(F.selu),
    "celu": _near(lambda x: F.celu(x, 0.7)),
    "erfc": _near(torch.erfc, 5, "f64 is a product of two exponentials and a quotient"),
    "lgamma": _near(torch.lgamma, 64, "f64 close to a root below -1/2"),
    "digamma": _near(torch.digamma),
    "pow_2": Torch(lambda x: x**2),
    "pow_3": Torch(lambda x: x**3, units=1),
    "pow_-1": Torch(lambda x: x**-1),
    "pow_0": Torch(lambda x: x**0),
    "pow_4": _near(lambda x: x**4),
    "pow_root": Torch(lambda x: x**0.5, units=1),
    "pow_-root": Torch(lambda x: x**-0.5, units=2),
    "pow_1.7": _near(lambda x: x**1.7, 64, "the exponent is f32 in bf16 and f16"),
    "pow_of_2": _near(lambda x: torch.pow(2.0, x)),
    "add_number": Torch(lambda x: x + 0.1),
    "subtract_from": Torch(lambda x: 0.1 - x),
    "multiply_number": Torch(lambda x: x * 0.1),
    "divide_number": _near(lambda x: x / 0.3, 1),
    "divide_zero": Torch(lambda x: x / 0),
    "floor_divide_number": Torch(lambda x: x // 0.3),
    "remainder_7": Torch(lambda x: x.clamp(-1e4, 1e4) % 7),
    "fmod_7": Torch(lambda x: torch.fmod(x.clamp(-1e4, 1e4), 7)),
    "at_most": Torch(lambda x: x <= 0.1),
    "logical_not": Torch(torch.logical_not),
    "isnan": Torch(torch.isnan),
    "isinf": Torch(torch.isinf),
    "isfinite": Torch(torch.isfinite),
    "to_bool": Torch(lambda x: x.bool()),
    "to_int8": Torch(lambda x: x.to(torch.int8)),
    "to_uint8": Torch(lambda x: x.to(torch.uint8)),
    "to_int16": Torch(lambda x: x.to(torch.int16)),
    "to_int32": Torch(lambda x: x.to(torch.int32)),
    "to_int64": Torch(lambda x: x.to(torch.int64)),
    "erfinv": _near(torch.erfinv),
    "i0": _near(torch.special.i0, 6, "torch itself is up to 5 off in f64"),
    "i0e": _near(torch.special.i0e, 6, "as i0"),
    "i1": _near(torch.special.i1, 16, "torch itself is up to 9 off in f64"),
    "i1e": _near(torch.special.i1e, 16, "as i1"),
    "erfcx": _near(_widened(lambda x: torch.special.erfcx(x.clamp(min=-4))), 16, "torch rounds the square before exp"),
    "log_ndtr": _near(_widened(torch.special.log_ndtr), 8, "f64 is what a square and a logarithm differ by"),
    "ndtri": _near(_widened(torch.special.ndtri), 8, "both are up to 4 off in f64"),
    "angle": Torch(torch.angle),
    "mantissa": Torch(lambda x: torch.frexp(x)[0]),
    "exponent": Torch(lambda x: torch.frexp(x)[1]),
    "rrelu": Torch(lambda x: F.rrelu(x, 0.1, 0.4)),
}  # fmt: skip

BINARY: dict[str, Torch] = {
    "add": Torch(torch.add, "add"),
    "subtract": Torch(torch.sub, "subtract"),
    "multiply": Torch(torch.mul, "multiply"),
    "divide": Torch(torch.div, "divide"),
    "floor_divide": Torch(torch.floor_divide, "floor_divide"),
    "remainder": Torch(torch.remainder, "mod"),
    "fmod": Torch(torch.fmod, "fmod"),
    "pow": Torch(torch.pow, "power"),
    "maximum": Torch(torch.maximum, "maximum"),
    "minimum": Torch(torch.minimum, "minimum"),
    "clamp_min": Torch(lambda x, y: torch.clamp(x, min=y), any_zero=True),
    "divide_trunc": Torch(lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    "divide_floor": Torch(lambda x, y: torch.div(x, y, rounding_mode="floor"), "floor_divide"),
    "where": Torch(lambda x, y: torch.where(x > 0, x, y)),
    **{
        name: Torch(getattr(torch, name))
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
    },
    "nextafter": Torch(torch.nextafter),
}


def whats_wrong(name: str, case: Torch, operands: list[Array], got: Array, eager: Array, double: Array) -> str | None:
    """What is wrong with results, in one line.

    Args:
        name: for the message.
        case: the function.
        operands: what it was called with.
        got: the results of the imported function.
        eager: torch's, in the same dtype.
        double: torch's in f64.
    """
    if got.dtype != eager.dtype:
        return f"{name}: expected {eager.dtype}, got {got.dtype}"
    if case.op:
        want, bad = compared(NUMBERS[case.op], operands, got, flushes=got.dtype.name == "bfloat16")
    elif not _is_float(got):
        want, bad = eager, got != eager
    else:
        want = exact(double if case.double else eager)
        single = np.dtype(np.float64 if got.dtype == np.float64 else np.float32)
        rounding = 0 if got.dtype == single else spacing(want, got.dtype) * 0.5
        tolerance = case.units * spacing(want, single if case.double else got.dtype) + rounding * case.double
        bad = wrong(got, want, tolerance, case.any_zero)
        if got.dtype.name == "bfloat16":
            bad &= ~_flushed(operands, got, want)
    return explain(name, bad, operands, got, want, got.dtype if _is_float(got) else None) if bad.any() else None


def _flushed(operands: list[Array], got: Array, want: Array) -> Array:
    """Where instructions for bf16 make zeros: of results below the normal numbers, and on the way to others."""
    least = float(np.finfo(np.float32).tiny) * 1.01
    tiny = [(x != 0) & (np.abs(exact(x)) < least) for x in operands]
    return np.logical_or.reduce([(got == 0) & (np.abs(want) < least), *tiny])


def _is_float(x: Array) -> bool:
    return x.dtype.kind in "fV" or "float" in x.dtype.name
