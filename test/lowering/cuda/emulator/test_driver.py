"""The emulator as libcuda: called by address with its signatures, late as CUDA permits, errors as results and texts."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.lowering.cuda import emulator
from relaxir.lowering.cuda.emulator.memory import DeviceMemory
from relaxir.lowering.cuda.emulator.signatures import ARGUMENTS, NAMES, OF_KIND

ADD = b""".version 8.0
.target sm_80
.address_size 64
.global .align 4 .b32 counter = 5;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry add(.param .u64 p, .param .u32 n, .param .u16 x) {
  .reg .pred %p<2>; .reg .b16 %h<2>; .reg .b32 %r<9>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; ld.param.u16 %h1, [x]; cvt.u32.u16 %r2, %h1;
  mov.u32 %r3, %tid.x; setp.ge.u32 %p1, %r3, %r1; @%p1 bra E;
  mul.wide.u32 %d2, %r3, 4; add.s64 %d3, %d1, %d2; ld.global.b32 %r4, [%d3]; add.u32 %r5, %r4, %r2; st.global.b32 [%d3], %r5;
E: ret;
}
.visible .entry hungry(.param .u64 p) { .reg .b64 %d<3>; .reg .b32 %r<2>; mov.b64 %d1, dynamic; st.shared.b32 [%d1], 0; ret; }
"""


class Caller:
    """Calls by address, as compiled code does."""

    def __init__(self, **options: Any):
        self.library = emulator.library(memory=1 << 20, **options)

    def result(self, name: str, *arguments: Any) -> int:
        address = ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
        assert address
        return ctypes.CFUNCTYPE(ctypes.c_int, *ARGUMENTS[name])(address)(*arguments)

    def __call__(self, name: str, *arguments: Any) -> None:
        assert self.result(name, *arguments) == 0, self.library.explain()

    def made(self, name: str, *arguments: Any, kind: Any = ctypes.c_void_p) -> int:
        place = kind()
        self(name, ctypes.addressof(place), *arguments)
        return place.value or 0

    def function(self, name: bytes, text: bytes = ADD) -> int:
        return self.made("cuModuleGetFunction", self.made("cuModuleLoadData", ctypes.cast(text, ctypes.c_void_p)), name)

    def launch(self, function: int, *arguments: Any, stream: int | None = None, shared: int = 0, threads: int = 64) -> int:
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
        return self.result("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, shared, stream, ctypes.addressof(pointers), None)

    def add(self, function: int, buffer: int, number: int, x: int, stream: int | None = None) -> int:
        return self.launch(function, ctypes.c_uint64(buffer), ctypes.c_uint32(number), ctypes.c_uint16(x), stream=stream)

    def buffer(self, values: Any) -> int:
        address = self.made("cuMemAlloc_v2", values.nbytes, kind=ctypes.c_uint64)
        self("cuMemcpyHtoDAsync_v2", address, values.ctypes.data, values.nbytes, None)
        return address

    def host(self, number: int) -> Any:
        """Page-locked memory as an array."""
        address = self.made("cuMemAllocHost_v2", 4 * number)
        return np.frombuffer((ctypes.c_uint32 * number).from_address(address), np.uint32)

    def text_of(self, result: int) -> str:
        place = ctypes.c_char_p()
        assert self.result("cuGetErrorString", result, ctypes.addressof(place)) == 0
        return (place.value or b"").decode()


WORDS = np.arange(64, dtype=np.uint32)


def test_copies_and_launches() -> None:
    call = Caller()
    call("cuInit", 0)
    call("cuCtxSetCurrent", call.made("cuDevicePrimaryCtxRetain", 0))
    buffer, function = call.buffer(WORDS), call.function(b"add")
    assert call.add(function, buffer, 60, 7) == 0
    out = np.zeros(64, np.uint32)
    call("cuMemcpyDtoHAsync_v2", out.ctypes.data, buffer, 256, None)  # pageable memory: it is there when the call returns
    assert (out == WORDS + np.where(WORDS < 60, 7, 0)).all()
    call("cuMemsetD8Async", buffer, 1, 8, None)
    other = call.made("cuMemAllocAsync", 256, None, kind=ctypes.c_uint64)
    call("cuMemcpyDtoDAsync_v2", other, buffer, 256, None)
    call("cuMemcpyDtoH_v2", out.ctypes.data, other, 256)
    assert out[:3].tolist() == [0x01010101, 0x01010101, 9]
    call("cuMemFreeAsync", other, None)
    call("cuMemFree_v2", buffer)
    assert call.result("cuMemFree_v2", buffer) == 1


def test_device() -> None:
    call = Caller(arch="sm_89")
    got = [call.made("cuDeviceGetAttribute", a, 0, kind=ctypes.c_int) for a in (10, 75, 76, 97, 120)]
    assert got == [32, 8, 9, 101376, 0]
    name = ctypes.create_string_buffer(64)
    call("cuDeviceGetName", ctypes.addressof(name), 64, 0)
    assert name.value == b"emulated sm_89"
    assert call.made("cuDeviceGetCount", kind=ctypes.c_int) == 1
    assert call.result("cuDeviceGet", ctypes.addressof(ctypes.c_int()), 1) == 101
    assert call.made("cuDeviceTotalMem_v2", 0, kind=ctypes.c_size_t) == 1 << 20
    with pytest.raises(AttributeError, match="the emulator has no 'cuStreamWriteValue32'"):
        call.library.cuStreamWriteValue32  # noqa: B018


def test_streams_run_as_late_as_they_may() -> None:
    """Page-locked memory is read and written when the stream is waited for, and not before."""
    call = Caller()
    stream, function, buffer = call.made("cuStreamCreate", 1), call.function(b"add"), call.buffer(WORDS)
    source, target = call.host(64), call.host(64)
    source[:], target[:] = 1, 99
    call("cuMemcpyHtoDAsync_v2", buffer, source.ctypes.data, 256, stream)
    assert call.add(function, buffer, 64, 7, stream) == 0
    call("cuMemcpyDtoHAsync_v2", target.ctypes.data, buffer, 256, stream)
    source[:] = 2
    assert (target == 99).all()
    call("cuStreamSynchronize", stream)
    assert (target == 9).all()


def test_events_order_streams() -> None:
    call = Caller()
    one, two, event = call.made("cuStreamCreate", 1), call.made("cuStreamCreate", 1), call.made("cuEventCreate", 0)
    function, buffer, target = call.function(b"add"), call.buffer(WORDS), call.host(64)
    call("cuStreamSynchronize", None)
    start = call.made("cuEventCreate", 0)
    call("cuEventRecord", start, one)
    assert call.add(function, buffer, 64, 7, one) == 0
    call("cuEventRecord", event, one)
    assert call.add(function, buffer, 64, 1, one) == 0  # behind the event: it does not run yet
    call("cuStreamWaitEvent", two, event, 0)
    call("cuMemcpyDtoHAsync_v2", target.ctypes.data, buffer, 256, two)
    call("cuStreamSynchronize", two)
    assert (target == WORDS + 7).all()
    assert call.made("cuEventElapsedTime", start, event, kind=ctypes.c_float) > 0
    call("cuStreamSynchronize", one)


def test_default_stream_waits_for_blocking_ones() -> None:
    call = Caller()
    blocking, function, buffer, target = (
        call.made("cuStreamCreate", 0),
        call.function(b"add"),
        call.buffer(WORDS),
        call.host(64),
    )
    assert call.add(function, buffer, 64, 7, blocking) == 0
    call("cuMemcpyDtoHAsync_v2", target.ctypes.data, buffer, 256, None)
    call("cuStreamSynchronize", None)
    assert (target == WORDS + 7).all()


def test_graphs() -> None:
    """What is captured runs at each launch of the graph, and not before; nothing that waits may be captured."""
    call = Caller()
    stream, function, buffer, target = call.made("cuStreamCreate", 1), call.function(b"add"), call.buffer(WORDS), call.host(64)
    call("cuStreamSynchronize", None)
    call("cuStreamBeginCapture_v2", stream, 0)
    assert call.add(function, buffer, 64, 7, stream) == 0
    call("cuMemcpyDtoHAsync_v2", target.ctypes.data, buffer, 256, stream)
    state = ctypes.c_int()
    call("cuStreamIsCapturing", stream, ctypes.addressof(state))
    assert state.value == 1
    assert call.result("cuStreamSynchronize", stream) == 900
    assert "while capturing" in call.library.explain()
    captured = ctypes.c_void_p()
    call("cuStreamEndCapture", stream, ctypes.addressof(captured))
    graph = captured.value
    executable = call.made("cuGraphInstantiateWithFlags", graph, 0)
    call("cuGraphDestroy", graph)
    for times in (1, 2, 3):
        call("cuGraphLaunch", executable, stream)
        call("cuStreamSynchronize", stream)
        assert (target == WORDS + 7 * times).all()
    call("cuGraphExecDestroy", executable)
    assert call.result("cuGraphLaunch", executable, stream) == 400


def test_a_finding_is_a_result_with_a_text() -> None:
    """It comes where the work is waited for; the device goes on without what was queued."""
    call = Caller()
    stream, function, buffer = call.made("cuStreamCreate", 1), call.function(b"add"), call.buffer(WORDS)
    call("cuStreamSynchronize", None)
    assert (
        call.launch(function, ctypes.c_uint64(buffer), ctypes.c_uint32(65), ctypes.c_uint16(7), stream=stream, threads=96) == 0
    )
    result = call.result("cuStreamSynchronize", stream)
    assert result == OF_KIND["bounds"]
    assert "bounds in add: global load of 4 bytes at" in call.text_of(result)
    assert call.library.explain().startswith("bounds in add")
    assert call.library.explain() == ""
    assert call.add(function, buffer, 64, 7, stream) == 0
    call("cuStreamSynchronize", stream)


def test_copies_to_the_host_of_what_nobody_wrote() -> None:
    call = Caller()
    buffer, out = call.made("cuMemAllocAsync", 256, None, kind=ctypes.c_uint64), np.zeros(64, np.uint32)
    call("cuMemcpyHtoD_v2", buffer, WORDS.ctypes.data, 200)
    call("cuMemcpyDtoH_v2", out.ctypes.data, buffer, 200)
    assert call.result("cuMemcpyDtoH_v2", out.ctypes.data, buffer, 256) != 0
    said = call.library.explain()
    assert "copy of 256 bytes to the host, 56 never written, from 0x" in said
    assert "byte 200 of a buffer of 256 bytes" in said


def test_checks_that_are_off() -> None:
    """Without checks a processor still traps accesses outside of memory."""
    call = Caller(checks=False)
    fresh = call.made("cuMemAlloc_v2", 256, kind=ctypes.c_uint64)
    assert call.add(call.function(b"add"), fresh, 64, 7) == 0
    call("cuStreamSynchronize", None)
    assert call.add(call.function(b"add"), 0, 64, 7) == 0
    assert call.result("cuStreamSynchronize", None) == OF_KIND["bounds"]


def test_refused_calls() -> None:
    call = Caller()
    function = call.function(b"hungry")
    pointer = ctypes.c_uint64(0)
    assert call.launch(function, pointer, shared=50_000) == 1
    assert "expected at most 49152 bytes of dynamic shared memory for hungry, got 50000" in call.library.explain()
    call("cuFuncSetAttribute", function, 8, 50_000)
    assert call.launch(function, pointer, shared=50_000) == 0
    assert call.result("cuFuncSetAttribute", function, 8, 300_000) == 1
    assert call.made("cuFuncGetAttribute", 8, function, kind=ctypes.c_int) == 50_000
    place = ctypes.addressof(ctypes.c_void_p())
    assert call.result("cuModuleLoadData", place, ctypes.cast(b"\x7fELFbinary", ctypes.c_void_p)) == 209
    assert call.result("cuModuleLoadData", place, ctypes.cast(ADD.replace(b"add.u32", b"odd.u32"), ctypes.c_void_p)) == 218
    assert "unknown instruction 'odd'" in call.library.explain()
    module = call.made("cuModuleLoadData", ctypes.cast(ADD, ctypes.c_void_p))
    assert call.result("cuModuleGetFunction", place, module, b"sub") == 500
    call("cuModuleUnload", module)
    assert call.result("cuModuleUnload", module) == 400
    assert call.result("cuMemAlloc_v2", place, 1 << 30) == 2
    assert call.result("cuCtxSetCurrent", 5) == 400


def test_tensor_maps_and_pointers() -> None:
    call = Caller()
    buffer = call.buffer(WORDS)
    room = ctypes.create_string_buffer(256)
    place = -(-ctypes.addressof(room) // 64) * 64
    sizes, strides = (ctypes.c_uint64 * 2)(8, 8), (ctypes.c_uint64 * 1)(32)
    box, steps = (ctypes.c_uint32 * 2)(8, 4), (ctypes.c_uint32 * 2)(1, 1)

    def encode(address: int) -> int:
        pointers = (ctypes.addressof(x) for x in (sizes, strides, box, steps))
        return call.result("cuTensorMapEncodeTiled", place, 2, 2, address, *pointers, 0, 0, 0, 0)

    assert encode(buffer) == 0
    found = emulator.TensorMap.unpacked(ctypes.string_at(place, 128))
    assert (found.address, found.sizes, found.strides, found.box) == (buffer, (8, 8), (32,), (8, 4))
    assert encode(buffer + 4) == 1
    assert "steps of 16 bytes" in call.library.explain()
    assert call.made("cuPointerGetAttribute", 2, buffer + 8, kind=ctypes.c_uint) == 2
    assert call.result("cuPointerGetAttribute", ctypes.addressof(ctypes.c_uint()), 2, place) == 1


def test_names_of_results() -> None:
    call = Caller()
    for result, (name, text) in NAMES.items():
        place = ctypes.c_char_p()
        call("cuGetErrorName", result, ctypes.addressof(place))
        assert place.value == name
        assert call.text_of(result) == text.decode()
    assert call.result("cuGetErrorName", 12345, ctypes.addressof(ctypes.c_char_p())) == 1


def test_memory_goes_with_the_executable() -> None:
    """Not when Python next looks for what refers to itself: memory of a device is 2 GiB of addresses."""

    def held() -> int:
        return sum(isinstance(o, DeviceMemory) for o in gc.get_objects())

    b = rx.Builder()
    with b.function("main"):
        b.output(b.softmax(b.input("x", ("n", 40))))
    module, x = b.build(), np.ones((3, 40), np.float32)
    gc.collect()
    gc.disable()
    try:
        before = held()
        rx.compile(module, "cuda:sm_80", cache=False, device="emulated")(x)
        assert held() == before
    finally:
        gc.enable()
