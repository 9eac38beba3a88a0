"""What the manifest predicts is what a preparation holds, whatever is shared; results are those of the interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.dialect.reference.interpreter import evaluate
from relaxir.lowering.manifest import Manifest
from relaxir.runtime.library import EntryFunction, Library
from relaxir.runtime.prepare import PrepareProgress, PrepareReport
from relaxir.weights import Checkpoint, write_safetensors
from support.transform_generator import random_transform

PIPELINE = "relax-inline-private-functions,cse"
SIDE = 512
BYTES = SIDE * SIDE * 4


def raw_weights(manifest: Manifest, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {n: rng.integers(-3, 4, w.array.shape).astype(w.array.dtype) for n, w in manifest.raw_weights.items()}


def check(module: rx.Module, folder: Path) -> tuple[Manifest, PrepareReport]:
    """Prepares to a file: bit by bit what the transform function means, and as many bytes as predicted."""
    executable = rx.compile(module, pipeline=PIPELINE)
    raw = raw_weights(executable.manifest)
    write_safetensors(folder / "raw.safetensors", raw)
    report = executable.prepare(folder / "raw.safetensors", folder / "out.safetensors")
    prepared = Checkpoint(folder / "out.safetensors")
    for name, wanted in expected(module, raw).items():
        np.testing.assert_array_equal(prepared.get(name), wanted, strict=True)
    assert report.peak_bytes == report.predicted_peak_bytes == executable.manifest.peak_bytes
    return executable.manifest, report


def expected(module: rx.Module, raw: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of the transform function; weights that no result needs are not among the raw ones."""
    transform = module.functions["main_transform_params"]
    weights = {w.name: raw[w.name] if w.name in raw else np.zeros(w.shape, numpy_dtype(w.dtype)) for w in transform.weights}
    results = evaluate(module.ir.operation, transform.name, [], weights=weights)
    return dict(zip([r.name for r in transform.outputs], results, strict=True))


