"""What the threads of a block have, combined up to each of them: by shuffles in a warp, by shared memory across warps."""

from __future__ import annotations

from collections.abc import Callable

from ....dialect.bindings import ir
from ...kernels.emit.emitter import Emitter
from .device_code import DeviceCode

__all__ = ["WARP", "up_to"]

#: Threads of a warp.
WARP = 32

Combine = Callable[[Emitter, ir.Value, ir.Value], ir.Value]


def up_to(
    device: DeviceCode, combine: Combine, value: ir.Value, neutral: ir.Value, carry: ir.Value, shared: ir.Value | None
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Combines the values of a block's threads, in their order: adds them up, for example.

    Args:
        device: the kernel, of one-dimensional blocks of whole warps.
        combine: makes one value of two, associatively.
        value: that of this thread.
        neutral: what changes no value that it is combined with.
        carry: what all results begin with.
        shared: a value for each warp; None where there is one warp.

    Returns:
        What is before this thread, with its own, and of all threads.
    """
    em = device.em
    lane = em.op("arith.remui", [device.thread(), em.number(WARP)], em.index)
    total = value
    distance = 1
    while distance < WARP:
        total = combine(em, total, _from_before(em, total, distance, lane, neutral))
        distance *= 2
    before_warp, of_all = _across(device, combine, total, neutral, carry, shared)
    before = combine(em, before_warp, _from_before(em, total, 1, lane, neutral))
    return before, combine(em, before_warp, total), of_all


def _from_before(em: Emitter, value: ir.Value, distance: int, lane: ir.Value, neutral: ir.Value) -> ir.Value:
    """The value of the thread so many places before in the warp, the neutral one where there is none."""
    exists = em.compare("uge", lane, em.number(distance))
    return em.op("arith.select", [exists, _shuffled(em, value, distance, "up"), neutral], value.type)


def _across(
    device: DeviceCode, combine: Combine, total: ir.Value, neutral: ir.Value, carry: ir.Value, shared: ir.Value | None
) -> tuple[ir.Value, ir.Value]:
    """What is before a thread's warp, and in all warps."""
    em = device.em
    if shared is None:
        return carry, combine(em, carry, _shuffled(em, total, WARP - 1, "idx"))
    warp, lane = (em.op(f"arith.{n}", [device.thread(), em.number(WARP)], em.index) for n in ("divui", "remui"))
    last = em.compare("eq", lane, em.number(WARP - 1))
    em.only_when(last, lambda: em.effect("memref.store", [total, shared, warp]))
    device.barrier()
    before = of_all = carry
    for i in range(ir.MemRefType(shared.type).shape[0]):
        of_warp = em.op("memref.load", [shared, em.number(i)], total.type)
        is_before = em.compare("ult", em.number(i), warp)
        before = combine(em, before, em.op("arith.select", [is_before, of_warp, neutral], total.type))
        of_all = combine(em, of_all, of_warp)
    device.barrier()
    return before, of_all


def _shuffled(em: Emitter, value: ir.Value, offset: int, mode: str) -> ir.Value:
    """A value of another thread of the warp, whatever its width: instructions move 32 bits."""
    kind = value.type
    width = kind.width if isinstance(kind, (ir.IntegerType, ir.FloatType)) else 0
    if width == WARP:
        return _moved(em, value, offset, mode)
    bits = em.op("arith.bitcast", [value], em.integer(width)) if isinstance(kind, ir.FloatType) else value
    if width < WARP:
        found = _moved(em, em.op("arith.extui", [bits], em.i32), offset, mode)
        found = em.op("arith.trunci", [found], bits.type)
    else:
        found = _in_halves(em, bits, offset, mode)
    return em.op("arith.bitcast", [found], kind) if isinstance(kind, ir.FloatType) else found


def _in_halves(em: Emitter, bits: ir.Value, offset: int, mode: str) -> ir.Value:
    by = em.constant(32, bits.type)
    low, high = bits, em.op("arith.shrui", [bits, by], bits.type)
    low, high = (_moved(em, em.op("arith.trunci", [half], em.i32), offset, mode) for half in (low, high))
    low, high = (em.op("arith.extui", [half], bits.type) for half in (low, high))
    return em.op("arith.ori", [low, em.op("arith.shli", [high, by], bits.type)], bits.type)


def _moved(em: Emitter, value: ir.Value, offset: int, mode: str) -> ir.Value:
    attributes = {"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>", em.context)}
    operands = [value, em.constant(offset, em.i32), em.constant(WARP, em.i32)]
    return em.nested("gpu.shuffle", operands, [value.type, em.i1], attributes, 0).results[0]
