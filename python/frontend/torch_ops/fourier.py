"""Discrete Fourier transforms along a dimension of known size, as products with matrices of cosines and sines.

A size that is a product is transformed in stages, as Cooley and Tukey do: of ``j = b * j_a + j_b`` and ``k = k_a + a * k_b``

    X[k] = sum over j_b of w_b^(j_b k_b) * (w_n^(j_b k_a) * sum over j_a of w_a^(j_a k_a) x[j])
"""

from __future__ import annotations

import numpy as np

from ...dialect import ops
from ...dialect.bindings import ir
from ...dialect.errors import RelaxError
from ..emit import concat, emit, info_of, permute, reshape, slice_axis, table, unsqueeze
from ..torch_op import TorchOp, handles

#: Rows of a matrix that a stage multiplies with; a prime number, which has no stages, may have more.
_STAGE, _MOST_ROWS = 64, 512

#: Real and imaginary part; None is zero.
_Pair = tuple[ir.Value, ir.Value | None]


@handles("relaxir.dft")
def _dft(op: TorchOp) -> ir.Value:
    x = op.tensor(0)
    axis, rank = op.axis(2, info_of(x).rank), info_of(x).rank
    count, sign = op.integer(3, "number of frequencies"), op.integer(4, "sign")
    last = [a for a in range(rank) if a != axis] + [axis]
    imaginary = op.optional(1)
    parts = (permute(x, last), None if imaginary is None else permute(imaginary, last))
    back = [last.index(a) for a in range(rank)]
    found = _transformed(parts, count, sign)
    return concat([unsqueeze(permute(part, back), 0) for part in found], 0)


def _transformed(parts: _Pair, count: int, sign: int) -> tuple[ir.Value, ir.Value]:
    """The first frequencies along the last dimension."""
    *_, n = info_of(parts[0]).shape
    if not isinstance(n, int):
        raise RelaxError(f"expected a Fourier transform along a dimension of known size, got {n}")
    if n == 0:
        raise RelaxError("expected a Fourier transform along a dimension that is not empty")
    factor = next((a for a in range(min(_STAGE, n - 1), 1, -1) if n % a == 0), 1)
    if n <= _STAGE or factor == 1:
        return _multiplied(parts, n, count, sign)
    found = _staged(parts, n, factor, sign)
    rank = info_of(parts[0]).rank
    real, imaginary = (slice_axis(p, rank - 1, 0, count) for p in found)
    return real, imaginary


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


def _product(x: tuple[ir.Value, ir.Value], y: tuple[ir.Value, ir.Value]) -> tuple[ir.Value, ir.Value]:
    """Of complex numbers, element by element."""

    def times(i: int, j: int) -> ir.Value:
        return emit(ops.Multiply, x[i], y[j])

    return emit(ops.Subtract, times(0, 0), times(1, 1)), emit(ops.Add, times(0, 1), times(1, 0))


def _multiplied(parts: _Pair, n: int, count: int, sign: int) -> tuple[ir.Value, ir.Value]:
    """By the whole matrix."""
    if n > _MOST_ROWS:
        raise RelaxError(f"expected a Fourier transform of a size whose prime factors are at most {_MOST_ROWS}, got {n}")
    cos, sin = _turns(np.outer(np.arange(n), np.arange(count)), n, sign, info_of(parts[0]).dtype)
    real, imaginary = (emit(ops.MatMul, parts[0], m) for m in (cos, sin))
    if parts[1] is None:
        return real, imaginary
    real = emit(ops.Subtract, real, emit(ops.MatMul, parts[1], sin))
    return real, emit(ops.Add, imaginary, emit(ops.MatMul, parts[1], cos))


def _turns(places: np.ndarray, n: int, sign: int, dtype: ir.Type) -> tuple[ir.Value, ir.Value]:
    """Cosines and sines of these parts of a full turn of ``n``."""
    angles = (places % n) * (sign * 2 * np.pi / n)
    if not isinstance(dtype, ir.F32Type | ir.F64Type):
        raise RelaxError(f"expected a Fourier transform of f32 or f64, got {dtype}")
    numbers = np.float32 if isinstance(dtype, ir.F32Type) else np.float64
    return table(np.cos(angles).astype(numbers), dtype), table(np.sin(angles).astype(numbers), dtype)
