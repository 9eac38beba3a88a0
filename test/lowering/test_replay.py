"""Every step between relax and LLVM can be printed and gone on with: the module's text is all that the next one needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from end_to_end.test_state import STEP

import relaxir as rx
from relaxir.dialect.bindings import ir
from relaxir.dialect.context import new_context
from relaxir.dialect.parser import parse_module
from relaxir.dialect.passes import manager
from relaxir.lowering.lower import lower
from relaxir.tools import cli, relax_opt
from support.stage_modules import MODULES
from support.stages import elements, llvm_text, lowered


def text_of(module: ir.Operation) -> str:
    """With places, which the report and checked code tell. Whether it is valid, the parser says."""
    return module.get_asm(enable_debug_info=True, assume_verified=True)


def printed(module: ir.Operation) -> str:
    return module.get_asm(assume_verified=True)


def without_places(text: str) -> str:
    """Without the files and lines of what run-time checks say: that of a dump is another one."""
    return re.sub(r'"/[^":]*\.mlir:\d+:\d+: ', '"', text)


@pytest.mark.parametrize(("name", "checked"), [*((name, False) for name in MODULES), ("state", True)])
def test_each_step_goes_on_from_the_text_of_the_one_before(name: str, checked: bool) -> None:
    direct, steps, seen = lowered(MODULES[name](), checked=checked, change=lambda _: []), elements(checked), list[str]()
    text, operation, context = text_of(direct), None, new_context()
    with manager.observing(lambda element, op: seen.append(printed(op))):
        lower(direct, ",".join(steps))
    for step, want in zip(steps, seen, strict=True):
        if name == "loop":  # no step counts on dialects that one before it has loaded
            context = new_context()
        parsed = parse_module(text, "-", context)
        operation = parsed.operation
        lower(operation, step)
        assert printed(operation) == want, f"{step} gives something else after printing and parsing what it starts from"
        text = text_of(operation)
    assert operation is not None
    assert llvm_text(operation) == llvm_text(direct)


def test_a_dump_has_every_step_and_relax_opt_goes_on_from_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, folder = tmp_path / "m.mlir", tmp_path / "dump"
    source.write_text(STEP.format(name="main", first=1))
    argv = ["compile", str(source), "-o", str(tmp_path / "m.relax")]
    assert cli.run(["compile", str(source), "--print-pipeline"]) == 0
    pipeline = capsys.readouterr().out.strip()
    assert cli.run([*argv, "--dump", str(folder)]) == 0
    lines = [line.split("  ", 1) for line in (folder / "passes.txt").read_text().splitlines()]
    assert pipeline == f"builtin.module({','.join(element for _, element in lines)})"
    files = sorted(p.name for p in folder.iterdir())
    stages = [name for name in files if name.endswith(".mlir")]
    assert [name[:2] for name in stages] == ["00", *(number for number, _ in lines)]
    assert files[len(stages) :] == [f"{len(stages)}-code.ll", f"{len(stages) + 1}-code.s", "passes.txt"]
    assert "define i64 @relaxir_main(" in (folder / files[-3]).read_text()
    last = (folder / stages[-1]).read_text()
    capsys.readouterr()
    for start in range(0, len(stages) - 1, 9):
        rest = ",".join(element for _, element in lines[start:])
        assert relax_opt.run([str(folder / stages[start]), f"--pass-pipeline=builtin.module({rest})"]) == 0
        assert without_places(capsys.readouterr().out) == without_places(last)


def test_the_environment_asks_for_dumps_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAXIR_DUMP", str(tmp_path / "all"))
    module = rx.Module.parse(STEP.format(name="main", first=1))
    first = [rx.compile(module), sorted(p.name for p in (tmp_path / "all").iterdir())][1]
    rx.compile(module)  # out of no cache, and what the first one left there is gone
    assert sorted(p.name for p in (tmp_path / "all").iterdir()) == first
    rx.compile(module, dump=tmp_path / "one", pipeline="symbol-dce")
    names = [p.name for p in sorted((tmp_path / "one").iterdir())]
    around = ("00-start", "01-check-scalars", "02-keep-checks", "03-symbol-dce", "04-expand-tuple-arguments", "05-set-target")
    assert names[:6] == [f"{n}.mlir" for n in around]


def test_a_dump_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(rx.RelaxError, match=r"cannot write '.*file': File exists"):
        rx.compile(rx.Module.parse(STEP.format(name="main", first=1)), dump=tmp_path / "file")