@pytest.fixture
def demands(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """By symbol, the arena bytes that compiled code asks for when it gets none."""
    found: dict[str, int] = {}
    plain = Library.function

    def asking(self: Library, symbol: str) -> EntryFunction:
        function = plain(self, symbol)

        def call(tensors: Any, symbols: Any, arena: int | None, size: int) -> int:
            found[symbol] = function(tensors, symbols, None, 0)
            return function(tensors, symbols, arena, size)

        call.library = self  # type: ignore[attr-defined]
        return call

    monkeypatch.setattr(Library, "function", asking)
    return found


@pytest.mark.parametrize("start", range(0, 24, 8))
def test_random_transforms(start: int, tmp_path: Path, demands: dict[str, int]) -> None:
    for seed in range(start, start + 8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        text = random_transform(seed, size=(5, 15, 30)[seed % 3], lazy=False, regions=seed % 4 == 0)
        demands.clear()
        manifest, _ = check(rx.Module.parse(text), folder)
        assert {s.symbol: s.arena_bytes for s in manifest.steps if s.symbol is not None} == demands, f"seed {seed}"


def scaled(weights: int, shared: str, prelude: str = "", value: str = "%s") -> rx.Module:
    """All weights times something that all share, then cast, then turned round: breadth first."""
    one, half, kinds = f"tensor<{SIDE}x{SIDE}xf32>", f"tensor<{SIDE}x{SIDE}xf16>", range(weights)
    arguments = ", ".join(f'%w{i}: {one} {{relax.name = "w{i}"}}' for i in kinds)
    lines = [f'%m{i} = "relax.multiply"(%w{i}, {value}) : ({one}, {shared}) -> {one}' for i in kinds]
    lines += [f'%c{i} = "relax.astype"(%m{i}) {{dtype = f16}} : ({one}) -> {half}' for i in kinds]
    lines += [f'%t{i} = "relax.permute_dims"(%c{i}) : ({half}) -> {half}' for i in kinds]
    named = ", ".join(f'{half} {{relax.name = "t{i}"}}' for i in kinds)
    taken = ", ".join(f'%t{i}: {half} {{relax.name = "t{i}"}}' for i in kinds)
    body = "\n".join([prelude, *lines])
    return rx.Module.parse(f"""
      func.func @main_transform_params({arguments}, %s: {shared} {{relax.name = "s"}}) -> ({named})
          attributes {{relax.num_input = 0 : i64, relax.transform_for = @main}} {{
        {body}
        return {", ".join(f"%t{i}" for i in kinds)} : {", ".join([half] * weights)}
      }}
      func.func @main({taken}) attributes {{relax.num_input = 0 : i64}} {{
        return
      }}""")


@pytest.mark.parametrize(
    ("shared", "shared_bytes"), [("tensor<f32>", 4), (f"tensor<{SIDE}xf32>", 4 * SIDE), (f"tensor<{SIDE}x{SIDE}xf32>", BYTES)]
)
def test_one_raw_weight_shared_by_all_takes_no_more_than_one_step(shared: str, shared_bytes: int, tmp_path: Path) -> None:
    manifest, _ = check(scaled(12, shared), tmp_path)
    assert len(manifest.steps) == 12
    assert len({s.symbol for s in manifest.steps}) == 1
    # The weight, what it shares, its result, and at most one intermediate value.
    assert manifest.peak_bytes <= 2.5 * BYTES + shared_bytes


def test_a_cheap_value_shared_by_all_takes_no_more_than_one_step(tmp_path: Path) -> None:
    shared = f"tensor<{SIDE}xf32>"
    manifest, _ = check(scaled(12, shared, f'%e = "relax.abs"(%s) : ({shared}) -> {shared}', "%e"), tmp_path)
    assert len(manifest.steps) == 12
    assert manifest.peak_bytes <= 2.5 * BYTES + 3 * 4 * SIDE


def test_joined_steps_use_little_scratch_memory(tmp_path: Path) -> None:
    """A large value that all share makes one step; what is between weights and results is there one at a time."""
    shared = f"tensor<{SIDE}x{SIDE}xf32>"
    manifest, _ = check(scaled(6, shared, f'%e = "relax.abs"(%s) : ({shared}) -> {shared}', "%e"), tmp_path)
    (step,) = manifest.steps
    assert step.arena_bytes <= 2.5 * BYTES


def test_buffers_of_a_large_step_go_before_one_that_needs_more_elsewhere(tmp_path: Path) -> None:
    """First much scratch memory, then a large result: both together would be more than either step needs."""
    text = """
      func.func @main_transform_params(%a: tensor<8x65536xf32> {relax.name = "a"}, %b: tensor<4x16384xf32> {relax.name = "b"})
          -> (tensor<8x8xf32> {relax.name = "a.p"}, tensor<16x4x16384xf32> {relax.name = "b.p"})
          attributes {relax.num_input = 0 : i64, relax.transform_for = @main} {
        %0 = "relax.permute_dims"(%a) : (tensor<8x65536xf32>) -> tensor<65536x8xf32>
        %1 = "relax.matmul"(%a, %0) : (tensor<8x65536xf32>, tensor<65536x8xf32>) -> tensor<8x8xf32>
        %2 = "relax.broadcast_to"(%b) : (tensor<4x16384xf32>) -> tensor<16x4x16384xf32>
        return %1, %2 : tensor<8x8xf32>, tensor<16x4x16384xf32>
      }
      func.func @main(%a: tensor<8x8xf32> {relax.name = "a.p"}, %b: tensor<16x4x16384xf32> {relax.name = "b.p"})
          attributes {relax.num_input = 0 : i64} {
        return
      }"""
    manifest, _ = check(rx.Module.parse(text), tmp_path)
    first, second = manifest.steps
    large = manifest.prepared_weights["b.p"].array.nbytes + manifest.raw_weights["b"].array.nbytes
    assert second.arena_bytes == 0
    assert manifest.peak_bytes < first.arena_bytes + large


class StopError(Exception):
    pass


def test_a_preparation_with_shared_weights_is_resumed(tmp_path: Path) -> None:
    def stop(progress: PrepareProgress) -> None:
        if progress.steps_done == 5:
            raise StopError

    module = scaled(12, "tensor<f32>")
    executable = rx.compile(module, pipeline=PIPELINE)
    raw = raw_weights(executable.manifest)
    write_safetensors(tmp_path / "raw.safetensors", raw)
    with pytest.raises(StopError):
        executable.prepare(tmp_path / "raw.safetensors", tmp_path / "out.safetensors", 1, stop)
    report = executable.prepare(tmp_path / "raw.safetensors", tmp_path / "out.safetensors")
    assert (report.steps_skipped, report.steps_run) == (5, 7)
    prepared = Checkpoint(tmp_path / "out.safetensors")
    for name, wanted in expected(module, raw).items():
        np.testing.assert_array_equal(prepared.get(name), wanted)


def test_threads_hold_no_more_than_one_step_each(tmp_path: Path) -> None:
    executable = rx.compile(scaled(12, "tensor<f32>"), pipeline=PIPELINE)
    write_safetensors(tmp_path / "raw.safetensors", raw_weights(executable.manifest))
    report = executable.prepare(tmp_path / "raw.safetensors", tmp_path / "out.safetensors", jobs=3)
    assert executable.manifest.peak_bytes <= report.peak_bytes <= report.predicted_peak_bytes


RESIDENT = """
import sys
import relaxir as rx
def status(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(key + ":"))
executable = rx.load(sys.argv[1])
base = status("VmRSS")
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")  # resets the peak
report = executable.prepare(sys.argv[2], sys.argv[3])
print(status("VmHWM") - base, report.peak_bytes)
"""


def test_resident_memory_is_that_of_one_step(tmp_path: Path) -> None:
    """24 weights of 1 MiB that all share one: 24 MiB in one step, were it to join them."""
    executable = rx.compile(scaled(24, f"tensor<{SIDE}x{SIDE}xf32>"), pipeline=PIPELINE)
    executable.save(tmp_path / "model.relax")
    write_safetensors(tmp_path / "raw.safetensors", raw_weights(executable.manifest))
    paths = [str(tmp_path / n) for n in ("model.relax", "raw.safetensors", "out.safetensors")]
    done = subprocess.run([sys.executable, "-c", RESIDENT, *paths], capture_output=True, check=True, text=True)
    above, predicted = map(int, done.stdout.split())
    assert above <= predicted + (4 << 20)  # allocator and Python objects
