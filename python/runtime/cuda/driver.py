"""The CUDA driver, or what stands in for it: a library of C functions in, calls that raise RelaxError out."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from ...dialect.errors import RelaxError

__all__ = ["Driver", "system_driver"]

_LIBRARY = "libcuda.so.1"

_SUCCESS = 0
_MAJOR, _MINOR, _MOST_SHARED = 75, 76, 97  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*, ..._MAX_SHARED_MEMORY_PER_BLOCK_OPTIN

_pointer, _u32, _i32, _u64, _size = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_uint64, ctypes.c_size_t

#: What of the driver is called from Python, and what it takes; each returns a CUresult.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_u32,),
    "cuDriverGetVersion": (_pointer,),
    "cuDeviceGetCount": (_pointer,),
    "cuDeviceGet": (_pointer, _i32),
    "cuDeviceGetName": (_pointer, _i32, _i32),
    "cuDeviceGetAttribute": (_pointer, _i32, _i32),
    "cuDeviceTotalMem_v2": (_pointer, _i32),
    "cuDevicePrimaryCtxRetain": (_pointer, _i32),
    "cuDevicePrimaryCtxRelease_v2": (_i32,),
    "cuCtxGetCurrent": (_pointer,),
    "cuCtxSetCurrent": (_pointer,),
    "cuModuleLoadData": (_pointer, _pointer),
    "cuModuleUnload": (_pointer,),
    "cuModuleGetFunction": (_pointer, _pointer, ctypes.c_char_p),
    "cuFuncSetAttribute": (_pointer, _i32, _i32),
    "cuMemAlloc_v2": (_pointer, _size),
    "cuMemFree_v2": (_u64,),
    "cuMemAllocHost_v2": (_pointer, _size),
    "cuMemFreeHost": (_pointer,),
    "cuMemcpyHtoDAsync_v2": (_u64, _pointer, _size, _pointer),
    "cuMemcpyDtoHAsync_v2": (_pointer, _u64, _size, _pointer),
    "cuMemcpyDtoDAsync_v2": (_u64, _u64, _size, _pointer),
    "cuMemsetD8Async": (_u64, ctypes.c_ubyte, _size, _pointer),
    "cuStreamCreate": (_pointer, _u32),
    "cuStreamDestroy_v2": (_pointer,),
    "cuStreamSynchronize": (_pointer,),
    "cuStreamWaitEvent": (_pointer, _pointer, _u32),
    "cuEventCreate": (_pointer, _u32),
    "cuEventRecord": (_pointer, _pointer),
    "cuEventSynchronize": (_pointer,),
    "cuEventElapsedTime": (_pointer, _pointer, _pointer),
    "cuEventDestroy_v2": (_pointer,),
    "cuStreamBeginCapture_v2": (_pointer, _u32),
    "cuStreamEndCapture": (_pointer, _pointer),
    "cuGraphInstantiateWithFlags": (_pointer, _pointer, _u64),
    "cuGraphLaunch": (_pointer, _pointer),
    "cuGraphExecDestroy": (_pointer,),
    "cuGraphDestroy": (_pointer,),
    "cuPointerGetAttribute": (_pointer, _i32, _u64),
}


class Driver:
    """The driver's functions by name.

    Attributes:
        library: where they are from: a ``ctypes.CDLL``, or an object whose attributes are C functions.
    """

    def __init__(self, library: Any):
        self.library = library
        self._inside = 0
        self._functions = {name: self._typed(name, taken) for name, taken in _SIGNATURES.items()}
        self.call("cuInit", 0)

    def _typed(self, name: str, taken: Sequence[Any]) -> Any:
        function = getattr(self.library, name, None)
        if function is None:
            raise RelaxError(f"expected a CUDA driver with {name} (CUDA 12 or newer), got one without it")
        return ctypes.CFUNCTYPE(_i32, *taken)(self.address(name))

    def address(self, name: str) -> int:
        """Where a function is, for compiled code."""
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function. Raises RelaxError with its name and the driver's own text when it does not succeed."""
        with self.inside():
            result = self._functions[name](*arguments)
        if result != _SUCCESS:
            raise RelaxError(f"the CUDA driver refused {name}: {self.error_text(result)}")

    @contextmanager
    def inside(self) -> Generator[None]:
        """While this lasts nothing is given back: Python collects garbage at any time, within a recording for example."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    @property
    def is_inside(self) -> bool:
        """Whether some call is being made."""
        return self._inside > 0

    def made(self, name: str, *arguments: Any, kind: Any = _pointer) -> int:
        """What a function puts where its first argument points to."""
        place = kind()
        self.call(name, ctypes.addressof(place), *arguments)
        return place.value or 0

    def captured(self, stream: int) -> int:
        """Ends the recording of a stream; the graph."""
        place = ctypes.c_void_p()
        self.call("cuStreamEndCapture", stream, ctypes.addressof(place))
        return place.value or 0

    def error_text(self, result: int) -> str:
        """Name and text of a CUresult."""
        texts = [self._text(name, result) for name in ("cuGetErrorName", "cuGetErrorString")]
        return ": ".join(filter(None, texts)) or f"CUresult {result}"

    def _text(self, name: str, result: int) -> str:
        place = ctypes.c_char_p()
        ctypes.CFUNCTYPE(_i32, _i32, _pointer)(self.address(name))(result, ctypes.addressof(place))
        return (place.value or b"").decode(errors="replace")

    def capability(self, device: int) -> tuple[int, int]:
        """The compute capability of a device."""
        major, minor = (self.made("cuDeviceGetAttribute", which, device, kind=_i32) for which in (_MAJOR, _MINOR))
        return major, minor

    def device_name(self, device: int) -> str:
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", ctypes.addressof(text), 256, device)
        return text.value.decode(errors="replace")


def system_driver() -> Driver:
    """The driver of this machine. Raises RelaxError when there is none."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise RelaxError(
            f"expected an NVIDIA GPU with its driver, got no {_LIBRARY} ({error}): "
            "device='emulated' runs the same code on the CPU, slowly"
        ) from None
    return Driver(library)
