"""Launches are recorded when a call comes again, on the stream that it is for, and replayed; what has to wait is not."""

from __future__ import annotations

import numpy as np
import pytest
from end_to_end.test_backends import PRODUCT, TAKE
from end_to_end.test_state import STEP, at, rows

import relaxir as rx
from relaxir.runtime.cuda import graphs

BRANCH = """
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> attributes {relax.num_input = 2 : i64} {
  %turns = tensor.extract %c[] : tensor<i1>
  %y = scf.if %turns -> (tensor<4xf32>) {
    %n = "relax.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  } else {
    %n = "relax.astype"(%x) {dtype = f32} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
"""


def compiled(text: str) -> rx.Executable:
    made = rx.compile(rx.Module.parse(text), "cuda:sm_80", device="emulated")
    return made.bind(made.prepare({"w": np.ones((40, 24), np.float32)} if text is PRODUCT else {}))


def test_the_second_call_is_recorded_and_the_third_replayed(driver_calls: list[str]) -> None:
    executable = compiled(PRODUCT)
    for number in range(1, 5):
        assert (executable(np.full((3, 24), number, np.float32)) == 24 * number).all()
        assert driver_calls.count("cuGraphLaunch") == max(0, number - 1)
    assert driver_calls.count("cuStreamBeginCapture_v2") == 1
    assert (executable(np.ones((2, 24), np.float32)) == 24).all()
    assert driver_calls.count("cuGraphLaunch") == 3, "of another shape, it is the first call"


def test_state_is_updated_by_replayed_launches(driver_calls: list[str]) -> None:
    executable = compiled(STEP.format(name="main", first=1))
    kept = executable.manifest.data["cuda"]["graphs"]
    for number in range(1, 4):
        executable(rows(number), at(0))
        assert executable.state["n"] == 1 + number
    assert bool(kept) == ("cuGraphLaunch" in driver_calls)


def test_what_reads_data_is_not_recorded(driver_calls: list[str]) -> None:
    executable = compiled(BRANCH)
    assert executable.manifest.data["cuda"]["graphs"] == []
    x = np.arange(4, dtype=np.float32)
    for turns in (True, False, True):
        np.testing.assert_array_equal(executable(x, np.array(turns)), -x if turns else x)
    assert "cuGraphLaunch" not in driver_calls


def test_an_index_that_kernels_check_is(driver_calls: list[str]) -> None:
    executable = compiled(TAKE)
    for _ in range(3):
        assert executable(np.arange(4, dtype=np.float32), np.array([3])).tolist() == [3]
    assert driver_calls.count("cuGraphLaunch") == 2


def test_few_graphs_are_kept(driver_calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_KEPT", 2)
    executable = compiled(PRODUCT)
    for n in (1, 2, 3):
        for _ in range(3):
            assert (executable(np.ones((n, 24), np.float32)) == 24).all()
    assert len(executable._bound["main"]._graphs._known) == 2
    assert "cuGraphExecDestroy" in driver_calls


def test_a_stream_of_the_caller(driver_calls: list[str]) -> None:
    executable = compiled(PRODUCT)
    stream = executable._library.loaded.device.driver.made("cuStreamCreate", 1)
    executable.stream = stream
    for number in range(1, 4):
        assert (executable(np.full((3, 24), number, np.float32)) == 24 * number).all()
    assert driver_calls.count("cuGraphLaunch") == 2
    executable.stream = None
    assert (executable(np.ones((3, 24), np.float32)) == 24).all()
    assert driver_calls.count("cuGraphLaunch") == 2, "graphs are for one stream"
    executable.stream = 0
    assert (executable(np.ones((3, 24), np.float32)) == 24).all()


def test_streams_that_are_none() -> None:
    with pytest.raises(rx.RelaxError, match="expected a CUDA stream's number or None, got 'x'"):
        compiled(TAKE).stream = "x"  # type: ignore[assignment]
    on_cpu = rx.compile(rx.Module.parse(TAKE))
    assert on_cpu.stream is None
    with pytest.raises(rx.RelaxError, match="expected no stream for code of a CPU, got 7"):
        on_cpu.stream = 7
