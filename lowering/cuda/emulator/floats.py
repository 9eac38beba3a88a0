"""Floating-point arithmetic of generated code: products with one rounding, directed roundings, conversions.

What has more digits than the result (products and sums in f64 of f32 numbers) is first rounded to odd, so that
rounding again is the same as rounding once (Boldo, Melquiond: Emulation of FMA and correctly rounded sums, 2008).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .arrays import Array, Dtype, b1, f2, f4, f8, i8, u1, u2, u4, u8
from .integers import rows

__all__ = [
    "add", "divide", "divide_fast", "fma", "from_f8", "from_int", "ftz", "halves", "limited", "maximum", "minimum",
    "multiply", "narrow", "pair", "root", "rounded", "saturated", "to_f8",
    "to_int", "to_pair", "to_tf32", "whole", "widen", "xorsign",
]  # fmt: skip

_F8 = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "tf32": 3.4011621342146535e38}


def widen(x: Any) -> Any:
    """bf16 bits as f32."""
    return (x.astype(u4) << u4(16)).view(f4)


def narrow(x: Any, mode: str = "rn") -> Any:
    """f32 or f64 as bf16 bits."""
    if mode not in ("rn", "rz"):
        return _directed_bf16(x.astype(f8), mode)
    x = _odd_f4(x) if x.dtype == f8 else x.astype(f4)
    bits = x.view(u4)
    result = bits >> u4(16) if mode == "rz" else (bits + (u4(0x7FFF) + ((bits >> u4(16)) & u4(1)))) >> u4(16)
    nan = np.isnan(x)
    return (np.where(nan, u4(0x7FFF), result) if nan.any() else result).astype(u2)


def to_tf32(x: Any, mode: str) -> Any:
    """f32 with 10 bits behind the point: rna is the nearest one, away from zero at halves."""
    bits = x.view(u4)
    more = {"rna": u4(0x1000), "rz": u4(0), "rn": u4(0xFFF) + ((bits >> u4(13)) & u4(1))}[mode]
    return np.where(np.isnan(x), u4(0x7FFFFFFF), (bits + more) & u4(0xFFFFE000))


def halves(pair: Any, kind: Dtype) -> Any:
    """A pair of 16-bit numbers as two columns."""
    return rows(pair).view(kind).reshape(-1, 2)


def pair(columns: Any) -> Any:
    """Two columns of 16-bit numbers as pairs."""
    return rows(columns).view(u4).reshape(-1)


def saturated(x: Any) -> Any:
    """Between 0 and 1; what is no number is 0."""
    return np.where(np.isnan(x), x.dtype.type(0), np.clip(x, x.dtype.type(0), x.dtype.type(1)))


def ftz(x: Any) -> Any:
    """Subnormal numbers as zeros of their sign."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def xorsign(x: Any, a: Any, b: Any) -> Any:
    """A magnitude with the product of two signs."""
    return np.copysign(x, np.where(np.signbit(a) ^ np.signbit(b), f4(-1), f4(1)))


def minimum(a: Any, b: Any, nan: bool) -> Any:
    """The smaller one, of which -0 is one; of a number and none the number, but with ``nan``."""
    return _extreme(a, b, np.minimum if nan else np.fmin, True)


def maximum(a: Any, b: Any, nan: bool) -> Any:
    """The larger one."""
    return _extreme(a, b, np.maximum if nan else np.fmax, False)


def _extreme(a: Any, b: Any, function: Any, least: bool) -> Any:
    result = function(a, b)
    zero = result == 0
    if not zero.any():
        return result
    both = np.signbit(a) | np.signbit(b) if least else np.signbit(a) & np.signbit(b)
    signed = np.where(both, result.dtype.type(-0.0), result.dtype.type(0))
    return np.where(zero & (a == b), signed, result)


# ---------------------------------------------------------------------------------------------------------------- rounding once
def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The sum, and what rounding it left."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _odd(s: Any, error: Any) -> Any:
    """A rounded f64 and its error as the number rounded to odd: what is not exact ends with a one."""
    bits = np.asarray(s).view(i8)
    off = np.isfinite(s) & (error != 0) & ((bits & i8(1)) == 0)
    step = np.where((error > 0) == (s > 0), i8(1), i8(-1))
    return np.where(off, bits + step, bits).view(f8)


