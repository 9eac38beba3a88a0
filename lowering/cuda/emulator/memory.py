"""Memory with a shadow byte each, and device memory with its buffers."""

from __future__ import annotations

import bisect
from collections import deque
from typing import Any

import numpy as np

from .arrays import RAW, Array, u1, u2, u4, u8
from .findings import Finding

__all__ = ["ALLOCATED", "GLOBAL", "LOCAL", "ONES", "PARAM", "SHARED", "WRITTEN", "Bytes", "DeviceMemory", "is_written"]

#: Where the windows of the generic address space begin.
SHARED, LOCAL, PARAM, GLOBAL = 1 << 40, 1 << 41, 1 << 42, 1 << 44

#: Values of shadow bytes; 0 is memory that nobody has.
ALLOCATED, WRITTEN = 1, 255

#: Shadows of what was written, by width.
ONES: dict[int, Any] = {width: np.full(width, WRITTEN, u1).view(kind)[0] for width, kind in RAW.items()}

_GAP = 256  # bytes behind each buffer that belong to nobody
_KEPT = 16 << 20  # bytes of freed buffers that are not given out again for now, so that their use is seen


_COMPARED: dict[int, Any] = {1: u1, 2: u2, 4: u4, 8: u8, 16: u8}  # 16 bytes of ones are no complex number that equals itself


def is_written(shadow: Array, size: int) -> bool:
    """Whether all of the shadows of accesses of a size say that the memory was written."""
    kind = _COMPARED[size]
    return bool((shadow.view(kind) == ~kind(0)).all())


class Bytes:
    """Bytes with a shadow byte each, as arrays of each width. Memory that nothing touches costs nothing."""

    def __init__(self, size: int):
        size = -(-size // 64) * 64
        self.size, self.data, self.shadow = size, np.zeros(size, u1), np.zeros(size, u1)
        self.views = {width: self.data.view(kind) for width, kind in RAW.items()}
        self.shadows = {width: self.shadow.view(kind) for width, kind in RAW.items()}


class DeviceMemory(Bytes):
    """Global memory: addresses are offsets plus GLOBAL. Offset 0 is nobody's."""

    def __init__(self, size: int):
        super().__init__(size)
        self.top = _GAP
        self.buffers: dict[int, tuple[int, int]] = {}  # offset: size, bytes reserved
        self.starts: list[int] = []
        self.freed: deque[tuple[int, int, int]] = deque()  # offset, size, bytes reserved
        self.freed_bytes = 0
        self.spare: dict[int, list[int]] = {}  # by bytes reserved

    def allocate(self, size: int) -> int:
        """An address. Raises MemoryError."""
        size = max(size, 1)
        reserved = -(-(size + _GAP) // _GAP) * _GAP
        spare = self.spare.get(reserved)
        if spare:
            offset = spare.pop()
        else:
            offset, self.top = self.top, self.top + reserved
            if self.top > self.size:
                self.top -= reserved
                raise MemoryError(f"expected at most {self.size} bytes of device memory")
        self.buffers[offset] = (size, reserved)
        bisect.insort(self.starts, offset)
        self.shadow[offset : offset + size] = ALLOCATED
        return GLOBAL + offset

    def free(self, address: int) -> None:
        """Gives a buffer back. Raises KeyError for what is none."""
        offset = address - GLOBAL
        size, reserved = self.buffers.pop(offset)
        self.starts.remove(offset)
        self.shadow[offset : offset + size] = 0
        self.freed.append((offset, size, reserved))
        self.freed_bytes += reserved
        while self.freed_bytes > _KEPT:
            old, _, bytes_ = self.freed.popleft()
            self.freed_bytes -= bytes_
            self.spare.setdefault(bytes_, []).append(old)

    def write(self, address: int, data: Array) -> None:
        """Copies from the host. Raises Finding outside of buffers."""
        offset = self.check(address, len(data), "copy to")
        self.data[offset : offset + len(data)] = data
        self.shadow[offset : offset + len(data)] = WRITTEN

    def read(self, address: int, size: int) -> Array:
        """Copies to the host; what was never written comes, too, as zeros or what was there before."""
        offset = self.check(address, size, "copy from")
        return self.data[offset : offset + size].copy()

    def require_written(self, address: int, size: int) -> None:
        """Raises Finding for bytes that nothing wrote."""
        offset = self.check(address, size, "copy from")
        unwritten = np.flatnonzero(self.shadow[offset : offset + size] != WRITTEN)
        if len(unwritten):
            where = self.described(offset + int(unwritten[0]))
            raise Finding("uninitialised", f"copy of {size} bytes to the host, {len(unwritten)} never written, from {where} on")

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies within the device, with what is known of each byte."""
        a, b = self.check(target, size, "copy to"), self.check(source, size, "copy from")
        self.data[a : a + size] = self.data[b : b + size].copy()
        self.shadow[a : a + size] = self.shadow[b : b + size].copy()

    def check(self, address: int, size: int, what: str) -> int:
        """The offset of bytes that are all in buffers. Raises Finding."""
        offset = address - GLOBAL
        if offset < 0 or offset + size > self.size or not self.shadow[offset : offset + size].all():
            raise Finding("bounds", f"{what} {size} bytes of device memory at {self.described(offset)}")
        return offset

    def described(self, offset: int) -> str:
        """An offset by the buffer that it is in, or next to."""
        address = f"{GLOBAL + offset:#x}"
        for start, size, _ in self.freed:
            if start <= offset < start + size:
                return f"{address}, byte {offset - start} of a freed buffer of {size} bytes"
        index = bisect.bisect_right(self.starts, offset) - 1
        if index < 0 or offset < 0 or offset > self.size:
            return f"{address}, which is no device memory"
        start = self.starts[index]
        size = self.buffers[start][0]
        beyond = offset - start - size
        if beyond >= 1 << 20:
            return f"{address}, which is in no buffer"
        return f"{address}, byte {offset - start} of a buffer of {size} bytes at {GLOBAL + start:#x}"
