"""State in the memory of a device, or of the host where a module says so: what calls update stays there between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from ...dialect.errors import RelaxError
from ...lowering.manifest_specs import StateSpec
from ...weights.arrays import Array, aligned_empty
from ..state import State, fill, first_value
from .arrays import DeviceTensor, device_tensor, is_on_device
from .deferred import CheckedCall
from .device import Device, DeviceBuffer

__all__ = ["DeviceState"]


class DeviceState(State):
    """Tensors by name, made on the device with their first values when they are first needed.

    ``state["keys"]`` is a copy in host memory, of what calls have left; ``state["keys"] = array`` copies to the device.

    When a check of values fails in a call that only began on the device, the state is broken from that call on, as it is where
    the call itself raises: what later calls did with it does not count. Whatever reads the state says so.
    """

    place = "device"

    def __init__(
        self,
        device: Callable[[], Device],
        specs: Mapping[str, StateSpec],
        given: Mapping[str, object] | None = None,
        host: Collection[str] = (),
    ):
        """Makes the state of an executable.

        Args:
            device: gives the device, when something is to be there.
            specs: what there is, by name.
            given: memory of the device to use, by name, which calls then update; of the host for what is there.
            host: the names of what the host's memory has, which ``state["keys"]`` is itself.

        Raises:
            RelaxError: a given array has no such name, shape or dtype, or is not on the device.
        """
        self._device, self._host = device, frozenset(host)
        self._buffers: dict[str, DeviceBuffer] = {}
        self._given: dict[str, DeviceTensor] = {}
        self._calls: list[CheckedCall] = []
        self._stream: int | None = None
        super().__init__(specs, given)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("expected a state of the host, got one in a device's memory: pickle what state[name] gives")

    def address(self, name: str) -> int:
        if name in self._host:
            return super().address(name)
        known = self._addresses.get(name)
        if known is None:
            spec = self.specs[name]
            buffer = self._buffers[name] = self._device().allocate(spec.array.nbytes)
            known = self._addresses[name] = buffer.address
            self._write(name, first_value(spec))
        return known

    def used_on(self, stream: int) -> None:
        """Orders a call on a stream behind what was begun with the state on another one."""
        if self._stream is not None:
            self._device().order(self._stream, stream)
        self._stream = stream

    def updated(self, call: CheckedCall) -> None:
        """Notes a call that updates the state, whose checks may still fail."""
        self._calls = [*(c for c in self._calls if not c.is_known), call]

    def _wait(self) -> None:
        """Waits for the calls that update the state, so that it is known what has failed."""
        for stream in {call.stream for call in self._calls} | ({self._stream} - {None}):
            self._device().wait(stream)
        for call in self._calls:
            call.look()

    def _expect_success(self) -> None:
        """Raises what has failed, unless that was raised before: then the state can be read as it is."""
        self._wait()
        for call in self._calls:
            if not call.is_told:
                call.expect_success()

    def reset(self) -> None:
        with self.lock:
            self._wait()
            self._calls = []
            for name in self._addresses:
                if name not in self._host:
                    self._write(name, first_value(self.specs[name]))
            for name, array in self._arrays.items():
                fill(array, self.specs[name])
            self._broken = None

    def copy(self) -> State:
        with self.lock:
            self._expect_success()
            self.check()
            other = DeviceState(self._device, self.specs, None, self._host)
            for name, array in self._arrays.items():
                np.copyto(other[name], array)
            for name in self._addresses.keys() - self._host:
                nbytes = self.specs[name].array.nbytes
                self._device().copy(self._addresses[name], other.address(name), nbytes)
            self._device().wait()
            return other

    def __getitem__(self, name: str) -> Array:
        spec, device = self._spec(name), self._device()
        with device.current():
            self._expect_success()
            if name in self._host:
                return super().__getitem__(name)
            found = aligned_empty(spec.array.dtype, spec.array.shape)
            device.download(self.address(name), found)
            device.wait()
        return found

    def __setitem__(self, name: str, value: object) -> None:
        array = np.ascontiguousarray(self._fitting(name, value))
        with self._device().current():
            self._wait()
            self.address(name)
            if name in self._host:
                np.copyto(self._array(name), array)
            else:
                self._write(name, array)

    def _write(self, name: str, array: Array) -> None:
        device = self._device()
        device.use()
        device.upload(array, self._addresses[name])
        device.wait()

    def _adopt(self, name: str, value: object) -> None:
        """Uses memory that the caller gave."""
        if name in self._host:
            super()._adopt(name, value)
            return
        spec, what = self._spec(name), f"state '{name}'"
        if not is_on_device(value):
            raise RelaxError(f"{what}: expected memory of '{self._device().name}', got some of the host")
        tensor = device_tensor(value, what, self._device(), self._device().stream)
        if tensor.spec != spec.array:
            raise RelaxError(f"{what}: expected {spec.array}, got {tensor.spec}")
        self._given[name] = tensor
        self._addresses[name] = tensor.address
