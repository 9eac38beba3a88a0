"""``python -m relaxir.lowering.cuda.emulator``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relaxir.lowering.cuda.emulator.__main__ import main
from support.ptx import kernel


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "k.ptx"
    path.write_text(kernel("add.u32 %r3, %r2, 1;", ".shared .align 4 .b8 buf[16]; "))
    return str(path)


def test_kernels_are_listed(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([text]) == 0
    assert capsys.readouterr().out == "k: 2 parameters, 10 instructions, 0 bytes of shared and 0 of local memory\n"


def test_a_kernel_runs(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([text, "--run", "k", "--block", "64", "i32[64]=arange", "u32[64]=new", "--save", str(tmp_path)]) == 0
    assert (np.load(tmp_path / "arg1.npy") == np.arange(64) + 1).all()
    assert main([text, "--run", "k", "--block", "64", f"i32[64]={tmp_path}/arg0.npy", "i32[64]=zeros"]) == 0
    assert "argument 1: [ 1  2  3 ... 62 63 64]" in capsys.readouterr().out


@pytest.mark.parametrize(("message", "arguments"), [
    ("bounds in k: global load of 4 bytes", ["f32[32]=random", "f32[64]=new"]),
    ("expected an argument like 512, f32:0.5 or f32[64]=random, got 'some'", ["some", "1"]),
    ("expected a type like f32, bf16 or i64, got 'x7'", ["x7[8]=new", "1"]),
    ("expected 2 arguments, got 1", ["i64:5"]),
    ("expected code for sm_80 or older, got sm_90a", ["--arch", "sm_80"]),
    ("No such file", ["f32[8]=there_is_none.npy", "1"]),
])  # fmt: skip
def test_errors(message: str, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([text, "--run", "k", "--block", "64", *arguments]) == 1
    assert message in capsys.readouterr().err
