"""``relaxir profile``: kernels with times, bytes and operations, traces, and each mistake."""

from __future__ import annotations

import ctypes
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import relaxir as rx
from relaxir.lowering import backend as backends
from relaxir.lowering.cuda.emulator.driver import Library
from relaxir.profiling import profile, report_page
from relaxir.profiling.limits import DeviceLimits, MachineLimits, measured_limits
from relaxir.runtime.cuda import device_speed
from relaxir.runtime.cuda.device import Device
from relaxir.tools import cli

MODEL = """
func.func @main(%x: tensor<?x64xf32, {sym = ["n"]}> {relax.name = "x"}, %c: tensor<1xf32> {relax.name = "count"},
    %w: tensor<64x64xf32> {relax.name = "w"})
    -> (tensor<?x64xf32, {sym = ["n"]}> {relax.name = "y"}, tensor<1xf32> {relax.name = "count"})
    attributes {relax.num_input = 2 : i64, relax.state = {count = dense<0.0> : tensor<1xf32>},
                relax.symbol_ranges = {n = [1, 64]}} {
  %one = "relax.full"() {value = 1.0 : f64} : () -> tensor<1xf32>
  %next = "relax.add"(%c, %one) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %h = "relax.matmul"(%x, %w) : (tensor<?x64xf32, {sym = ["n"]}>, tensor<64x64xf32>) -> tensor<?x64xf32, {sym = ["n"]}>
  %y = "relax.softmax"(%h) {axis = -1 : i64} : (tensor<?x64xf32, {sym = ["n"]}>) -> tensor<?x64xf32, {sym = ["n"]}>
  return %y, %next : tensor<?x64xf32, {sym = ["n"]}>, tensor<1xf32>
}
"""
LIMITS = MachineLimits(1, 1e9, 1e9, 0, 0)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profile")
    (folder / "model.mlir").write_text(MODEL)
    executable = rx.compile(folder / "model.mlir")
    executable.save(folder / "model.relax")
    np.save(folder / "x.npy", np.ones((3, 64), np.float32))
    executable.prepare({"w": np.eye(64, dtype=np.float32)}, folder / "prepared.safetensors")
    return folder


def test_kernels_have_times_bytes_and_operations(artifact: Path):
    executable, x = rx.load(artifact / "model.relax"), np.ones((6, 64), np.float32)
    told = profile(executable, {"x": x}, artifact / "prepared.safetensors", seconds=0.01, limits=LIMITS)
    kinds = {k.kind: k for k in told.kernels}
    product = kinds["contraction"]
    assert product.calls == 1
    assert product.ops == ("relax.packed_matmul",)
    assert product.flops == 2 * 6 * 64 * 64
    assert product.bytes == 4 * (64 * 64 + 2 * 6 * 64)
    assert product.where.endswith('model.mlir":9:8')
    assert 0 < product.seconds < told.clocked_seconds
    assert product.share == pytest.approx(product.flops / 1e9 / product.seconds)
    assert product.bound == "compute"
    assert kinds["rows"].ops == ("relax.softmax",)
    assert told.rounds >= 5
    begins = [begin for _, begin, _, _ in told.events]
    assert begins == sorted(begins)
    assert executable(x)[0, 0] == pytest.approx(1 / 64)
    assert executable.state["count"][0] == 1  # its own state is as it was


def test_weights_that_are_bound_are_those_of_the_profile(artifact: Path):
    """As of a model that ``relaxir.transformers.load`` gave, whose prepared weights are in a cache."""
    executable, x = rx.load(artifact / "model.relax"), np.ones((6, 64), np.float32)
    with pytest.raises(rx.RelaxError, match="weights"):
        profile(executable, {"x": x}, seconds=0.01, limits=LIMITS)
    executable.bind(artifact / "prepared.safetensors")
    held = executable.weights
    told = profile(executable, {"x": x}, seconds=0.01, limits=LIMITS)
    assert sum(k.calls for k in told.kernels if k.kind == "contraction") == 1
    assert executable.weights == held
    assert held.keys() == executable.manifest.prepared_weights.keys()
    assert held.fingerprint == executable.fingerprint


