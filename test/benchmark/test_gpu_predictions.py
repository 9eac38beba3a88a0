"""Predicted times of whole cases: sums of what their kernels say, none of which is left out; a file that is gone on with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmark import gpu_predictions
from benchmark.comparison.cases import CASES
from benchmark.gpu.predictions import limit_of, predict, predict_case

import relaxir as rx
from relaxir.dialect.dtypes import numpy_dtype
from relaxir.lowering.cuda.cost.kernel_time import START
from relaxir.lowering.cuda.cuda_target import ARCHITECTURES
from support.recorded_launches import LaunchWork, recording


def _module() -> rx.Module:
    """A table, whose index is checked, a product whose k is cut, attention, a norm."""
    b = rx.Builder()
    with b.function("main"):
        x = b.take(b.input("table", (100, 2048), "bf16"), b.input("x", (64,), "i64"), axis=0)
        y = b.matmul(x, b.permute_dims(b.weight("w", (512, 2048), "bf16"), axes=[1, 0]))
        heads = b.reshape(y, (1, 8, 64, 64))
        b.output(b.softmax(b.attention(heads, heads, heads)), b.rms_norm(y, b.weight("g", (512,), "bf16"), axes=[-1]))
    return b.build()


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_every_launch_of_a_call_is_predicted(target: str) -> None:
    module, narrow = _module(), numpy_dtype("bf16")
    inputs = {"table": np.zeros((100, 2048), narrow), "x": np.zeros(64, np.int64)}
    found = predict(module, inputs, target)
    executable = rx.compile(module, target, device="emulated")
    with recording(apart=[kernel["name"] for kernel in executable.manifest.data["cuda"]["kernels"]]) as launched:
        executable.bind(executable.prepare({"w": np.zeros((512, 2048), narrow), "g": np.zeros(512, narrow)}))
        executable(**inputs)
        launched.clear()
        executable(**inputs)
    assert [launch.name for launch in found] == [w.kernel if isinstance(w, LaunchWork) else "copy" for w in launched]
    assert {launch.kind for launch in found} >= {"product", "attention", "kernel"}
    adds_parts = [launch for launch in found if not launch.seconds]
    assert all(launch.kind == "product" for launch in adds_parts)
    assert len(adds_parts) <= 1
    assert all(launch.seconds >= START for launch in found if launch.seconds)


def test_a_block_is_counted_as_it_runs() -> None:
    b = rx.Builder()
    with b.function("main"):
        b.output(b.add(b.input("x", (1024, 1024)), b.input("y", (1024, 1024))))
    executable, x = rx.compile(b.build(), "cuda:sm_80", device="emulated"), np.zeros((1024, 1024), np.float32)
    with recording() as launched:
        executable(x, x)
    (work,) = (w for w in launched if isinstance(w, LaunchWork))
    assert work.touched * work.blocks == 3 * x.nbytes
    assert work.f32_operations * work.blocks == x.size
    assert 0 < work.instructions <= work.written * work.threads // 32


def test_a_case_is_the_sum_of_its_launches() -> None:
    found = predict_case(CASES["mlp-b1"], "cuda:sm_80")
    assert found.seconds == pytest.approx(sum(found.by_kind.values()))
    assert found.launches == 2
    assert found.bound == "memory"
    assert 0.3 < found.share < 0.9


def test_limits_are_of_the_type_that_weights_have() -> None:
    work = {"flops": 10**12, "size": 10**6}
    hopper = ARCHITECTURES["sm_90a"]
    f32, bf16, int8 = (limit_of(work, weights, hopper)[0] for weights in ("f32", "bf16", "int8"))
    assert f32 / bf16 == hopper.tensor["bf16"] / 256
    assert bf16 / int8 == 2
    assert limit_of({"flops": 1, "size": 10**9}, "f32", hopper) == (10**9 / hopper.part.bandwidth, "memory")


def test_a_file_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.jsonl"
    command = ["--cases", "gelu*", "--targets", "sm_80", "--output", str(file)]
    gpu_predictions.main(command)
    first = file.read_text()
    monkeypatch.setattr(gpu_predictions, "predict_case", None)
    gpu_predictions.main(command)
    assert file.read_text() == first
    out = capsys.readouterr().out
    assert out.startswith("PREDICTED, none of it measured\n| case | cuda:sm_80: time")
    assert "| `gelu-1024x1024` | " in out


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu_predictions.main(["--cases", "unknown"])
    assert "expected cases to match 'unknown'" in capsys.readouterr().err
