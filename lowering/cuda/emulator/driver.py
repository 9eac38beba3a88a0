"""libcuda over the emulator: functions with the driver's names and signatures, which compiled code can call by address."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ....dialect.errors import RelaxError
from .arrays import Array, u1
from .core import RESERVED, Kernel, Options
from .findings import Finding, PtxError
from .machine import Loaded, Machine
from .memory import GLOBAL
from .signatures import ARGUMENTS, NAMES, OF_KIND, Result
from .streams import Event, Graph, Queues, Stream
from .tensor_map import TensorMap

__all__ = ["Library"]

_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_FREE_SHARED = 49152  # what a kernel may have without asking for more
_Handle = TypeVar("_Handle")


class _CallError(RelaxError):
    """A call that fails with a result of its own."""

    def __init__(self, result: int, message: str):
        super().__init__(message)
        self.result = result


@dataclass
class _Function:
    """A CUfunction."""

    loaded: Loaded
    kernel: Kernel
    attributes: dict[int, int] = field(default_factory=dict[int, int])


def _called(library: Callable[[], Library | None], name: str, *arguments: Any) -> int:
    """A call of a function, which does not hold its library: a device's memory goes with its last user."""
    found = library()
    return Result.UNKNOWN if found is None else found._call(getattr(found, name), *arguments)


