"""``relaxir tune``: plans measured from the command line, which ``relaxir compile`` then takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from relaxir import tuning
from relaxir.dialect.errors import RelaxError
from relaxir.tools import cli
from support.device_cases import Case, product


@pytest.fixture
def model(tmp_path: Path) -> str:
    Case(product("n", 64, 64)).module().save(tmp_path / "model.mlir")
    return str(tmp_path / "model.mlir")


def _tune(model: str, *more: str) -> int:
    folder = str(Path(model).parent / "plans")
    options = ["--target", "cuda:sm_80", "--device", "emulated", "--candidates", "2", "-o", folder]
    return cli.run(["tune", model, *options, *more])


def test_a_model_is_tuned_and_compiled_with_what_was_found(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _tune(model, "--dim", "n=24", "--weights", "bf16") == 0
    out, err = capsys.readouterr()
    assert "the emulator counts instructions of threads, a picosecond each: what is fastest there need not be on a GPU" in err
    folder = Path(model).parent / "plans"
    (plan,) = json.loads((folder / "sm_80.json").read_text())["plans"]
    assert plan["key"] in out
    assert "(2 plans)" in out
    command = ["compile", model, "--target", "cuda:sm_80", "--plan-table", str(folder), "--print-pipeline"]
    assert cli.run(command) == 0
    assert f'relax-plan-cuda-kernels{{table="{folder / "sm_80.json"}"}}' in capsys.readouterr().out


def test_a_plan_that_fails_is_printed(model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(first: object, other: object) -> None:
        raise RelaxError("expected resources")

    monkeypatch.setattr(tuning, "_expect_same", failing)
    assert _tune(model, "--dim", "n=24", "--weights", "bf16") == 0
    assert re.search(r"^  failed: tile=.* store=8: expected resources$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "error: expected --dim n=SIZE for input 'x' (n x 64 x bf16)"),
        (["--dim", "n=8", "--candidates", "0"], "error: expected --candidates from 1 on, got 0"),
        (["--entry", "other"], "error: expected --entry to name one of main, got other"),
    ],
)
def test_mistakes(model: str, more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _tune(model, *more) == 1
    assert message.partition("(")[0] in capsys.readouterr().err
