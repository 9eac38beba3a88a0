"""Memory of a device: weights that are copied there once, and blocks that calls use one after another."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Mapping

import numpy as np

from ...dialect.errors import RelaxError
from ...weights.arrays import Array, address, array_at
from ..calls import as_argument
from .device import Device, DeviceBuffer

__all__ = ["Block", "BlockPool", "uploaded"]

# Bytes of each of the two pinned buffers that weights go through: a copy to the device of that size takes 0.7 ms at 25 GB/s of
# PCIe 4, against some 10 us that starting one costs, so larger ones would gain less than 2 %.
_STAGE = 16 << 20

_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING


class Block:
    """Memory of a device that one call at a time uses, as :class:`~relaxir.runtime.scratch.Scratch` is of the host.

    Attributes:
        pointer, extent: address and bytes as C has them.
        size: in bytes.
    """

    def __init__(self, device: Device):
        self._device = device
        self._buffer: DeviceBuffer | None = None
        self._stream: int | None = None
        self._set(0)

    @property
    def address(self) -> int:
        """Of its first byte; 0 while it is empty."""
        return self._buffer.address if self._buffer is not None else 0

    def claim(self, stream: int) -> None:
        """Waits for what was begun in it on another stream."""
        if self._stream not in (None, stream):
            self._device.wait(self._stream)
        self._stream = stream

    def grow(self, size: int) -> None:
        """Makes it at least this large, and at least by half; its content is lost. Raises RelaxError when memory is short."""
        if size <= self.size:
            return
        size = max(size, self.size + self.size // 2)
        self._device.wait(self._stream)  # what was begun before still works in it
        self._buffer = None
        self._set(0)
        self._buffer = self._device.allocate(size)
        self._set(size)

    def _set(self, size: int) -> None:
        self.size = size
        self.pointer, self.extent = ctypes.c_void_p(self.address or None), ctypes.c_int64(size)


class BlockPool:
    """Blocks handed out to concurrent calls: as many as calls ever ran at once."""

    def __init__(self, device: Device):
        self._device = device
        self._free: deque[Block] = deque()

    def take(self) -> Block:
        """A block that nobody else uses until it is given back."""
        try:
            return self._free.pop()
        except IndexError:
            return Block(self._device)

    def give(self, block: Block) -> None:
        """Ends the use of a block; what was begun on a stream may still work in it."""
        self._free.append(block)


class _Stage:
    """One pinned buffer, and when the last copy out of it is done."""

    def __init__(self, device: Device, size: int):
        self._device = device
        driver = device.driver
        self._address = driver.made("cuMemAllocHost_v2", size)
        self.view = array_at(self._address, np.dtype(np.uint8), (size,))
        self._event = driver.made("cuEventCreate", _DISABLE_TIMING)
        self._used = False

    def send(self, part: Array, target: int) -> None:
        """Begins to copy bytes to the device, when the last ones are there."""
        driver = self._device.driver
        if self._used:
            driver.call("cuEventSynchronize", self._event)
        self.view[: part.size] = part
        driver.call("cuMemcpyHtoDAsync_v2", target, self._address, part.size, self._device.stream)
        driver.call("cuEventRecord", self._event, self._device.stream)
        self._used = True

    def free(self) -> None:
        self.view = np.empty(0, np.uint8)
        self._device.driver.call("cuEventDestroy_v2", self._event)
        self._device.driver.call("cuMemFreeHost", self._address)


def uploaded(device: Device, arrays: Mapping[str, Array]) -> dict[str, DeviceBuffer]:
    """Weights on a device.

    They go through two pinned buffers in turn, of which one is filled from the mapped file while the other one is copied: what
    the host holds of them at once is bounded, whatever their size.

    Raises:
        RelaxError: there is not that much memory, on the device or pinned.
    """
    with device.current():
        return _uploaded_all(device, arrays)


def _uploaded_all(device: Device, arrays: Mapping[str, Array]) -> dict[str, DeviceBuffer]:
    largest = max((a.nbytes for a in arrays.values()), default=0)
    if not largest:
        return {name: device.allocate(0) for name in arrays}
    stages: list[_Stage] = []
    try:
        stages += (_Stage(device, min(_STAGE, largest)) for _ in range(2))
        found = {name: _uploaded(device, stages, as_argument(a, f"weight '{name}'")) for name, a in arrays.items()}
        device.wait()
    except RelaxError:
        device.abandon()
        raise
    finally:
        for stage in stages:
            stage.free()
    return found


def _uploaded(device: Device, stages: list[_Stage], array: Array) -> DeviceBuffer:
    buffer = device.allocate(array.nbytes)
    content = array_at(address(array), np.dtype(np.uint8), (array.nbytes,))
    step = stages[0].view.size
    for start in range(0, array.nbytes, step):
        stages.reverse()
        stages[0].send(content[start : start + step], buffer.address + start)
    return buffer
