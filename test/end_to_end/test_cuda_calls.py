"""Calls of code for GPUs: checks, control flow and state on the device, results of the caller's, artifacts, narrow weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from end_to_end.test_backends import PRODUCT, TAKE
from end_to_end.test_cuda_checks import on_device
from end_to_end.test_quantized import model, weights
from end_to_end.test_state import STEP, at, rows
from end_to_end.test_targets import RUNTIME

import relaxir as rx
from relaxir.lowering.archive import members
from relaxir.tools import cli
from relaxir.weights import write_safetensors
from support.object_files import undefined_symbols
from support.stage_modules import LOOP

TARGET = "cuda:sm_80"
ONES = {"w": np.ones((40, 24), np.float32)}


def compiled(text: str, **options: Any) -> rx.Executable:
    return rx.compile(rx.Module.parse(text), TARGET, device="emulated", **options)


def test_checks_of_values_are_kept_with_their_texts() -> None:
    texts: list[str] = []
    for executable in (compiled(TAKE), rx.compile(rx.Module.parse(TAKE))):
        x = np.arange(4, dtype=np.float32)
        assert executable(x, np.array([3])).tolist() == [3]
        with pytest.raises(rx.RelaxError, match="expected ind") as error:
            executable(x, np.array([9]))
        texts.append(str(error.value))
        assert executable(x, np.array([1])).tolist() == [1], "the next call is as if none had failed"
    assert texts[0] == texts[1]


def test_control_flow_that_data_decides() -> None:
    executable, module = compiled(LOOP), rx.Module.parse(LOOP)
    x = np.linspace(-0.1, 0.1, 5, dtype=np.float32)
    for count in (7, 8, 20):
        (want,) = rx.evaluate(module, "main", x, np.array(count))
        np.testing.assert_allclose(executable(x, np.array(count)), want, rtol=1e-5)


def test_state_stays_on_the_device() -> None:
    executable = compiled(STEP.format(name="prefill", first=1) + STEP.format(name="decode", first=1))
    mine = executable.new_state()
    assert executable(rows(1), at(0), entry="prefill").tolist() == [1] * 4
    assert executable(rows(2), at(1), entry="decode").tolist() == [3] * 4
    assert executable(rows(5), at(1), entry="decode", state=mine).tolist() == [5] * 4
    assert (executable.state["n"], mine["n"], mine.copy()["n"]) == (3, 2, 2)
    mine["n"] = np.array(7)
    executable(rows(5), at(1), entry="decode", state=mine)
    assert mine["n"] == 8
    executable.reset_state()
    assert executable.state["n"] == 1
    with pytest.raises(rx.RelaxError, match="state 'n': expected memory of 'emulated', got some of the host"):
        executable.new_state({"n": np.array(1)})


def test_results_in_memory_of_the_caller_and_of_no_elements() -> None:
    executable = compiled(PRODUCT)
    executable.bind(executable.prepare(ONES))
    out = np.empty((3, 40), np.float32)
    assert executable(np.ones((3, 24), np.float32), out=out) is out
    assert (out == 24).all()
    assert executable(np.ones((0, 24), np.float32)).shape == (0, 40)
    with pytest.raises(rx.RelaxError, match="expected dtype f32, got f64"):
        executable(np.ones((3, 24)))


def test_torch_in_torch_out() -> None:
    executable = compiled(PRODUCT)
    executable.bind(executable.prepare(ONES))
    assert torch.equal(executable(torch.ones(3, 24)), torch.full((3, 40), 24.0))


def test_an_artifact_loads_and_prepares_without_a_gpu(tmp_path: Path) -> None:
    executable = rx.compile(rx.Module.parse(PRODUCT), TARGET)
    executable.save(tmp_path / "m.relax")
    loaded = rx.load(tmp_path / "m.relax", device="emulated")
    raw = {"w": np.random.default_rng(0).standard_normal((40, 24), np.float32)}
    loaded.prepare(raw, tmp_path / "p.safetensors")
    x = np.random.default_rng(1).standard_normal((5, 24), np.float32)
    want = x @ raw["w"].T
    np.testing.assert_allclose(loaded.bind(tmp_path / "p.safetensors")(x), want, rtol=1e-5, atol=1e-5)
    loaded.save(tmp_path / "again.relax")
    again = rx.load(tmp_path / "again.relax", device="emulated")
    np.testing.assert_array_equal(again.bind(tmp_path / "p.safetensors")(x), loaded(x))


def test_host_code_needs_no_symbol_of_cudas() -> None:
    """Functions of the driver come in the table that entries are given: what is deployed needs libcuda alone."""
    executable = rx.compile(rx.Module.parse(PRODUCT), TARGET)
    objects = members(executable._object_code).values()
    undefined = {symbol for code in objects for symbol in undefined_symbols(code)}
    assert not [s for s in undefined if not RUNTIME.fullmatch(s)]


def test_weights_may_be_bound_again() -> None:
    executable = compiled(PRODUCT)
    given = {"w": np.ones((40, 24), np.float32)}
    prepared = executable.prepare(given)
    x = np.ones((1, 24), np.float32)
    assert (executable.bind(prepared)(x) == 24).all()
    for name in prepared:
        np.asarray(prepared[name])[...] *= 2
    assert (executable.bind(prepared)(x) == 48).all()


@pytest.mark.parametrize("weights_", ["int8", "int4"])
def test_quantized_weights(weights_: str) -> None:
    module, raw = rx.Module.parse(model("None", 96, "n")), weights(96)
    made = [rx.compile(module, t, weights=weights_, device=d) for t, d in ((TARGET, "emulated"), ("cpu", "cpu"))]
    ids = np.random.default_rng(3).integers(0, 50, 7)
    got, want = (e.bind(e.prepare(raw))(ids) for e in made)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("target", "device", "message"),
    [
        (TARGET, "cuda:x", "expected device 'cuda:0', another number or 'emulated', got 'cuda:x'"),
        (TARGET, "cpu", "expected device 'cuda:0', another number or 'emulated', got 'cpu'"),
        ("cpu", "cuda:0", "expected device 'cpu' for code of a CPU, got 'cuda:0'"),
        ("cuda:sm_10", None, "expected target 'cuda:' and one of"),
    ],
)
def test_devices_of_nobody(target: str, device: str | None, message: str) -> None:
    with pytest.raises(rx.RelaxError, match=message):
        rx.compile(rx.Module.parse(TAKE), target, device=device)


def test_the_command_line_runs_on_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    executable = compiled(PRODUCT)
    executable.save(tmp_path / "m.relax")
    assert "\ntarget: cuda:sm_80 with a host of x86_64-" in str(executable.report)
    assert cli.run(["info", str(tmp_path / "m.relax")]) == 0
    shown = capsys.readouterr().out
    assert "kernels for 'cuda:sm_80': " in shown
    assert "\ntarget: cuda:sm_80 with a host of x86_64-" in shown
    assert "blocks of 128x1x1 threads" in shown
    write_safetensors(tmp_path / "raw.safetensors", ONES)
    names = {n: str(tmp_path / n) for n in ("m.relax", "raw.safetensors", "p.safetensors", "out.npz")}
    assert cli.run(["prepare", names["m.relax"], names["raw.safetensors"], "-o", names["p.safetensors"]]) == 0
    run = ["run", names["m.relax"], "--weights", names["p.safetensors"], "--random", "--dim", "n=3", "-o", names["out.npz"]]
    assert cli.run([*run, "--device", "emulated"]) == 0
    assert np.load(names["out.npz"])["output0"].shape == (3, 40)
    assert cli.run([*run, "--device", "cpu"]) == 1
    assert "expected device 'cuda:0', another number or 'emulated', got 'cpu'" in capsys.readouterr().err


def test_the_threads_context_stays_what_it_was() -> None:
    """Torch's current device is that of the thread's context."""
    executable = compiled(PRODUCT)
    executable.bind(executable.prepare(ONES))
    x = np.ones((3, 24), np.float32)
    executable(x)
    device = executable._library.loaded.device

    def expect_none() -> None:
        assert device.driver.made("cuCtxGetCurrent") == 0

    expect_none()
    there = on_device(executable, x)
    for _ in range(3):
        result = executable(there)
        expect_none()
    assert (result.numpy() == 24).all()
    executable.wait()
    expect_none()
    del result, there
    expect_none()
