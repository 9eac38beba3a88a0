"""How long kernels take: host code launches by a function of ours, which puts events in front of and behind each launch."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from typing import Any

from ...dialect.errors import RelaxError
from ..library import TimedLaunch
from .device import Device

__all__ = ["LAUNCH", "LaunchTimes"]

#: The driver's function that ours takes the place of.
LAUNCH = "cuLaunchKernel"
_TIMED, _UNKNOWN = 0, 999  # CU_EVENT_DEFAULT, CUDA_ERROR_UNKNOWN
_pointer, _u32 = ctypes.c_void_p, ctypes.c_uint
_Launch = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, *[_u32] * 7, _pointer, _pointer, _pointer)
_Place = tuple[str, int, int]


class LaunchTimes:
    """The launches of a while.

    Attributes:
        address: of our function, which has the driver's signature.
    """

    def __init__(self, device: Device, names: Mapping[int, str]):
        """Args: names: of kernels, by the driver's handles."""
        self._device, self._names = device, names
        self._launch = _Launch(device.driver.address(LAUNCH))
        self._ours = _Launch(self._launched)
        self._places: list[_Place] = []
        self.address = ctypes.cast(self._ours, ctypes.c_void_p).value or 0

    def _launched(self, function: int, *arguments: Any) -> int:
        stream, driver = arguments[7], self._device.driver
        try:
            first, last = self._event(), self._event()
            self._places.append((self._names[function], first, last))
            driver.call("cuEventRecord", first, stream)
            result = int(self._launch(function, *arguments))
            driver.call("cuEventRecord", last, stream)
        except RelaxError:  # an exception must not reach the C code that calls
            return _UNKNOWN
        return result

    def _event(self) -> int:
        return self._device.driver.made("cuEventCreate", _TIMED)

    def launches(self) -> list[TimedLaunch]:
        """All of them, in order; waits for them."""
        found, begin = list[TimedLaunch](), self._places[0][1] if self._places else 0
        for name, first, last in self._places:
            self._device.driver.call("cuEventSynchronize", last)
            found.append(TimedLaunch(name, self._seconds(begin, first), self._seconds(first, last)))
        return found

    def _seconds(self, first: int, last: int) -> float:
        milliseconds = ctypes.c_float()
        self._device.driver.call("cuEventElapsedTime", ctypes.addressof(milliseconds), first, last)
        return milliseconds.value / 1e3

    def free(self) -> None:
        """Gives the events back."""
        for _, *events in self._places:
            for event in events:
                with contextlib.suppress(RelaxError):
                    self._device.driver.call("cuEventDestroy_v2", event)
        self._places.clear()
