"""Checks of values that kernels make: what they find is a word in the device's memory, which the host reads when it waits.

A call that only begins on the device, because its results stay there, cannot say that one of its checks fails: that is raised
by what waits for it. Each call has a place in page-locked memory of the host, into which the word is copied behind the call's
last kernel, before it becomes 0 again for the next one.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable

import numpy as np

from ...dialect.errors import RelaxError
from ...weights.arrays import Array, array_at
from .device import Device, DeviceBuffer

__all__ = ["CheckedCall", "DeferredChecks"]

# Calls that may be under way at once without the host waiting for one; a place takes 8 bytes.
_PLACES = 256
_UNDER_WAY = -1


class CheckedCall:
    """A call whose checks the device makes.

    Attributes:
        is_known: whether what they have found is known.
        failure: what has failed; None while nothing is known to have.
        stream: where the call runs.
    """

    def __init__(self, place: Array, stream: int, error: Callable[[int], RelaxError]):
        """Args: place: gets what the device has found; stream: where it runs; error: what failed, by a check's number."""
        self.place, self.stream, self._error = place, stream, error
        self.is_known, self.is_told = False, False
        self.failure: RelaxError | None = None

    def look(self) -> bool:
        """Whether it is known by now what the checks have found, without waiting for it."""
        found = int(self.place[0]) if not self.is_known else 0
        if found == _UNDER_WAY:
            return False
        if found:
            self.failure = self._error(found - 1)
        self.is_known = True
        return True

    def expect_success(self) -> None:
        """Of a call that has been waited for: raises what has failed, each time."""
        self.look()
        if self.failure is not None:
            self.is_told = True
            raise self.failure


class DeferredChecks:
    """The calls of one executable whose checks may still fail. Used by whoever has the device's turn."""

    def __init__(self, device: Device):
        self._device = device
        self._words: dict[int, DeviceBuffer] = {}
        self._calls: deque[CheckedCall] = deque()
        self._failed: list[CheckedCall] = []
        self._memory = device.driver.made("cuMemAllocHost_v2", 8 * _PLACES)
        places = array_at(self._memory, np.dtype(np.int64), (_PLACES,))
        self._free = [places[i : i + 1] for i in range(_PLACES)]
        weakref.finalize(self, device.give_back, "cuMemFreeHost", self._memory)

    def word(self, stream: int) -> int:
        """Where kernels on a stream leave what they find."""
        if stream not in self._words:
            self._words[stream] = self._device.allocate(8)
            self.clear(stream)
        return self._words[stream].address

    def clear(self, stream: int) -> None:
        """Makes the word 0 again, behind what the stream has to do by now."""
        self._device.driver.call("cuMemsetD8Async", self._words[stream].address, 0, 8, stream)

    def begun(self, stream: int, error: Callable[[int], RelaxError]) -> CheckedCall:
        """Notes a call whose last kernel is on a stream by now; ``error`` makes an error of the number of a check."""
        place = self._place()
        place[0] = _UNDER_WAY
        call = CheckedCall(place, stream, error)
        self._device.download(self.word(stream), place, stream)
        self.clear(stream)
        self._calls.append(call)
        return call

    def expect_success(self) -> None:
        """Raises what has failed of calls before, as far as it is known without waiting; once for each of them."""
        self._look()
        failed = [call for call in self._failed if not call.is_told]
        self._failed.clear()
        for call in failed:
            call.is_told = True
        if failed:
            raise RelaxError(f"a call before this one failed, whose results are on the device: {failed[0].failure}")

    def _look(self) -> None:
        """Drops the calls of which all is known."""
        known = [call for call in self._calls if call.look()]
        self._calls = deque(call for call in self._calls if not call.is_known)
        self._free += (call.place for call in known)
        self._failed += (call for call in known if call.failure is not None)

    def _place(self) -> Array:
        """A place that no other call under way has."""
        if not self._free:
            self._device.wait(self._calls[0].stream)
            self._look()
        return self._free.pop()
