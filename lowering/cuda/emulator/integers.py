"""Integer and bit arithmetic of generated code, on arrays or NumPy scalars of the instruction's own type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Array, Dtype, b1, i4, i8, u1, u4, u8

__all__ = [
    "add_sat", "bfe", "bfi", "bfind", "bmsk", "brev", "clamped", "clz", "dot", "funnel", "lop3", "mulhi", "packed",
    "permuted", "popc",
    "quotient", "remainder", "rows", "sad", "shift_left", "shift_right", "szext",
]  # fmt: skip


def rows(value: Any) -> Array:
    """A contiguous array, also of a scalar: bytes can be looked at."""
    return np.ascontiguousarray(np.atleast_1d(value))


def quotient(a: Any, b: Any) -> Any:
    """Towards zero; by zero all bits are set, as on the processors."""
    b, zero = np.asarray(b), np.asarray(b) == 0
    if a.dtype.kind == "u":
        return np.where(zero, ~a.dtype.type(0), a // np.where(zero, b.dtype.type(1), b))
    safe = np.where(zero, b.dtype.type(1), b)
    return np.where(zero, a.dtype.type(-1), (a - np.fmod(a, safe)) // safe)


def remainder(a: Any, b: Any) -> Any:
    """Of the dividend's sign; by zero it is the dividend."""
    zero = np.asarray(b) == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, np.asarray(b).dtype.type(1), b)))


def mulhi(a: Any, b: Any, bits: int) -> Any:
    """The upper half of the product."""
    if bits < 64:
        wide = i8 if a.dtype.kind == "i" else u8
        return ((a.astype(wide) * b.astype(wide)) >> wide(bits)).astype(a.dtype)
    mask = u8(0xFFFFFFFF)
    ua, ub = a.view(u8), b.view(u8)
    al, ah, bl, bh = ua & mask, ua >> u8(32), ub & mask, ub >> u8(32)
    middle = ah * bl + (al * bl >> u8(32))
    high = ah * bh + (middle >> u8(32)) + ((al * bh + (middle & mask)) >> u8(32))
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, u8(0)) - np.where(b < 0, ua, u8(0))
    return high.view(a.dtype)


def add_sat(a: Any, b: Any, sign: int) -> Any:
    """s32 addition (sign 1) or subtraction (-1) that stays at the ends."""
    return np.clip(a.astype(i8) + sign * b.astype(i8), -(2**31), 2**31 - 1).astype(i4)


def sad(a: Any, b: Any, c: Any) -> Any:
    """The third plus the distance of the first two."""
    return np.where(a > b, a - b, b - a) + c


def shift_left(a: Any, n: Any, width: int) -> Any:
    """Shifts by the width or more give zero."""
    kind = a.dtype.type
    return np.where(n < width, a << (n & u4(width - 1)).astype(kind), kind(0))


def shift_right(a: Any, n: Any, width: int) -> Any:
    """Shifts by the width or more give zero, or the sign of signed numbers."""
    kind = a.dtype.type
    if a.dtype.kind == "i":
        return a >> np.minimum(n, u4(width - 1)).astype(kind)
    return np.where(n < width, a >> (n & u4(width - 1)).astype(kind), kind(0))


def funnel(low: Any, high: Any, n: Any, left: bool, clamp: bool) -> Any:
    """shf: the upper (left) or lower half of a shifted pair."""
    n = np.minimum(n, u4(32)).astype(u8) if clamp else (n & u4(31)).astype(u8)
    pair = (high.astype(u8) << u8(32)) | low.astype(u8)
    return (((pair << n) >> u8(32)) if left else pair >> n).astype(u4)


def lop3(a: Any, b: Any, c: Any, table: int) -> Any:
    """Any function of three bits: bit ``4a + 2b + c`` of the table."""
    result = (a ^ a) & b & c
    for index in range(8):
        if table >> index & 1:
            result = result | ((a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c))
    return result


_PATTERNS: dict[str, Callable[[int], list[int]]] = {
    "f4e": lambda n: [n, n + 1, n + 2, n + 3],
    "b4e": lambda n: [n, (n - 1) & 7, (n - 2) & 7, (n - 3) & 7],
    "rc8": lambda n: [n] * 4,
    "ecl": lambda n: [max(i, n) for i in range(4)],
    "ecr": lambda n: [min(i, n) for i in range(4)],
    "rc16": lambda n: [2 * (n & 1), 2 * (n & 1) + 1] * 2,
}


def permuted(a: Any, b: Any, selector: Any, mode: str) -> Any:
    """prmt: bytes of a pair by the selector's nibbles, or by a mode."""
    a, b, selector = np.broadcast_arrays(np.atleast_1d(a), b, selector)
    source = np.concatenate([rows(a).view(u1).reshape(-1, 4), rows(b).view(u1).reshape(-1, 4)], 1)
    result, lane = np.empty((len(a), 4), u1), np.arange(len(a))
    if mode:
        table = np.array([_PATTERNS[mode](n) for n in range(4)])
        return source[lane[:, None], table[selector & u4(3)]].view(u4).reshape(-1)
    for i in range(4):
        pick = (selector >> u4(4 * i)) & u4(15)
        byte = source[lane, pick & u4(7)]
        result[:, i] = np.where(pick & u4(8), np.where(byte & 0x80, 255, 0), byte)
    return result.view(u4).reshape(-1)


