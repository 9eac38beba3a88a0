"""The machine code of the benchmark's cases: what is printed and kept; kernels that are not as they have to be fail it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from benchmark import gpu_kernels
from benchmark.comparison.cases import CASES
from benchmark.gpu.machine_code import CaseCode, complaints

from relaxir.lowering.cuda.assemble import Resources
from relaxir.lowering.cuda.kernels.attention.plan import AttentionPlan
from relaxir.lowering.cuda.kernels.attention.template import PlannedAttention
from relaxir.lowering.cuda.kernels.attention.warpgroup_plan import WarpgroupAttentionPlan
from relaxir.lowering.cuda.kernels.products.plan import parse_plan
from relaxir.lowering.cuda.kernels.products.shape import FactorShape, ProductShape
from relaxir.lowering.cuda.kernels.products.template import PlannedProduct
from relaxir.lowering.cuda.kernels.products.warpgroup_plan import parse_warpgroup_plan
from relaxir.lowering.cuda.plan_choices import BuiltFunction
from relaxir.lowering.cuda.sass import Instruction
from support.device_kernels import DeviceKernel

_WARPS = "tile=128x128x32 warps=2x2 stages=4 by=bf16 copies=16:16 raster=8 store=8"
_WARPGROUPS = "warpgroups=2 tile=128x256x64 stages=4 by=bf16 raster=8 store=8 blocks=132"


def kernel(*opcodes: str, resources: Resources = Resources(8)) -> DeviceKernel:  # noqa: B008
    return DeviceKernel("k", resources, tuple(Instruction(opcode, "") for opcode in opcodes))


def product(plan: str, rows: int | None = 4096) -> PlannedProduct:
    factor = FactorShape(along_k=True, copy=16)
    shape = ProductShape(rows, 4096, 4096, 1, "bf16", factor, factor, 8)
    parsed = parse_warpgroup_plan(plan) if plan.startswith("warpgroups") else parse_plan(plan)
    return PlannedProduct(cast("Any", None), shape, parsed)


def said(found: DeviceKernel, plan: object = None, target: str = "cuda:sm_80") -> list[str]:
    return complaints({"k": found}, {"f": BuiltFunction(plan, ("k",))}, target)


def test_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_kernels.main(["--cases", "attention-12x512x64"]) == 0
    _, ampere, hopper, last = capsys.readouterr().out.splitlines()
    assert ampere.split()[:2] == ["attention-12x512x64", "cuda:sm_80"]
    assert hopper.split()[1] == "cuda:sm_90a"
    assert all(line.split()[4] == "0" and line.endswith("HMMA,LDGSTS") for line in (ampere, hopper))
    assert last == "0 kernels are not as they have to be"


@pytest.mark.parametrize(
    "worse",
    [
        kernel(resources=Resources(8, spill_loads=4)),
        kernel(resources=Resources(8, warnings=("(C7510) slow",))),
        kernel(resources=Resources(8, stack=8)),
        kernel("LDL.64"),
        kernel("STL"),
    ],
)
def test_spills_warnings_and_local_memory_fail(worse: DeviceKernel) -> None:
    assert len(said(worse)) == 1
    assert not said(kernel("LDG.E.128"))


@pytest.mark.parametrize(
    ("plan", "opcodes"),
    [
        (_WARPS, ("HMMA", "LDGSTS")),
        (_WARPS.replace("by=bf16", "by=s8"), ("IMMA", "LDGSTS")),
        (_WARPS.replace("by=bf16", "by=fma"), ("LDGSTS",)),
        (_WARPS.replace("16:16", "0:0"), ("HMMA",)),
        (_WARPGROUPS, ("HGMMA", "UTMALDG")),
        (_WARPGROUPS.replace("by=bf16", "by=e4m3"), ("QGMMA", "UTMALDG")),
    ],
)
def test_products_have_the_instructions_of_their_plan(plan: str, opcodes: tuple[str, ...]) -> None:
    """Each is missed when it is not there."""
    assert not said(kernel(*opcodes), product(plan))
    for missing in opcodes:
        (line,) = said(kernel(*(o for o in opcodes if o != missing)), product(plan))
        assert line == f"@k of plan '{plan}' has no {missing}"


def test_attention_has_the_instructions_of_its_plan() -> None:
    """Kernels that multiply are as many as plans."""
    by_warps, by_warpgroups = object.__new__(AttentionPlan), object.__new__(WarpgroupAttentionPlan)
    for plan, opcodes in ((by_warps, ("HMMA", "LDGSTS")), (by_warpgroups, ("HGMMA", "UTMALDG"))):
        planned = _Attention(cast("Any", None), plan, None)
        assert not said(kernel(*opcodes), planned)
        assert said(kernel(opcodes[0]), planned) == [f"@k of plan 'attention' has no {opcodes[1]}"]
        assert len(said(kernel("FFMA"), planned)) == 1


class _Attention(PlannedAttention):
    def __str__(self) -> str:
        return "attention"


def test_large_products_are_by_warpgroups_where_there_are_such() -> None:
    found = kernel("HMMA", "LDGSTS")
    assert not said(found, product(_WARPS))
    (line,) = said(found, product(_WARPS), "cuda:sm_90a")
    assert line == f"none of 1 large products of 16-bit floats is by warpgroups: {_WARPS}"
    assert not said(found, product(_WARPS, rows=64), "cuda:sm_90a")
    assert not said(found, product(_WARPS, rows=None), "cuda:sm_90a")
    assert not said(kernel("HGMMA", "UTMALDG"), product(_WARPGROUPS), "cuda:sm_90a")


_FOUND = CaseCode("matmul-512", "cuda:sm_80", 2, 96, 0, 505, ["LDGSTS"], [])


def test_a_complaint_fails_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    worse = replace(_FOUND, complaints=["@k has local memory"])
    monkeypatch.setattr(gpu_kernels, "found_of", lambda case, targets: iter([worse]))
    assert gpu_kernels.main(["--cases", "matmul-512", "--targets", "cuda:sm_80"]) == 1
    assert capsys.readouterr().out.endswith("  @k has local memory\n1 kernels are not as they have to be\n")


def test_what_was_found_is_kept_and_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A complaint that is in the file still fails."""
    file, seen = tmp_path / "there" / "kernels.jsonl", list[str]()

    def found_of(case: Any, targets: list[str]) -> Any:
        for target in targets:
            seen.append(f"{case.name} {target}")
            yield replace(_FOUND, case=case.name, target=target, complaints=["slow"] if case.name == "matmul-1024" else [])

    monkeypatch.setattr(gpu_kernels, "found_of", found_of)
    command = ["--output", str(file), "--targets", "cuda:sm_80", "--cases"]
    assert gpu_kernels.main([*command, "matmul-512"]) == 0
    assert gpu_kernels.main([*command, "matmul-512", "matmul-1024"]) == 1
    assert gpu_kernels.main([*command, "matmul-512", "matmul-1024"]) == 1
    assert seen == ["matmul-512 cuda:sm_80", "matmul-1024 cuda:sm_80"]
    assert [json.loads(line)["case"] for line in file.read_text().splitlines()] == ["matmul-512", "matmul-1024"]


def test_files_are_cases_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that ``suite.py`` has."""
    seen = list[str]()
    monkeypatch.setattr(gpu_kernels, "found_of", lambda case, _: seen.append(case.name) or iter(()))
    assert gpu_kernels.main([]) == 0
    assert seen == list(CASES)
    assert any(case.file for case in CASES.values())


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu_kernels.main(["--cases", "unknown"])
    assert "expected cases to match 'unknown'" in capsys.readouterr().err
