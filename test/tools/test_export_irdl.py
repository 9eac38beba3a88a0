"""``relax-opt --export-irdl`` describes the dialect to a stock ``mlir-opt``: one that knows nothing of us reads our IR.

The wheel of the bindings carries such a tool, a separate program with its own copy of MLIR.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from relaxir.dialect.context import new_context
from relaxir.dialect.errors import RelaxError
from relaxir.dialect.parser import parse_module
from relaxir.module import Module

ROOT = Path(__file__).resolve().parents[1]
STOCK = Path(sys.executable).with_name("torch-mlir-opt")


@pytest.fixture(scope="module")
def irdl(tmp_path_factory):
    path = tmp_path_factory.mktemp("irdl") / "relax.irdl"
    tool = Path(sys.executable).with_name("relax-opt")
    path.write_text(subprocess.run([tool, "--export-irdl"], check=True, capture_output=True, text=True).stdout)
    return path


def stock_opt(irdl: Path, text: str) -> subprocess.CompletedProcess[str]:
    command = [STOCK, f"--irdl-file={irdl}", "--split-input-file", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def modules_of(folder: str) -> list[str]:
    """What the lit files of a folder hold that is valid, printed."""
    found, context = list[str](), new_context()
    for path in sorted((ROOT / folder).glob("*.mlir")):
        for part in re.split(r"^// -----.*$", path.read_text(), flags=re.M):
            try:
                found.append(str(Module(parse_module(part, "-", context))))
            except RelaxError:
                continue
    return found


@pytest.mark.parametrize("folder", ["dialect", "transforms"])
def test_a_stock_mlir_opt_reads_and_prints_our_modules(irdl, folder):
    modules = modules_of(folder)
    assert len(modules) > 10
    done = stock_opt(irdl, "\n// -----\n".join(modules))
    assert done.returncode == 0, done.stderr
    printed = re.split(r"^// -----.*$", done.stdout, flags=re.M)
    assert [p.strip() for p in printed] == [m.strip() for m in modules]


def test_a_stock_mlir_opt_refuses_what_the_dialect_does_not_have(irdl):
    text = 'func.func @f(%x: tensor<2xf32>) { "relax.{}"(%x) : (tensor<2xf32>) -> tensor<2xf32> return }'
    unknown = stock_opt(irdl, text.replace("{}", "nope"))
    assert unknown.returncode != 0
    assert "relax.nope" in unknown.stderr
    arity = stock_opt(irdl, text.replace("{}", "matmul"))
    assert arity.returncode != 0
    assert "expects" in arity.stderr or "expected" in arity.stderr