def bfe(a: Any, start: Any, length: Any, width: int) -> Any:
    """A field of bits; of signed numbers with its sign, which is that of the number where the field reaches beyond it."""
    start, length = np.minimum(start & u4(255), width).astype(i8), np.minimum(length & u4(255), width).astype(i8)
    wide = a.astype(i8) if a.dtype.kind == "i" else a.astype(u8)
    kind = wide.dtype.type
    up = np.maximum(64 - start - length, 0)
    reach = np.minimum(64 - length, 63)
    if a.dtype.kind == "i":
        inside = (wide << up.astype(i8)) >> reach
        beyond = wide >> np.minimum(start, 63)
        return np.where(length == 0, 0, np.where(start + length > width, beyond, inside)).astype(a.dtype)
    moved = np.where(start >= 64, u8(0), wide >> np.minimum(start, 63).astype(kind))
    mask = np.where(length >= 64, ~u8(0), (u8(1) << np.minimum(length, 63).astype(u8)) - u8(1))
    return (moved & mask).astype(a.dtype)


def bfi(a: Any, b: Any, start: Any, length: Any, width: int) -> Any:
    """b with a field of bits out of a."""
    start, length = (start & u4(255)).astype(u8), (length & u4(255)).astype(u8)
    ones = np.where(length >= 64, ~u8(0), (u8(1) << np.minimum(length, 63)) - u8(1))
    mask = np.where(start >= width, u8(0), ones << np.minimum(start, 63))
    return (((a.astype(u8) << np.minimum(start, 63)) & mask) | (b.astype(u8) & ~mask)).astype(b.dtype)


def bmsk(start: Any, length: Any, clamp: bool) -> Any:
    """A mask of bits."""
    start, length = start.astype(u8), length.astype(u8)
    start, length = (np.minimum(start, 32), np.minimum(length, 32)) if clamp else (start & u8(31), length & u8(31))
    return ((((u8(1) << length) - u8(1)) << start) & u8(0xFFFFFFFF)).astype(u4)


def szext(a: Any, bits: Any, clamp: bool) -> Any:
    """Sign- or zero-extends the lowest bits."""
    bits = np.minimum(bits, u4(32)) if clamp else bits & u4(31)
    shift = (u4(64) - bits).astype(u8)
    signed = a.dtype.kind == "i"
    wide = a.astype(i8) if signed else a.astype(u8)
    kept = np.minimum(shift, 63).astype(wide.dtype)
    return np.where(bits == 0, 0, (wide << kept) >> kept).astype(a.dtype)


def popc(a: Any) -> Any:
    """How many bits are set."""
    table = np.unpackbits(rows(a).view(u1).reshape(-1, np.dtype(a.dtype).itemsize), axis=1)
    return table.sum(1, dtype=u4)


def clz(a: Any) -> Any:
    """How many zeros lead."""
    width = 8 * a.dtype.itemsize
    found, x = np.zeros(np.shape(a), u4), np.array(a)
    for step in (32, 16, 8, 4, 2, 1):
        if step < width:
            empty = x >> a.dtype.type(width - step) == 0
            found, x = found + np.where(empty, u4(step), u4(0)), np.where(empty, x << a.dtype.type(step), x)
    return found + (x == 0).astype(u4)


def bfind(a: Any, shift: bool) -> Any:
    """The place of the highest bit that is no sign, or how far it is from the top; all ones when there is none."""
    unsigned = np.where(a < 0, ~a, a).view(f"u{a.dtype.itemsize}") if a.dtype.kind == "i" else np.asarray(a)
    zeros, width = clz(unsigned), u4(8 * a.dtype.itemsize)
    return np.where(unsigned == 0, ~u4(0), zeros if shift else width - u4(1) - zeros)


def brev(a: Any) -> Any:
    """Bits in the opposite order."""
    bits = np.unpackbits(rows(a).view(u1).reshape(-1, a.dtype.itemsize), axis=1, bitorder="little")
    return np.packbits(bits[:, ::-1], axis=1, bitorder="little").view(a.dtype).reshape(-1)


def dot(a: Any, b: Any, c: Any, types: tuple[Dtype, Dtype], width: int, half: int) -> Any:
    """dp4a (width 4), or dp2a of half 0 or 1 of the bytes of b."""
    a, b = np.broadcast_arrays(np.atleast_1d(a), b)
    second = rows(b).view(types[1]).reshape(-1, 4)
    first = rows(a).view(types[0]).reshape(-1, width)
    second = second if width == 4 else second[:, 2 * half : 2 * half + 2]
    return (first.astype(i8) * second.astype(i8)).sum(1).astype(u4) + c


def clamped(x: Any, kind: Dtype) -> Any:
    """An integer as the nearest one of another type."""
    limits = np.iinfo(kind)
    low, high = (limits.min, limits.max)
    own = np.iinfo(x.dtype)
    return np.clip(x, max(low, own.min), min(high, own.max)).astype(kind)


def packed(a: Any, b: Any, c: Any, kind: Dtype) -> Any:
    """cvt.pack: two saturated numbers in front of what c has."""
    bits = 8 * np.dtype(kind).itemsize
    unsigned = f"u{bits // 8}"
    high, low = (clamped(x, kind).view(unsigned).astype(u4) for x in (a, b))
    pair = (high << u4(bits)) | low
    return pair if bits == 16 else (c << u4(16)) | pair


def truth(x: Any) -> Any:
    """Predicates as they are stored."""
    return np.asarray(x, b1)
