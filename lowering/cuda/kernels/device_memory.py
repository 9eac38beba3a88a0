"""Reads and writes of global memory in a kernel: buffers of the host are parameters, vectors as wide as places allow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import gcd

from ....dialect.bindings import ir
from ...kernels.emit.linear_index import FloorDivision, Linear, Size, Symbol
from ...kernels.emit.memory import Buffer, Memory, Point
from .device_code import DeviceCode

__all__ = ["DeviceMemory", "known_product", "multiple_of"]

# No access is wider.
_WIDEST = 16


class DeviceMemory(Memory):
    """The buffers of one operation of the host, as its kernel sees them.

    ``kept`` are buffers that exist in registers alone.
    """

    def __init__(self, device: DeviceCode, kept: Collection[ir.Value] = ()):
        super().__init__(device.em)
        self.device, self._kept = device, kept

    def outside(self, value: ir.Value) -> ir.Value:
        return self.device.value(value)

    def _run_time_extent(self, value: ir.Value, kind: ir.MemRefType, position: int) -> ir.Value:
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.name in ("memref.alloc", "memref.alloca"):
            return self.device.value(super()._run_time_extent(value, kind, position))
        return super()._run_time_extent(self.device.value(value), kind, position)

    def _bind_layout(self, value: ir.Value, symbols: Mapping[int, Symbol]) -> None:
        super()._bind_layout(self.device.value(value), symbols)

    def _flat(self, value: ir.Value, shape: Sequence[Size], strides: Sequence[Size], offset: Size) -> tuple[ir.Value, ir.Type]:
        if value in self._kept:
            return value, ir.MemRefType(value.type).element_type
        return super()._flat(self.device.value(value), shape, strides, offset)

    def load(self, buffer: Buffer, linear: Linear, point: Point) -> ir.Value:
        em, form, start = self.emitter, self.form(linear, point), self.index(linear, point)
        if form.uniform:
            return self.load_element(buffer, start)
        if form.contiguous:
            kind = em.vector(point.width, buffer.stored)
            loaded = em.op("vector.load", [buffer.flat, start], kind, self._aligned(buffer, linear, point))
            return self.retyped(loaded, buffer.element)
        return self.load_lanes(buffer, start, self.lane_offsets(form, point), point)

    def neighbours(self, buffer: Buffer, linear: Linear, point: Point, count: int) -> ir.Value:
        """So many elements from that of a point on, a vector of them as they are in memory."""
        kind, start = self.emitter.vector(count, buffer.stored), self.index(linear, point)
        return self.emitter.op("vector.load", [buffer.flat, start], kind, self._aligned(buffer, linear, point))

    def load_stored(self, buffer: Buffer, start: ir.Value, offsets: ir.Value | None, point: Point) -> ir.Value:
        if offsets is None or (point.lanes is not None and point.lanes.mask is not None):
            return super().load_stored(buffer, start, offsets, point)
        em = self.emitter
        elements = [
            em.op("memref.load", [buffer.flat, em.add(start, place)], buffer.stored) for place in self._lanes(offsets, point)
        ]
        return em.op("vector.from_elements", elements, em.vector(point.width, buffer.stored))

    def store(self, value: ir.Value, buffer: Buffer, linear: Linear, point: Point) -> None:
        if point.lanes is None:
            super().store(value, buffer, linear, point)
            return
        em, form = self.emitter, self.form(linear, point)
        vector = em.broadcast(self.retyped(value, buffer.stored), point.width)
        start = self.index(linear, point)
        if form.contiguous:
            em.effect("vector.store", [vector, buffer.flat, start], self._aligned(buffer, linear, point))
            return
        places = self._lanes(self.lane_offsets(form, point), point)
        for lane, place in enumerate(places):
            em.effect("memref.store", [self.emitter.lane(vector, lane), buffer.flat, em.add(start, place)])

    def _lanes(self, offsets: ir.Value, point: Point) -> list[ir.Value]:
        em = self.emitter
        lanes = [em.lane(offsets, i) for i in range(point.width)]
        return [v if v.type == em.index else em.op("arith.index_cast", [v], em.index) for v in lanes]

    def _aligned(self, buffer: Buffer, linear: Linear, point: Point) -> dict[str, ir.Attribute]:
        """What an access of neighbours is aligned to: buffers begin at multiples of 16 bytes."""
        size = element_bytes_of(buffer.stored)
        bytes_ = gcd(multiple_of(linear, point.multiples) * size, _WIDEST)
        return {"alignment": ir.IntegerAttr.get(self.emitter.integer(64), max(bytes_, size))}


def element_bytes_of(kind: ir.Type) -> int:
    """Bytes of a number in memory."""
    return max(8, kind.width) // 8 if isinstance(kind, (ir.IntegerType, ir.FloatType)) else 8


def known_product(sizes: Iterable[int | None]) -> int | None:
    """The product of sizes, None when one of them is unknown."""
    total = 1
    for size in sizes:
        if size is None:
            return None
        total *= size
    return total


def multiple_of(linear: Linear, multiples: Mapping[int, int]) -> int:
    """What an offset is a multiple of, 0 for one that is 0: loop variables are multiples of numbers, 1 where none is given."""
    found = _size_multiple(linear.constant)
    for atom, factor in linear.terms:
        known = _floor_multiple(atom, multiples) if isinstance(atom, FloorDivision) else multiples.get(atom, 1)
        found = gcd(found, _size_multiple(factor) * known)
    return found


def _floor_multiple(floor: FloorDivision, multiples: Mapping[int, int]) -> int:
    """What a quotient is a multiple of, if there is no remainder."""
    inner = multiple_of(floor.inner, multiples)
    return 1 if inner % floor.divisor else inner // floor.divisor


def _size_multiple(size: Size) -> int:
    return gcd(*(factor for _, factor in size.terms)) if size.terms else 0