def _odd_f4(x: Any) -> Any:
    """An f64 as f32 rounded to odd."""
    y = x.astype(f4)
    error = x - y.astype(f8)
    bits = np.asarray(y).view(np.int32)
    off = np.isfinite(y) & (error != 0) & ((bits & 1) == 0)
    step = np.where((error > 0) == (x > 0), 1, -1).astype(np.int32)
    finite = np.isfinite(x) & np.isinf(y)
    largest = np.copysign(np.finfo(f4).max, y)
    return np.where(finite, largest, np.where(off, bits + step, bits).view(f4))


_NEXT = {"rm": -np.inf, "rp": np.inf}


def rounded(x: Any, kind: str, mode: str) -> Any:
    """An f64 in f32, f16, bf16 (as bits) or f64, in one of four directions. Rounding to nearest twice is the caller's to
    avoid.
    """
    if kind == "f64":
        return x
    if kind == "bf16":
        return narrow(x, mode) if mode in ("rn", "rz") else _directed_bf16(x, mode)
    target: Dtype = f4 if kind == "f32" else f2
    y = x.astype(target)
    return y if mode == "rn" else _directed(x, y, mode)


def _directed(x: Any, y: Any, mode: str) -> Any:
    """The nearest number y of x, moved to the side of x that the mode wants."""
    back, kind = y.astype(f8), y.dtype.type
    if mode == "rz":
        return np.where(np.abs(back) > np.abs(x), np.nextafter(y, kind(0)), y)
    wrong = back > x if mode == "rm" else back < x
    moved = np.nextafter(y, kind(_NEXT[mode]))
    zero = np.where((x != 0) & (y == 0) & ~wrong, np.copysign(kind(0), x.astype(f4).astype(kind)), y)
    return np.where(wrong, moved, zero)


def _directed_bf16(x: Any, mode: str) -> Any:
    low = narrow(_odd_f4(x), "rz")
    exact = widen(low).astype(f8) == x
    away = np.where(x > 0, mode == "rp", mode == "rm")
    return np.where(exact | np.isnan(x) | np.isinf(x) | ~away, low, low + u2(1)).astype(u2)


def add(a: Any, b: Any, kind: str, mode: str) -> Any:
    """A sum in another direction than the nearest."""
    s, error = _two_sum(a.astype(f8), b.astype(f8))
    if kind == "f64":
        return _nudged(s, error, mode)
    zero = np.where(
        (s == 0) & (error == 0) & (mode == "rm") & ~((a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)), -0.0, s
    )
    return rounded(_odd(zero, error), kind, mode)


def multiply(a: Any, b: Any, kind: str, mode: str) -> Any:
    """A product in another direction than the nearest."""
    if kind == "f64":
        product, error = _two_product(a, b)
        return _nudged(product, error, mode)
    return rounded(a.astype(f8) * b.astype(f8), kind, mode)


def _nudged(s: Any, error: Any, mode: str) -> Any:
    """A rounded f64 and its error, in a direction."""
    down = {"rz": (s > 0) & (error < 0), "rm": error < 0, "rp": np.zeros_like(s, b1)}[mode]
    up = {"rz": (s < 0) & (error > 0), "rp": error > 0, "rm": np.zeros_like(s, b1)}[mode]
    return np.where(np.isfinite(s) & down, np.nextafter(s, -np.inf), np.where(np.isfinite(s) & up, np.nextafter(s, np.inf), s))


def divide(a: Any, b: Any, kind: str, mode: str) -> Any:
    """An f32 quotient in another direction than the nearest, which is told by the remainder: it is exact in f64."""
    y = (a / b).astype(f4)
    rest = a.astype(f8) - y.astype(f8) * b.astype(f8)
    above = np.where(b > 0, rest, -rest)  # what is missing to the quotient
    return _towards(y, above, a, b, mode)


