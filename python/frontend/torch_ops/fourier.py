"""Discrete Fourier transforms along a dimension, as products with matrices of cosines and sines.

A size that is a product is transformed in stages, as Cooley and Tukey do: of ``j = b * j_a + j_b`` and ``k = k_a + a * k_b``

    X[k] = sum over j_b of w_b^(j_b k_b) * (w_n^(j_b k_a) * sum over j_a of w_a^(j_a k_a) x[j])
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ...dialect.inference import boolean
from ...dialect.symbolic import Dim, Expr
from ..emit import cast, concat, emit, full, info_of, integer, permute, reshape, sequence, slice_axis, table, unsqueeze
from ..torch_op import TorchOp, handles

#: Rows of a matrix that a stage multiplies with; a prime number, which has no stages, may have more, up to a convolution's.
_STAGE, _MOST_ROWS = 64, 512

#: Real and imaginary part; None is zero.
_Pair = tuple[ir.Value, ir.Value | None]


@handles("relaxir.dft")
def _dft(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    axis, rank = op.axis(2, info_of(x).rank), info_of(x).rank
    count, sign = op.number(3), op.integer(4, "sign")
    last = [a for a in range(rank) if a != axis] + [axis]
    imaginary = op.optional(1)
    parts = (permute(x, last), None if imaginary is None else permute(imaginary, last))
    back = [last.index(a) for a in range(rank)]
    n = info_of(x).shape[axis]
    found = _transformed(parts, count, sign)
    if imaginary is None:
        found = found[0], _without_ends(found[1], n)
    found = _scaled(found, n, op.number(5))
    return concat([unsqueeze(permute(part, back), 0) for part in found], 0)


def _without_ends(x: ir.Value, n: Dim) -> ir.Value:
    """Of real numbers, zeros where sums of sines are that, and rounding would choose a sign: at the first, in the middle."""
    count = info_of(x).shape[-1]
    if isinstance(n, int) and isinstance(count, int):
        ends = table(2 * np.arange(count) % n == 0, boolean())
    else:
        assert n is not None
        assert count is not None
        twice = emit(ops.Multiply, sequence(0, count), full(2, integer()))
        ends = emit(ops.Equal, emit(ops.Mod, twice, full(n, integer())), full(0, integer()))
    return emit(ops.Where, ends, full(0, info_of(x).dtype), x)


def _scaled(parts: tuple[ir.Value, ir.Value], n: Dim, power: float) -> tuple[ir.Value, ir.Value]:
    if not power or n is None:
        return parts
    dtype = info_of(parts[0]).dtype
    factor = full(n**-power, dtype) if isinstance(n, int) else _inverse(cast(full(n, integer()), dtype), power)
    return emit(ops.Multiply, parts[0], factor), emit(ops.Multiply, parts[1], factor)


def _inverse(n: ir.Value, power: float) -> ir.Value:
    root = n if power == 1 else emit(ops.Sqrt, n)
    return emit(ops.Divide, full(1.0, info_of(n).dtype), root)


def _transformed(parts: _Pair, count: Dim, sign: int) -> tuple[ir.Value, ir.Value]:
    """The first frequencies along the last dimension."""
    *_, n = info_of(parts[0]).shape
    if n is None or count is None:
        raise RelaxError("expected a Fourier transform along a dimension whose size is known or symbolic")
    if n == 0:
        raise RelaxError("expected a Fourier transform along a dimension that is not empty")
    if not isinstance(n, int) or not isinstance(count, int):
        return _products(parts, _computed_turns(n, count, sign, info_of(parts[0]).dtype))
    factor = next((a for a in range(min(_STAGE, n - 1), 1, -1) if n % a == 0), 1)
    if n <= _STAGE or (factor == 1 and n <= _MOST_ROWS):
        places = np.outer(np.arange(n), np.arange(count))
        return _products(parts, _turns(places, n, sign, info_of(parts[0]).dtype))
    found = _convolved(parts, n, sign) if factor == 1 else _staged(parts, n, factor, sign)
    rank = info_of(parts[0]).rank
    real, imaginary = (slice_axis(p, rank - 1, 0, count) for p in found)
    return real, imaginary


def _convolved(parts: _Pair, n: int, sign: int) -> tuple[ir.Value, ir.Value]:
    """Of a prime size, by a convolution of one with factors (Bluestein): ``2 j k`` is ``j ** 2 + k ** 2 - (k - j) ** 2``."""
    size = 1 << (2 * n - 2).bit_length()
    dtype, batch = info_of(parts[0]).dtype, info_of(parts[0]).shape[:-1]
    squares = np.arange(n) ** 2 % (2 * n)
    turns = _turns(squares, 2 * n, sign, dtype)
    around = np.zeros(size, np.complex128)
    around[:n] = np.exp(-1j * np.pi * sign * squares / n)
    around[size - n + 1 :] = around[n - 1 : 0 : -1]
    kernel = np.fft.fft(around) / size
    zeros = full(0.0, dtype, (*batch, size - n))
    turned = _product(parts, turns) if parts[1] is not None else tuple(emit(ops.Multiply, parts[0], t) for t in turns)
    longer = tuple(concat([p, zeros], len(batch)) for p in turned)
    spectrum = _transformed((longer[0], longer[1]), size, -1)
    found = _transformed(_product(spectrum, (_table(kernel.real, dtype), _table(kernel.imag, dtype))), size, 1)
    return _product(tuple(slice_axis(p, len(batch), 0, n) for p in found), turns)


def _staged(parts: _Pair, n: int, a: int, sign: int) -> tuple[ir.Value, ir.Value]:
    b, rank = n // a, info_of(parts[0]).rank
    batch = info_of(parts[0]).shape[:-1]
    swap = [*range(rank - 1), rank, rank - 1]
    apart = tuple(None if p is None else permute(reshape(p, (*batch, a, b)), swap) for p in parts)  # [b, a]
    assert apart[0] is not None
    inner = tuple(permute(p, swap) for p in _transformed((apart[0], apart[1]), a, sign))  # [a, b]
    turned = _product((inner[0], inner[1]), _turns(np.outer(np.arange(a), np.arange(b)), n, sign, info_of(parts[0]).dtype))
    outer = _transformed(turned, b, sign)
    real, imaginary = (reshape(permute(p, swap), (*batch, n)) for p in outer)
    return real, imaginary


def _product(x: Sequence[ir.Value | None], y: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """Of complex numbers, element by element."""

    def times(i: int, j: int) -> ir.Value:
        return emit(ops.Multiply, x[i], y[j])

    return emit(ops.Subtract, times(0, 0), times(1, 1)), emit(ops.Add, times(0, 1), times(1, 0))


def _products(parts: _Pair, turns: tuple[ir.Value, ir.Value]) -> tuple[ir.Value, ir.Value]:
    """With the whole matrix of cosines and sines."""
    cos, sin = turns
    real, imaginary = (emit(ops.MatMul, parts[0], m) for m in turns)
    if parts[1] is None:
        return real, imaginary
    real = emit(ops.Subtract, real, emit(ops.MatMul, parts[1], sin))
    return real, emit(ops.Add, imaginary, emit(ops.MatMul, parts[1], cos))


def _computed_turns(n: int | Expr, count: int | Expr, sign: int, dtype: ir.Type) -> tuple[ir.Value, ir.Value]:
    """The matrix of a size that only a call tells; whole turns are taken off as integers."""
    size = full(n, integer())
    products = emit(ops.Multiply, unsqueeze(sequence(0, n), 1), unsqueeze(sequence(0, count), 0))
    part = emit(ops.Divide, cast(emit(ops.Mod, products, size), dtype), cast(size, dtype))
    angles = emit(ops.Multiply, part, full(sign * 2 * math.pi, dtype))
    return emit(ops.Cos, angles), emit(ops.Sin, angles)


def _turns(places: np.ndarray, n: int, sign: int, dtype: ir.Type) -> tuple[ir.Value, ir.Value]:
    """Cosines and sines of these parts of a full turn of ``n``."""
    angles = (places % n) * (sign * 2 * np.pi / n)
    if not isinstance(dtype, ir.F32Type | ir.F64Type):
        raise RelaxError(f"expected a Fourier transform of f32 or f64, got {dtype}")
    return _table(np.cos(angles), dtype), _table(np.sin(angles), dtype)


def _table(values: np.ndarray, dtype: ir.Type) -> ir.Value:
    return table(values.astype(np.float32 if isinstance(dtype, ir.F32Type) else np.float64), dtype)
