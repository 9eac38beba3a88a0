"""The GPU's checks: that they find wrong numbers, run on the emulator, and say clearly when there is no GPU."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
import torch
from benchmark import gpu_check
from benchmark.gpu import checks, place
from benchmark.gpu.checks import CHECKS
from benchmark.gpu.place import Place, no_gpu

_EMULATED = Place.named("emulated")


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu_check.main([]) == 2
    assert capsys.readouterr().out.startswith("nothing was checked, no figure was measured: torch ")


def test_an_unknown_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla V100")
    assert no_gpu() == "Tesla V100 has compute capability 7.0, for which there is no target"


def test_what_no_time_is_left_for_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "found.json"
    options = ["--device", "emulated", "--minutes", "0", "--checks", "product-4096", "--output", str(path)]
    assert gpu_check.main(options) == 0
    assert "product-4096       not measured: no time was left" in capsys.readouterr().out
    assert json.loads(path.read_text())["results"] == [{"check": "product-4096", "skipped": "no time was left"}]


def test_a_check_that_ends_badly_or_never_costs_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = gpu_check._parser().parse_args(["--device", "emulated"])
    script = tmp_path / "check.py"
    monkeypatch.setattr(gpu_check, "__file__", str(script))
    script.write_text("raise ValueError('wrong')")
    assert gpu_check._checked("c", options, 60) == {"check": "c", "failed": "ValueError: wrong"}
    script.write_text("import time; time.sleep(60)")
    assert gpu_check._checked("c", options, 0.5) == {"check": "c", "failed": "no end after 0 s"}
    script.write_text("print('[]')")
    assert gpu_check._checked("c", options, 60)["lines"] == []


@pytest.mark.parametrize(
    "name", ["model-mlp", *(name for name in CHECKS if not name.startswith("model") and name != "product-8192")]
)
def test_checks_run_on_the_emulator(name: str) -> None:
    """All that is measured, but what only differs in size there; the models are those of end_to_end/test_cuda_models."""
    lines = CHECKS[name](_EMULATED)
    assert lines
    assert all(line.found for line in lines)
    assert (lines[0].ratio is None) == name.startswith("model")


class _Clock:
    """Time as a GPU's events would tell it, which only calls let pass."""

    now = 0.0

    def event(self, enable_timing: bool) -> _Clock:
        assert enable_timing
        return _Clock()

    def record(self) -> None:
        self.now = _Clock.now

    def elapsed_time(self, end: _Clock) -> float:
        return 1e3 * (end.now - self.now)


def test_times_are_of_calls_that_are_compiled_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", _Clock().event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    monkeypatch.setattr(place, "_stream", lambda: None)
    calls = [0, 0]

    def call(which: int, seconds: float) -> None:
        calls[which] += 1
        _Clock.now += 2.0 if calls[which] <= 5 else seconds

    gpu = Place("cuda:0", "cuda:sm_90a")
    got = gpu.times(lambda: call(0, 0.003), lambda: call(1, 0.001), most=9)
    assert got == pytest.approx([0.003, 0.001])
    assert calls == [7 * (6 + 1) + 8, 7 * (9 + 1) + 8]


def test_wrong_numbers_are_found() -> None:
    right = torch.ones(8)
    checks._close(right + 0.01, right, "sum")
    with pytest.raises(AssertionError, match=r"sum: off by 0\.03 of 1"):
        checks._close(right + 0.03, right, "sum")


def test_all_that_is_measured_has_a_goal() -> None:
    assert {"product-4096", "product-8192", "attention", "decode-bf16", "decode-int4", "row-int4", "softmax"} < set(CHECKS)