def divide_fast(a: Any, b: Any) -> Any:
    """div.approx: divisors beyond 2**126 give 0 (or NaN for infinite dividends), as the ISA says."""
    large = (np.abs(b) > f4(2.0**126)) & np.isfinite(b)
    return np.where(large, np.where(np.isinf(a), f4(np.nan), f4(0)), a / b) if large.any() else a / b


def root(a: Any, kind: str, mode: str) -> Any:
    """An f32 square root in another direction than the nearest."""
    y = np.sqrt(a)
    return _towards(y, a.astype(f8) - y.astype(f8) * y.astype(f8), a, a, mode)


def _towards(y: Any, above: Any, a: Any, b: Any, mode: str) -> Any:
    fine = np.isfinite(y) & np.isfinite(a) & np.isfinite(b)
    side = {"rz": np.where(y > 0, f4(0), f4(0)), "rm": f4(-np.inf), "rp": f4(np.inf)}[mode]
    wrong = {"rz": ((y > 0) & (above < 0)) | ((y < 0) & (above > 0)), "rm": above < 0, "rp": above > 0}[mode]
    return np.where(fine & wrong, np.nextafter(y, side), y)


_TINY = np.finfo(f4).tiny


def fma(a: Any, b: Any, c: Any, kind: str, mode: str = "rn") -> Any:
    """a * b + c rounded once; bf16 numbers are given, and come, as f32 (see :func:`narrow`)."""
    if kind == "f64":
        return _fma_f64(a, b, c, mode)
    product, addend = a.astype(f8) * b.astype(f8), c.astype(f8)
    if kind == "f32" and mode == "rn":
        s = product + addend
        if not _may_be_half(s).any():
            return s.astype(f4)
    s, error = _two_sum(product, addend)
    if kind in ("bf16", "bf16x2"):
        return _odd_f4(_odd(s, error))
    return rounded(_odd(s, error), "f16" if kind.startswith("f16") else "f32", mode)


def _may_be_half(s: Any) -> Any:
    """Where rounding an f64 to f32 as well could go wrong: halfway between two of them, or subnormal; zeros are exact."""
    halves = (np.asarray(s).view(u8) & u8(0x1FFFFFFF)) == u8(0x10000000)
    return halves | ((np.abs(s) < _TINY) & (s != 0))


