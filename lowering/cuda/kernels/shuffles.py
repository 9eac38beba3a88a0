"""Values of neighbouring threads of a warp, exchanged and combined."""

from __future__ import annotations

from collections.abc import Callable

from ....dialect.bindings import ir
from ...kernels.emit.emitter import Emitter

__all__ = ["combined_by_warp", "exchanged"]

_WARP = 32


def exchanged(em: Emitter, value: ir.Value, distance: int) -> ir.Value:
    """The value of the thread whose number differs in one bit, of that worth."""
    mode = {"mode": ir.Attribute.parse("#gpu<shuffle_mode xor>", em.context)}
    operands = [value, em.constant(distance, em.i32), em.constant(_WARP, em.i32)]
    (other, _) = em.nested("gpu.shuffle", operands, [value.type, em.i1], mode, 0).results
    return other


def combined_by_warp(
    em: Emitter, value: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value], count: int = _WARP
) -> ir.Value:
    """The values of so many neighbouring threads combined, a power of two, in each of them."""
    while count > 1:
        count //= 2
        value = combine(value, exchanged(em, value, count))
    return value