def test_the_command_line(artifact: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(artifact)
    monkeypatch.setattr("relaxir.profiling.code_clocks.measured_limits", lambda loops, threads: LIMITS)
    call = ["profile", "model.relax", "--weights", "prepared.safetensors", "--random", "--dim", "n=3", "--seconds", "0"]
    assert cli.run([*call, "--trace", "trace.json"]) == 0
    out = capsys.readouterr().out
    assert "@main: " in out
    assert "\nbetween kernels" in out
    events = json.loads(Path("trace.json").read_text())["traceEvents"]
    assert events[0]["name"] == "@main"
    assert {e["ph"] for e in events} == {"X"}
    assert "relax.softmax" in {e["args"].get("ops") for e in events}
    assert cli.run([*call, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"entry", "rounds", "seconds", "clocked_seconds", "limits", "kernels", "arena", "compilation"} < set(told)


def test_the_page_has_all_and_loads_nothing(artifact: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(artifact)
    monkeypatch.setattr("relaxir.profiling.code_clocks.measured_limits", lambda loops, threads: LIMITS)
    call = ["profile", "model.mlir", "--random", "--dim", "n=3", "--seconds", "0", "-o", "report.html"]
    assert cli.run(call) == 0  # a module, with random weights
    page = Path("report.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    titles = re.findall("<h[12]>(.*?)</h[12]>", page)
    assert [t.split(":")[0] for t in titles] == [
        "model.mlir", "Kernels", "Roofline", "Memory of intermediate results", "Preparation of the weights", "Compilation",
    ]  # fmt: skip
    for picture in re.findall("<svg.*?</svg>", page, re.S):
        ElementTree.fromstring(picture)
    assert "<td>softmax</td><td>model.mlir:10:8</td>" in page
    assert "relax-lift-transform-params" in page
    assert f"{4 * 3 * 64} B at " in page  # what the product hands to the softmax


def test_weights_may_be_raw(artifact: Path):
    executable, x = rx.load(artifact / "model.relax"), np.ones((2, 64), np.float32)
    prepared = executable.prepare({"w": np.eye(64, dtype=np.float32)})
    told = profile(executable, {"x": x}, prepared, seconds=0, limits=LIMITS)
    assert told.preparation is not None
    times = told.preparation.times
    assert min(times.read, times.compute, times.write) > 0
    assert sum([times.read, times.compute]) < told.preparation.seconds
    assert [name for name, _ in told.compilation.stages] == ["kernels", "other lowering", "LLVM"]
    assert told.arena_bytes == 4 * 2 * 64 + 64  # the product, and the next count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "x=x.npy"], "expected --weights or --random for 1 weight"),
        (["--weights", "prepared.safetensors"], "expected --input x=FILE.npy (f32[n, 64]), or --random"),
    ],
)
def test_mistakes(
    artifact: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(artifact)
    assert cli.run(["profile", "model.relax", *arguments]) == 1
    assert capsys.readouterr().err == f"error: {message}\n"


def test_code_for_other_machines_is_refused():
    other = rx.compile(rx.Module.parse(MODEL), "cpu:x86-64-v2")
    with pytest.raises(rx.RelaxError, match=r"expected code that was compiled for this machine \(.*\), got code for x86-64-v2"):
        profile(other, {"x": np.ones((1, 64), np.float32)}, limits=LIMITS)


def test_code_of_backends_without_clocks_is_refused(monkeypatch: pytest.MonkeyPatch):
    other = rx.compile(rx.Module.parse(MODEL))
    monkeypatch.setitem(backends._BACKENDS, "cpu", replace(backends._BACKENDS["cpu"], profiling=None))
    with pytest.raises(rx.RelaxError, match=r"expected code of a backend that can be profiled, got code of 'cpu'"):
        profile(other, {"x": np.ones((1, 64), np.float32)}, limits=LIMITS)


def test_limits_are_measured():
    loops = backends.backend_named("cpu").make_profiling().limit_loops()
    limits = measured_limits(loops, 1)
    assert limits.flops > 1e6
    assert limits.bandwidth > 1e6


def test_limits_are_loosened_by_caches():
    limits = MachineLimits(2, 1e9, 1e9, own_cache=100, last_cache=1000)
    assert limits.least_seconds(10, 10**6, held=999) == (1e-8, "compute")
    assert limits.least_seconds(10, 100, held=10**6) == (1e-8, "compute")
    assert limits.least_seconds(10, 1000, held=10**6) == (1e-6, "memory")
    assert limits.best(MachineLimits(2, 5e8, 2e9, 0, 0)) == MachineLimits(2, 1e9, 2e9, 100, 1000)


def test_kernels_that_are_one_in_sizes_alone_are_told_apart() -> None:
    """Code of theirs is merged; in a profile each has its own operations."""
    b, sizes = rx.Builder(), (64, 96, 160)
    with b.function("main"):
        x = b.input("x", (8, 64), "f32")
        b.output(*(b.matmul(x, b.weight(f"w{n}", (64, n), "f32")) for n in sizes))
    executable = rx.compile(b.build())
    weights = {f"w{n}": np.ones((64, n), np.float32) for n in sizes}
    told = profile(executable, {"x": np.ones((8, 64), np.float32)}, executable.prepare(weights), seconds=0.01, limits=LIMITS)
    assert sorted(k.flops or 0 for k in told.kernels if k.kind == "contraction") == [2 * 8 * 64 * n for n in sizes]


def test_products_of_integers_count_as_those_of_floats() -> None:
    b = rx.Builder()
    with b.function("main"):
        x, q = b.input("x", (8, 64), "i8"), b.weight("q", (64, 96), "i8")
        wide = [b.dequantize(v, b.full((), 0.5, "f32"), b.full((), 0, "i8")) for v in (x, q)]
        b.output(b.matmul(*wide))
    executable, x = rx.compile(b.build()), np.ones((8, 64), np.int8)
    told = profile(executable, {"x": x}, executable.prepare({"q": np.ones((64, 96), np.int8)}), seconds=0.01, limits=LIMITS)
    (product,) = [k for k in told.kernels if k.kind == "contraction"]
    assert product.flops == 2 * 8 * 64 * 96


@pytest.fixture(scope="module")
def on_gpu() -> rx.Executable:
    """Bound to the same weights as the artifact, on an emulated GPU."""
    executable = rx.compile(rx.Module.parse(MODEL), "cuda:sm_80", device="emulated")
    executable.bind(executable.prepare({"w": np.eye(64, dtype=np.float32)}))
    return executable


def test_kernels_on_a_gpu_are_timed_by_its_driver(on_gpu: rx.Executable):
    """Shares are of the rate of what a kernel multiplies by: a product of f32 by fused multiply-adds, 64 lanes of them."""
    x, limits = np.ones((6, 64), np.float32), DeviceLimits("GPU", 1e9, 1e12, 1e9, 0)
    told = profile(on_gpu, {"x": x}, on_gpu.prepare({"w": np.eye(64, dtype=np.float32)}), seconds=0, limits=limits)
    kinds = {k.kind: k for k in told.kernels}
    product = kinds["contraction"]
    assert product.calls >= 1
    assert product.flops == 2 * 6 * 64 * 64
    assert product.bytes == 4 * (64 * 64 + 2 * 6 * 64)
    assert 0 < product.seconds < told.clocked_seconds
    memory = product.bytes / 1e9
    assert product.share == pytest.approx(product.calls * max(memory, product.flops / 128e9) / product.seconds)
    assert product.bound == "memory"
    assert kinds["rows"].ops == ("relax.softmax",)
    begins = [begin for _, begin, _, _ in told.events]
    assert begins[0] == 0
    assert begins == sorted(begins)
    assert told.arena_bytes >= 4 * 6 * 64
    assert told.compilation is None, "the code is not made again"
    assert on_gpu.state["count"][0] == 0, "its own state is as it was"


def test_counts_of_an_emulated_gpu_are_called_no_times(
    artifact: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(artifact)
    call = ["profile", "model.mlir", "--target", "cuda:sm_80", "--device", "emulated", "--random", "--dim", "n=3"]
    assert cli.run([*call, "--seconds", "0", "-o", "gpu.html", "--trace", "gpu.json"]) == 0
    out = capsys.readouterr().out
    note = "emulated: times are instructions of threads, a picosecond each, which are no times of a GPU, and have no limit"
    assert f"\n{note}\n" in out
    assert re.search(r"\nbetween kernels +0\.0 us +0\.0%", out)
    assert note in Path("gpu.html").read_text()
    assert "<h2>Roofline" not in Path("gpu.html").read_text()
    kernels = [e for e in json.loads(Path("gpu.json").read_text())["traceEvents"] if e["cat"] == "kernel"]
    assert {"relax.softmax", "relax.packed_matmul"} <= {e["args"]["ops"] for e in kernels}


def test_what_a_gpu_can_do_is_asked_and_measured(on_gpu: rx.Executable, monkeypatch: pytest.MonkeyPatch):
    def elapsed(self: Library, result: int, first: int, last: int) -> None:
        ctypes.c_float.from_address(result).value = 2.0

    assert on_gpu.library.speed().bandwidth == 0
    monkeypatch.setattr(device_speed, "_BYTES", 1 << 20)
    monkeypatch.setattr(Device, "is_emulated", False)
    monkeypatch.setattr(Library, "_cuEventElapsedTime", elapsed)
    speed = on_gpu.library.speed()
    assert (speed.multiprocessors, speed.clock, speed.l2_bytes) == (132, 1e9, 50 << 20)
    assert speed.bandwidth == pytest.approx((2 << 20) / 2e-3)
    told = profile(on_gpu, {"x": np.ones((6, 64), np.float32)}, on_gpu.prepare({"w": np.eye(64, dtype=np.float32)}), seconds=0)
    assert told.limits == DeviceLimits(speed.name, 132e9, 2048 * 132e9, speed.bandwidth, 50 << 20)
    assert told.note == ""
    assert "<h2>Roofline" in report_page("model", told)


def test_limits_of_a_gpu_take_rates_of_kernels():
    limits = DeviceLimits("GPU", 1e9, 1e12, 1e9, 1000)
    assert limits.least_seconds(2000, 10, held=2000, rate=2) == (1e-6, "compute")
    assert limits.least_seconds(2000, 2000, held=2000, rate=2) == (2e-6, "memory")
    assert limits.least_seconds(2000, 2000, held=1000, rate=2) == (1e-6, "compute"), "all of it stays in the cache"
    assert limits.best(DeviceLimits("GPU", 1e9, 1e12, 2e9, 1000)).bandwidth == 2e9
    assert DeviceLimits("emulated", 0, 0, 0, 0).least_seconds(2000, 2000, held=2000, rate=2)[0] == 0


def test_code_of_a_cpu_has_no_launches():
    library = rx.compile(rx.Module.parse(MODEL)).library
    for ask in (library.launches, library.speed):
        with pytest.raises(rx.RelaxError, match="got code of a CPU"):
            ask()
