"""What goes wrong with a driver is an error that says what: no driver, another GPU, no memory, a kernel that fails."""

from __future__ import annotations

import ctypes
import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from end_to_end.test_backends import PRODUCT

import relaxir as rx
from relaxir.lowering.cuda import emulator
from relaxir.runtime.cuda import device as devices
from relaxir.runtime.cuda.code import CudaSpec, LoadedCode
from relaxir.runtime.cuda.device import Device
from relaxir.runtime.cuda.driver import Driver, system_driver
from relaxir.runtime.cuda.memory import Block, uploaded


@pytest.fixture
def library() -> Any:
    return emulator.library("sm_80")


@pytest.fixture
def device(library: Any) -> Device:
    return Device(Driver(library), "emulated", 0)


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError("cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(rx.RelaxError, match=r"expected an NVIDIA GPU with its driver, got no libcuda\.so\.1 .*'emulated'"):
        system_driver()


def test_a_driver_without_a_function() -> None:
    with pytest.raises(rx.RelaxError, match=r"expected a CUDA driver with cuInit \(CUDA 12 or newer\), got one without it"):
        Driver(SimpleNamespace())


def test_no_such_gpu(monkeypatch: pytest.MonkeyPatch, library: Any) -> None:
    monkeypatch.setattr(devices, "_system_driver", lambda: Driver(library))
    with pytest.raises(rx.RelaxError, match="expected one of 1 GPUs, got device 'cuda:7'"):
        devices.gpu.__wrapped__(7)


@pytest.mark.parametrize(
    ("target", "arch", "message"),
    [
        (
            "cuda:sm_90a",
            "sm_80",
            r"expected a GPU of compute capability 9\.0 for code for 'cuda:sm_90a', got .* 8\.0",
        ),
        ("cuda:sm_86", "sm_80", r"expected a GPU of compute capability 8\.6 or newer for code for 'cuda:sm_86'"),
        ("cuda:sm_90a", "sm_100a", r"expected a GPU of compute capability 9\.0 for code"),
    ],
)
def test_code_for_another_gpu(target: str, arch: str, message: str) -> None:
    spec = CudaSpec({"target": target, "kernels": [], "constants": [], "host": []})
    there = Device(Driver(emulator.library(arch)), "emulated", 0)
    with pytest.raises(rx.RelaxError, match=message):
        LoadedCode(SimpleNamespace(spec=spec, name="m"), there)  # type: ignore[arg-type]


def test_no_memory() -> None:
    small = Device(Driver(emulator.library("sm_80", memory=1 << 20)), "emulated", 0)
    with pytest.raises(rx.RelaxError, match="expected 2097152 bytes of memory on 'emulated', got none"):
        small.allocate(2 << 20)


def test_a_failing_kernel_is_named() -> None:
    """One more block than there is work for, and no guard: a store outside, as the emulator tells."""
    executable = rx.compile(rx.Module.parse(PRODUCT), "cuda:sm_80", device="emulated", cache=False)
    executable.bind(executable.prepare({"w": np.ones((40, 24), np.float32)}))
    kernel = executable.manifest.data["cuda"]["kernels"][-1]["name"]
    loaded = executable._library.loaded
    loaded._functions[len(loaded.spec.kernels) - 1] = 12345  # no CUfunction
    with pytest.raises(rx.RelaxError, match=f"entry 'main': kernel '{kernel}': CUDA_ERROR_INVALID"):
        executable(np.ones((3, 24), np.float32))


def test_memory_goes_with_the_executable() -> None:
    """Not when Python collects what refers to itself: the weights of the next one need the room."""
    gc.disable()
    try:
        executable = rx.compile(rx.Module.parse(PRODUCT), "cuda:sm_80", device="emulated", cache=False)
        executable.bind(executable.prepare({"w": np.ones((40, 24), np.float32)}))
        executable(np.ones((3, 24), np.float32))
        device = weakref.ref(executable._library.loaded.device)
        del executable
        assert device() is None
    finally:
        gc.enable()


def test_weights_larger_than_the_pinned_buffers(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaxir.runtime.cuda.memory._STAGE", 1 << 10)
    pinned, made = list[int](), device.driver.made
    monkeypatch.setattr(device.driver, "made", lambda name, *given, **kind: (
        pinned.extend(given if name == "cuMemAllocHost_v2" else ()), made(name, *given, **kind))[1])  # fmt: skip
    rng = np.random.default_rng(0)
    arrays = {f"w{i}": rng.integers(0, 255, n).astype(np.uint8) for i, n in enumerate((5000, 1, 1024, 0, 2049))}
    for name, buffer in uploaded(device, arrays).items():
        found = np.empty_like(arrays[name])
        device.download(buffer.address, found)
        device.wait()
        np.testing.assert_array_equal(found, arrays[name])
    assert pinned == [1 << 10] * 2, "all that the host holds of them at once, however large they are"


def test_memory_of_a_call_grows_and_is_given_back(device: Device) -> None:
    block = Block(device)
    assert block.address == 0
    block.grow(100)
    first = block.size
    block.grow(first + 1)
    assert block.size >= first + first // 2
    assert block.address % 256 == 0


def test_nothing_is_given_back_while_the_driver_works(device: Device) -> None:
    """Python collects garbage at any time: a free that waits must not come between what a call begins."""
    driver, freed = device.driver, list[int]()
    buffer = device.allocate(64)
    address = buffer.address
    call = driver.call
    driver.call = lambda name, *given: (freed.extend(given) if name == "cuMemFree_v2" else None, call(name, *given))[1]
    with driver.inside():
        del buffer
        assert not freed
    device.use()
    assert freed == [address]
    another = device.allocate(64)
    address = another.address
    del another
    assert freed[1:] == [address]
