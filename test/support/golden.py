"""Writes the golden files of the current format version: an artifact, weights prepared for it, and what it computes.

    PYTHONPATH=test python -m support.golden

Files of a version are written once and stay: ``test/runtime/test_golden.py`` loads those of all versions. Their code is for a
processor that every x86-64 machine of the last fifteen years can stand in for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import relaxir as rx
from relaxir.lowering.manifest import VERSION
from relaxir.weights import write_safetensors

__all__ = ["GOLDEN", "main"]

GOLDEN = Path(__file__).parents[1] / "runtime/golden"
TARGET = "cpu:x86-64-v2"
#: Prepared and copied weights, a symbol, state that calls update, and a check at run time.
MODULE = """
func.func @main(%x: tensor<?x4xf32, {sym = ["n"]}> {relax.name = "x"},
                %rows: tensor<?xi64, {sym = ["n"]}> {relax.name = "rows"},
                %count: tensor<1xf32> {relax.name = "count"}, %w: tensor<8x4xf32> {relax.name = "fc.weight"},
                %by: tensor<8xf32> {relax.name = "scale"})
    -> (tensor<?x8xf32, {sym = ["n"]}> {relax.name = "y"}, tensor<1xf32> {relax.name = "count"})
    attributes {relax.num_input = 3 : i64, relax.state = {count = dense<0.0> : tensor<1xf32>}} {
  %one = "arith.constant"() {value = dense<1.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %next = "relax.add"(%count, %one) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %t = "relax.permute_dims"(%w) {axes = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %p = "relax.matmul"(%x, %t) : (tensor<?x4xf32, {sym = ["n"]}>, tensor<4x8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %s = "relax.multiply"(%p, %by) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<8xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  %g = "relax.take"(%s, %rows) {axis = 0 : i64} : (tensor<?x8xf32, {sym = ["n"]}>, tensor<?xi64, {sym = ["n"]}>)
    -> tensor<?x8xf32, {sym = ["n"]}>
  %y = "relax.add"(%g, %next) : (tensor<?x8xf32, {sym = ["n"]}>, tensor<1xf32>) -> tensor<?x8xf32, {sym = ["n"]}>
  return %y, %next : tensor<?x8xf32, {sym = ["n"]}>, tensor<1xf32>
}
"""


def main() -> None:
    """Refuses to write over files that are there: what was shipped has to load, not what would be written today."""
    folder = GOLDEN / f"v{VERSION}"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    raw = {"fc.weight": rng.standard_normal((8, 4), np.float32), "scale": rng.standard_normal(8, np.float32)}
    x, rows = rng.standard_normal((3, 4), np.float32), np.array([2, 0, 1])
    write_safetensors(folder / "raw.safetensors", raw)
    exe = rx.compile(rx.Module.parse(MODULE), TARGET, cache=False)
    exe.save(folder / "model")
    exe.prepare(folder / "raw.safetensors", folder / "prepared.safetensors")
    exe.bind(folder / "prepared.safetensors")
    np.savez(folder / "calls.npz", x=x, rows=rows, first=exe(x, rows), second=exe(x, rows))


if __name__ == "__main__":
    main()
