"""Tensor maps, as the host has the driver encode them in front of a launch."""

from __future__ import annotations

from collections.abc import Sequence

from .....dialect.bindings import ir
from ....kernels.emit.memory import Memory
from ...tensor_map_call import DIMENSIONS, MAP_BYTES, call_tensor_map
from ..device_memory import element_bytes_of
from ..memory import first_element
from .tensor_maps import MappedFactor

__all__ = ["encoded"]

# Bytes that strides are multiples of.
_STEP = 16
# CUtensorMapDataType. Of integers the driver has no signed bytes: elements are copied as they are.
_KINDS = {"i8": 0, "f16": 6, "f32": 7, "bf16": 9}


def encoded(memory: Memory, factor: MappedFactor, box: Sequence[int]) -> ir.Value:
    """A pointer to the map of a factor, in boxes of so many elements whose lines of 128 bytes are twisted.

    Args:
        memory: of the host.
        factor: read with that memory.
        box: elements along each dimension.
    """
    em, value = memory.emitter, factor.operand.value
    kind = ir.MemRefType(value.type).element_type
    # A tensor without elements has no map, and no block reads it; nor have strides of 0, which are beside no elements.
    sizes = [em.op("arith.maxsi", [memory.size(s), em.number(1)], em.index) for s in factor.sizes]
    strides = [em.mul(memory.size(s), em.number(element_bytes_of(kind))) for s in factor.strides]
    strides = [em.op("arith.maxsi", [s, em.number(_STEP)], em.index) for s in strides]
    one = em.number(1)
    numbers = [
        em.number(_KINDS[str(kind)]),
        em.number(len(sizes)),
        *_filled(sizes, one, DIMENSIONS),
        *_filled(strides, one, DIMENSIONS - 1),
        *_filled([em.number(b) for b in box], one, DIMENSIONS),
    ]
    wide = em.integer(64)
    place = em.on_stack(ir.MemRefType.get([MAP_BYTES // 8], wide))
    pointer = first_element(em, place)
    call_tensor_map(em, pointer, first_element(em, value), [em.op("arith.index_cast", [n], wide) for n in numbers])
    return pointer


def _filled(values: Sequence[ir.Value], rest: ir.Value, count: int) -> list[ir.Value]:
    return [*values, *[rest] * (count - len(values))]
