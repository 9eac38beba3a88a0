"""Tensors that are on the device already: results stay there, and travel by DLPack without a copy."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from end_to_end.test_backends import PRODUCT

import relaxir as rx
from relaxir.runtime.cuda import dlpack
from relaxir.runtime.cuda.arrays import DeviceArray, device_tensor


class Foreign:
    """A tensor of another library: what it says of itself is DLPack."""

    def __init__(self, array: DeviceArray):
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.fixture(scope="module")
def executable() -> rx.Executable:
    made = rx.compile(rx.Module.parse(PRODUCT), "cuda:sm_80", device="emulated")
    return made.bind(made.prepare({"w": np.ones((40, 24), np.float32)}))


def on_device(executable: rx.Executable, array: np.ndarray) -> DeviceArray:
    device = executable._library.loaded.device
    buffer = device.allocate(array.nbytes)
    device.upload(array, buffer.address)
    device.wait()
    return DeviceArray(buffer, array.dtype, array.shape)


def test_results_are_where_inputs_are(executable: rx.Executable) -> None:
    x = on_device(executable, np.ones((3, 24), np.float32))
    y = executable(x)
    assert isinstance(y, DeviceArray)
    assert (y.shape, y.dtype) == ((3, 40), np.float32)
    assert (y.numpy() == 24).all()
    assert (np.asarray(executable(Foreign(x))) == 24).all()


def test_results_in_memory_of_the_device(executable: rx.Executable) -> None:
    x, out = on_device(executable, np.ones((3, 24), np.float32)), on_device(executable, np.zeros((3, 40), np.float32))
    assert executable(x, out=out) is out
    assert (out.numpy() == 24).all()
    wrong = on_device(executable, np.zeros((2, 40), np.float32))
    with pytest.raises(rx.RelaxError, match=r"output '.*': expected f32\[3, 40\], got f32\[2, 40\]"):
        executable(x, out=wrong)


def test_a_capsule_is_given_back(executable: rx.Executable) -> None:
    array = on_device(executable, np.arange(6, dtype=np.float32).reshape(2, 3))
    capsule = array.__dlpack__()
    start, dtype, shape, owner = dlpack.imported(capsule)
    assert (start, dtype, shape) == (array.address, np.float32, (2, 3))
    assert len(dlpack._lent) == 1
    with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
        dlpack.imported(capsule)
    del owner
    assert not dlpack._lent
    array.__dlpack__()  # nobody takes it
    assert not dlpack._lent


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float16, ml_dtypes.bfloat16])
def test_dtypes_travel(executable: rx.Executable, dtype: Any) -> None:
    array = on_device(executable, np.zeros((4,), dtype))
    assert dlpack.imported(array.__dlpack__())[1] == np.dtype(dtype)


def test_tensors_of_elsewhere(executable: rx.Executable) -> None:
    other = rx.compile(rx.Module.parse(PRODUCT), "cuda:sm_80", device="emulated")
    with pytest.raises(rx.RelaxError, match="input 'x': expected a tensor on 'emulated', got one on emulated"):
        executable(on_device(other, np.ones((3, 24), np.float32)))
    with pytest.raises(rx.RelaxError, match="input 'x': expected dtype f32, got f64"):
        executable(on_device(executable, np.ones((3, 24))))
    with pytest.raises(rx.RelaxError, match=r"input 'x': expected shape \[n, 24\]"):
        executable(on_device(executable, np.ones((3, 25), np.float32)))


def test_what_begins_in_the_middle_of_a_vector_is_refused(executable: rx.Executable) -> None:
    array = on_device(executable, np.ones((6, 24), np.float32))

    class Rows(Foreign):
        """Three rows, from one of the elements on."""

        first = 0

        def __dlpack__(self, **options: Any) -> Any:
            start = array.address + 4 * self.first
            return dlpack.exported(start, array.dtype, (3, 24), self.__dlpack_device__(), self)

    part = Rows(array)
    for part.first in (0, 4, 24):
        assert (np.asarray(executable(part)) == 24).all()
    part.first = 1
    with pytest.raises(
        rx.RelaxError, match=r"input 'x': expected a tensor at a multiple of 16 bytes, got one at 0x.*: pass a copy"
    ):
        executable(part)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.ones((24, 3), np.float32).T, "its elements have gaps between them"),
        (np.ones((3, 48), np.float32)[:, ::2], "its elements have gaps between them"),
        (np.ones((3, 24), ml_dtypes.float8_e4m3fn), "DLPack has no dtype for float8_e4m3fn"),
    ],
)
def test_what_dlpack_cannot_hand_over_is_refused(executable: rx.Executable, array: np.ndarray, reason: str) -> None:
    device = on_device(executable, np.ones((1,), np.float32)).__dlpack_device__()

    class Other:
        """Of another library, on the same device."""

        def __dlpack__(self, **_: Any) -> Any:
            if array.dtype == np.float32:
                return array.__dlpack__()
            return dlpack.exported(array.ctypes.data, array.dtype, array.shape, device, self)

        def __dlpack_device__(self) -> tuple[int, int]:
            return device

    with pytest.raises(rx.RelaxError, match=f"^input 'x': expected a contiguous tensor, got Other: {reason}$"):
        executable(Other())


def test_a_capsule_that_nobody_takes_frees_its_tensor(executable: rx.Executable) -> None:
    array = on_device(executable, np.ones((4,), np.float32))
    gone = weakref.ref(array)
    capsule = array.__dlpack__()
    del array
    assert gone() is not None
    del capsule
    gc.collect()
    assert gone() is None


def test_memory_of_results_is_used_again_and_calls_are_graphs(executable: rx.Executable, driver_calls: list[str]) -> None:
    x = on_device(executable, np.ones((5, 24), np.float32))
    del driver_calls[:]
    for _ in range(4):
        assert (executable(x).numpy() == 24).all()
    assert driver_calls.count("cuGraphLaunch") == 3
    assert driver_calls.count("cuMemAlloc_v2") <= 2, "the first result's, and what the call works in"
    kept = [executable(on_device(executable, np.full((5, 24), n, np.float32))) for n in (1, 2, 3)]
    assert len({y.address for y in kept}) == 3
    assert [float(y.numpy()[0, 0]) for y in kept] == [24, 48, 72], "what a caller keeps nobody writes to"


@pytest.mark.parametrize("sees", ["dlpack", "stream", "result"])
def test_memory_that_others_have_seen_goes_back_to_the_driver(executable: rx.Executable, sees: str) -> None:
    device = executable._library.loaded.device
    x, other = on_device(executable, np.ones((7, 24), np.float32)), device.driver.made("cuStreamCreate", 1)
    y = executable(x)
    address = y.address
    if sees == "dlpack":
        y.__dlpack__()
    elif sees == "stream":
        device_tensor(y, "y", device, other)
    else:
        executable.stream = other
        executable(x, out=y)
        executable.stream = None
    del y
    assert executable(x).address != address
