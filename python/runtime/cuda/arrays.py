"""Tensors on a device: those of callers (torch, DLPack, CUDA's array interface) as addresses, and ours as all of these."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ...dialect.errors import RelaxError
from ...weights.arrays import Array, ArraySpec, aligned_empty, is_torch
from .deferred import CheckedCall
from .device import Device, DeviceBuffer
from .dlpack import DLPACK_CUDA, DLPACK_EMULATED, exported, imported
from .results import ResultBuffer

__all__ = ["DeviceArray", "DeviceTensor", "device_tensor", "is_on_device", "to_device_torch", "torch_stream"]

#: What the interface calls the default stream; consumers order their work behind the stream that they are told.
_LEGACY = 1
#: Kernels read vectors of so many bytes; what drivers and frameworks allocate begins at multiples of 256.
_ALIGNED = 16


@dataclass(frozen=True)
class DeviceTensor:
    """Where a tensor of a caller's lies on a device.

    Attributes:
        address: of its first element.
        spec: dtype and shape; elements are contiguous, the last dimension fastest.
        owner: keeps it alive.
    """

    address: int
    spec: ArraySpec
    owner: object


class DeviceArray:
    """A result on a device: NumPy by :meth:`numpy`, any other library by DLPack or CUDA's array interface, without a copy.

    Attributes:
        dtype, shape: as NumPy has them.
        device: where it is.
        address: of its first element.
        stream: what computes it.
    """

    def __init__(
        self, buffer: DeviceBuffer | ResultBuffer, dtype: np.dtype[Any], shape: tuple[int, ...], stream: int | None = None
    ):
        """Args: buffer, dtype, shape: what it is; stream: what computes it, by default the device's."""
        self._buffer, self.dtype, self.shape = buffer, dtype, shape
        self.device, self.address = buffer.device, buffer.address
        self.stream = self.device.stream if stream is None else stream
        self._call: CheckedCall | None = None

    def computed(self, stream: int, call: CheckedCall | None) -> None:
        """Notes what computes the elements: a stream, and a call whose checks may still fail."""
        self.used_on(stream)
        self.stream, self._call = stream, call

    def used_on(self, stream: int) -> None:
        """Notes that a stream works with the elements."""
        if stream != self.stream:
            self._buffer.share()

    def _wait(self) -> None:
        self.device.wait(self.stream)
        if self._call is not None:
            self._call.expect_success()

    def numpy(self) -> Array:
        """A copy in host memory. Raises RelaxError when a check of values failed in the call that computed it."""
        found = aligned_empty(self.dtype, self.shape)
        with self.device.current():
            self._wait()  # what a check has found comes first
            self.device.download(self.address, found, self.stream)
            self._wait()
        return found

    def __dlpack_device__(self) -> tuple[int, int]:
        return (DLPACK_EMULATED if self.device.is_emulated else DLPACK_CUDA), self.device.number

    def __dlpack__(self, *, stream: int | None = None, **_: object) -> Any:
        """A capsule, for work on a stream of the consumer's; -1 is one that needs no order, None one that is not known."""
        self._buffer.share()
        with self.device.current():
            if stream is None:
                self._wait()
            elif stream != -1:
                self.device.order(self.stream, stream)
        return exported(self.address, self.dtype, self.shape, self.__dlpack_device__(), self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device.is_emulated:
            raise AttributeError("an emulated device has no memory that CUDA knows")
        self._buffer.share()
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3, "strides": None,
            "stream": self.stream or _LEGACY,
        }  # fmt: skip

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("expected a copy, for the array is on a device")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        return f"<relaxir.DeviceArray: {ArraySpec(self.dtype, self.shape)} on {self.device.name}>"


def is_on_device(value: object) -> bool:
    """Whether a value is a tensor that is in no host memory."""
    if isinstance(value, DeviceArray):
        return True
    if is_torch(value):
        return cast(Any, value).device.type == "cuda"
    if isinstance(value, (np.ndarray, np.generic)):
        return False
    if hasattr(value, "__cuda_array_interface__"):
        return True
    found = getattr(value, "__dlpack_device__", None)
    return found is not None and int(found()[0]) in (DLPACK_CUDA, DLPACK_EMULATED)


def torch_stream(values: Sequence[object], device: Device) -> int:
    """Torch's current stream where one of some values is a tensor of torch's on a device, else the device's own."""
    if any(is_torch(v) and is_on_device(v) for v in values):
        return int(sys.modules["torch"].cuda.current_stream(device.number).cuda_stream)
    return device.stream


def device_tensor(value: object, what: str, device: Device, stream: int) -> DeviceTensor:
    """A tensor on a device, for which :func:`is_on_device` holds.

    Args:
        value: the tensor.
        what: how errors name it.
        device: where it has to be.
        stream: waits for what makes it.

    Raises:
        RelaxError: it is on another device, its elements are not contiguous, or it begins where no vector may be read.
    """
    if isinstance(value, DeviceArray):
        _expect_device(value.device is device, value.device.name, what, device)
        value.used_on(stream)
        device.order(value.stream, stream)
        return DeviceTensor(value.address, ArraySpec(value.dtype, value.shape), value)
    kind, number = _place(value)
    expected = DLPACK_EMULATED if device.is_emulated else DLPACK_CUDA
    _expect_device((kind, number) == (expected, device.number), f"DLPack device ({kind}, {number})", what, device)
    try:
        start, dtype, shape, owner = imported(_capsule(value, device, stream))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise RelaxError(f"{what}: expected a contiguous tensor, got {type(value).__name__}: {error}") from None
    if start % _ALIGNED and 0 not in shape:
        raise RelaxError(
            f"{what}: expected a tensor at a multiple of {_ALIGNED} bytes, got one at {start:#x}: pass a copy of it"
        )
    return DeviceTensor(start, ArraySpec(dtype, shape), owner)


def to_device_torch(array: object, what: str) -> Any:
    """A result on a device as a torch tensor of the same memory. Raises RelaxError when torch cannot have it."""
    try:
        return sys.modules["torch"].from_dlpack(array)
    except (BufferError, RuntimeError, TypeError) as error:
        raise RelaxError(f"{what}: expected a tensor that torch can have, got {array}: {error}") from None


def _place(value: Any) -> tuple[int, int]:
    kind, number = value.__dlpack_device__()
    return int(kind), int(number)


def _capsule(value: Any, device: Device, stream: int) -> Any:
    """DLPack's capsule, once the stream waits for what makes the tensor; of the default stream, 1 is the name."""
    if is_torch(value):
        value = value.detach()
    return value.__dlpack__(stream=None if device.is_emulated else stream or 1)


def _expect_device(same: bool, got: str, what: str, device: Device) -> None:
    if not same:
        raise RelaxError(f"{what}: expected a tensor on '{device.name}', got one on {got}")
