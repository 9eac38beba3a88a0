"""Checks of values that kernels make: what they say, when it is raised, what the state is then, and that calls are graphs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from end_to_end.test_cuda_models import generator
from end_to_end.test_state import STEP, at, rows

import relaxir as rx
from relaxir.runtime.cuda import deferred
from relaxir.runtime.cuda.arrays import DeviceArray

TWO = """
func.func @main(%x: tensor<4xf32>, %i: tensor<?xi64, {sym = ["m"]}>, %j: tensor<2xi64>)
    -> (tensor<?xf32, {sym = ["m"]}>, tensor<2xf32>) {
  %y = "relax.take"(%x, %i) {axis = 0 : i64} : (tensor<4xf32>, tensor<?xi64, {sym = ["m"]}>) -> tensor<?xf32, {sym = ["m"]}>
  %z = "relax.take"(%x, %j) {axis = 0 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %y, %z : tensor<?xf32, {sym = ["m"]}>, tensor<2xf32>
}
"""
#: Out of as many numbers as a call brings.
OPEN = """
func.func @main(%x: tensor<?xf32, {sym = ["n"]}>, %i: tensor<?xi64, {sym = ["m"]}>) -> tensor<?xf32, {sym = ["m"]}> {
  %y = "relax.take"(%x, %i) {axis = 0 : i64} : (tensor<?xf32, {sym = ["n"]}>, tensor<?xi64, {sym = ["m"]}>)
    -> tensor<?xf32, {sym = ["m"]}>
  return %y : tensor<?xf32, {sym = ["m"]}>
}
"""
#: Goes on while a number that is chosen out of a table is not 0: with a bad index it would for ever.
CHAIN = """
func.func @main(%next: tensor<4xi64>, %start: tensor<1xi64>) -> tensor<1xi64> {
  %zero = arith.constant 0 : i64
  %c0 = arith.constant 0 : index
  %end = scf.while (%at = %start) : (tensor<1xi64>) -> tensor<1xi64> {
    %v = tensor.extract %at[%c0] : tensor<1xi64>
    %go = arith.cmpi ne, %v, %zero : i64
    scf.condition(%go) %at : tensor<1xi64>
  } do {
  ^bb0(%at: tensor<1xi64>):
    %then = "relax.take"(%next, %at) {axis = 0 : i64} : (tensor<4xi64>, tensor<1xi64>) -> tensor<1xi64>
    scf.yield %then : tensor<1xi64>
  }
  return %end : tensor<1xi64>
}
"""
#: Adds what it gets to a state, and checks nothing.
ADDS = """
func.func @main(%x: tensor<4xf32>, %k: tensor<4xf32> {relax.name = "k"}) -> (tensor<4xf32>, tensor<4xf32> {relax.name = "k"})
    attributes {relax.state = {k = dense<0.0> : tensor<4xf32>}} {
  %0 = "relax.add"(%x, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "relax.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}
"""
X = np.arange(4, dtype=np.float32)
MESSAGE = r"entry 'main': run-time check failed: .*expected indices in \[-4, 4\)"


def compiled(text: str, **options: Any) -> rx.Executable:
    return rx.compile(rx.Module.parse(text), "cuda:sm_80", device="emulated", **options)


def on_device(executable: rx.Executable, array: np.ndarray) -> DeviceArray:
    device = executable._library.loaded.device
    buffer = device.allocate(array.nbytes)
    device.upload(array, buffer.address)
    device.wait()
    return DeviceArray(buffer, array.dtype, array.shape)


def test_the_first_check_that_fails_says_what_it_does_on_a_cpu() -> None:
    device, host = compiled(TWO), rx.compile(rx.Module.parse(TWO))
    assert device.manifest.data["cuda"]["graphs"] == ["relaxir_main"]
    assert re.search(r"\n  kernel_\d+ +check\n", str(device.report)), "what only looks at indices says so"
    many = np.arange(300) % 8 - 4
    for i, j in ((many, [4, 0]), ([1], [0, -5]), ([7], [9, 9]), (np.where(many == 3, 4, many), [0, 0])):
        texts = list[str]()
        for executable in (device, host):
            with pytest.raises(rx.RelaxError) as error:
                executable(X, np.array(i), np.array(j))
            texts.append(str(error.value))
        assert texts[0] == texts[1]
        for got, want in zip(device(X, many, np.array([3, -4])), host(X, many, np.array([3, -4])), strict=True):
            np.testing.assert_array_equal(got, want)
    assert device(X, np.array([], np.int64), np.array([1, 2]))[0].size == 0


def test_indices_into_unknown_sizes_are_checked_without_a_wait(waits: list[object]) -> None:
    """The host knows, by sizes, whether there is a place to limit an index to; all else kernels compare."""
    device, host = compiled(OPEN), rx.compile(rx.Module.parse(OPEN))
    assert device.manifest.data["cuda"]["graphs"] == ["relaxir_main"]
    none, many = np.zeros(0, np.float32), np.arange(300) % 8 - 4
    device(X, many)  # loads the kernels, for which it waits
    for x, i in ((X, many), (X[:2], [1, -2]), (none, [])):
        before = len(waits)
        np.testing.assert_array_equal(device(x, np.array(i, np.int64)), host(x, np.array(i, np.int64)))
        assert len(waits) == before + 1, "for its result"
    for x, i in ((X, [0, 4]), (X[:2], [-3]), (none, [0])):
        texts = list[str]()
        for executable in (device, host):
            with pytest.raises(rx.RelaxError) as error:
                executable(x, np.array(i))
            texts.append(str(error.value))
        assert texts[0] == texts[1]
        assert "expected indices in [-size, size)" in texts[0]
    assert device(X, np.array([3])) == [3]


def test_what_waits_for_a_call_raises_what_failed_in_it() -> None:
    executable = compiled(TWO)
    x, j = on_device(executable, X), on_device(executable, np.array([0, 1]))
    good, bad = (on_device(executable, np.array([n])) for n in (3, 4))
    wrong, _ = executable(x, bad, j)
    right, _ = executable(x, good, j)
    assert right.numpy() == [3], "each call has a status of its own"
    for _ in range(2):
        with pytest.raises(rx.RelaxError, match=f"^{MESSAGE}"):
            wrong.numpy()
    executable(x, bad, j)
    with pytest.raises(rx.RelaxError, match=f"a call before this one failed, whose results are on the device: {MESSAGE}"):
        executable.wait()
    executable.wait()
    out = on_device(executable, np.zeros(1, np.float32)), on_device(executable, np.zeros(2, np.float32))
    executable(x, bad, j, out=out)
    with pytest.raises(rx.RelaxError, match=f"^{MESSAGE}"):
        out[0].__dlpack__()
    with pytest.raises(rx.RelaxError, match=f"^{MESSAGE}"):
        torch.from_dlpack(wrong)


def test_the_next_call_raises_what_failed_in_one_that_only_began() -> None:
    executable = compiled(TWO)
    x, j, bad = (on_device(executable, a) for a in (X, np.array([0, 1]), np.array([4])))
    executable(x, bad, j)
    with pytest.raises(rx.RelaxError, match=f"a call before this one failed.*{MESSAGE}"):
        executable(X, np.array([1]), np.array([0, 1]))
    assert executable(X, np.array([1]), np.array([0, 1]))[0] == [1]


def test_more_calls_than_places_wait_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "_PLACES", 2)
    executable = compiled(TWO)
    x, j = on_device(executable, X), on_device(executable, np.array([0, 1]))
    results = [executable(x, on_device(executable, np.array([n])), j)[0] for n in (1, 2, 3, 0, 1)]
    assert [float(r.numpy()[0]) for r in results] == [1, 2, 3, 0, 1]


@pytest.mark.parametrize("stays", [False, True])
def test_a_state_is_broken_from_the_call_on_that_failed(stays: bool) -> None:
    executable = compiled(STEP.format(name="main", first=1))
    assert executable(rows(1), at(0)).tolist() == [1] * 4
    if stays:
        executable(on_device(executable, rows(5)), on_device(executable, at(8)))
        with pytest.raises(rx.RelaxError, match=r"expected indices in \[-8, 8\)"):
            executable.state["k"]
    else:
        with pytest.raises(rx.RelaxError, match=r"^entry 'main': .*expected indices in \[-8, 8\)"):
            executable(rows(5), at(8))
    for use in (executable.state.copy, lambda: executable(rows(1), at(0))):
        with pytest.raises(rx.RelaxError, match="a failed call"):
            use()
    executable.reset_state()
    executable.wait()
    assert executable(rows(2), at(0)).tolist() == [2] * 4
    assert executable.state["n"] == 2


@pytest.mark.parametrize("use", ["read", "written", "called", "reset", "copied"])
def test_a_state_waits_for_calls_on_a_stream_of_the_callers(use: str) -> None:
    """The emulator runs what is in a stream as late as it may: what does not wait finds the state as it was."""
    executable = compiled(ADDS)
    device = executable._library.loaded.device
    x = on_device(executable, np.ones(4, np.float32))
    executable.stream = foreign = device.driver.made("cuStreamCreate", 1)
    kept = [executable(x)]  # what frees a result waits for all
    state = executable.state
    if use == "written":
        state["k"] = np.full(4, 7, np.float32)
    elif use == "called":
        executable.stream = None
        kept.append(executable(x))
    elif use == "reset":
        executable.reset_state()
    elif use == "copied":
        state = state.copy()
    expected = {"read": 1, "written": 7, "called": 2, "reset": 0, "copied": 1}[use]
    if use != "read":
        device.wait(foreign)
    assert state["k"].tolist() == [expected] * 4


def test_control_flow_by_data_ends_when_a_check_has_failed() -> None:
    executable = compiled(CHAIN)
    assert executable.manifest.data["cuda"]["graphs"] == []
    table = np.array([0, 0, 1, 2])
    assert executable(table, np.array([3])).tolist() == [0]
    with pytest.raises(rx.RelaxError, match=MESSAGE):
        executable(np.array([4, 3, 1, 9]), np.array([2]))
    assert executable(table, np.array([2])).tolist() == [0], "the next call is as if none had failed"


def test_a_decode_step_with_a_cache_is_one_graph(driver_calls: list[str]) -> None:
    """From the second call on: inputs, one launch, what checks have found, results, and one wait for all of it.

    The thread had no context before, and has none again.
    """
    module, raw, _ = generator()
    executable, host = rx.compile(module, "cuda:sm_80", device="emulated"), rx.compile(module)
    for each in (executable, host):
        each.bind(each.prepare(raw))
    for number, token in enumerate((35, 89, 79, 3)):
        del driver_calls[:]
        got, want = (e(np.array([[token]]), entry="decode") for e in (executable, host))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)  # f32 sums in another order
        assert driver_calls.count("cuGraphLaunch") == (number > 0)
    assert driver_calls == [
        "cuCtxGetCurrent", "cuCtxSetCurrent", "cuMemcpyHtoDAsync_v2", "cuGraphLaunch", "cuMemcpyDtoHAsync_v2",
        "cuMemsetD8Async", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuCtxSetCurrent",
    ]  # fmt: skip
    with pytest.raises(rx.RelaxError, match=r"expected indices in \[0, 128\)"):
        executable(np.array([[128]]), entry="decode")


def compiled_program(program: Any) -> rx.Executable:
    return rx.compile(rx.from_torch(program), "cuda:sm_80", device="emulated")
