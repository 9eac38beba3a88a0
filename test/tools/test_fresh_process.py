"""A pass needs nothing that only other passes import: each runs first in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from support.random_pipelines import ELEMENTS, PASSES

MODULE = """
func.func private @helper0(%x: tensor<2x2xf32>) -> tensor<2x2xf32> { return %x : tensor<2x2xf32> }
func.func @main(%x: tensor<2x2xf32> {relax.name = "x"}, %w: tensor<2x2xf32> {relax.name = "w"}) -> tensor<2x2xf32>
    attributes {relax.num_input = 1 : i64} {
  %0 = call @helper0(%w) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "relax.permute_dims"(%0) {axes = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = "relax.matmul"(%x, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}
"""

# What an empty pipeline imports all of them need; it is imported once, and a fork has nothing else.
SCRIPT = """
import importlib, os, sys
import relaxir.dialect.bindings
from relaxir.tools.relax_opt import run

def forked(pipeline, end):
    child = os.fork()
    if not child:
        code = 1
        try:
            code = run([path, f"--pass-pipeline=builtin.module({pipeline})", "-o", os.devnull])
            end()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]

def tell():
    os.write(told, " ".join(m for m in sys.modules if m.startswith(("relaxir.", "torch_mlir."))).encode())

path, *pipelines = sys.argv[1:]
needed, told = os.pipe()
assert forked("", tell) == 0
for name in os.read(needed, 1 << 16).decode().split():
    importlib.import_module(name)
before = {m for m in sys.modules if m.startswith("relaxir")}
assert not any("transforms" in m for m in before), before
for pipeline in pipelines:
    if forked(pipeline, lambda: None):
        print("failed:", pipeline)
"""


def test_every_pass_runs_first(tmp_path):
    path = tmp_path / "module.mlir"
    path.write_text(MODULE)
    pipelines = [next((e for e in ELEMENTS if e.partition("{")[0] == name), name) for name in PASSES]
    assert len(pipelines) > 20
    done = subprocess.run([sys.executable, "-c", SCRIPT, path, *pipelines], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
