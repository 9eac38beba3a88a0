"""What every elementwise op should give, and how far results may be from it: one table, and the checks that read it.

The walk over the registry is :func:`elementwise_ops`; an op that it finds and the table lacks fails the tests.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.op import EffectOp
from relaxir.dialect.reference.numeric import is_float
from relaxir.dialect.reference.registry import reference_of
from relaxir.dialect.relax import Relax
from support.exact import Array, Exact, erf, exact, explain, spacing, wrong
from support.integer_checks import wrapped
from support.number_grid import grid, pairs

__all__ = [
    "FLOATS", "INTEGERS", "NUMBERS", "WHOLE", "Numbers", "Run", "check", "compared", "elementwise_ops", "known", "module_for",
    "names_for",
]  # fmt: skip

FLOATS = ("f32", "f64", "bf16", "f16", "f8E4M3FN", "f8E5M2")
INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "i4", "ui4")

#: Computes an op's results of operands.
Run = Callable[..., Array]

#: Correctly rounded in the dtype that is computed in; narrow dtypes round a second time.
ROUNDED = 0.5


@dataclass(frozen=True)
class Numbers:
    """A function of floats.

    Attributes:
        exact: the function in extended precision.
        units: how many units in the last place a result may be off, in the dtype computed in (f32 for narrower ones).
        why: what makes it more than 4.
        slack: more than that, as a distance, of the operands, the exact result, and of the dtype computed in its ``eps`` and
            least normal number.
        edges: where its code changes.
        attrs: the op's attributes.
        any_zero: whether a zero has no sign that one can rely on.
    """

    exact: Exact
    units: float = 4
    why: str = ""
    slack: Callable[[Sequence[Array], Array, float, float], Array] | None = None
    edges: tuple[float, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    any_zero: bool = False

    def tolerance(self, operands: Sequence[Array], want: Array, dtype: np.dtype[Any]) -> Array:
        """How far results may be from the exact ones."""
        computed = np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)
        info = ml_dtypes.finfo(computed)
        total = self.units * spacing(want, computed)
        if self.slack is not None:
            total = total + np.nan_to_num(self.slack(operands, want, float(info.eps), float(info.tiny)), nan=0.0, posinf=0.0)
        return total if dtype == computed else total + spacing(want, dtype) * 0.5


def _gelu_tanh_exponent(x: Array) -> Array:
    return 2 * np.sqrt(2 / _PI) * (x + np.longdouble("0.044715") * x * x * x)


def _gelu_tanh(x: Array) -> Array:
    return np.where(np.isneginf(x), np.nan, x / (1 + np.exp(-_gelu_tanh_exponent(x))))


def _gelu_tanh_slack(operands: Sequence[Array], want: Array, eps: float, tiny: float) -> Array:
    (x,) = operands
    return np.where(x < 0, 2 * eps * np.abs(want * _gelu_tanh_exponent(x)), 0) + np.where(np.abs(x) < 50, np.abs(x) * tiny, 0)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _silu(x: Array) -> Array:
    return np.where(np.isneginf(x), np.nan, x * _sigmoid(x))


def _softplus(beta: float = 1.0, threshold: float = 20.0) -> Exact:
    return lambda x: np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, 11000))) / beta)


def _floor_divide(x: Array, y: Array) -> Array:
    quotient = np.floor_divide(x, y)
    zero = np.copysign(np.longdouble(0), x / y)
    special = (y == 0) | np.isnan(x) | np.isnan(y) | np.isinf(x)
    return np.where(special, np.where(y == 0, x / y, np.nan), np.where(quotient == 0, zero, quotient))


def _mod(x: Array, y: Array) -> Array:
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def _clip(low: float, high: float) -> Exact:
    return lambda x: np.where(x < low, low, np.where(x > high, high, x))


def _sign(x: Array) -> Array:
    return np.where(x > 0, 1, np.where(x < 0, -1, 0)).astype(np.longdouble)


_PI = np.longdouble("3.14159265358979323846264338327950288")
_ALPHA = 0.203125

#: exp of 88.8 or more is infinite in f32, so its reciprocal is 0 and no number below the normal ones.
_UNDERFLOW = "1 / (1 + exp(-x)) is 0 where exp overflows"

NUMBERS: dict[str, Numbers] = {
    "abs": Numbers(np.abs, 0),
    "acos": Numbers(np.arccos),
    "acosh": Numbers(np.arccosh, edges=(1.5, 1e4)),
    "add": Numbers(np.add, ROUNDED),
    "asin": Numbers(np.arcsin),
    "asinh": Numbers(np.arcsinh, edges=(1e4, 2.0**30)),
    "atan": Numbers(np.arctan),
    "atanh": Numbers(np.arctanh),
    "ceil": Numbers(np.ceil, 0),
    "clip": Numbers(_clip(-1.5, 2.25), 0, attrs={"min": -1.5, "max": 2.25}),
    "cos": Numbers(np.cos),
    "cosh": Numbers(np.cosh),
    "divide": Numbers(np.divide, ROUNDED),
    "erf": Numbers(erf, 6, "a quotient of two polynomials, a third of the time of what is right to one unit"),
    "exp": Numbers(np.exp),
    "exp2": Numbers(np.exp2),
    "expm1": Numbers(np.expm1),
    "floor": Numbers(np.floor, 0),
    "floor_divide": Numbers(_floor_divide, 2, "as torch: the quotient of what the remainder leaves, rounded, is rounded again"),
    "fmod": Numbers(np.fmod, 0),
    "gelu": Numbers(
        lambda x: x / 2 * (1 + erf(x / np.sqrt(np.longdouble(2)))), 6, "1 + erf cancels below 0, as in torch",
        slack=lambda o, want, eps, tiny: 4 * eps * np.where(np.abs(o[0]) < 15, np.abs(o[0]), 0),
    ),
    "gelu_tanh": Numbers(_gelu_tanh, 4, "the argument of exp is rounded, and exp overflows", slack=_gelu_tanh_slack),
    "hardswish": Numbers(lambda x: x * (np.minimum(np.maximum(x + 3, 0), 6) / 6)),
    "leaky_relu": Numbers(lambda x: np.where(x > 0, x, x * _ALPHA), ROUNDED, attrs={"alpha": _ALPHA}),
    "log": Numbers(np.log),
    "log10": Numbers(np.log10),
    "log1p": Numbers(np.log1p),
    "log2": Numbers(np.log2),
    "maximum": Numbers(np.maximum, 0, any_zero=True),
    "minimum": Numbers(np.minimum, 0, any_zero=True),
    "mod": Numbers(_mod, ROUNDED),
    "multiply": Numbers(np.multiply, ROUNDED),
    "negative": Numbers(np.negative, 0),
    "power": Numbers(np.power),
    "reciprocal": Numbers(lambda x: 1 / x, ROUNDED),
    "relu": Numbers(lambda x: np.where(x < 0, 0, x), 0),
    "round": Numbers(np.rint, 0),
    "rsqrt": Numbers(lambda x: 1 / np.sqrt(x)),
    "sigmoid": Numbers(_sigmoid, 4, _UNDERFLOW, slack=lambda o, want, eps, tiny: np.full_like(want, tiny)),
    "sign": Numbers(_sign, 0),
    "silu": Numbers(
        _silu, 4, _UNDERFLOW, slack=lambda o, want, eps, tiny: np.abs(o[0]) * tiny * (np.abs(o[0]) < 1000)
    ),
    "sin": Numbers(np.sin),
    "sinh": Numbers(np.sinh),
    "softplus": Numbers(_softplus(), edges=(20, -20)),
    "sqrt": Numbers(np.sqrt, ROUNDED),
    "square": Numbers(np.square, ROUNDED),
    "subtract": Numbers(np.subtract, ROUNDED),
    "tan": Numbers(np.tan),
    "tanh": Numbers(np.tanh, 5, "a quotient of two polynomials, without an exp"),
    "trunc": Numbers(np.trunc, 0),
}  # fmt: skip

_PREDICATES: dict[str, Callable[..., Any]] = {
    "equal": operator.eq, "greater": operator.gt, "greater_equal": operator.ge, "isfinite": np.isfinite, "isinf": np.isinf,
    "isnan": np.isnan, "less": operator.lt, "less_equal": operator.le, "logical_and": lambda x, y: (x != 0) & (y != 0),
    "logical_not": lambda x: x == 0, "logical_or": lambda x, y: (x != 0) | (y != 0),
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0), "not_equal": operator.ne,
}  # fmt: skip


def _quotient(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _whole_power(x: int, y: int) -> int:
    """A negative exponent truncates a fraction."""
    if y < 0:
        return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)
    return pow(x, y, 2**64)


#: Functions of integers, before they wrap. Where a float function of that name is, ops on both dtypes are meant.
WHOLE: dict[str, Callable[..., int]] = {
    "abs": abs, "add": operator.add, "bitwise_and": operator.and_, "bitwise_not": operator.invert, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "clip": lambda x: min(max(x, 1), 5), "divide": _quotient,
    "floor_divide": lambda x, y: x // y if y else 0, "fmod": lambda x, y: x - y * _quotient(x, y) if y else 0,
    "maximum": max, "minimum": min, "mod": lambda x, y: x % y if y else 0, "multiply": operator.mul,
    "negative": operator.neg, "power": _whole_power, "sign": lambda x: (x > 0) - (x < 0), "square": lambda x: x * x,
    "subtract": operator.sub,
}  # fmt: skip

#: Their second operand counts bits, and what is not from 0 to below the width shifts all of them out, as in torch.
_SHIFTS: dict[str, Callable[[int, int], int]] = {
    "left_shift": lambda x, y: x << y if 0 <= y < 64 else 0,
    "right_shift": lambda x, y: x >> (y if 0 <= y < 64 else 64),
}
WHOLE |= _SHIFTS


#: Their operands and results are of two dtypes, or of three operands: checks of their own.
_APART = ("astype", "bitcast", "where")


def elementwise_ops() -> dict[str, type[EffectOp]]:
    """The classes of all elementwise ops of the registry by name."""
    found = {o.OPERATION_NAME.removeprefix("relax."): o for o in Relax.operations if o.elementwise}
    return {name: found[name] for name in sorted(found)}


def names_for(dtype: str) -> list[str]:
    """The ops that take a dtype."""
    of_all = [name for name in _PREDICATES if not name.startswith("is")]
    if dtype == "i1":
        return [*of_all, *(n for n in WHOLE if n.startswith("bitwise")), "maximum", "minimum"]
    return [*of_all, *WHOLE] if dtype in INTEGERS else [*_PREDICATES, *NUMBERS]


def known() -> set[str]:
    """The ops that the tables have."""
    return {*NUMBERS, *WHOLE, *_PREDICATES, *_APART}


def module_for(dtype: str, names: Iterable[str]) -> rx.Module:
    """A module with one function for each op, named like it, on vectors of any length."""
    b = rx.Builder()
    for name in names:
        with b.function(name):
            operands = [b.input(f"x{i}", ("n",), dtype) for i in range(_arity(name))]
            b.output(getattr(b, name)(*operands, **_attrs(name, dtype)))
    return b.build()


def _arity(name: str) -> int:
    parameters = inspect.signature(reference_of(name).function).parameters.values()
    return sum(p.kind is not p.KEYWORD_ONLY for p in parameters)


def _attrs(name: str, dtype: str) -> Mapping[str, Any]:
    if name == "clip" and dtype in INTEGERS:
        return {"min": 1, "max": 5}
    return NUMBERS[name].attrs if name in NUMBERS else {}


def check(name: str, dtype: str, run: Run, seed: int = 0, count: int = 1000, flushes: bool = False) -> str | None:
    """What is wrong with an op's results, in one line; None when nothing is.

    Args:
        name: the op.
        dtype: of its operands.
        run: computes results.
        seed: of the operands' random part.
        count: how many are random.
        flushes: whether a result below the normal numbers may be 0.
    """
    edges = NUMBERS[name].edges if name in NUMBERS else ()
    operands = [grid(dtype, seed, count, edges)] if _arity(name) == 1 else list(pairs(dtype, seed, count, edges))
    got = run(*operands)
    dtype_wanted = np.dtype(np.bool_) if name in _PREDICATES else numpy_dtype(dtype)
    if got.dtype != dtype_wanted or got.shape != operands[0].shape:
        return f"{name} of {dtype}: expected {dtype_wanted}, {operands[0].shape}, got {got.dtype}, {got.shape}"
    with np.errstate(all="ignore"):
        if dtype in FLOATS and name not in _PREDICATES:
            want, bad = compared(NUMBERS[name], operands, got, flushes)
        else:
            want = _predicate(name, operands) if name in _PREDICATES else _whole(name, dtype, operands)
            bad = got != want
        kind = got.dtype if dtype in FLOATS and name not in _PREDICATES else None
        return explain(f"{name} of {dtype}", bad, operands, got, want, kind) if bad.any() else None


def _predicate(name: str, operands: Sequence[Array]) -> Array:
    wide = [exact(o) if is_float(o.dtype) else o.astype(object) for o in operands]
    return np.asarray(_PREDICATES[name](*wide), np.bool_)


def _whole(name: str, dtype: str, operands: Sequence[Array]) -> Array:
    if name == "bitwise_not" and dtype == "i1":
        return ~operands[0]
    values = [WHOLE[name](*map(int, v)) for v in zip(*operands, strict=True)]
    if dtype == "i1":
        return np.array(values, np.bool_)
    return np.array([wrapped(v, dtype) for v in values], object).astype(numpy_dtype(dtype))


def compared(numbers: Numbers, operands: Sequence[Array], got: Array, flushes: bool = False) -> tuple[Array, Array]:
    """What results of floats should be, and where they are not."""
    wide = [exact(o) for o in operands]
    want = numbers.exact(*wide)
    bad = wrong(got, want, numbers.tolerance(wide, want, got.dtype), numbers.any_zero)
    # A little more than the least normal number, where the result in f32 is a little less.
    least = float(ml_dtypes.finfo(got.dtype).tiny) * (1 + 1e-6)
    flushed = (got == 0) & (np.abs(want) < least) & (np.signbit(got) == np.signbit(want))
    return want, bad & ~(flushed & flushes)
