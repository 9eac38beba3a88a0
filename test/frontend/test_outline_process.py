"""The process in which torch-mlir runs: it may crash, hang or be killed, and importing goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from relaxir import RelaxError
from relaxir.frontend.outline_process import Lowering

NEGATED = """
func.func @main(%arg0: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> {
  %0 = torch.aten.neg %arg0 : !torch.vtensor<[3],f32> -> !torch.vtensor<[3],f32>
  return %0 : !torch.vtensor<[3],f32>
}"""

#: torch-mlir's decomposition of it dereferences nothing.
CRASHING = """
func.func @main(%arg0: !torch.vtensor<[],f32>) -> !torch.vtensor<[?,0],si64> {
  %0 = torch.aten.nonzero %arg0 : !torch.vtensor<[],f32> -> !torch.vtensor<[?,0],si64>
  return %0 : !torch.vtensor<[?,0],si64>
}"""


@pytest.fixture(scope="module")
def lowering():
    made = Lowering()
    yield made
    made.close()


def pid_of(lowering: Lowering) -> int:
    assert lowering._process is not None
    return lowering._process.pid


def test_one_process_lowers_all(lowering):
    assert "arith.negf" in lowering.lowered_text(NEGATED, "aten.neg")
    first = pid_of(lowering)
    assert first != os.getpid()
    assert "arith.negf" in lowering.lowered_text(NEGATED, "aten.neg")
    assert pid_of(lowering) == first


def test_a_crash_is_an_error_and_the_next_op_has_a_new_process(lowering):
    lowering.lowered_text(NEGATED, "aten.neg")
    first = pid_of(lowering)
    with pytest.raises(RelaxError, match="torch-mlir crashed while it lowered it"):
        lowering.lowered_text(CRASHING, "aten.nonzero")
    assert "arith.negf" in lowering.lowered_text(NEGATED, "aten.neg")
    assert pid_of(lowering) != first


def test_one_that_was_killed_between_ops_is_replaced(lowering):
    lowering.lowered_text(NEGATED, "aten.neg")
    os.kill(pid_of(lowering), signal.SIGKILL)
    lowering._process.wait()
    assert "arith.negf" in lowering.lowered_text(NEGATED, "aten.neg")


def test_one_that_does_not_answer_is_ended(lowering):
    lowering.lowered_text(NEGATED, "aten.neg")
    process = lowering._process
    os.kill(process.pid, signal.SIGSTOP)
    lowering.timeout = 0.1
    with pytest.raises(RelaxError, match=r"torch-mlir took more than 0\.1 s to lower it"):
        lowering.lowered_text(NEGATED, "aten.neg")
    assert process.wait() == -signal.SIGKILL
    lowering.timeout = 120.0
    assert "arith.negf" in lowering.lowered_text(NEGATED, "aten.neg")


def test_a_fork_has_a_process_of_its_own(lowering):
    lowering.lowered_text(NEGATED, "aten.neg")
    first = pid_of(lowering)
    child = os.fork()
    if not child:
        fine = "arith.negf" in lowering.lowered_text(NEGATED, "aten.neg") and pid_of(lowering) != first
        lowering.close()
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert "arith.negf" in lowering.lowered_text(NEGATED, "aten.neg")
    assert pid_of(lowering) == first


def test_importing_the_package_starts_nothing():
    code = "import relaxir.frontend.outline_process as p; import sys; print(p.lowering._process, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "False"]