class Library:
    """What ``ctypes.CDLL("libcuda.so.1")`` is: attributes with the names of :data:`signatures.ARGUMENTS` are ctypes
    function pointers.

    A call that fails returns a CUresult, as the driver does; cuGetErrorString of it, and :meth:`explain`, say what
    happened. What runs late fails where it is waited for. The device goes on after a finding, without the work that
    was queued.

    Args:
        arch: the processor, like ``sm_90a``.
        checks: what is looked for: all, nothing but what a processor traps, or what the options say.
        memory: bytes of device memory.
    """

    def __init__(self, arch: str = "sm_90a", checks: bool | Options = True, memory: int = 2 << 30):
        options = checks if isinstance(checks, Options) else Options() if checks else None
        self.machine = machine = Machine(arch, options, memory)
        self.queues = Queues(lambda: machine.statistics.lane_instructions)
        self._handles: dict[int, Any] = {}
        self._numbers = itertools.count(0x1000, 16)
        self._host: dict[int, Any] = {}  # page-locked memory by address
        self._current = threading.local()  # the context of each thread
        self._message, self._text, self._result = "", b"", Result.SUCCESS
        for name, arguments in ARGUMENTS.items():
            kind = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)
            setattr(self, name, kind(functools.partial(_called, weakref.ref(self), f"_{name}")))

    def __getattr__(self, name: str) -> Any:
        """As of a library that lacks the function."""
        raise AttributeError(f"the emulator has no '{name}'")

    def explain(self) -> str:
        """What the last call that failed has found, empty when none has failed since the last time that this was asked."""
        message, self._message = self._message, ""
        return message

    def _call(self, function: Callable[..., None], *arguments: Any) -> int:
        try:
            function(*arguments)
            return Result.SUCCESS
        except _CallError as error:
            return self._failed(error.result, error)
        except Finding as error:
            self.queues.forget()
            return self._failed(OF_KIND[error.kind], error)
        except PtxError as error:
            return self._failed(Result.INVALID_PTX, error)
        except MemoryError as error:
            return self._failed(Result.OUT_OF_MEMORY, error)
        except Exception as error:  # an exception must not reach the C code that calls
            self.queues.forget()
            return self._failed(Result.UNKNOWN, error)

    def _failed(self, result: int, error: Exception) -> int:
        self._message = str(error) if isinstance(error, RelaxError | MemoryError) else f"{type(error).__name__}: {error}"
        self._text, self._result = self._message.encode(), result  # the text lives as long as a caller may read it
        return result

    # ------------------------------------------------------------------------------------------------------------ handles
    def _new(self, thing: Any) -> int:
        handle = next(self._numbers)
        self._handles[handle] = thing
        return handle

    def _get(self, handle: int | None, kind: type[_Handle]) -> _Handle:
        thing = self._handles.get(handle or 0)
        if not isinstance(thing, kind):
            raise _CallError(Result.INVALID_HANDLE, f"expected a handle of a {kind.__name__.strip('_').lower()}, got {handle}")
        return thing

    def _stream(self, handle: int | None) -> Stream:
        """0, 1 and 2 are the default stream, also of the thread."""
        return self._get(handle, Stream) if handle and handle > 2 else self.queues.default

    def _settled(self, stream: Stream | None = None) -> None:
        """Raises unless the call may wait: nothing that waits is permitted while a stream captures."""
        if any(s.capture is not None for s in ([stream] if stream else self.queues.streams)):
            raise _CallError(Result.STREAM_CAPTURE_UNSUPPORTED, "expected no wait and no allocation while capturing")

    # ------------------------------------------------------------------------------------------------------------ devices
    def _cuInit(self, flags: int) -> None:  # noqa: N802
        pass

    def _cuDriverGetVersion(self, result: int) -> None:  # noqa: N802
        _put(result, ctypes.c_int, 12080)

    def _cuDeviceGetCount(self, result: int) -> None:  # noqa: N802
        _put(result, ctypes.c_int, 1)

    def _cuDeviceGet(self, result: int, ordinal: int) -> None:  # noqa: N802
        self._device(ordinal)
        _put(result, ctypes.c_int, 0)

    def _device(self, device: int) -> None:
        if device:
            raise _CallError(Result.INVALID_DEVICE, f"expected device 0, got {device}")

    def _cuDeviceGetName(self, text: int, size: int, device: int) -> None:  # noqa: N802
        self._device(device)
        name = f"emulated {self.machine.target}".encode()[: size - 1] + b"\0"
        ctypes.memmove(text, name, len(name))

    def _cuDeviceGetAttribute(self, result: int, attribute: int, device: int) -> None:  # noqa: N802
        self._device(device)
        _put(result, ctypes.c_int, attributes(self.machine).get(attribute, 0))

    def _cuDeviceTotalMem_v2(self, result: int, device: int) -> None:  # noqa: N802
        self._device(device)
        _put(result, ctypes.c_size_t, self.machine.memory.size)

    def _cuMemGetInfo_v2(self, free: int, total: int) -> None:  # noqa: N802
        _put(free, ctypes.c_size_t, self.machine.memory.size - self.machine.memory.top)
        _put(total, ctypes.c_size_t, self.machine.memory.size)

    def _cuDevicePrimaryCtxRetain(self, result: int, device: int) -> None:  # noqa: N802
        self._device(device)
        _put(result, ctypes.c_void_p, _CONTEXT)

    def _cuDevicePrimaryCtxRelease_v2(self, device: int) -> None:  # noqa: N802
        self._device(device)

    def _cuCtxSetCurrent(self, context: int | None) -> None:  # noqa: N802
        if context not in (None, _CONTEXT):
            raise _CallError(Result.INVALID_HANDLE, f"expected the device's context, got {context}")
        self._current.context = context

    def _cuCtxGetCurrent(self, result: int) -> None:  # noqa: N802
        _put(result, ctypes.c_void_p, getattr(self._current, "context", None) or 0)

    def _cuCtxSynchronize(self) -> None:  # noqa: N802
        self._settled()
        self.queues.drain_all()

    # ------------------------------------------------------------------------------------------------------------ modules
    def _cuModuleLoadData(self, result: int, image: int) -> None:  # noqa: N802
        if ctypes.string_at(image, 4) in (b"\x7fELF", b"\x50\xed\x55\xba"):
            raise _CallError(Result.NO_BINARY_FOR_GPU, "expected ptx, got a binary")
        _put(result, ctypes.c_void_p, self._new(self.machine.load(ctypes.string_at(image).decode(errors="replace"))))

    def _cuModuleUnload(self, module: int) -> None:  # noqa: N802
        self._settled()
        self.queues.drain_all()
        self.machine.unload(self._get(module, Loaded))
        del self._handles[module]

    def _cuModuleGetFunction(self, result: int, module: int, name: bytes) -> None:  # noqa: N802
        loaded = self._get(module, Loaded)
        text = name.decode()
        if text not in loaded.program.module.functions:
            raise _CallError(Result.NOT_FOUND, f"expected a kernel of the module, got '{text}'")
        _put(result, ctypes.c_void_p, self._new(_Function(loaded, self.machine.kernel(loaded, text))))

    def _cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:  # noqa: N802
        found = self._get(function, _Function)
        most = self.machine.shared_limit - (found.kernel.static_end - RESERVED)
        if attribute == _DYNAMIC_SHARED and not 0 <= value <= most:
            raise _CallError(
                Result.INVALID_VALUE, f"expected at most {most} bytes of shared memory for {found.kernel.name}, got {value}"
            )
        found.attributes[attribute] = value

    def _cuFuncGetAttribute(self, result: int, attribute: int, function: int) -> None:  # noqa: N802
        found = self._get(function, _Function)
        kernel, number = found.kernel, self.machine.target.number
        values = {
            0: 1024,
            1: kernel.static_end - RESERVED,
            3: kernel.local_bytes,
            5: number,
            6: number,
            _DYNAMIC_SHARED: _FREE_SHARED,
        }
        _put(result, ctypes.c_int, found.attributes.get(attribute, values.get(attribute, 0)))

    def _cuLaunchKernel(  # noqa: N802
        self,
        function: int,
        gx: int,
        gy: int,
        gz: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        stream: int | None,
        params: int,
        extra: int,
    ) -> None:
        found = self._get(function, _Function)
        kernel = found.kernel
        if extra:
            raise _CallError(Result.NOT_SUPPORTED, f"expected parameters one by one for {kernel.name}, got a buffer")
        allowed = found.attributes.get(_DYNAMIC_SHARED, _FREE_SHARED)
        if shared > allowed:
            raise _CallError(
                Result.INVALID_VALUE,
                f"expected at most {allowed} bytes of dynamic shared memory for {kernel.name}, got {shared}",
            )
        self.machine.check(kernel, (gx, gy, gz), (bx, by, bz), shared)
        buffer = np.zeros(max(kernel.function.param_bytes, 1), u1)
        for index, param in enumerate(kernel.function.params):
            source = ctypes.c_void_p.from_address(params + 8 * index).value or 0
            buffer[param.offset : param.offset + param.size] = _bytes_at(source, param.size)
        run = functools.partial(self.machine.launch, found.loaded, kernel, (gx, gy, gz), (bx, by, bz), buffer, shared)
        self.queues.enqueue(self._stream(stream), run)

    # ------------------------------------------------------------------------------------------------------------ memory
    def _cuMemAlloc_v2(self, result: int, size: int) -> None:  # noqa: N802
        self._settled()
        if not size:
            raise _CallError(Result.INVALID_VALUE, "expected a size, got 0")
        _put(result, ctypes.c_uint64, self.machine.memory.allocate(size))

    def _cuMemFree_v2(self, address: int) -> None:  # noqa: N802
        self._settled()
        self.queues.drain_all()
        self._free(address)

    def _free(self, address: int) -> None:
        if not address:
            return
        try:
            self.machine.memory.free(address)
        except KeyError:
            raise _CallError(Result.INVALID_VALUE, f"expected the address of a buffer to free, got {address:#x}") from None

    def _cuMemAllocAsync(self, result: int, size: int, stream: int | None) -> None:  # noqa: N802
        self._settled(self._stream(stream))
        _put(result, ctypes.c_uint64, self.machine.memory.allocate(size))

    def _cuMemFreeAsync(self, address: int, stream: int | None) -> None:  # noqa: N802
        self._settled(self._stream(stream))
        self.queues.enqueue(self._stream(stream), functools.partial(self._free, address))

    def _cuMemAllocHost_v2(self, result: int, size: int) -> None:  # noqa: N802
        buffer = ctypes.create_string_buffer(size)
        self._host[ctypes.addressof(buffer)] = buffer
        _put(result, ctypes.c_void_p, ctypes.addressof(buffer))

    def _cuMemFreeHost(self, address: int) -> None:  # noqa: N802
        self._settled()
        self.queues.drain_all()
        if self._host.pop(address, None) is None:
            raise _CallError(Result.INVALID_VALUE, f"expected the address of page-locked memory, got {address:#x}")

    def _is_locked(self, address: int) -> bool:
        return any(start <= address < start + len(buffer) for start, buffer in self._host.items())

    def _cuMemcpyHtoD_v2(self, target: int, source: int, size: int) -> None:  # noqa: N802
        self._settled()
        self.queues.drain(self.queues.default)
        self.machine.memory.write(target, _bytes_at(source, size))

    def _cuMemcpyDtoH_v2(self, target: int, source: int, size: int) -> None:  # noqa: N802
        self._settled()
        self.queues.enqueue(self.queues.default, functools.partial(self._download, target, source, size))
        self.queues.drain(self.queues.default)

    def _download(self, target: int, source: int, size: int) -> None:
        if self.machine.options.initialised:
            self.machine.memory.require_written(source, size)
        data = self.machine.memory.read(source, size)
        ctypes.memmove(target, data.ctypes.data, size)

    def _upload(self, target: int, source: int, size: int) -> None:
        self.machine.memory.write(target, _bytes_at(source, size))

    def _cuMemcpyHtoDAsync_v2(self, target: int, source: int, size: int, stream: int | None) -> None:  # noqa: N802
        queue = self._stream(stream)
        if queue.capture is not None or self._is_locked(source):
            self.queues.enqueue(queue, functools.partial(self._upload, target, source, size))
        else:  # pageable memory has been read when the call returns
            data = _bytes_at(source, size)
            self.queues.enqueue(queue, functools.partial(self.machine.memory.write, target, data))

    def _cuMemcpyDtoHAsync_v2(self, target: int, source: int, size: int, stream: int | None) -> None:  # noqa: N802
        queue = self._stream(stream)
        work = self.queues.enqueue(queue, functools.partial(self._download, target, source, size))
        if queue.capture is None and not self._is_locked(target):
            self.queues.drain(queue, work)

    def _cuMemcpyDtoDAsync_v2(self, target: int, source: int, size: int, stream: int | None) -> None:  # noqa: N802
        self.queues.enqueue(self._stream(stream), functools.partial(self.machine.memory.copy, target, source, size))

    def _cuMemsetD8Async(self, target: int, value: int, size: int, stream: int | None) -> None:  # noqa: N802
        data = np.full(size, value, u1)
        self.queues.enqueue(self._stream(stream), functools.partial(self.machine.memory.write, target, data))

    def _cuPointerGetAttribute(self, result: int, attribute: int, address: int) -> None:  # noqa: N802
        memory = self.machine.memory
        offset = address - GLOBAL
        start = next((s for s, (size, _) in memory.buffers.items() if s <= offset < s + size), None)
        if start is None and not self._is_locked(address):
            raise _CallError(Result.INVALID_VALUE, f"expected an address that the driver knows, got {address:#x}")
        is_device = start is not None
        values = {1: (ctypes.c_void_p, _CONTEXT), 2: (ctypes.c_uint, 2 if is_device else 1), 3: (ctypes.c_uint64, address),
                  8: (ctypes.c_uint, 0), 9: (ctypes.c_int, 0)}  # fmt: skip
        if start is not None:
            values |= {11: (ctypes.c_uint64, GLOBAL + start), 12: (ctypes.c_size_t, memory.buffers[start][0])}
        if attribute not in values:
            raise _CallError(Result.NOT_SUPPORTED, f"expected an attribute of pointers that the emulator has, got {attribute}")
        kind, value = values[attribute]
        _put(result, kind, value)

    # ------------------------------------------------------------------------------------------------------------ streams
    def _cuStreamCreate(self, result: int, flags: int) -> None:  # noqa: N802
        _put(result, ctypes.c_void_p, self._new(self.queues.create(is_blocking=not flags & 1)))

    def _cuStreamDestroy_v2(self, handle: int) -> None:  # noqa: N802
        stream = self._get(handle, Stream)
        self.queues.drain(stream)
        self.queues.streams.remove(stream)
        del self._handles[handle]

    def _cuStreamSynchronize(self, handle: int | None) -> None:  # noqa: N802
        stream = self._stream(handle)
        self._settled(stream)
        self.queues.drain(stream)

    def _cuStreamWaitEvent(self, handle: int | None, event: int, flags: int) -> None:  # noqa: N802
        self.queues.wait(self._stream(handle), self._get(event, Event))

    def _cuStreamIsCapturing(self, handle: int | None, result: int) -> None:  # noqa: N802
        _put(result, ctypes.c_int, int(self._stream(handle).capture is not None))

    def _cuEventCreate(self, result: int, flags: int) -> None:  # noqa: N802
        _put(result, ctypes.c_void_p, self._new(Event()))

    def _cuEventRecord(self, event: int, stream: int | None) -> None:  # noqa: N802
        self.queues.record(self._get(event, Event), self._stream(stream))

    def _cuEventSynchronize(self, event: int) -> None:  # noqa: N802
        self.queues.synchronize(self._get(event, Event))

    def _cuEventElapsedTime(self, result: int, first: int, last: int) -> None:  # noqa: N802
        """No time: instructions of lanes between two events, 10**9 of them for a millisecond."""
        times = [self._get(event, Event).time for event in (first, last)]
        if None in times:
            raise _CallError(Result.INVALID_VALUE, "expected events that have been recorded and waited for")
        _put(result, ctypes.c_float, ((times[1] or 0) - (times[0] or 0)) * 1e-9)

    def _cuEventDestroy_v2(self, event: int) -> None:  # noqa: N802
        self._get(event, Event)
        del self._handles[event]

    def _cuStreamBeginCapture_v2(self, handle: int | None, mode: int) -> None:  # noqa: N802
        stream = self._stream(handle)
        if stream is self.queues.default or stream.capture is not None:
            raise _CallError(Result.STREAM_CAPTURE_UNSUPPORTED, "expected a stream of one's own that is not capturing yet")
        stream.capture = Graph()

    def _cuStreamEndCapture(self, handle: int | None, result: int) -> None:  # noqa: N802
        stream = self._stream(handle)
        if stream.capture is None:
            raise _CallError(Result.STREAM_CAPTURE_INVALIDATED, "expected a stream that is capturing")
        _put(result, ctypes.c_void_p, self._new(self.queues.end_capture(stream)))

    def _cuGraphInstantiateWithFlags(self, result: int, graph: int, flags: int) -> None:  # noqa: N802
        _put(result, ctypes.c_void_p, self._new(Graph(list(self._get(graph, Graph).work))))

    def _cuGraphLaunch(self, graph: int, stream: int | None) -> None:  # noqa: N802
        self.queues.launch(self._get(graph, Graph), self._stream(stream))

    def _cuGraphExecDestroy(self, graph: int) -> None:  # noqa: N802
        self._cuGraphDestroy(graph)

    def _cuGraphDestroy(self, graph: int) -> None:  # noqa: N802
        self._get(graph, Graph)
        del self._handles[graph]

    # ------------------------------------------------------------------------------------------------------------ others
    def _cuTensorMapEncodeTiled(  # noqa: N802
        self, result: int, kind: int, rank: int, address: int, sizes: int, strides: int, box: int, steps: int, *modes: int
    ) -> None:
        interleave, swizzle, _, fill = modes
        if interleave or any(s != 1 for s in _numbers(steps, ctypes.c_uint32, rank)):
            raise _CallError(Result.NOT_SUPPORTED, "expected a tensor map without interleaving and with element strides of 1")
        if result % 64 or not 1 <= rank <= 5:
            raise _CallError(
                Result.INVALID_VALUE, f"expected 1 to 5 dimensions and a place in steps of 64 bytes, got {rank}, {result:#x}"
            )
        shape, steps_ = _numbers(sizes, ctypes.c_uint64, rank), _numbers(strides, ctypes.c_uint64, rank - 1)
        tensor = TensorMap(kind, address, shape, steps_, _numbers(box, ctypes.c_uint32, rank), swizzle, bool(fill))
        ctypes.memmove(result, tensor.packed(), 128)

    def _cuGetErrorName(self, error: int, result: int) -> None:  # noqa: N802
        self._put_text(result, error, 0)

    def _cuGetErrorString(self, error: int, result: int) -> None:  # noqa: N802
        if error == self._result and self._text:
            return _put(result, ctypes.c_char_p, self._text)
        return self._put_text(result, error, 1)

    def _put_text(self, result: int, error: int, index: int) -> None:
        if error not in NAMES:
            _put(result, ctypes.c_char_p, None)
            raise _CallError(Result.INVALID_VALUE, f"expected a CUresult, got {error}")
        _put(result, ctypes.c_char_p, NAMES[error][index])


_CONTEXT = 0x100


def attributes(machine: Machine) -> dict[int, int]:
    """CUdevice_attribute of the processor, as far as they are known; a multiprocessor count as of an H100."""
    major, minor = divmod(machine.target.number, 10)
    shared = machine.shared_limit
    return {
        1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: _FREE_SHARED, 9: 65536, 10: 32,
        12: 65536, 13: 1_000_000, 16: 132, 38: 50 << 20, 39: 2048, 40: 1, 41: 1, 75: major, 76: minor,
        81: shared + 1024, 82: 65536, 95: 1, 97: shared, 115: 1, 120: int(major >= 9), 127: int(major >= 9),
    }  # fmt: skip


def _put(address: int, kind: Any, value: Any) -> None:
    """Writes where a result goes."""
    kind.from_address(address).value = value


def _bytes_at(address: int, size: int) -> Array:
    """A copy of host memory."""
    return np.frombuffer(ctypes.string_at(address, size), u1)


def _numbers(address: int, kind: Any, number: int) -> tuple[int, ...]:
    return tuple((kind * number).from_address(address)) if number else ()
