"""Memory of results that stay on the device: what callers let go of is used again, so that calls meet the addresses they had.

A call that comes with the addresses of an earlier one is replayed as a graph (:mod:`.graphs`), and allocates nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque

from ...dialect.errors import RelaxError
from .device import Device, DeviceBuffer

__all__ = ["ResultBuffer", "ResultPool"]

# What is kept for later results at most: as many buffers as an entry has graphs, and bytes that no model misses.
_KEPT, _KEPT_BYTES = 64, 256 << 20


class ResultBuffer:
    """Memory of one result, given back to its pool when nothing refers to it.

    Attributes:
        device: whose it is.
        address: of its first byte.
        nbytes: how many there are.
    """

    def __init__(self, pool: ResultPool, buffer: DeviceBuffer):
        self.device, self.address, self.nbytes = buffer.device, buffer.address, buffer.nbytes
        self._seen = [False]
        weakref.finalize(self, pool.give, buffer, self._seen)

    def share(self) -> None:
        """Notes that others than the device's stream may work with it: then only the driver knows when they are done."""
        self._seen[0] = True


class ResultPool:
    """Memory for results of calls on the device's own stream.

    What nothing refers to any more is written again behind all that reads it there. What another library or another stream has
    seen goes back to the driver, which waits for all of them.
    """

    def __init__(self, device: Device):
        self._device = device
        self._lock = threading.Lock()
        self._given: deque[DeviceBuffer] = deque()
        self._free: deque[DeviceBuffer] = deque()

    def allocate(self, nbytes: int, stream: int) -> DeviceBuffer | ResultBuffer:
        """Memory for a result that a stream computes. Raises RelaxError when there is not that much."""
        if stream != self._device.stream:
            return self._device.allocate(nbytes)
        with self._lock:
            self._collect()
            found = next((b for b in reversed(self._free) if b.nbytes == nbytes), None)
            if found is not None:
                self._free.remove(found)
        return ResultBuffer(self, found or self._allocated(nbytes))

    def give(self, buffer: DeviceBuffer, seen: list[bool]) -> None:
        """Takes memory back that nothing refers to, but what others have seen; at any time, on any thread."""
        if not seen[0]:
            self._given.append(buffer)

    def _collect(self) -> None:
        """Keeps what came last."""
        while self._given:
            self._free.append(self._given.popleft())
        while len(self._free) > _KEPT or sum(b.nbytes for b in self._free) > _KEPT_BYTES:
            self._free.popleft()

    def _allocated(self, nbytes: int) -> DeviceBuffer:
        try:
            return self._device.allocate(nbytes)
        except RelaxError:
            with self._lock:
                self._free.clear()
            return self._device.allocate(nbytes)
