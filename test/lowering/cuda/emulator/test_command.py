"""``python -m relaxir.lowering.cuda.emulator``."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from relaxir.lowering.cuda import emulator
from relaxir.lowering.cuda.emulator.__main__ import main
from support.ptx import kernel


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "k.ptx"
    path.write_text(kernel("add.u32 %r3, %r2, 1;", ".shared .align 4 .b8 buf[16]; "))
    return str(path)


def test_the_readme_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its program and its command, with a kernel that doubles."""
    readme = (Path(emulator.__file__).parent / "README.md").read_text()
    (program,), (command,) = re.findall(r"```python\n(.*?)```", readme, re.S), re.findall(r"^python -m .*$", readme, re.M)
    parameters = ".param .u64 x, .param .u64 y, .param .u32 n"
    (tmp_path / "kernel.ptx").write_text(f""".version 8.0
      .target sm_90a
      .address_size 64
      .visible .entry kernel({parameters}) {{
        .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .f32 %f<2>;
        ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.s32 %r3, %r1, 128, %r2; mul.wide.u32 %rd3, %r3, 4;
        add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
        ld.global.f32 %f1, [%rd1]; add.rn.f32 %f1, %f1, %f1; st.global.f32 [%rd2], %f1;
        ret;
      }}""")
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip().endswith("1022.]")
    assert main(shlex.split(command)[3:]) == 0
    assert "1022.]" in capsys.readouterr().out


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
