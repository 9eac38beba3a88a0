"""The machine code of the benchmark's cases: what is printed, and that kernels which spill registers are named."""

from __future__ import annotations

import pytest
from benchmark import gpu_kernels

from relaxir.lowering.cuda.assemble import Resources
from support.device_kernels import DeviceKernel


def test_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_kernels.main(["--cases", "attention-12x512x64"]) == 0
    _, ampere, hopper, last = capsys.readouterr().out.splitlines()
    assert ampere.split()[:2] == ["attention-12x512x64", "cuda:sm_80"]
    assert hopper.split()[1] == "cuda:sm_90a"
    assert all(line.split()[4] == "0" and line.endswith("HMMA,LDGSTS") for line in (ampere, hopper))
    assert last == "0 kernels spill registers, or are warned of"


@pytest.mark.parametrize("worse", [Resources(8, spill_loads=4), Resources(8, warnings=("(C7510) slow",))])
def test_what_spills_is_named_and_fails(
    worse: Resources, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [DeviceKernel("good", Resources(8), ()), DeviceKernel("bad", worse, ())]
    monkeypatch.setattr(gpu_kernels, "kernels_of", lambda case, targets: {"cuda:sm_80": found})
    assert gpu_kernels.main(["--cases", "matmul-512"]) == 1
    out = capsys.readouterr().out
    assert "  @bad: Resources(" in out
    assert "@good" not in out


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu_kernels.main(["--cases", "unknown"])
    assert "expected cases to match 'unknown'" in capsys.readouterr().err
