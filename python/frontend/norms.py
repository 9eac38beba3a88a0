"""Norms of groups, and those that a graph writes out, as one op.

::

    r = 1 / sqrt(mean(x * x, last axis) + epsilon)
    y = x * r * scale                                  ->      rms_norm(x, scale)

Narrow floats become f32 before, and narrow again before they are scaled.
"""

from __future__ import annotations

from ..dialect import ops
from ..dialect.bindings import ir
from ..dialect.errors import RelaxError
from ..dialect.op import attrs_of
from .emit import emit, expand, full, info_of, multiply_all, reshape
from .written_out import made_by, number_of, without_cast

__all__ = ["normalised_groups", "rms_norm_of"]


def normalised_groups(x: ir.Value, groups: int, epsilon: float) -> ir.Value:
    """``[batch, groups, channels of a group, positions]``, with mean 0 and variance 1 in each group.

    Args:
        x: [batch, channels, ...].
        groups: into how many equal ones channels are divided.
        epsilon: is added to variances.

    Raises:
        RelaxError: channels are not known or not so many groups, or another size is neither known nor symbolic.
    """
    info = info_of(x)
    batch, channels, *rest = info.shape
    positions = multiply_all(rest)
    if not isinstance(channels, int) or channels % groups or positions is None:
        raise RelaxError(f"expected channels in {groups} groups, and sizes that are known or symbolic, got {info}")
    each = channels // groups
    ones, zeros = (expand(full(value, info.dtype), [each, positions]) for value in (1, 0))
    return emit(ops.LayerNorm, reshape(x, (batch, groups, each, positions)), ones, zeros, axes=[2, 3], epsilon=epsilon)


def rms_norm_of(a: ir.Value, b: ir.Value) -> ir.Value | None:
    """The product of these, where one is a normalised tensor and the other one number per element of its last axis."""
    for normal, scale in ((a, b), (b, a)):
        x = _normalised(normal)
        if x is None:
            continue
        source, epsilon = x
        shape, dtype = info_of(source).shape, info_of(source).dtype
        if info_of(scale).shape == shape[-1:] and info_of(scale).dtype == dtype == info_of(normal).dtype:
            return emit(ops.RMSNorm, source, scale, axes=[-1], epsilon=epsilon)
    return None


def _normalised(normal: ir.Value) -> tuple[ir.Value, float] | None:
    """``x`` and epsilon, of ``x / sqrt(mean(x * x) + epsilon)``; ``x`` in the dtype of the quotient."""
    wide = without_cast(normal)
    for x, deviation in _quotients(wide):
        epsilon = _of_squares(deviation, x)
        if epsilon is not None:
            source = without_cast(x) if wide != normal else x
            return (source, epsilon) if info_of(source).dtype == info_of(normal).dtype else None
    return None


def _quotients(y: ir.Value) -> list[tuple[ir.Value, ir.Value]]:
    """What ``y`` may be a quotient of: ``x / sqrt(e)``, ``x * (1 / sqrt(e))``, ``x * rsqrt(e)``; pairs of ``x`` and ``e``."""
    quotient = made_by(y, ops.Divide)
    if quotient is not None:
        root = made_by(quotient.operands[1], ops.Sqrt)
        return [] if root is None else [(quotient.operands[0], root.operands[0])]
    product = made_by(y, ops.Multiply)
    if product is None:
        return []
    a, b = product.operands
    pairs = ((a, _under_inverse_root(b)), (b, _under_inverse_root(a)))
    return [(x, e) for x, e in pairs if e is not None]


def _under_inverse_root(y: ir.Value) -> ir.Value | None:
    inverse_root = made_by(y, ops.Rsqrt)
    if inverse_root is not None:
        return inverse_root.operands[0]
    inverse, quotient = made_by(y, ops.Reciprocal), made_by(y, ops.Divide)
    below = None
    if inverse is not None:
        below = inverse.operands[0]
    elif quotient is not None and number_of(quotient.operands[0]) == 1:
        below = quotient.operands[1]
    root = None if below is None else made_by(below, ops.Sqrt)
    return None if root is None else root.operands[0]


def _of_squares(e: ir.Value, x: ir.Value) -> float | None:
    """Epsilon, where ``e`` is the mean of ``x * x`` along its last axis and that number."""
    added = made_by(e, ops.Add)
    if added is None:
        return None
    a, b = added.operands
    average, epsilon = (a, number_of(b)) if number_of(b) is not None else (b, number_of(a))
    mean = made_by(average, ops.Mean)
    if mean is None or epsilon is None:
        return None
    attrs = attrs_of(mean)
    last = list(attrs["axis"] or []) in ([-1], [info_of(x).rank - 1])
    return epsilon if last and attrs["keepdims"] and _is_square(mean.operands[0], x) else None


def _is_square(y: ir.Value, x: ir.Value) -> bool:
    square, product, power = (made_by(y, c) for c in (ops.Square, ops.Multiply, ops.Power))
    if square is not None:
        return square.operands[0] == x
    if product is not None:
        return list(product.operands) == [x, x]
    return power is not None and power.operands[0] == x and number_of(power.operands[1]) == 2
