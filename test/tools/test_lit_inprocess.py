"""The lit format of this suite: which RUN lines it runs itself, and that a crash or a hang fails one test only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.lit_inprocess import Step, plan

SUPPORT = Path(__file__).resolve().parents[1]

#: In a module of their own, for lit's workers find them by their names.
TOOLS = """
import os, signal

def crash(argv):
    os.kill(os.getpid(), signal.SIGSEGV)

def echo(argv):
    print(*argv[1:])
    os.write(2, b"from C++")
    return argv.count("fail")

"""

CONFIG = """
import sys
sys.path[:0] = [{support!r}, {root!r}]
import made_up_tools
from support import lit_inprocess

config.name = "made up"
config.test_format = lit_inprocess.InProcess(tools=dict(crash=made_up_tools.crash, echo=made_up_tools.echo))
config.suffixes = [".mlir"]
config.test_source_root = config.test_exec_root = {root!r}
"""


@pytest.mark.parametrize(
    "line",
    [
        "cat %s | filecheck %s",
        "relax-opt a; relax-opt b",
        "relax-opt a && relax-opt b",
        "relax-opt *.mlir",
        "A=1 relax-opt a",
        "! relax-opt a",
        "not",
        "relax-opt a | tee b",
    ],
)
def test_lines_for_the_shell(line: str) -> None:
    assert plan(line) is None


def test_lines_it_runs() -> None:
    steps = plan("not relax-opt a --pass='x y' 2>&1 | filecheck b < c > d")
    assert steps == [
        Step(["relax-opt", "a", "--pass=x y"], inverted=True, redirects=[(">&", 2, "1")]),
        Step(["filecheck", "b"], inverted=False, redirects=[("<", 0, "c"), (">", 1, "d")]),
    ]


def lit(root: Path, tests: dict[str, str]) -> str:
    (root / "lit.cfg.py").write_text(CONFIG.format(support=str(SUPPORT), root=str(root)))
    (root / "made_up_tools.py").write_text(TOOLS)
    for name, run_line in tests.items():
        (root / f"{name}.mlir").write_text(f"// RUN: {run_line}\n// CHECK: hello\n")
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", "-j1", str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_a_crash_fails_one_test(tmp_path: Path) -> None:
    output = lit(tmp_path, {"bad": "crash", "good": "echo hello | filecheck %s", "other": "echo bye"})
    assert "FAIL: made up :: bad.mlir" in output
    assert "killed by SIGSEGV" in output
    assert "PASS: made up :: good.mlir" in output
    assert "PASS: made up :: other.mlir" in output


def test_failures_show_what_happened(tmp_path: Path) -> None:
    output = lit(
        tmp_path,
        {
            "code": "echo fail",
            "inverted": "not echo hello",
            "check": "echo bye | filecheck %s",
            "merged": "echo bye 2>&1 | filecheck %s --check-prefix=NONE",
            "traceback": "filecheck --no-such-flag",
        },
    )
    assert output.count("FAIL: made up") == 5
    assert "echo: exit code 1\nfail" in output
    assert "echo: exit code 0\nhello" in output
    assert "from C++" in output


def test_redirections(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("hello from a file")
    tests = {"input": f"filecheck %s < {tmp_path}/in.txt", "output": f"echo hello > {tmp_path}/out.txt"}
    assert lit(tmp_path, tests).count("PASS: made up") == 2
    assert (tmp_path / "out.txt").read_text() == "hello\n"
