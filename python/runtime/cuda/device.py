"""One GPU as executables see it: its context, their stream, memory that they allocate."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import re
import threading
import weakref
from collections import deque
from collections.abc import Generator
from typing import Any

from ...dialect.errors import RelaxError
from ...weights.arrays import Array, address
from .driver import Driver, system_driver

__all__ = ["Device", "DeviceBuffer", "device_number", "emulated_device", "gpu"]

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: no waiting for what others do on the default stream

_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING

_NAME = re.compile(r"cuda(?::(\d+))?")


class Device:
    """A device with its context.

    Attributes:
        driver: its driver.
        name: what users call it: ``cuda:0`` or ``emulated``.
        number: which of the driver's devices it is.
        stream: where calls run that are given no other stream.
        turn: held by the call that puts work on it.
    """

    def __init__(self, driver: Driver, name: str, number: int):
        self.driver, self.name, self.number = driver, name, number
        self._device = driver.made("cuDeviceGet", number, kind=ctypes.c_int)
        self._context = driver.made("cuDevicePrimaryCtxRetain", self._device)
        self.turn = threading.RLock()
        self._later: deque[tuple[str, int]] = deque()
        with self.current():
            self.stream = driver.made("cuStreamCreate", _NON_BLOCKING)

    def use(self) -> None:
        """Makes the calling thread's calls of the driver go to this device."""
        self.driver.call("cuCtxSetCurrent", self._context)
        while self._later:
            with contextlib.suppress(RelaxError, IndexError):  # of a device that is lost, everything is gone already
                self.driver.call(*self._later.popleft())

    @contextlib.contextmanager
    def current(self) -> Generator[None]:
        """:meth:`use` while this lasts; then the thread has the context again that it had.

        Torch takes the thread's context for its current device, on which it makes tensors that name none.
        """
        before = self.driver.made("cuCtxGetCurrent")
        self.use()
        try:
            yield
        finally:
            if before != self._context:
                self.driver.call("cuCtxSetCurrent", before or None)

    def give_back(self, name: str, handle: int) -> None:
        """Calls a function that frees or destroys what nobody refers to any more; later, when the driver works at something.

        Python collects garbage at any time, within a recording for example, and on any thread.
        """
        self._later.append((name, handle))
        if not self.driver.is_inside:
            with contextlib.suppress(RelaxError), self.current():
                pass

    @functools.cached_property
    def capability(self) -> tuple[int, int]:
        """Its compute capability."""
        return self.driver.capability(self._device)

    @functools.cached_property
    def description(self) -> str:
        """What it is, for messages."""
        return f"{self.driver.device_name(self._device)} (compute capability {'.'.join(map(str, self.capability))})"

    def allocate(self, nbytes: int) -> DeviceBuffer:
        """Memory of the device. Raises RelaxError when there is not that much."""
        return DeviceBuffer(self, nbytes)

    def upload(self, array: Array, target: int, stream: int | None = None) -> None:
        """Begins to copy a contiguous array to the device; it must stay as it is until the stream is waited for."""
        if array.nbytes:
            self.driver.call("cuMemcpyHtoDAsync_v2", target, address(array), array.nbytes, self._on(stream))

    def download(self, source: int, array: Array, stream: int | None = None) -> None:
        """Begins to copy from the device into a contiguous array, which has its values when the stream is waited for."""
        if array.nbytes:
            self.driver.call("cuMemcpyDtoHAsync_v2", address(array), source, array.nbytes, self._on(stream))

    def copy(self, source: int, target: int, nbytes: int, stream: int | None = None) -> None:
        """Begins to copy within the device."""
        if nbytes:
            self.driver.call("cuMemcpyDtoDAsync_v2", target, source, nbytes, self._on(stream))

    def wait(self, stream: int | None = None) -> None:
        """Waits until all that was begun is done."""
        self.driver.call("cuStreamSynchronize", self._on(stream))

    def abandon(self, stream: int | None = None) -> None:
        """Waits for what was begun before something failed, whatever becomes of it: memory that it uses is given back then."""
        with contextlib.suppress(RelaxError):
            self.wait(stream)

    def order(self, first: int, then: int) -> None:
        """Makes a stream wait for what another one has to do by now."""
        if first == then:
            return
        event = self.driver.made("cuEventCreate", _DISABLE_TIMING)
        try:
            self.driver.call("cuEventRecord", event, first)
            self.driver.call("cuStreamWaitEvent", then, event, 0)
        finally:
            self.driver.call("cuEventDestroy_v2", event)

    @property
    def is_emulated(self) -> bool:
        """Whether it is no GPU, but its emulation."""
        return self.name == "emulated"

    def _on(self, stream: int | None) -> int:
        return self.stream if stream is None else stream


class DeviceBuffer:
    """Memory of a device, given back when nothing refers to it.

    Attributes:
        device: whose it is.
        address: of its first byte, a multiple of 256.
        nbytes: how many there are.
    """

    def __init__(self, device: Device, nbytes: int):
        self.device, self.nbytes = device, nbytes
        try:
            with device.current():
                self.address = device.driver.made("cuMemAlloc_v2", max(1, nbytes), kind=ctypes.c_uint64)
        except RelaxError as error:
            raise RelaxError(f"expected {nbytes} bytes of memory on '{device.name}', got none ({error})") from None
        weakref.finalize(self, device.give_back, "cuMemFree_v2", self.address)

    def share(self) -> None:
        """Others may work with it: the driver, which gets it back, waits for them."""


@functools.cache
def gpu(number: int = 0) -> Device:
    """A GPU of this machine. Raises RelaxError when there is no such one."""
    driver = _system_driver()
    count = driver.made("cuDeviceGetCount", kind=ctypes.c_int)
    if number >= count:
        raise RelaxError(f"expected one of {count} GPUs, got device 'cuda:{number}'")
    return Device(driver, f"cuda:{number}", number)


_system_driver = functools.cache(system_driver)


def emulated_device(architecture: str) -> Device:
    """An emulated GPU of its own. Raises RelaxError where the emulator is not installed."""
    emulator: Any = importlib.import_module("relaxir.lowering.cuda.emulator")
    return Device(Driver(emulator.library(arch=architecture, checks=True)), "emulated", 0)


def device_number(name: str) -> int:
    """Which GPU a device's name means. Raises RelaxError when it is no such name."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise RelaxError(f"expected device 'cuda:0', another number or 'emulated', got '{name}'")
    return int(found[1] or 0)
