"""What a GPU can do: the driver's figures of its processors, and the bandwidth of its memory, measured by copies."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from .device import Device

__all__ = ["DeviceSpeed", "measured_speed"]

_CLOCK, _MULTIPROCESSORS, _L2_BYTES = 13, 16, 38  # CU_DEVICE_ATTRIBUTE_CLOCK_RATE (kHz), _MULTIPROCESSOR_COUNT, _L2_CACHE_SIZE
#: Of each of the two buffers: more than any second-level cache.
_BYTES = 256 << 20
_TURNS = 7


@dataclass(frozen=True)
class DeviceSpeed:
    """Figures of one GPU.

    Attributes:
        name: what it is.
        multiprocessors: how many it has.
        clock: cycles per second, the highest.
        l2_bytes: of the second-level cache.
        bandwidth: bytes read and written per second, by the fastest of some copies; 0 of an emulated device.
    """

    name: str
    multiprocessors: int
    clock: float
    l2_bytes: int
    bandwidth: float


def measured_speed(device: Device) -> DeviceSpeed:
    """Asks and measures. Raises RelaxError where the device lacks memory for the copies."""
    clock, number, cache = (
        device.driver.made("cuDeviceGetAttribute", which, device.number, kind=ctypes.c_int)
        for which in (_CLOCK, _MULTIPROCESSORS, _L2_BYTES)
    )
    bandwidth = 0.0 if device.is_emulated else _copy_bandwidth(device)
    return DeviceSpeed(device.description, number, 1e3 * clock, cache, bandwidth)


def _copy_bandwidth(device: Device) -> float:
    source, target = device.allocate(_BYTES), device.allocate(_BYTES)
    with device.current(), device.turn:
        return 2 * _BYTES / min(_copy_seconds(device, source.address, target.address) for _ in range(_TURNS))


def _copy_seconds(device: Device, source: int, target: int) -> float:
    first, last = (device.driver.made("cuEventCreate", 0) for _ in range(2))
    try:
        device.driver.call("cuEventRecord", first, device.stream)
        device.copy(source, target, _BYTES)
        device.driver.call("cuEventRecord", last, device.stream)
        device.driver.call("cuEventSynchronize", last)
        milliseconds = ctypes.c_float()
        device.driver.call("cuEventElapsedTime", ctypes.addressof(milliseconds), first, last)
        return milliseconds.value / 1e3
    finally:
        for event in (first, last):
            device.driver.call("cuEventDestroy_v2", event)