def _split(a: Any) -> tuple[Any, Any]:
    high = a * 134217729.0
    high = high - (high - a)
    return high, a - high


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The product, and what rounding it left (Dekker); for exponents that do not run over."""
    product = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _fma_f64(a: Any, b: Any, c: Any, mode: str) -> Any:
    a, b, c = np.broadcast_arrays(np.asarray(a, f8), b, c)
    high, low = _two_product(a, b)
    th, tl = _two_sum(c, low)
    vh, vl = _two_sum(high, th)
    z = _odd(*_two_sum(tl, vl))
    result = vh + z if mode == "rn" else _nudged(*_two_sum(vh, z), mode)
    exponents = [np.frexp(x)[1] for x in (a, b, c, a * b)]
    risky = ~np.isfinite(high) | ~np.isfinite(c) | (result == 0) | (np.abs(np.stack(exponents)) > 900).any(0)
    if not risky.any():
        return result
    return np.where(risky, _fma_exactly(a, b, c, risky, mode), result)


def _fma_exactly(a: Array, b: Array, c: Array, where: Array, mode: str) -> Array:
    """By fractions, one after the other; what is no finite number as ordinary arithmetic has it."""
    from fractions import Fraction

    result = a * b + c
    for index in np.argwhere(where & np.isfinite(a) & np.isfinite(b) & np.isfinite(c)):
        place = tuple(index)
        exact = Fraction(float(a[place])) * Fraction(float(b[place])) + Fraction(float(c[place]))
        if exact:
            result[place] = _nearest(exact, mode)
    return result


def _nearest(exact: Any, mode: str) -> float:
    try:
        near = float(exact)  # rounds correctly
    except OverflowError:
        near = np.inf if exact > 0 else -np.inf
        return near if mode == "rn" or mode == ("rp" if exact > 0 else "rm") else float(np.nextafter(near, 0))
    if mode == "rn" or near == exact:
        return near
    side = {"rz": 0.0, "rm": -np.inf, "rp": np.inf}[mode]
    wrong = {"rz": abs(near) > abs(exact), "rm": near > exact, "rp": near < exact}[mode]
    return float(np.nextafter(near, side)) if wrong else near


# ---------------------------------------------------------------------------------------------------------------- conversions
_WHOLE: dict[str, Any] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def whole(x: Any, mode: str) -> Any:
    """A float as the float of a whole number."""
    return _WHOLE[mode](x)


def to_int(x: Any, mode: str, kind: Dtype) -> Any:
    """A float as an integer; beyond the ends it is the end, and what is no number is 0, or the top bit when 64 bits are
    involved.
    """
    limits, bits = np.iinfo(kind), 8 * np.dtype(kind).itemsize
    nan = (1 << (bits - 1)) if x.dtype == f8 or bits == 64 else 0
    y = whole(np.asarray(x, f8), mode)
    high, low = y >= 2.0 ** (bits - (limits.min < 0)), y <= limits.min
    result = np.where(high | low | np.isnan(y), 0, y).astype(kind)
    result = np.where(high, kind(limits.max), np.where(low, kind(limits.min), result))
    return np.where(np.isnan(y), np.array(nan, f"u{bits // 8}").view(kind), result)


def from_int(x: Any, kind: str, mode: str) -> Any:
    """An integer as a float."""
    if x.dtype.itemsize < 8:
        return rounded(x.astype(f8), kind, mode)  # f64 holds every integer of 32 bits
    if mode == "rn" and kind in ("f32", "f64"):
        return x.astype(f4 if kind == "f32" else f8)
    y = x.astype(f8)
    inside = np.abs(y) < 2.0**63 if x.dtype.kind == "i" else y < 2.0**64
    error = np.where(inside, (x - np.where(inside, y, 0).astype(x.dtype)).astype(i8), -1).astype(f8)
    if kind == "f64":
        return _nudged(y, error, mode)
    return rounded(_odd(y, error), kind, mode)


def to_f8(high: Any, low: Any, kind: str, relu: bool) -> Any:
    """Two f32 as a pair of f8, with saturation: the first operand is the upper half."""
    both = np.stack(np.broadcast_arrays(np.atleast_1d(low), high), -1).astype(f4)
    both = np.where(np.isnan(both), both, np.maximum(both, f4(0))) if relu else both
    largest = float(ml_dtypes.finfo(_F8[kind[:4]]).max)
    nan = np.isnan(both)
    result = np.clip(both, -largest, largest).astype(_F8[kind[:4]]).view(u1)
    return np.where(nan, u1(0x7F), result).astype(u1).view(u2).reshape(-1)


def from_f8(pair: Any, kind: str, relu: bool) -> Any:
    """A pair of f8 as a pair of f16."""
    values = rows(pair).view(_F8[kind[:4]]).astype(f2)
    values = np.where(np.isnan(values), values, np.maximum(values, f2(0))) if relu else values
    return rows(values).view(u4).reshape(-1)


def to_pair(high: Any, low: Any, kind: str, mode: str, relu: bool, finite: bool) -> Any:
    """Two f32 as a pair of f16 or bf16; the first operand is the upper half."""
    both = limited(np.stack(np.broadcast_arrays(np.atleast_1d(low), high), -1), kind[:-2], relu, finite)
    return pair(narrow(both, mode) if kind == "bf16x2" else rounded(both.astype(f8), "f16", mode))


def limited(x: Any, kind: str, relu: bool, finite: bool) -> Any:
    """relu and satfinite in front of a conversion; what is no number stays so."""
    x = np.where(np.isnan(x), x, np.maximum(x, x.dtype.type(0))) if relu else x
    largest = _LARGEST[kind]
    return np.where(np.isnan(x), x, np.clip(x, -largest, largest)).astype(x.dtype) if finite else x
